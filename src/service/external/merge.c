/*-------------------------------------------------------------------------
 *
 * merge.c
 *	  Sorted runs as one order of rows, given out by partitions of their keys.
 *
 * Keys are cut into partitions, each small enough that several fit into the memory, at keys that
 * blocks of the runs begin with: those are known, and tell how many bytes are between them but
 * for a block of each run.  A partition is loaded when rows of it are asked for, by a thread of its
 * own, which then goes on with those that will be asked for next while rows are given out.
 *
 * One that does not fit after all is cut again in the middle of its keys.  As memory is shared
 * with other sorts, what fits may change from one partition to the next.  A sort that waits for
 * memory has other merges close what they do not need just now: a cursor may be left where it is
 * for as long as its user likes.
 *
 * THREADS
 *	Loaders open partitions; the sort's thread, which calls the functions here, closes them when their
 *	last row was given out.  A loader may also close one that it needs the memory of, unless rows are
 *	just being given out of it, and so may other sorts' threads.  A partition is its loader's while LOADING,
 *	and so is what follows it in the list, for nobody else cuts it in two; the rest is under the lock.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "service/clock.h"
#include "service/external/storage/chunk_buffer.h"
#include "service/external/make_way.h"
#include "service/external/partition.h"
#include "service/memory_share.h"

/* Threads that load partitions: each reads and checks what the disk has, and half of the processors are for sorting. */
#define LOADERS_MAX GPUSORT_JOB_LOADERS

/* Partitions that are to fit into the memory beside those that are loaded: one is read, and one's size was misjudged. */
#define PARTITIONS_BESIDE 2

/* Loaders do not make partitions smaller than this: each takes memory of the engine besides its rows'. */
#define PARTITION_BYTES ((uint64_t) 16 << 20)

/* More readers than so many share what is open. */
#define READERS_MAX 64

/* Waits look for a cancel every so many milliseconds. */
#define LOOK_MS 50

/* So long memory is waited for that others have, before it is an error, in such looks. */
#define BUSY_LOOKS 1200

/* Other sorts have a partition closed, to have its memory, if no row of it was asked for in so long, in milliseconds. */
#define IDLE_MS 250

typedef struct Loader
{
	GpuSortMerge *merge;
	GpuSortMergeSource source; /* with a watch of its own */
	pthread_t thread;
	GpuSortChunkBuffer chunk;
	GpuSortLoadMemory memory; /* the first loader's is find_rows' before it starts */
} Loader;

struct GpuSortMerge
{
	GpuSortMergeSource source;
	uint32_t bits; /* partitions begin at keys that are 0 behind these, but for those that were cut again */
	uint32_t capacity;
	Loader loaders[LOADERS_MAX];
	uint32_t nloaders; /* that there are to be, and: */
	uint32_t started;

	pthread_mutex_t lock;
	pthread_cond_t change;
	GpuSortMergePartition **partitions; /* by rising keys */
	uint32_t count;
	uint32_t room;
	uint32_t open; /* loading or open, and: */
	uint32_t loading;
	GpuSortMergePartition *wanted;  /* that the sort's thread waits for, or NULL */
	GpuSortMergePartition *emitted; /* that rows are being given out of, or NULL */
	GpuSortMergePartition *latest;  /* the last in the order of which rows were wanted, or NULL */
	bool no_room;                   /* no more is loaded ahead before one was closed */
	bool closing;
	bool failed;
	GpuSortError error;

	GpuSortMemoryHolder holder; /* from when there are loaders on */
};

/*
 * Planning
 */

typedef struct Start
{
	const uint64_t *key;
	uint32_t bytes;
} Start;

static int
compare_starts(const void *a, const void *b, void *words)
{
	return gpusort_compare_keys(((const Start *) a)->key, ((const Start *) b)->key, *(const uint32_t *) words);
}

