/*-------------------------------------------------------------------------
 *
 * service_processes.c
 *	  All processes of the sort service that its supervisor has started and that have not ended.
 *
 * One of them is current, which is supervisor.c's to say; the others end their last sorts, or cannot be killed.
 *
 *-------------------------------------------------------------------------
 */
#include "server/service_processes.h"

#include <signal.h>

GpuSortServiceProcess gpusort_processes[GPUSORT_PROCESSES];

/* Returns one that there is none in; NULL: all are taken. */
GpuSortServiceProcess *
gpusort_processes_free(void)
{
	for (int i = 0; i < GPUSORT_PROCESSES; i++)
	{
		if (gpusort_processes[i].pid == 0)
			return &gpusort_processes[i];
	}
	return NULL;
}

/* Returns how many there are beside the current one, which may be NULL. */
int
gpusort_processes_beside(const GpuSortServiceProcess *current)
{
	int count = 0;

	for (int i = 0; i < GPUSORT_PROCESSES; i++)
		count += gpusort_processes[i].pid != 0 && &gpusort_processes[i] != current;
	return count;
}

/* Returns true if a living service has the pulse of a generation. */
static bool
pulse_is_used(uint32 generation)
{
	for (int i = 0; i < GPUSORT_PROCESSES; i++)
	{
		if (gpusort_processes[i].pid != 0 &&
			gpusort_processes[i].generation % GPUSORT_PULSES == generation % GPUSORT_PULSES)
			return true;
	}
	return false;
}

/* Returns the next generation whose pulse no living service uses. */
uint32
gpusort_processes_next_generation(void)
{
	uint32 generation = gpusort_shared_service().generation;

	do
		generation = generation == PG_UINT32_MAX ? 1 : generation + 1;
	while (pulse_is_used(generation));
	return generation;
}

/* Waits until all services have ended, but not long. */
static void
wait_for_end(void)
{
	for (int waited = 0; waited < GPUSORT_EXIT_WAIT_MS; waited += 10)
	{
		bool all = true;

		for (int i = 0; i < GPUSORT_PROCESSES; i++)
		{
			if (gpusort_process_has_ended(&gpusort_processes[i]))
				gpusort_process_remove_files(&gpusort_processes[i]);
			all &= gpusort_processes[i].pid == 0 || gpusort_processes[i].left_behind;
		}
		if (all)
			return;
		pg_usleep(10000L);
	}
}

/* Ends all services with the supervisor, or leaves behind what cannot be killed.  Waits for some seconds at most. */
void
gpusort_processes_end(void)
{
	for (int i = 0; i < GPUSORT_PROCESSES; i++)
	{
		if (gpusort_processes[i].pid == 0)
			continue;
		kill(gpusort_processes[i].pid, SIGTERM);
		gpusort_process_close(&gpusort_processes[i]);
	}
	wait_for_end();
	for (int i = 0; i < GPUSORT_PROCESSES; i++)
	{
		if (gpusort_processes[i].pid != 0)
			gpusort_process_kill(&gpusort_processes[i]);
	}
	wait_for_end();
	for (int i = 0; i < GPUSORT_PROCESSES; i++)
	{
		if (gpusort_processes[i].pid != 0)
			ereport(LOG,
					(errmsg("sort service (PID %d) was killed and does not end: it is left behind",
							(int) gpusort_processes[i].pid)));
	}
}
