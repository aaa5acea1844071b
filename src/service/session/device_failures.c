/*-------------------------------------------------------------------------
 *
 * device_failures.c
 *	  Which failures of devices mean that the service needs a fresh start.
 *
 * A CUDA context that has failed does not recover, and only a new
 * process gets a new one.  But a restart costs all running sorts,
 * so that a single failure is no reason for it.  Where sorts are rare,
 * two in a row on one device are, as soon as nobody else is sorting:
 * however long apart they are, nothing has worked there in between.
 *
 * Main thread only.
 *
 *-------------------------------------------------------------------------
 */
#include "service/session/device_failures.h"

/* So many in a row, and a device is doubtful. */
#define DOUBTFUL_FAILURES 2

static uint32_t
known_device(uint32_t device)
{
	return device < GPUSORT_DEVICE_UNKNOWN ? device : GPUSORT_DEVICE_UNKNOWN;
}

/* Notes that a sort failed by its device, which is the number of one or UNKNOWN. */
void
gpusort_device_failed(GpuSortDeviceFailures *failures, uint32_t device)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	failures->at[failures->count++ % GPUSORT_FAILURES] = now.tv_sec;
	failures->in_a_row[known_device(device)]++;
}

/* Notes that a device has given rows out. */
void
gpusort_device_worked(GpuSortDeviceFailures *failures, uint32_t device)
{
	failures->in_a_row[known_device(device)] = 0;
	failures->in_a_row[GPUSORT_DEVICE_UNKNOWN] = 0;
}

/* What is to be thought of the devices now. */
GpuSortDeviceVerdict
gpusort_device_verdict(const GpuSortDeviceFailures *failures)
{
	time_t last = failures->at[(failures->count + GPUSORT_FAILURES - 1) % GPUSORT_FAILURES];
	unsigned most = 0;

	for (int i = 0; i <= GPUSORT_DEVICE_UNKNOWN; i++)
		most = failures->in_a_row[i] > most ? failures->in_a_row[i] : most;
	if (most >= GPUSORT_FAILURES ||
		(failures->count >= GPUSORT_FAILURES &&
		 last - failures->at[failures->count % GPUSORT_FAILURES] <= GPUSORT_FAILURE_SECONDS))
		return GPUSORT_DEVICE_LOST;
	return most >= DOUBTFUL_FAILURES ? GPUSORT_DEVICE_DOUBTFUL : GPUSORT_DEVICE_WORKS;
}