/* All blocks by the keys that they begin with; the caller frees them.  NULL: there is no memory. */
static Start *
sort_starts(const GpuSortRuns *runs, uint64_t *count)
{
	uint32_t words = runs->key_words;
	Start *starts;
	uint64_t n = 0;

	for (uint32_t r = 0; r < runs->nruns; r++)
		n += runs->runs[r].nblocks;
	starts = malloc((n + 1) * sizeof(Start));
	*count = n;
	n = 0;
	for (uint32_t r = 0; starts != NULL && r < runs->nruns; r++)
	{
		const GpuSortRun *run = &runs->runs[r];

		for (uint32_t b = 0; b < run->nblocks; b++)
			starts[n++] = (Start){run->first_keys + (size_t) b * words, run->blocks[b].bytes};
	}
	if (starts != NULL)
		qsort_r(starts, n, sizeof(Start), compare_starts, &words);
	return starts;
}

/* Adds a partition at a place in the list that begins with a key, which is copied; NULL: from the first key on. */
static int
insert_partition(GpuSortMerge *merge, uint32_t at, const uint64_t *key, GpuSortError *error)
{
	size_t key_bytes = merge->source.request->key_words * sizeof(uint64_t);
	GpuSortMergePartition *partition = calloc(1, sizeof(GpuSortMergePartition));

	if (partition != NULL && key != NULL)
	{
		partition->first_key = malloc(key_bytes);
		if (partition->first_key != NULL)
			memcpy(partition->first_key, key, key_bytes);
	}
	if (merge->count == merge->room)
	{
		uint32_t room = merge->room > 0 ? 2 * merge->room : 64;
		GpuSortMergePartition **moved = realloc(merge->partitions, room * sizeof(GpuSortMergePartition *));

		if (moved != NULL)
		{
			merge->partitions = moved;
			merge->room = room;
		}
	}
	if (partition == NULL || (key != NULL && partition->first_key == NULL) || merge->count == merge->room)
	{
		if (partition != NULL)
			free(partition->first_key);
		free(partition);
		return gpusort_error_memory(error);
	}
	partition->first_row = at == 0 ? 0 : GPUSORT_ROWS_UNKNOWN;
	partition->rows = GPUSORT_ROWS_UNKNOWN;
	memmove(merge->partitions + at + 1, merge->partitions + at, (merge->count - at) * sizeof(GpuSortMergePartition *));
	merge->partitions[at] = partition;
	merge->count++;
	return 0;
}

/* Copies a key without the bits that do not count. */
static void
mask_key(uint64_t *to, const uint64_t *from, uint32_t words, uint32_t bits)
{
	for (uint32_t w = 0; w < words; w++)
	{
		uint32_t left = bits > 64 * w ? bits - 64 * w : 0;

		to[w] = left >= 64 ? from[w] : left == 0 ? 0
												 : from[w] & ~(UINT64_MAX >> left);
	}
}

/* Appends a partition that begins with a key, if that is above the last one's. */
static int
append_partition(GpuSortMerge *merge, const uint64_t *key, GpuSortError *error)
{
	const GpuSortMergePartition *last = merge->partitions[merge->count - 1];

	if (last->first_key != NULL && gpusort_compare_keys(key, last->first_key, merge->source.request->key_words) <= 0)
		return 0;
	return insert_partition(merge, merge->count, key, error);
}

/* The key of a border, without bits behind its own. */
static void
border_key(const GpuSortMerge *merge, const GpuSortBorders *borders, uint32_t i, uint64_t *key)
{
	memset(key, 0, GPUSORT_MAX_KEY_WORDS * sizeof(uint64_t));
	memcpy(key, borders->keys + (size_t) i * borders->words, borders->words * sizeof(uint64_t));
	mask_key(key, key, merge->source.request->key_words, borders->bits);
}

/* Makes partitions of about so many bytes, and one begin at each border. */
static int
plan_partitions(GpuSortMerge *merge, uint64_t bytes, const GpuSortBorders *like, GpuSortError *error)
{
	uint32_t words = merge->source.request->key_words;
	uint32_t borders = like != NULL && like->ranges > 0 ? like->ranges - 1 : 0;
	uint32_t border = 0;
	uint64_t key[GPUSORT_MAX_KEY_WORDS];
	uint64_t at_border[GPUSORT_MAX_KEY_WORDS];
	uint64_t count;
	uint64_t sum = 0;
	Start *starts = sort_starts(merge->source.runs, &count);
	int rc = starts != NULL ? insert_partition(merge, 0, NULL, error) : gpusort_error_memory(error);

	for (uint64_t i = 0; rc == 0 && i < count; i++)
	{
		mask_key(key, starts[i].key, words, merge->bits);
		for (; rc == 0 && border < borders; border++)
		{
			border_key(merge, like, border, at_border);
			if (gpusort_compare_keys(at_border, key, words) > 0)
				break;
			rc = append_partition(merge, at_border, error);
			sum = 0;
		}
		if (rc == 0 && sum >= bytes)
		{
			uint32_t before = merge->count;

			rc = append_partition(merge, key, error);
			if (merge->count > before)
				sum = 0;
		}
		sum += starts[i].bytes;
	}
	for (; rc == 0 && border < borders; border++)
	{
		border_key(merge, like, border, at_border);
		rc = append_partition(merge, at_border, error);
	}
	free(starts);
	return rc;
}

