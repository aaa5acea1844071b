/*-------------------------------------------------------------------------
 *
 * joint_ingest.c
 *	  One process's part in the ingest of a sort to which several processes add rows.
 *
 * A worker joins the sort with a connection of its own,
 * the leader writes with the writer of the sort that it has begun.
 * Below a Gather whose rows one process reads the parts are GpuSortIngest
 * nodes (ingest.c), else the GpuSort nodes themselves (joint_sort.c).
 *
 * All must make the same keys.  How much of its strings is in the key is settled by
 * the leader before workers start, but the common prefixes that keys leave out
 * (encode.c) may be left to whoever comes first: every process keeps its first rows
 * back, chooses by these, and takes the choice of the first one to say.
 *
 * A worker tells of its rows when the service has confirmed them, once, in its
 * entry of shared memory.  If any are missing the leader's sum shows it.
 *
 * Keys of the C library's collations are made by what each process has read of the locale's files.  If that
 * is not the same in a worker, which a hash tells, it takes no part, and the leader has PostgreSQL sort.
 *
 * Legal order of calls.  The leader: create, once there is shared memory; for each
 * sort start and, in shared memory before workers start, publish; rows; collect, when
 * workers have left; reset at any time.  A worker: join, rows, leave; join has its keys laid out, as lay_out_keys does.
 *
 *-------------------------------------------------------------------------
 */
#include "parallel/joint_ingest.h"

#include "access/parallel.h"
#include "server/reasons.h"
#include "server/shared.h"
#include "sort/few_values.h"
#include "sort/prefixes.h"
#include "utils/memutils.h"

static Size
prefixes_offset(int nworkers)
{
	return MAXALIGN(offsetof(GpuSortJointIngestShared, put) + nworkers * sizeof(GpuSortPut));
}

static GpuSortPrefix *
shared_prefixes(GpuSortJointIngestShared *shared)
{
	return (GpuSortPrefix *) ((char *) shared + prefixes_offset(shared->nworkers));
}

static Size
cutoff_offset(const GpuSortKeys *keys, int nworkers)
{
	return MAXALIGN(prefixes_offset(nworkers) + keys->sized * sizeof(GpuSortPrefix));
}

static GpuSortCutoffShared *
shared_cutoff(GpuSortJointIngestShared *shared, const GpuSortKeys *keys)
{
	return (GpuSortCutoffShared *) ((char *) shared + cutoff_offset(keys, shared->nworkers));
}

/* Returns the bytes of shared memory for so many workers; bounded: with room for a cutoff. */
Size
gpusort_joint_ingest_bytes(const GpuSortKeys *keys, int nworkers, bool bounded)
{
	return add_size(cutoff_offset(keys, nworkers), bounded ? gpusort_cutoff_shared_bytes() : 0);
}

/* Makes what is in shared memory, of bytes for so many workers; there is no sort to join yet. */
void
gpusort_joint_ingest_create(GpuSortJointIngestShared *shared, int nworkers, bool bounded)
{
	shared->token = 0;
	shared->nworkers = nworkers;
	shared->bounded = bounded;
	gpusort_shared_init_lock(&shared->lock);
}

/*
 * Rows go to a sort from now on, in this process by writer, which is the caller's, as are its
 * keys.  common_later: the keys have no common prefixes yet, but are laid out for some.
 */
void
gpusort_joint_ingest_start(GpuSortJointIngest *joint, GpuSortWriter *writer, GpuSortKeys *keys, bool common_later)
{
	joint->writer = writer;
	joint->keys = keys;
	joint->common_later = common_later;
	joint->settled = !common_later;
}

/* Lets workers that start after this join the sort; without one they have none to join. */
void
gpusort_joint_ingest_publish(GpuSortJointIngest *joint)
{
	GpuSortJointIngestShared *shared = joint->shared;
	GpuSortWriter *writer = joint->writer;

	memset(shared->put, 0, shared->nworkers * sizeof(GpuSortPut));
	shared->token = 0;
	shared->libc_differs = false;
	if (writer == NULL)
		return;
	shared->token = gpusort_client_token(writer->client);
	shared->generation = gpusort_client_generation(writer->client);
	shared->job = writer->job;
	shared->verified = writer->tail > 0;
	shared->libc_hash = gpusort_keys_libc_hash(joint->keys);
	shared->common_later = joint->common_later;
	shared->common_chosen = !joint->common_later;
	shared->has_cutoff = shared->bounded && writer->cutoff != NULL;
	if (shared->has_cutoff)
		gpusort_cutoff_share(writer->cutoff, shared_cutoff(shared, joint->keys));
	memcpy(shared_prefixes(shared), joint->keys->prefixes, joint->keys->sized * sizeof(GpuSortPrefix));
}

/* All workers have left: adds what they have put to *put. */
void
gpusort_joint_ingest_collect(const GpuSortJointIngest *joint, GpuSortPut *put)
{
	const GpuSortJointIngestShared *shared = joint->shared;

	for (int i = 0; shared != NULL && i < shared->nworkers; i++)
	{
		put->rows += shared->put[i].rows;
		put->truncated += shared->put[i].truncated;
		put->bytes += shared->put[i].bytes;
		put->sum += shared->put[i].sum;
		put->dropped += shared->put[i].dropped;
	}
}

/* There is no sort any more. */
void
gpusort_joint_ingest_reset(GpuSortJointIngest *joint)
{
	joint->writer = NULL;
	joint->common_later = false;
}

