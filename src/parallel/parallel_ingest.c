/*-------------------------------------------------------------------------
 *
 * parallel_ingest.c
 *	  One process's part in the ingest of a sort to which several processes add rows.
 *
 * A worker joins the sort with a connection of its own; the leader writes with the writer of the sort that it has
 * begun.  Where the leader alone reads the rows the parts are GpuSortIngest nodes (exec/ingest.c), else the sorts
 * themselves (parallel_sort.c).
 *
 * All must make the same keys.  The leader settles before workers start how much of the strings is in the key, but may
 * leave the common prefixes that keys leave out (encode.c) to whoever comes first: every process keeps its first rows
 * back, chooses by these, and takes the choice of the process that was first.
 *
 * A worker tells of its rows when the service has confirmed them, once, in its entry of shared memory.  If any are
 * missing the leader's sum shows it.
 *
 * Each process makes the keys of the C library's collations by what it has read of the locale's files.  If that is not
 * the same in a worker, which a hash tells, it ends the work of all, and PostgreSQL sorts in the leader.
 *
 * LEGAL ORDER OF CALLS
 *	leader		create, once there is shared memory; for each sort start and, in shared memory before workers start,
 *				publish; rows; collect, when workers have left; reset at any time
 *	worker		join, which lays its keys out as lay_out_keys does, rows, leave
 *
 *-------------------------------------------------------------------------
 */
#include "parallel/parallel_ingest.h"

#include "access/parallel.h"
#include "server/reasons.h"
#include "server/shared.h"
#include "sort/few_values.h"
#include "sort/prefixes.h"
#include "utils/memutils.h"

static Size
prefixes_offset(int nworkers)
{
	return MAXALIGN(offsetof(GpuSortParallelIngestShared, put) + nworkers * sizeof(GpuSortPut));
}

static GpuSortPrefix *
shared_prefixes(GpuSortParallelIngestShared *shared)
{
	return (GpuSortPrefix *) ((char *) shared + prefixes_offset(shared->nworkers));
}

static Size
cutoff_offset(const GpuSortKeys *keys, int nworkers)
{
	return MAXALIGN(prefixes_offset(nworkers) + keys->sized * sizeof(GpuSortPrefix));
}

static GpuSortCutoffShared *
shared_cutoff(GpuSortParallelIngestShared *shared, const GpuSortKeys *keys)
{
	return (GpuSortCutoffShared *) ((char *) shared + cutoff_offset(keys, shared->nworkers));
}

/* Returns true if the sort that is under way is to give its first rows, not all. */
static bool
is_bounded(const GpuSortParallelIngest *ingest)
{
	return ingest->writer != NULL && ingest->writer->cutoff != NULL;
}

/* Returns the bytes of shared memory for so many workers. */
Size
gpusort_parallel_ingest_bytes(const GpuSortParallelIngest *ingest, int nworkers)
{
	return add_size(cutoff_offset(ingest->keys, nworkers), is_bounded(ingest) ? gpusort_cutoff_shared_bytes() : 0);
}

/* Makes what is in shared memory for so many workers; there is no sort to join yet. */
void
gpusort_parallel_ingest_create(GpuSortParallelIngest *ingest, GpuSortParallelIngestShared *shared, int nworkers)
{
	shared->token = 0;
	shared->nworkers = nworkers;
	shared->bounded = is_bounded(ingest);
	gpusort_shared_init_lock(&shared->lock);
	ingest->shared = shared;
}

/*
 * Starts a sort, to which rows go from now on, in this process by writer; writer and keys stay the caller's.
 * common_later: the keys have no common prefixes yet, but are laid out for some.
 */
void
gpusort_parallel_ingest_start(GpuSortParallelIngest *ingest, GpuSortWriter *writer, GpuSortKeys *keys,
							  bool common_later)
{
	ingest->writer = writer;
	ingest->keys = keys;
	ingest->common_later = common_later;
	ingest->settled = !common_later;
}