/* Where a partition is in the list. */
static uint32_t
place_of(const GpuSortMerge *merge, const GpuSortMergePartition *partition)
{
	uint32_t at = 0;

	while (merge->partitions[at] != partition)
		at++;
	return at;
}

/* The key that partition number at ends before, or NULL. */
static const uint64_t *
end_key(const GpuSortMerge *merge, uint32_t at)
{
	return at + 1 < merge->count ? merge->partitions[at + 1]->first_key : NULL;
}

/*
 * The loader
 */

/* A partition that is not open any more.  With the lock held. */
static void
close_partition(GpuSortMerge *merge, GpuSortMergePartition *partition)
{
	gpusort_partition_close(&merge->source, partition);
	partition->state = GPUSORT_PARTITION_CLOSED;
	merge->open--;
	merge->no_room = false;
	pthread_cond_broadcast(&merge->change);
}

/* The key that a partition ends before.  Without the lock. */
static const uint64_t *
end_key_of(GpuSortMerge *merge, const GpuSortMergePartition *partition)
{
	const uint64_t *key;

	pthread_mutex_lock(&merge->lock);
	key = end_key(merge, place_of(merge, partition));
	pthread_mutex_unlock(&merge->lock);
	return key;
}

/* Which partition is to be loaded now: one that is waited for, or one that will be; NULL: none.  With the lock held. */
static GpuSortMergePartition *
choose_partition(const GpuSortMerge *merge)
{
	const GpuSortMergePartition *from = merge->wanted != NULL ? merge->wanted : merge->latest;
	uint64_t limit = merge->source.request->limit;

	/* one without rows is closed when it was loaded, and waited for until the sort's thread sees that */
	if (merge->wanted != NULL && merge->wanted->state == GPUSORT_PARTITION_CLOSED && merge->wanted->rows != 0)
		return merge->wanted;
	if (from == NULL || merge->no_room || merge->open >= merge->capacity)
		return NULL;
	for (uint32_t at = place_of(merge, from) + 1, ahead = 1; at < merge->count && ahead < merge->capacity; at++, ahead++)
	{
		GpuSortMergePartition *partition = merge->partitions[at];

		if (limit > 0 && (partition->first_row == GPUSORT_ROWS_UNKNOWN || partition->first_row >= limit))
			return NULL;
		if (partition->state == GPUSORT_PARTITION_CLOSED && partition->rows != 0)
			return partition;
	}
	return NULL;
}

/* Closes an open partition that is not needed now; false if there is none.  With the lock held. */
static bool
evict(GpuSortMerge *merge)
{
	for (uint32_t at = merge->count; at-- > 0;)
	{
		GpuSortMergePartition *partition = merge->partitions[at];

		if (partition->state == GPUSORT_PARTITION_OPEN && partition != merge->emitted && partition != merge->wanted &&
			partition->rows > 0)
		{
			close_partition(merge, partition);
			return true;
		}
	}
	return false;
}

/* Closes all open partitions that rows are not being given out of; returns true if there were any.  With the lock held. */
static bool
close_idle(GpuSortMerge *merge)
{
	double now = gpusort_clock_ms();
	bool closed = false;

	for (uint32_t at = 0; at < merge->count; at++)
	{
		GpuSortMergePartition *partition = merge->partitions[at];

		if (partition->state == GPUSORT_PARTITION_OPEN && partition != merge->emitted && partition != merge->wanted &&
			(partition->emitted == 0 || now - partition->used >= IDLE_MS))
		{
			close_partition(merge, partition);
			closed = true;
		}
	}
	/* or it would be loaded again at once */
	merge->no_room |= closed;
	return closed;
}

