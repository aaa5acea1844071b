/*-------------------------------------------------------------------------
 *
 * command_workers.c
 *	  Parallel workers for a command that sorts rows without a plan, or forms some.
 *
 * Beside the sort, if there is one, they share a struct of the command's own, which begins with GpuSortClaims.  What
 * they log, and the buffers that they use, count for the command, as they do in PostgreSQL's own builds of indexes.
 *
 * Legal order of calls.  The leader: prepare, when the sort has been begun in the service; launch, when what is shared
 * is filled in; finish, which waits for workers, and may be called again; end, when the sort has been detached.  A
 * worker: begin, attach its sort, end.
 *
 *-------------------------------------------------------------------------
 */
#include "parallel/command_workers.h"

#include "access/xact.h"
#include "parallel/claims.h"
#include "pgstat.h"
#include "server/installation.h"
#include "tcop/tcopprot.h"

/* Places in the table of contents of what is shared. */
#define KEY_SHARED  UINT64CONST(1)
#define KEY_SORT    UINT64CONST(2)
#define KEY_QUERY   UINT64CONST(3)
#define KEY_WAL     UINT64CONST(4)
#define KEY_BUFFERS UINT64CONST(5)

/* Makes a place in shared memory, which is zeroed. */
static void *
allocate(ParallelContext *context, uint64 key, Size bytes)
{
	void *memory = shm_toc_allocate(context->toc, bytes);

	memset(memory, 0, bytes);
	shm_toc_insert(context->toc, key, memory);
	return memory;
}

/*
 * Makes so many workers, or fewer, that will start in a function of this module, and moves what processes share of the
 * sort to their memory, if there is one.  Returns bytes of it, zeroed, for what the command shares; NULL: there are no
 * workers.
 */
void *
gpusort_command_workers_prepare(GpuSortCommandWorkers *workers, const char *entry, int wanted, Size bytes,
								GpuSortParallelSort *sort)
{
	const Size query = debug_query_string != NULL ? strlen(debug_query_string) + 1 : 0;
	ParallelContext *context;
	Size shared_sort;
	void *shared;

	EnterParallelMode();
	context = CreateParallelContext(gpusort_module_path(), entry, wanted);
	wanted = context->nworkers;
	shared_sort = sort != NULL ? gpusort_parallel_sort_estimate(sort, wanted) : 0;
	shm_toc_estimate_chunk(&context->estimator, bytes);
	shm_toc_estimate_chunk(&context->estimator, shared_sort);
	shm_toc_estimate_chunk(&context->estimator, mul_size(wanted, sizeof(WalUsage)));
	shm_toc_estimate_chunk(&context->estimator, mul_size(wanted, sizeof(BufferUsage)));
	if (query > 0)
		shm_toc_estimate_chunk(&context->estimator, query);
	shm_toc_estimate_keys(&context->estimator, query > 0 ? 5 : 4);
	InitializeParallelDSM(context);
	if (context->seg == NULL)
	{
		DestroyParallelContext(context);
		ExitParallelMode();
		return NULL;
	}
	workers->context = context;
	shared = allocate(context, KEY_SHARED, bytes);
	if (sort != NULL)
		gpusort_parallel_sort_initialize(sort, allocate(context, KEY_SORT, shared_sort), context->seg, wanted);
	workers->wal = allocate(context, KEY_WAL, mul_size(wanted, sizeof(WalUsage)));
	workers->buffers = allocate(context, KEY_BUFFERS, mul_size(wanted, sizeof(BufferUsage)));
	if (query > 0)
		memcpy(allocate(context, KEY_QUERY, query), debug_query_string, query);
	return shared;
}

/* Starts the workers. */
void
gpusort_command_workers_launch(const GpuSortCommandWorkers *workers)
{
	LaunchParallelWorkers(workers->context);
}

/* Returns how many processes there are, the leader among them. */
int
gpusort_command_workers_processes(const GpuSortCommandWorkers *workers)
{
	return 1 + (workers->context != NULL ? workers->context->nworkers_launched : 0);
}

/* Waits until workers have ended, and takes what they have counted; raises their errors. */
void
gpusort_command_workers_finish(const GpuSortCommandWorkers *workers)
{
	if (workers->context == NULL)
		return;
	WaitForParallelWorkersToFinish(workers->context);
	for (int i = 0; i < workers->context->nworkers_launched; i++)
		InstrAccumParallelQuery(&workers->buffers[i], &workers->wal[i]);
}

/* Gives back what was shared; workers have ended. */
void
gpusort_command_workers_end(GpuSortCommandWorkers *workers)
{
	if (workers->context == NULL)
		return;
	DestroyParallelContext(workers->context);
	workers->context = NULL;
	ExitParallelMode();
}

/* Begins a worker's work: from now on what it uses is counted. */
GpuSortCommandWorker
gpusort_command_worker_begin(shm_toc *toc)
{
	GpuSortCommandWorker worker = {.toc = toc, .shared = shm_toc_lookup(toc, KEY_SHARED, false)};

	if (!gpusort_claims_are_ours(worker.shared))
	{
		worker.shared = NULL;
		return worker;
	}
	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	InstrStartParallelQuery();
	return worker;
}

/* Attaches this process's part of the sort to what is shared of it. */
void
gpusort_command_worker_attach(const GpuSortCommandWorker *worker, GpuSortParallelSort *sort)
{
	gpusort_parallel_sort_attach(sort, shm_toc_lookup(worker->toc, KEY_SORT, false));
}

/* Ends a worker's work: tells what it has used. */
void
gpusort_command_worker_end(const GpuSortCommandWorker *worker)
{
	WalUsage *wal = shm_toc_lookup(worker->toc, KEY_WAL, false);
	BufferUsage *buffers = shm_toc_lookup(worker->toc, KEY_BUFFERS, false);

	InstrEndParallelQuery(&buffers[ParallelWorkerNumber], &wal[ParallelWorkerNumber]);
}
