/*-------------------------------------------------------------------------
 *
 * machine.h
 *	  The memory and the CPUs that this process may use: the machine's, or as
 *	  much of them as its container, or its unit of the system, is allowed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MACHINE_H
#define GPUSORT_MACHINE_H

#include <stdint.h>

typedef struct GpuSortMachine
{
	uint64_t memory; /* bytes */
	int cpus;        /* at least 1 */
} GpuSortMachine;

extern const GpuSortMachine *gpusort_machine(void);
extern uint64_t gpusort_machine_memory_limit(const GpuSortMachine *machine, uint64_t setting);
extern GpuSortMachine gpusort_machine_read(const char *root);

#endif /* GPUSORT_MACHINE_H */