/* GpuSortMemoryHolder.make_way: closes what was loaded ahead, and what nobody has asked for rows of lately. */
static bool
make_way(GpuSortMemoryHolder *holder)
{
	GpuSortMerge *merge = (GpuSortMerge *) ((char *) holder - offsetof(GpuSortMerge, holder));
	bool closed;

	if (pthread_mutex_trylock(&merge->lock) != 0)
		return false;
	closed = close_idle(merge);
	pthread_mutex_unlock(&merge->lock);
	return closed;
}

/* Waits for a change, not for long.  With the lock held. */
static void
look_later(GpuSortMerge *merge)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_MS * 1000000;
	if (until.tv_nsec >= 1000000000)
	{
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	(void) pthread_cond_timedwait(&merge->change, &merge->lock, &until);
}

/* Takes note of a partition's rows, and of where the next one begins.  With the lock held. */
static void
note_rows(GpuSortMerge *merge, uint32_t at)
{
	GpuSortMergePartition **partitions = merge->partitions;

	for (; partitions[at]->first_row != GPUSORT_ROWS_UNKNOWN && partitions[at]->rows != GPUSORT_ROWS_UNKNOWN && at + 1 < merge->count; at++)
		partitions[at + 1]->first_row = partitions[at]->first_row + partitions[at]->rows;
}

/* Counts the rows of all runs whose keys are below one. */
static int
count_rows_below(const GpuSortMerge *merge, const uint64_t *key, char *scratch, uint64_t *rows, GpuSortError *error)
{
	const GpuSortRuns *runs = merge->source.runs;

	*rows = 0;
	for (uint32_t r = 0; r < runs->nruns; r++)
	{
		GpuSortRunPlace place;

		if (__atomic_load_n(merge->source.cancelled, __ATOMIC_RELAXED))
			return gpusort_error_cancelled(error);
		if (gpusort_runs_find(runs, r, key, scratch, &place, error) != 0)
			return -1;
		*rows += gpusort_runs_rows_before(&runs->runs[r], place);
	}
	return 0;
}

/* Cuts a partition in two that does not fit into the memory; it is waited for, so that its first row is known. */
static int
split(Loader *loader, GpuSortMergePartition *partition, GpuSortError *error)
{
	GpuSortMerge *merge = loader->merge;
	uint32_t words = merge->source.request->key_words;
	uint64_t key[GPUSORT_MAX_KEY_WORDS];
	uint64_t rows_below = 0;
	bool single;
	int rc;

	if (gpusort_partition_middle_key(&loader->source, partition, end_key_of(merge, partition), &loader->memory, key, &single, error) != 0 ||
		(!single && count_rows_below(merge, key, loader->memory.scratch, &rows_below, error) != 0))
		return -1;
	pthread_mutex_lock(&merge->lock);
	if (single)
	{
		partition->only_key = malloc(words * sizeof(uint64_t));
		if (partition->only_key != NULL)
			memcpy(partition->only_key, key, words * sizeof(uint64_t));
		rc = partition->only_key != NULL ? 0 : gpusort_error_memory(error);
	}
	else
	{
		uint32_t at = place_of(merge, partition);

		rc = insert_partition(merge, at + 1, key, error);
		if (rc == 0)
		{
			GpuSortMergePartition *upper = merge->partitions[at + 1];

			upper->first_row = rows_below;
			if (partition->rows != GPUSORT_ROWS_UNKNOWN)
				upper->rows = partition->first_row + partition->rows - rows_below;
			partition->rows = rows_below - partition->first_row;
		}
	}
	pthread_mutex_unlock(&merge->lock);
	return rc;
}

/*
 * Loads a partition, which is LOADING.  Returns LOAD_NO_ROOM if it was only to be loaded ahead, or was cut in two:
 * it is CLOSED again then.  Without the lock.
 */
