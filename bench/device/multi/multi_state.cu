/*-------------------------------------------------------------------------
 *
 * multi_state.cu
 *	  Where the threads of a sort over several devices wait for each other; see
 *	  multi_state.h.
 *
 *-------------------------------------------------------------------------
 */
#include "multi/multi_state.h"

cudaError_t
gpusort_multi_barrier(GpuSortMulti *multi)
{
	GpuSortMultiBarrier *barrier = &multi->barrier;
	cudaError_t status;

	pthread_mutex_lock(&barrier->lock);
	if (++barrier->arrived == barrier->expected)
	{
		barrier->arrived = 0;
		barrier->turn++;
		pthread_cond_broadcast(&barrier->changed);
	}
	else
	{
		const uint32_t turn = barrier->turn;

		while (barrier->turn == turn && barrier->status == cudaSuccess)
			pthread_cond_wait(&barrier->changed, &barrier->lock);
	}
	status = barrier->status;
	pthread_mutex_unlock(&barrier->lock);
	return status;
}

cudaError_t
gpusort_multi_fail(GpuSortMulti *multi, cudaError_t status)
{
	GpuSortMultiBarrier *barrier = &multi->barrier;

	pthread_mutex_lock(&barrier->lock);
	if (barrier->status == cudaSuccess)
		__atomic_store_n(&barrier->status, status, __ATOMIC_RELAXED);
	pthread_cond_broadcast(&barrier->changed);
	pthread_mutex_unlock(&barrier->lock);
	return status;
}
