/*-------------------------------------------------------------------------
 *
 * machine.h
 *	  The memory and the CPUs that this process may use: the machine's, or as
 *	  much of them as its container, or its unit of the system, is allowed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_MACHINE_H
#define GPUSORT_HOST_MACHINE_H

#include <stdint.h>

typedef struct GpuSortMachine
{
	uint64_t memory; /* bytes */
	int cpus;        /* at least 1 */
} GpuSortMachine;

extern const GpuSortMachine *gpusort_machine(void);
extern GpuSortMachine gpusort_machine_read(const char *root);

#endif /* GPUSORT_HOST_MACHINE_H */