static GpuSortLoad
load(Loader *loader, GpuSortMergePartition *partition, GpuSortError *error)
{
	GpuSortMerge *merge = loader->merge;

	for (int looks = 0;;)
	{
		GpuSortLoad result =
			gpusort_partition_load(&loader->source, partition, end_key_of(merge, partition), &loader->memory, error);
		bool evicted;
		bool is_wanted;

		if (result == GPUSORT_LOAD_DONE)
			return result;
		gpusort_partition_close(&loader->source, partition);
		if (result == GPUSORT_LOAD_FAILED || __atomic_load_n(merge->source.cancelled, __ATOMIC_RELAXED))
			return GPUSORT_LOAD_FAILED;

		pthread_mutex_lock(&merge->lock);
		is_wanted = merge->wanted == partition;
		evicted = is_wanted && evict(merge);
		if (is_wanted && !evicted && merge->loading > 1)
		{
			/* what others load can be closed when they have */
			look_later(merge);
			evicted = true;
		}
		/* or others would load ahead again with what was set free */
		merge->no_room |= is_wanted;
		pthread_mutex_unlock(&merge->lock);
		if (evicted)
			continue;
		if (!is_wanted)
			return GPUSORT_LOAD_NO_ROOM;
		if (error->reason == GPUSORT_REASON_MEMORY_BUSY && gpusort_memory_make_way(&merge->holder))
			continue;
		if (partition->loaded > 1 &&
			(error->reason != GPUSORT_REASON_MEMORY_BUSY || (looks >= 2 && partition->bytes > GPUSORT_SHARE_SURE / 4)))
			return split(loader, partition, error) == 0 ? GPUSORT_LOAD_NO_ROOM : GPUSORT_LOAD_FAILED;
		if (error->reason != GPUSORT_REASON_MEMORY_BUSY || ++looks == BUSY_LOOKS)
			return GPUSORT_LOAD_FAILED;
		pthread_mutex_lock(&merge->lock);
		look_later(merge);
		pthread_mutex_unlock(&merge->lock);
	}
}

static void *
loader_main(void *arg)
{
	Loader *loader = arg;
	GpuSortMerge *merge = loader->merge;

	pthread_mutex_lock(&merge->lock);
	while (!merge->closing && !merge->failed)
	{
		GpuSortMergePartition *partition = choose_partition(merge);
		GpuSortError error = {.reason = GPUSORT_REASON_NONE};
		GpuSortLoad result;
		bool was_wanted;

		if (partition == NULL)
		{
			pthread_cond_wait(&merge->change, &merge->lock);
			continue;
		}
		partition->state = GPUSORT_PARTITION_LOADING;
		merge->open++;
		merge->loading++;
		was_wanted = merge->wanted == partition;
		pthread_mutex_unlock(&merge->lock);
		result = load(loader, partition, &error);
		pthread_mutex_lock(&merge->lock);
		merge->loading--;
		if (result == GPUSORT_LOAD_DONE && partition->rows != GPUSORT_ROWS_UNKNOWN && partition->rows != partition->loaded)
		{
			gpusort_partition_close(&merge->source, partition);
			result = gpusort_runs_damaged(&error);
		}
		if (result == GPUSORT_LOAD_DONE)
		{
			partition->state = GPUSORT_PARTITION_OPEN;
			partition->rows = partition->loaded;
			note_rows(merge, place_of(merge, partition));
			if (partition->rows == 0)
				close_partition(merge, partition);
		}
		else
		{
			partition->state = GPUSORT_PARTITION_CLOSED;
			merge->open--;
			merge->no_room |= result == GPUSORT_LOAD_NO_ROOM && !was_wanted;
			if (result == GPUSORT_LOAD_FAILED && !merge->failed)
			{
				merge->failed = true;
				merge->error = error;
			}
		}
		pthread_cond_broadcast(&merge->change);
	}
	pthread_mutex_unlock(&merge->lock);
	return NULL;
}

/*
 * The sort's thread
 */

/* Makes what loaders need, but for their threads. */
static int
make_loaders(GpuSortMerge *merge, GpuSortError *error)
{
	for (uint32_t i = 0; i < merge->nloaders; i++)
	{
		Loader *loader = &merge->loaders[i];

		loader->merge = merge;
		loader->source = merge->source;
		loader->source.watch = merge->source.watch + i;
		loader->chunk = gpusort_chunk_buffer_get(merge->source.handle);
		loader->memory = (GpuSortLoadMemory){.chunk = loader->chunk.start, .scratch = malloc(GPUSORT_CHUNK_BYTES)};
		if (loader->memory.chunk == NULL || loader->memory.scratch == NULL)
			return gpusort_error_memory(error);
	}
	return 0;
}

