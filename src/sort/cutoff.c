/*-------------------------------------------------------------------------
 *
 * cutoff.c
 *	  The key beyond which no row is among the first so many of a sort.
 *
 * Where a query asks for the first n rows of a sort alone, a row is not wanted once n rows of
 * smaller or equal keys have been taken: it is dropped before it is formed and copied.  Of rows in no
 * particular order some n (1 + ln(N / n)) of N are taken.
 *
 * Rows taken are counted by where their keys lie between borders, which are quantiles of the keys of
 * rows taken before; the least border up to which there are n rows is the limit.  It is exact by
 * construction: what is not known for sure is not counted, and rows whose keys are equal to the limit,
 * as of truncated ones, are taken.  The limit is only ever lowered.
 *
 * Borders are made anew where they have become useless: when all rows come above them, as of input that
 * is in order, or below, or the limit has come down to the lowest of them.  What has been counted up to
 * an old border counts up to the new ones above it.
 *
 * It gives up where it drops next to nothing, as of rows that come in the opposite order, before it has
 * cost anything to speak of.
 *
 * Processes that add to the same sort count together.  Each collects the keys of the rows that it has
 * taken and tells the others of a batch at a time, when it also learns what they have found; until
 * then its limit is higher than it needs to be, which does no harm.
 *
 * Legal order of calls: create, or in a process that joins, join; the one that began may share before
 * others join and before its first row; then for each row drops and, if the row was taken, took, until useless is
 * set; tell at any time.  Rows counted must stay in the sort, or all of them be read again without a cutoff.
 *
 * Memory: created in the current memory context; what is shared belongs to the caller.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/cutoff.h"

#include "server/shared.h"
#include "storage/lwlock.h"

/* Keys of which borders are made: the lowest is up to a SAMPLE_KEYS-th of the rows. */
#define SAMPLE_KEYS 1024

/* Of the rows taken after the first borders were made, every so many-th is in the sample. */
#define SAMPLE_STRIDE 4

/*
 * Borders, each an eighth of the rows below it from the next; the least sixteen have a key of the sample between them.
 */
#define BORDERS_MAX 64

/* When the limit is one of so few borders it moves in large steps. */
#define BORDERS_FEW 4

/* Rows of which a process tells the others at a time. */
#define BATCH_KEYS 256

/* How often in a row borders are made anew because most rows come below all of them. */
#define FALLING_MAX 3

/*
 * After how many rows taken it is time to ask whether it is worth it, and of how many of these one has to be dropped.
 */
#define REVIEW_ROWS  16384
#define REVIEW_RATIO 8

/* Words behind those in use are zero. */
typedef uint64 Key[GPUSORT_CUTOFF_WORDS];

/* In the order of their keys, which differ. */
typedef struct Borders
{
	uint64 generation; /* 0: none yet */
	int count;
	uint64 first_words[BORDERS_MAX];
	Key keys[BORDERS_MAX];
} Borders;

struct GpuSortCutoffBatch
{
	Borders borders; /* as this process knows them */
	uint64 dropped_told;
	int nkeys;
	uint64 keys[BATCH_KEYS * GPUSORT_CUTOFF_WORDS]; /* one behind the other, without words that are not used */
};

/* All but lock, words and wanted is guarded by lock. */
struct GpuSortCutoffShared
{
	LWLock lock;
	uint32 words;
	uint64 wanted; /* rows */
	bool useless;
	bool limited; /* up to the last border there are as many rows as wanted */
	Borders borders;
	uint64 counts[BORDERS_MAX]; /* of rows above the border before and up to this one */
	uint64 taken;               /* rows, in all */
	Key max;                    /* the greatest key of a row taken while there was no limit */

	/* since the borders were made */
	uint64 taken_since;
	uint64 below_since; /* rows below all borders */
	uint64 dropped_since;
	int falling; /* so often were they made anew because of rows below them, in a row */

	/* since the last review */
	uint64 taken_reviewed;
	uint64 dropped_reviewed;

	uint32 sampled; /* keys since the borders were made; the last of them are in: */
	Key sample[SAMPLE_KEYS];
};

static inline int
compare(const uint64 *a, const uint64 *b, uint32 words)
{
	for (uint32 i = 0; i < words; i++)
	{
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	}
	return 0;
}

static int
compare_keys(const void *a, const void *b)
{
	return compare(a, b, GPUSORT_CUTOFF_WORDS);
}

Size
gpusort_cutoff_shared_bytes(void)
{
	return sizeof(GpuSortCutoffShared);
}

/* Begins to count for a sort of which so many rows are wanted. */
void
gpusort_cutoff_shared_init(GpuSortCutoffShared *shared, uint32 key_words, uint64 wanted)
{
	memset(shared, 0, sizeof(*shared));
	gpusort_shared_init_lock(&shared->lock);
	shared->words = Min(key_words, GPUSORT_CUTOFF_WORDS);
	shared->wanted = wanted;
}