/* Lets workers that start after this join the sort; without one they have none to join. */
void
gpusort_parallel_ingest_publish(GpuSortParallelIngest *ingest)
{
	GpuSortParallelIngestShared *shared = ingest->shared;
	GpuSortWriter *writer = ingest->writer;

	memset(shared->put, 0, shared->nworkers * sizeof(GpuSortPut));
	shared->token = 0;
	if (writer == NULL)
		return;
	shared->token = gpusort_client_token(writer->client);
	shared->generation = gpusort_client_generation(writer->client);
	shared->job = writer->job;
	shared->verified = writer->tail > 0;
	shared->libc_hash = gpusort_keys_libc_hash(ingest->keys);
	shared->common_later = ingest->common_later;
	shared->common_chosen = !ingest->common_later;
	shared->drops_repeats = writer->repeats != NULL;
	shared->has_cutoff = shared->bounded && is_bounded(ingest);
	if (shared->has_cutoff)
		gpusort_cutoff_share(writer->cutoff, shared_cutoff(shared, ingest->keys));
	memcpy(shared_prefixes(shared), ingest->keys->prefixes, ingest->keys->sized * sizeof(GpuSortPrefix));
}

/* Adds what workers, which have all left, have put to *put. */
void
gpusort_parallel_ingest_collect(const GpuSortParallelIngest *ingest, GpuSortPut *put)
{
	const GpuSortParallelIngestShared *shared = ingest->shared;

	for (int i = 0; shared != NULL && i < shared->nworkers; i++)
	{
		put->rows += shared->put[i].rows;
		put->truncated += shared->put[i].truncated;
		put->bytes += shared->put[i].bytes;
		put->sum += shared->put[i].sum;
		put->dropped += shared->put[i].dropped;
	}
}

/* Forgets the sort. */
void
gpusort_parallel_ingest_reset(GpuSortParallelIngest *ingest)
{
	ingest->writer = NULL;
	ingest->common_later = false;
}

/*
 * Lays the keys of a worker out as those of all others are; false, with a reason, if it cannot make such keys, because
 * the locale's files have been replaced since the leader has read them.
 */
bool
gpusort_parallel_ingest_lay_out_keys(GpuSortParallelIngest *ingest, GpuSortFailure *failure)
{
	GpuSortParallelIngestShared *shared = ingest->shared;

	LWLockAcquire(&shared->lock, LW_SHARED);
	gpusort_keys_lay_out(ingest->keys, shared_prefixes(shared), shared->common_later);
	ingest->settled = shared->common_chosen;
	LWLockRelease(&shared->lock);
	if (gpusort_keys_libc_hash(ingest->keys) == shared->libc_hash)
		return true;
	return gpusort_failure_set(failure, GPUSORT_REASON_COLLATION,
							   "processes of the sort use different versions of a locale of the C library");
}

/*
 * Joins the sort that the leader has begun.  Returns false, with a reason, if it cannot.  The connection
 * belongs to the current memory context; overflow is as for a writer.
 */
bool
gpusort_parallel_ingest_join(GpuSortParallelIngest *ingest, GpuSortOverflow *overflow, GpuSortFailure *failure)
{
	GpuSortParallelIngestShared *shared = ingest->shared;

	if (shared->token == 0)
		return gpusort_failure_set(failure, GPUSORT_REASON_UNAVAILABLE, "there is no sort to join");
	if (!gpusort_parallel_ingest_lay_out_keys(ingest, failure))
		return false;
	ingest->client = gpusort_client_join(shared->token, shared->generation, false, failure);
	if (ingest->client == NULL)
		return false;
	gpusort_writer_init(&ingest->own_writer, ingest->client, ingest->keys, overflow, shared->job, shared->verified);
	if (shared->has_cutoff)
		ingest->own_writer.cutoff = gpusort_cutoff_join(shared_cutoff(shared, ingest->keys));
	else if (shared->drops_repeats)
		ingest->own_writer.repeats = gpusort_repeats_create(ingest->keys->words);
	ingest->writer = &ingest->own_writer;
	return true;
}