/* How many loaders there are to be where a run, and so the memory, has so many bytes. */
static uint32_t
choose_loaders(int cpus, uint64_t bytes)
{
	uint32_t loaders = ((uint32_t) cpus + 1) / 2;
	uint64_t partitions = bytes / PARTITION_BYTES;
	uint64_t most = partitions > PARTITIONS_BESIDE ? partitions - PARTITIONS_BESIDE : 1;

	if (loaders > LOADERS_MAX)
		loaders = LOADERS_MAX;
	return loaders < most ? loaders : (uint32_t) most;
}

/*
 * Plans how sorted runs are merged: partitions begin at keys that differ in the first so many bits, and, with
 * like, where those borders are.  NULL: it cannot be, *error tells.
 */
GpuSortMerge *
gpusort_merge_create(const GpuSortMergeSource *source, uint32_t bits, const GpuSortBorders *like, GpuSortError *error)
{
	GpuSortMerge *merge = calloc(1, sizeof(GpuSortMerge));
	uint32_t readers = source->request->shared ? source->request->readers : 0;
	pthread_condattr_t attributes;

	if (merge == NULL)
	{
		(void) gpusort_error_memory(error);
		return NULL;
	}
	if (readers > READERS_MAX)
		readers = READERS_MAX;
	merge->source = *source;
	merge->bits = bits;
	merge->nloaders = choose_loaders(source->cpus, source->runs->largest);
	merge->capacity = merge->nloaders + PARTITIONS_BESIDE;
	if (readers > merge->capacity - PARTITIONS_BESIDE)
		merge->capacity = readers + PARTITIONS_BESIDE;
	pthread_mutex_init(&merge->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&merge->change, &attributes);
	pthread_condattr_destroy(&attributes);
	if (make_loaders(merge, error) != 0 || plan_partitions(merge, source->runs->largest / merge->capacity, like, error) != 0)
	{
		gpusort_merge_free(merge);
		return NULL;
	}
	return merge;
}

/* Finds how many rows each partition has, before the first row is given out: what cut needs. */
int
gpusort_merge_find_rows(GpuSortMerge *merge, GpuSortError *error)
{
	uint64_t before = 0;

	for (uint32_t at = 0; at < merge->count; at++)
	{
		GpuSortMergePartition *partition = merge->partitions[at];
		const uint64_t *end = end_key(merge, at);
		uint64_t rows_below_end = merge->source.runs->rows;

		if (end != NULL && count_rows_below(merge, end, merge->loaders[0].memory.scratch, &rows_below_end, error) != 0)
			return -1;
		partition->first_row = before;
		partition->rows = rows_below_end - before;
		before = rows_below_end;
	}
	return 0;
}

/*
 * Cuts rows into at most so many ranges, each of some partitions and none empty, whose numbers of rows are known
 * (find_rows): first_rows gets the first of each, *borders is the caller's to free.
 */
int
gpusort_merge_cut(const GpuSortMerge *merge, uint32_t most, uint64_t *first_rows, GpuSortBorders **borders,
				  GpuSortError *error)
{
	uint64_t rows = merge->source.runs->rows;
	GpuSortBorders *made = gpusort_borders_make(merge->bits, most);
	uint64_t per_range = rows / most;

	if (made == NULL)
		return gpusort_error_memory(error);
	made->ranges = 1;
	first_rows[0] = 0;
	for (uint32_t at = 1; at < merge->count && made->ranges < most; at++)
	{
		const GpuSortMergePartition *partition = merge->partitions[at];

		if (partition->first_row <= first_rows[made->ranges - 1] || partition->first_row >= rows ||
			partition->first_row - first_rows[made->ranges - 1] < per_range)
			continue;
		memcpy(made->keys + (size_t) (made->ranges - 1) * made->words, partition->first_key, made->words * sizeof(uint64_t));
		first_rows[made->ranges++] = partition->first_row;
	}
	*borders = made;
	return 0;
}