/* Returns the view of a process of what processes have found out together. */
GpuSortCutoff *
gpusort_cutoff_join(GpuSortCutoffShared *shared)
{
	GpuSortCutoff *cutoff = palloc0(sizeof(GpuSortCutoff));

	cutoff->batch = palloc0(sizeof(struct GpuSortCutoffBatch));
	cutoff->words = shared->words;
	cutoff->shared = shared;
	memset(cutoff->limit, 0xff, sizeof(cutoff->limit));
	return cutoff;
}

/* Returns the cutoff of the process that begins a sort of which so many rows are wanted; nobody shares it yet. */
GpuSortCutoff *
gpusort_cutoff_create(uint32 key_words, uint64 wanted)
{
	GpuSortCutoffShared *own = palloc(sizeof(GpuSortCutoffShared));

	gpusort_cutoff_shared_init(own, key_words, wanted);
	return gpusort_cutoff_join(own);
}

/* Lets the process that began count together with those that join; initializes shared. */
void
gpusort_cutoff_share(GpuSortCutoff *cutoff, GpuSortCutoffShared *shared)
{
	gpusort_cutoff_shared_init(shared, cutoff->words, cutoff->shared->wanted);
	cutoff->shared = shared;
}

/* Returns the least border that is not below key; the number of borders if all are. */
static inline int
find_border(const Borders *borders, const uint64 *key, uint32 words)
{
	const uint64 *first = borders->first_words;
	int n = borders->count;
	int low;

	/* No branch, for keys come at random, so that several of them are looked for at once. */
	while (n > 1)
	{
		int half = n / 2;

		first += half & -(first[half - 1] < key[0]);
		n -= half;
	}
	if (n == 1)
		first += *first < key[0];
	low = first - borders->first_words;
	if (low == borders->count || borders->first_words[low] != key[0])
		return low;

	for (int high = borders->count; low < high;)
	{
		int middle = (low + high) / 2;

		if (compare(borders->keys[middle], key, words) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Counts the keys of a batch by borders; returns how many are below all of them. */
static uint64
count_batch(const struct GpuSortCutoffBatch *batch, uint32 words, uint64 *counts)
{
	const Borders *borders = &batch->borders;
	uint64 below = 0;

	memset(counts, 0, (BORDERS_MAX + 1) * sizeof(uint64));
	for (int i = 0; i < batch->nkeys; i++)
	{
		const uint64 *key = batch->keys + i * words;
		int border = find_border(borders, key, words);

		counts[border]++;
		if (border == 0 && borders->count > 0 && compare(key, borders->keys[0], words) < 0)
			below++;
	}
	return below;
}

static void
copy_borders(Borders *to, const Borders *from)
{
	to->generation = from->generation;
	to->count = from->count;
	memcpy(to->first_words, from->first_words, from->count * sizeof(uint64));
	memcpy(to->keys, from->keys, from->count * sizeof(Key));
}

static void
add_border(Borders *borders, const uint64 *key)
{
	borders->first_words[borders->count] = key[0];
	memcpy(borders->keys[borders->count++], key, sizeof(Key));
}

/* Makes the least border up to which there are as many rows as wanted the limit, and forgets those above. */
static void
lower_limit(GpuSortCutoffShared *shared)
{
	uint64 rows = 0;

	for (int i = 0; i < shared->borders.count; i++)
	{
		rows += shared->counts[i];
		if (rows >= shared->wanted)
		{
			shared->limited = true;
			shared->borders.count = i + 1;
		}
	}
}

/* Makes quantiles of the sample borders; the last one is the limit or, as yet, the greatest key. */
static void
sample_borders(GpuSortCutoffShared *shared, const Borders *old)
{
	Borders *borders = &shared->borders;
	const uint64 *top = shared->limited ? old->keys[old->count - 1] : shared->max;
	int nsample = Min(shared->sampled, SAMPLE_KEYS);

	qsort(shared->sample, nsample, sizeof(Key), compare_keys);
	borders->generation++;
	borders->count = 0;
	for (int rank = 0; rank < nsample && borders->count < BORDERS_MAX - 1; rank += Max(rank / 8, 1))
	{
		const uint64 *key = shared->sample[rank];

		if (compare_keys(key, top) >= 0)
			break;
		if (borders->count == 0 || compare_keys(borders->keys[borders->count - 1], key) < 0)
			add_border(borders, key);
	}
	add_border(borders, top);
}

/* Makes borders anew; keeps what has been counted. */
static void
make_borders(GpuSortCutoffShared *shared)
{
	uint64 uncounted = shared->taken;
	uint64 counts[BORDERS_MAX];
	Borders old;

	copy_borders(&old, &shared->borders);
	memcpy(counts, shared->counts, sizeof(counts));
	sample_borders(shared, &old);

	memset(shared->counts, 0, sizeof(shared->counts));
	for (int i = 0; i < old.count; i++)
	{
		shared->counts[find_border(&shared->borders, old.keys[i], shared->words)] += counts[i];
		uncounted -= counts[i];
	}
	/* All rows are up to the greatest key. */
	if (!shared->limited)
		shared->counts[shared->borders.count - 1] += uncounted;
	shared->sampled = 0;
	shared->taken_since = 0;
	shared->below_since = 0;
	shared->dropped_since = 0;
	lower_limit(shared);
}

/* Returns true if the borders in use are of no use any more, and others might be. */
static bool
wants_borders(GpuSortCutoffShared *shared)
{
	if (shared->borders.generation == 0)
		return shared->taken >= SAMPLE_KEYS;
	if (shared->taken_since < SAMPLE_KEYS * SAMPLE_STRIDE)
		return false;
	if (shared->below_since > shared->taken_since / 2)
	{
		shared->falling = shared->dropped_since < shared->taken_since / REVIEW_RATIO ? shared->falling + 1 : 0;
		shared->useless = shared->falling > FALLING_MAX;
		return !shared->useless;
	}
	shared->falling = 0;
	if (!shared->limited)
		return shared->taken > shared->wanted + shared->wanted / 8;
	return shared->borders.count <= BORDERS_FEW && shared->taken_since >= shared->wanted;
}

/* Gives up where too few rows have been dropped of late. */
static void
review(GpuSortCutoffShared *shared)
{
	if (!shared->limited || shared->taken_reviewed < Max(shared->wanted, REVIEW_ROWS))
		return;
	if (shared->dropped_reviewed < shared->taken_reviewed / REVIEW_RATIO)
		shared->useless = true;
	shared->taken_reviewed = 0;
	shared->dropped_reviewed = 0;
}

/* Adds a batch to what is known of all rows, of which so many are dropped since the last. */
static void
add_batch(GpuSortCutoffShared *shared, const struct GpuSortCutoffBatch *batch, const uint64 *counts, uint64 dropped)
{
	const int stride = shared->borders.generation == 0 ? 1 : SAMPLE_STRIDE;
	const uint32 words = shared->words;

	/* Others may have lowered the limit below borders of the batch: what is above does not count any more. */
	for (int i = 0; i < shared->borders.count; i++)
		shared->counts[i] += counts[i];
	for (int i = 0; i < batch->nkeys; i += stride)
		memcpy(shared->sample[shared->sampled++ % SAMPLE_KEYS], batch->keys + i * words, words * sizeof(uint64));
	for (int i = 0; !shared->limited && i < batch->nkeys; i++)
	{
		if (compare(batch->keys + i * words, shared->max, words) > 0)
			memcpy(shared->max, batch->keys + i * words, words * sizeof(uint64));
	}
	shared->taken += batch->nkeys;
	shared->taken_since += batch->nkeys;
	shared->dropped_since += dropped;
	if (shared->limited)
	{
		shared->taken_reviewed += batch->nkeys;
		shared->dropped_reviewed += dropped;
	}
}

/* Tells the others of the rows that they do not know of, and learns what they have found. */
pg_noinline void
gpusort_cutoff_tell(GpuSortCutoff *cutoff)
{
	GpuSortCutoffShared *shared = cutoff->shared;
	struct GpuSortCutoffBatch *batch = cutoff->batch;
	uint64 counts[BORDERS_MAX + 1];
	uint64 below = count_batch(batch, cutoff->words, counts);

	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	if (batch->borders.generation != shared->borders.generation)
	{
		copy_borders(&batch->borders, &shared->borders);
		below = count_batch(batch, cutoff->words, counts);
	}
	add_batch(shared, batch, counts, cutoff->dropped - batch->dropped_told);
	shared->below_since += below;
	lower_limit(shared);
	if (wants_borders(shared))
		make_borders(shared);
	review(shared);
	if (batch->borders.generation != shared->borders.generation)
		copy_borders(&batch->borders, &shared->borders);
	batch->borders.count = shared->borders.count;
	if (shared->limited)
		memcpy(cutoff->limit, shared->borders.keys[shared->borders.count - 1], sizeof(Key));
	cutoff->useless = shared->useless;
	LWLockRelease(&shared->lock);
	batch->nkeys = 0;
	batch->dropped_told = cutoff->dropped;
}

/* A row of this key was taken. */
void
gpusort_cutoff_took(GpuSortCutoff *cutoff, const uint64 *key)
{
	struct GpuSortCutoffBatch *batch = cutoff->batch;

	memcpy(batch->keys + batch->nkeys++ * cutoff->words, key, cutoff->words * sizeof(uint64));
	if (unlikely(batch->nkeys == BATCH_KEYS))
		gpusort_cutoff_tell(cutoff);
}
