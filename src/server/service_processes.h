/*-------------------------------------------------------------------------
 *
 * service_processes.h
 *	  All processes of the sort service that its supervisor has started and that have not ended.
 *
 * For supervisor.c alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_PROCESSES_H
#define GPUSORT_SERVICE_PROCESSES_H

#include "server/service_process.h"
#include "server/service_state.h"

/* One less than the number of pulses, so that there is always a generation with a free pulse. */
#define GPUSORT_PROCESSES (GPUSORT_PULSES - 1)

/* How long a service may take to end before it is killed, and then to vanish before it is left behind. */
#define GPUSORT_EXIT_WAIT_MS 2000

extern GpuSortServiceProcess gpusort_processes[GPUSORT_PROCESSES]; /* those with a pid */

extern GpuSortServiceProcess *gpusort_processes_free(void);
extern int gpusort_processes_beside(const GpuSortServiceProcess *current);
extern uint32 gpusort_processes_next_generation(void);
extern void gpusort_processes_end(void);

#endif /* GPUSORT_SERVICE_PROCESSES_H */