/* The same where the borders are given, at which partitions begin; ranges may be empty. */
int
gpusort_merge_cut_like(const GpuSortMerge *merge, const GpuSortBorders *borders, uint64_t *first_rows, GpuSortError *error)
{
	uint32_t words = merge->source.request->key_words;
	uint32_t at = 0;

	if (borders->ranges > 0)
		first_rows[0] = 0;
	for (uint32_t i = 1; i < borders->ranges; i++)
	{
		uint64_t key[GPUSORT_MAX_KEY_WORDS];

		border_key(merge, borders, i - 1, key);
		while (at < merge->count && (merge->partitions[at]->first_key == NULL || gpusort_compare_keys(merge->partitions[at]->first_key, key, words) < 0))
			at++;
		if (at < merge->count && gpusort_compare_keys(merge->partitions[at]->first_key, key, words) == 0)
			first_rows[i] = merge->partitions[at]->first_row;
		else
		{
			*error = (GpuSortError){.reason = GPUSORT_REASON_ORDER_CHECK, .text = "no partition of a merge begins at a border of ranges"};
			return -1;
		}
	}
	return 0;
}

/* The last partition that is known to begin at a row or before.  With the lock held. */
static uint32_t
find_known(const GpuSortMerge *merge, uint64_t row)
{
	uint32_t at = merge->count - 1;

	while (merge->partitions[at]->first_row == GPUSORT_ROWS_UNKNOWN || merge->partitions[at]->first_row > row)
		at--;
	return at;
}

/*
 * Finds out which partition has a row, where it is not the next one of those that are known: by what is below the
 * keys that partitions begin with, without loading those before it.
 */
static int
find_row(GpuSortMerge *merge, uint64_t row, GpuSortError *error)
{
	char *buffer = NULL;
	int rc = 0;

	pthread_mutex_lock(&merge->lock);
	while (rc == 0)
	{
		uint32_t low = find_known(merge, row);
		uint32_t high = low + 1;
		GpuSortMergePartition *middle;
		uint64_t rows_below;

		if (merge->partitions[low]->first_row == row || merge->partitions[low]->rows != GPUSORT_ROWS_UNKNOWN)
			break;
		while (high < merge->count && merge->partitions[high]->first_row == GPUSORT_ROWS_UNKNOWN)
			high++;
		if (high - low == 1)
			break;
		middle = merge->partitions[low + (high - low) / 2];
		pthread_mutex_unlock(&merge->lock);
		if (buffer == NULL)
			buffer = malloc(2 * GPUSORT_CHUNK_BYTES);
		rc = buffer != NULL ? count_rows_below(merge, middle->first_key, buffer, &rows_below, error) : gpusort_error_memory(error);
		pthread_mutex_lock(&merge->lock);
		if (rc == 0)
		{
			middle->first_row = rows_below;
			note_rows(merge, place_of(merge, middle)); /* it may have been loaded ahead */
		}
	}
	pthread_mutex_unlock(&merge->lock);
	free(buffer);
	return rc;
}

/* The partition that has a row, if that is known; NULL and *unknown, the first of which it is not.  With the lock held. */
static GpuSortMergePartition *
find_partition(const GpuSortMerge *merge, uint64_t row, GpuSortMergePartition **unknown)
{
	GpuSortMergePartition *known = merge->partitions[find_known(merge, row)];

	*unknown = known->rows == GPUSORT_ROWS_UNKNOWN ? known : NULL;
	return *unknown == NULL && row - known->first_row < known->rows ? known : NULL;
}

/* Starts the loaders, or as many as there can be; from then on other sorts may have partitions closed. */
static int
start_loaders(GpuSortMerge *merge, GpuSortError *error)
{
	if (merge->started > 0)
		return 0;
	while (merge->started < merge->nloaders &&
		   pthread_create(&merge->loaders[merge->started].thread, NULL, loader_main, &merge->loaders[merge->started]) == 0)
		merge->started++;
	if (merge->started > 0)
	{
		merge->holder.make_way = make_way;
		gpusort_memory_holder_add(&merge->holder);
		return 0;
	}
	*error = (GpuSortError){.reason = GPUSORT_REASON_NO_MEMORY, .text = "the sort service could not start a thread"};
	return -1;
}