/* Hands over what this worker has put, and ends its part; false, with a reason, if it is not in the sort. */
bool
gpusort_parallel_ingest_leave(GpuSortParallelIngest *ingest, GpuSortFailure *failure)
{
	GpuSortWriter *writer = ingest->writer;
	bool left;

	*failure = writer->failure;
	left = (failure->reason == GPUSORT_REASON_NONE || gpusort_client_is_full(ingest->client)) &&
		gpusort_writer_finish(writer, failure) && gpusort_client_leave(ingest->client, failure);
	if (left)
		ingest->shared->put[ParallelWorkerNumber] = gpusort_writer_put(writer);
	gpusort_client_end(ingest->client);
	ingest->client = NULL;
	ingest->writer = NULL;
	return left;
}

/* Gives our keys the common prefixes of the process that chose first, which may be ours. */
static void
settle(GpuSortParallelIngest *ingest, const GpuSortPrefix *ours)
{
	GpuSortParallelIngestShared *shared = ingest->shared;
	GpuSortPrefix *chosen;

	ingest->settled = true;
	if (shared == NULL)
	{
		gpusort_keys_set_common_prefixes(ingest->keys, ours);
		return;
	}
	chosen = shared_prefixes(shared);
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	if (!shared->common_chosen)
		memcpy(chosen, ours, ingest->keys->sized * sizeof(GpuSortPrefix));
	shared->common_chosen = true;
	gpusort_keys_set_common_prefixes(ingest->keys, chosen);
	LWLockRelease(&shared->lock);
}

/*
 * Takes the common prefixes that another process has chosen, or none if nobody has: the keys are about to be used, and
 * this process has not looked at rows of its own to choose any.
 */
void
gpusort_parallel_ingest_settle_common_prefixes(GpuSortParallelIngest *ingest)
{
	if (likely(ingest->settled))
		return;
	settle(ingest, ingest->keys->prefixes);
}

/* Looks at our first rows, to settle the common prefixes. */
static void
choose_common_prefixes(GpuSortParallelIngest *ingest)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpusort choice", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller;
	GpuSortPrefix *ours;

	(void) gpusort_input_read_first(ingest->input, Max(GPUSORT_SAMPLE_ROWS, gpusort_few_values_rows(ingest->keys)));
	caller = MemoryContextSwitchTo(context);
	ours = palloc(ingest->keys->sized * sizeof(GpuSortPrefix));
	/* Statistics are left out: the leader has found that they say too little. */
	(void) gpusort_prefixes_choose(ingest->keys, ingest->input, true, 0, ours);
	for (int i = 0; i < ingest->keys->sized; i++)
	{
		const GpuSortPrefix *laid_out = &ingest->keys->prefixes[i];

		if (laid_out->settled)
			ours[i] = *laid_out;
		/* what the layout follows from: a worker that comes later makes its own from these */
		ours[i].length = laid_out->length;
		ours[i].settled = laid_out->settled;
		ours[i].known = laid_out->known;
	}
	gpusort_few_values_add(ingest->keys, ingest->input, ours);
	settle(ingest, ours);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}

/*
 * Puts the rows of the input, until there are none, or *stop says that none are wanted any more; stop may be NULL.
 * false if the input's next row was not taken; failure's reason says why no others will be, or is NONE if it is a long
 * row.
 */
bool
gpusort_parallel_ingest_rows(GpuSortParallelIngest *ingest, const volatile bool *stop, GpuSortFailure *failure)
{
	GpuSortInput *input = ingest->input;

	if (unlikely(!ingest->settled))
		choose_common_prefixes(ingest);
	return input->rows->kind->put_rows(input->rows, ingest->writer, input, stop, failure);
}