/*
 * Lays the keys of a worker out as those of all others are; false, with a reason, if it cannot make such keys, because
 * the locale's files have been replaced since the leader has read them.
 */
bool
gpusort_joint_ingest_lay_out_keys(GpuSortJointIngest *joint, GpuSortFailure *failure)
{
	GpuSortJointIngestShared *shared = joint->shared;

	LWLockAcquire(&shared->lock, LW_SHARED);
	gpusort_keys_lay_out(joint->keys, shared_prefixes(shared), shared->common_later);
	joint->settled = shared->common_chosen;
	LWLockRelease(&shared->lock);
	if (gpusort_keys_libc_hash(joint->keys) == shared->libc_hash)
		return true;
	shared->libc_differs = true;
	return gpusort_failure_set(failure, GPUSORT_REASON_COLLATION,
							   "processes of the sort have different versions of a locale of the C library");
}

/*
 * Joins the sort that the leader has begun; false, with a reason, if that is not to be.  The connection
 * belongs to the current memory context; overflow as for a writer.
 */
bool
gpusort_joint_ingest_join(GpuSortJointIngest *joint, GpuSortOverflow *overflow, GpuSortFailure *failure)
{
	GpuSortJointIngestShared *shared = joint->shared;

	if (shared->token == 0)
		return gpusort_failure_set(failure, GPUSORT_REASON_UNAVAILABLE, "there is no sort to join");
	if (!gpusort_joint_ingest_lay_out_keys(joint, failure))
		return false;
	joint->client = gpusort_client_join(shared->token, shared->generation, false, failure);
	if (joint->client == NULL)
		return false;
	gpusort_writer_init(&joint->own_writer, joint->client, joint->keys, overflow, shared->job, shared->verified);
	if (shared->has_cutoff)
		joint->own_writer.cutoff = gpusort_cutoff_join(shared_cutoff(shared, joint->keys));
	joint->writer = &joint->own_writer;
	return true;
}

/* Hands over what this worker has put, and ends its part; false, with a reason, if it is not in the sort. */
bool
gpusort_joint_ingest_leave(GpuSortJointIngest *joint, GpuSortFailure *failure)
{
	GpuSortWriter *writer = joint->writer;
	bool left;

	*failure = writer->failure;
	left = (failure->reason == GPUSORT_REASON_NONE || gpusort_client_is_full(joint->client)) &&
		gpusort_writer_finish(writer, failure) && gpusort_client_leave(joint->client, failure);
	if (left)
		joint->shared->put[ParallelWorkerNumber] = gpusort_writer_put(writer);
	gpusort_client_end(joint->client);
	joint->client = NULL;
	joint->writer = NULL;
	return left;
}

/* Makes the common prefixes of our keys those of the process that chose first: others, or ours. */
static void
settle(GpuSortJointIngest *joint, const GpuSortPrefix *ours)
{
	GpuSortJointIngestShared *shared = joint->shared;
	GpuSortPrefix *chosen;

	joint->settled = true;
	if (shared == NULL)
	{
		gpusort_keys_set_common_prefixes(joint->keys, ours);
		return;
	}
	chosen = shared_prefixes(shared);
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	if (!shared->common_chosen)
		memcpy(chosen, ours, joint->keys->sized * sizeof(GpuSortPrefix));
	shared->common_chosen = true;
	gpusort_keys_set_common_prefixes(joint->keys, chosen);
	LWLockRelease(&shared->lock);
}

/*
 * The keys are about to be used, and this process has not looked at rows of its own to choose common prefixes: takes
 * those that another has chosen; if nobody has there are to be none.
 */
void
gpusort_joint_ingest_settle_common_prefixes(GpuSortJointIngest *joint)
{
	if (likely(joint->settled))
		return;
	settle(joint, joint->keys->prefixes);
}

/* Looks at our first rows, to settle the common prefixes. */
static void
choose_common_prefixes(GpuSortJointIngest *joint)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpusort choice", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller;
	GpuSortPrefix *ours;

	(void) gpusort_input_read_first(joint->input, Max(GPUSORT_SAMPLE_ROWS, gpusort_few_values_rows(joint->keys)));
	caller = MemoryContextSwitchTo(context);
	ours = palloc(joint->keys->sized * sizeof(GpuSortPrefix));
	/* Statistics are left out: the leader has found that they say too little. */
	(void) gpusort_prefixes_choose(joint->keys, joint->input, true, 0, ours);
	for (int i = 0; i < joint->keys->sized; i++)
	{
		const GpuSortPrefix *laid_out = &joint->keys->prefixes[i];

		if (laid_out->settled)
			ours[i] = *laid_out;
		/* what the layout follows from: a worker that comes later makes its own from these */
		ours[i].length = laid_out->length;
		ours[i].settled = laid_out->settled;
		ours[i].known = laid_out->known;
	}
	gpusort_few_values_add(joint->keys, joint->input, ours);
	settle(joint, ours);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}

/*
 * Puts the rows of the input, until there are none, or *stop says that none are wanted any more;
 * stop may be NULL. false: the input's next row was not taken,
 * with failure's reason why no others will be, or NONE if it is a long one.
 */
bool
gpusort_joint_ingest_rows(GpuSortJointIngest *joint, const volatile bool *stop, GpuSortFailure *failure)
{
	GpuSortInput *input = joint->input;

	if (unlikely(!joint->settled))
		choose_common_prefixes(joint);
	return input->rows->kind->put_rows(input->rows, joint->writer, input, stop, failure);
}
