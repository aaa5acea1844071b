/*-------------------------------------------------------------------------
 *
 * check.cu
 *	  From a CUDA status to a GpuSortError; see check.h.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/device.h"

int
gpusort_fail(GpuSortError *error, GpuSortReason reason, const char *format, ...)
{
	va_list args;

	error->reason = reason;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return -1;
}

/* From now on, every use of the device fails with this text. */
static void
mark_dead(GpuSortCudaDevice *device, const char *text)
{
	pthread_mutex_lock(&device->lock);
	if (!device->dead)
	{
		snprintf(device->dead_text, sizeof(device->dead_text), "%s", text);
		__atomic_store_n(&device->dead, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&device->lock);
}

int
gpusort_cuda_failed(GpuSortCudaDevice *device, cudaError_t status, const char *call, GpuSortError *error)
{
	int name_length = (int) strcspn(call, "(");
	cudaError_t probe;

	/* Forget the error if it can be forgotten. */
	(void) cudaGetLastError();

	if (status == cudaErrorMemoryAllocation)
		return gpusort_fail(error, GPUSORT_REASON_NO_MEMORY, "%.*s: %s", name_length, call,
							cudaGetErrorString(status));

	gpusort_fail(error, GPUSORT_REASON_DEVICE, "%.*s: %s", name_length, call, cudaGetErrorString(status));
	if (device != NULL)
	{
		probe = cudaStreamQuery(0);
		if (probe != cudaSuccess && probe != cudaErrorNotReady)
			mark_dead(device, error->text);
		(void) cudaGetLastError();
	}
	return -1;
}