/* Waits until the partition that has a row is open; NULL: it cannot be, *error tells.  With the lock held. */
static GpuSortMergePartition *
open_partition(GpuSortMerge *merge, uint64_t row, GpuSortError *error)
{
	GpuSortMergePartition *unknown;
	GpuSortMergePartition *partition;

	for (;;)
	{
		partition = find_partition(merge, row, &unknown);
		if (partition == NULL && unknown == NULL)
		{
			(void) gpusort_runs_damaged(error);
			break;
		}
		if (partition != NULL && partition->state == GPUSORT_PARTITION_OPEN)
			break;
		if (merge->failed || __atomic_load_n(merge->source.cancelled, __ATOMIC_RELAXED))
		{
			if (merge->failed)
				*error = merge->error;
			else
				(void) gpusort_error_cancelled(error);
			partition = NULL;
			break;
		}
		if (merge->wanted != (partition != NULL ? partition : unknown))
		{
			merge->wanted = partition != NULL ? partition : unknown;
			pthread_cond_broadcast(&merge->change);
		}
		look_later(merge);
	}
	merge->wanted = NULL;
	return partition;
}

/* Fills a chunk with rows from number first on, as GpuSortEngineOps.emit does. */
int
gpusort_merge_emit(GpuSortMerge *merge, uint64_t first, uint64_t end, char *chunk, GpuSortEmitted *emitted,
				   GpuSortError *error)
{
	GpuSortMergePartition *partition;
	uint64_t own_end;
	int rc;

	if (find_row(merge, first, error) != 0 || start_loaders(merge, error) != 0)
		return -1;
	pthread_mutex_lock(&merge->lock);
	partition = open_partition(merge, first, error);
	if (partition == NULL)
	{
		pthread_mutex_unlock(&merge->lock);
		return -1;
	}
	merge->emitted = partition;
	if (merge->latest != partition)
	{
		if (merge->latest == NULL || place_of(merge, partition) > place_of(merge, merge->latest) || !merge->source.request->shared)
			merge->latest = partition;
		merge->no_room = false;
		pthread_cond_broadcast(&merge->change);
	}
	own_end = end - partition->first_row < partition->rows ? end - partition->first_row : partition->rows;
	pthread_mutex_unlock(&merge->lock);

	rc = gpusort_partition_emit(&merge->source, partition, first - partition->first_row, own_end, chunk, emitted, error);
	if (rc == 0)
		emitted->last = first + emitted->rows == end;

	pthread_mutex_lock(&merge->lock);
	merge->emitted = NULL;
	partition->used = gpusort_clock_ms();
	if (partition->emitted >= partition->rows)
		close_partition(merge, partition);
	pthread_mutex_unlock(&merge->lock);
	return rc;
}

/* Ends the loaders; engine calls of theirs end first, soon if the sort was cancelled. */
static void
end_loaders(GpuSortMerge *merge)
{
	pthread_mutex_lock(&merge->lock);
	merge->closing = true;
	pthread_cond_broadcast(&merge->change);
	pthread_mutex_unlock(&merge->lock);
	for (uint32_t i = 0; i < merge->started; i++)
		pthread_join(merge->loaders[i].thread, NULL);
	for (uint32_t i = 0; i < merge->nloaders; i++)
	{
		gpusort_chunk_buffer_put(merge->source.handle, &merge->loaders[i].chunk);
		free(merge->loaders[i].memory.scratch);
	}
}

void
gpusort_merge_free(GpuSortMerge *merge)
{
	if (merge == NULL)
		return;
	if (merge->started > 0)
		gpusort_memory_holder_remove(&merge->holder);
	end_loaders(merge);
	for (uint32_t at = 0; at < merge->count; at++)
	{
		GpuSortMergePartition *partition = merge->partitions[at];

		if (partition->state == GPUSORT_PARTITION_OPEN)
			gpusort_partition_close(&merge->source, partition);
		free(partition->first_key);
		free(partition->only_key);
		free(partition);
	}
	free(merge->partitions);
	pthread_cond_destroy(&merge->change);
	pthread_mutex_destroy(&merge->lock);
	free(merge);
}
