/*-------------------------------------------------------------------------
 *
 * pick.c
 *	  Keeps only the first rows of each run of equal keys, once all rows are in order.
 *
 * A run is rows whose first run_bits bits are equal; where only the key can tell, a row that is
 * KEY_TRUNCATED is a run of its own.  A group is rows whose whole keys are equal.  What is kept
 * of a run is always its beginning, so a row needs to know no more than where its run and
 * its group begin.
 *
 * The elements are cut into parts, which the threads look at three times:
 *
 *	1. From its end backwards: where do the last run and the last group of a part begin?
 *	   That is soon found, and lets each part know what it begins in.
 *	2. Elements that are kept go to the other array; ties are marked and counted.
 *	3. They go back, without gaps.  If there are none already, the arrays change places instead.
 *
 * If the packed key is one word the elements have it whole.  Else keys are looked up in the records, but where
 * the elements tell that two differ.
 *
 * With run_counts the key of an element that is kept becomes the row's count, which emit writes.  Counts of rows that
 * are left out are looked up only if some row was put with another count than 1: a miss for each.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "service/errors.h"
#include "service/host/pick.h"

/* Parts, and the rows that one has at least. */
#define PARTS_MAX 256
#define PART_ROWS ((uint64_t) 1 << 14)

/* A cancel is looked for every so many rows. */
#define LOOK_ROWS 65536

/* Records are asked for so many rows ahead. */
#define PREFETCH_ROWS 16

/* No run or group begins in a part. */
#define NOWHERE UINT64_MAX

/* Rows of equal keys that are kept. */
typedef struct TieGroup
{
	uint64_t rows;
	bool truncated; /* one of them is KEY_TRUNCATED */
} TieGroup;

typedef struct PickPart
{
	uint64_t start; /* number of its first row, and of the row after its last */
	uint64_t end;

	/* where the last ones in it begin; then where those begin that the row before it is in */
	uint64_t run;
	uint64_t group;

	/* what was kept */
	uint64_t kept;
	uint64_t place; /* rows kept of the parts before it */
	uint64_t bytes; /* padded, without keys */
	uint64_t lead;  /* counts of the rows before the first one kept */
	bool divided;   /* a group begins in it, so that there are two: */
	TieGroup first;
	TieGroup final;
	uint64_t tie_rows; /* of the groups between them */
} PickPart;

typedef struct Pick
{
	GpuSort *sort;
	bool whole;        /* elements have all of the packed key */
	uint64_t run_mask; /* its bits that are equal in a run, if so */
	bool groups;       /* runs of keys are groups: they differ in no bit */
	bool breaks;       /* a KEY_TRUNCATED row is a run of its own */
	uint32_t nparts;
	PickPart parts[PARTS_MAX];
} Pick;

/* What a row and the next one have in common. */
typedef struct Relation
{
	bool run;   /* they are of one run */
	bool equal; /* their keys are equal */
} Relation;

static const Relation nothing_in_common = {false, false};

/* Compares keys: all of them, and their first so many bits. */
static Relation
relate_keys(const uint64_t *a, const uint64_t *b, uint32_t words, uint32_t run_bits)
{
	uint32_t w = 0;
	uint32_t first; /* bit that differs */

	while (w < words && a[w] == b[w])
		w++;
	if (w == words)
		return (Relation){true, true};
	first = 64 * w + __builtin_clzll(a[w] ^ b[w]);
	return (Relation){first >= run_bits, false};
}

/* Compares rows i and i + 1 of the order. */
static inline Relation
relate(const Pick *pick, uint64_t i)
{
	const GpuSort *sort = pick->sort;
	const GpuSortElement *a = &sort->elements[i];
	const GpuSortElement *b = a + 1;
	Relation relation;

	if (pick->whole)
	{
		uint64_t different = a->key ^ b->key;

		relation.equal = different == 0;
		relation.run = (different & pick->run_mask) == 0;
	}
	else if (pick->groups && a->key != b->key)
		return nothing_in_common; /* equal keys have the same word of them in their elements */
	else
		relation = relate_keys(gpusort_host_key(sort, a->ref), gpusort_host_key(sort, b->ref), sort->key_words,
							   sort->run_bits);
	if (pick->breaks && ((a->ref | b->ref) & GPUSORT_HOST_REF_MARK))
		relation.run = false;
	return relation;
}

/* Whether row i's record is read: for its key, where it may be that of the row before or after, or for its count. */
static inline bool
is_looked_up(const Pick *pick, uint64_t i)
{
	const GpuSort *sort = pick->sort;
	const GpuSortElement *element = &sort->elements[i];

	if (sort->counts_differ)
		return true;
	return !pick->whole &&
		(!pick->groups || element->key == element[-1].key || (i + 1 < sort->rows && element->key == element[1].key));
}

/* How many of the bits that vary are behind the first run_bits. */
static uint32_t
varying_behind(const GpuSort *sort)
{
	uint32_t bits = 0;

	for (uint32_t w = 0; w < sort->key_words; w++)
	{
		uint64_t varying = sort->any[w] ^ sort->all[w];

		if (64 * (w + 1) <= sort->run_bits)
			continue;
		if (sort->run_bits > 64 * w)
			varying &= UINT64_MAX >> (sort->run_bits - 64 * w);
		bits += __builtin_popcountll(varying);
	}
	return bits;
}

static void
find_last_starts(void *arg, uint32_t p)
{
	Pick *pick = arg;
	PickPart *part = &pick->parts[p];

	part->run = part->group = NOWHERE;
	for (uint64_t i = part->end; i-- > part->start && (part->run == NOWHERE || part->group == NOWHERE);)
	{
		Relation before = i > 0 ? relate(pick, i - 1) : nothing_in_common;

		if (!before.run && part->run == NOWHERE)
			part->run = i;
		if (!before.equal && part->group == NOWHERE)
			part->group = i;
		if (i % LOOK_ROWS == 0 && gpusort_host_cancelled(pick->sort))
			return;
	}
}

/* Tells each part where those begin that the row before it is in. */
static void
pass_on_starts(Pick *pick)
{
	uint64_t run = 0;
	uint64_t group = 0;

	for (uint32_t p = 0; p < pick->nparts; p++)
	{
		PickPart *part = &pick->parts[p];
		uint64_t last_run = part->run == NOWHERE ? run : part->run;
		uint64_t last_group = part->group == NOWHERE ? group : part->group;

		part->run = run;
		part->group = group;
		run = last_run;
		group = last_group;
	}
}

/* How many rows of a group count as tied: all or none. */
static uint64_t
tied(TieGroup group)
{
	return group.rows > 1 && group.truncated ? group.rows : 0;
}

/* The number of rows that a row stood for when it was put. */
static uint64_t
count_of(const GpuSort *sort, uint64_t ref)
{
	const char *row = sort->chunks[gpusort_host_ref_chunk(ref)].records + gpusort_host_ref_offset(ref);

	return sort->counts_differ ? *(const uint64_t *) (row + GPUSORT_ROW_COUNT_OFFSET) : 1;
}

/* Returns true if row i is kept, which is of a run that begins at row run and of a group that begins at row group. */
static inline bool
is_kept(const GpuSort *sort, uint64_t i, uint64_t run, uint64_t group)
{
	if (sort->run_peers)
		i = group > run ? group : run;
	return i - run < sort->run_rows;
}

/* Whether the first row of each run is all that is kept, and the elements tell all that there is to know of it. */
static bool
is_simple(const Pick *pick)
{
	const GpuSort *sort = pick->sort;

	return pick->whole && sort->run_rows == 1 && !sort->run_peers && !sort->may_tie && !sort->counts_differ;
}

/* pick_rows where it is simple, for any part by itself; without branches, as no CPU can guess where runs end. */
static void
pick_first_rows(void *arg, uint32_t p)
{
	const Pick *pick = arg;
	const GpuSort *sort = pick->sort;
	const GpuSortElement *elements = sort->elements;
	const uint64_t mask = pick->run_mask;
	PickPart *part = &((Pick *) arg)->parts[p];
	GpuSortElement *to = sort->other + part->start;
	GpuSortElement first;
	uint64_t i = part->start;
	uint64_t previous;
	uint64_t place = 0;
	uint64_t bytes;

	*part = (PickPart){.start = part->start, .end = part->end};
	while (i > 0 && i < part->end && ((elements[i].key ^ elements[i - 1].key) & mask) == 0)
		i++;
	part->lead = i - part->start;
	if (i == part->end)
		return;
	first = (GpuSortElement){.key = 0, .ref = elements[i].ref};
	previous = elements[i].key;
	bytes = gpusort_host_ref_length(first.ref);
	for (; i < part->end; i++)
	{
		const GpuSortElement element = elements[i];
		const uint64_t begins = ((element.key ^ previous) & mask) != 0;

		if (i % LOOK_ROWS == 0 && gpusort_host_cancelled(sort))
			return;
		place += begins;
		bytes += gpusort_host_ref_length(element.ref) & -begins;
		first.ref = begins ? element.ref : first.ref;
		first.key = (first.key & (begins - 1)) + 1;
		to[place] = first;
		previous = element.key;
	}
	part->kept = place + 1;
	part->bytes = bytes;
}

static void
pick_rows(void *arg, uint32_t p)
{
	const Pick *pick = arg;
	const GpuSort *sort = pick->sort;
	PickPart *part = &((Pick *) arg)->parts[p];
	GpuSortElement *to = sort->other + part->start;
	TieGroup ties = {0, false};
	Relation before = nothing_in_common;
	uint64_t run = part->run;
	uint64_t group = part->group;
	bool kept_before = false;

	*part = (PickPart){.start = part->start, .end = part->end};
	if (part->start > 0)
	{
		before = relate(pick, part->start - 1);
		kept_before = is_kept(sort, part->start - 1, run, group);
	}
	for (uint64_t i = part->start; i < part->end; i++)
	{
		const GpuSortElement *element = &sort->elements[i];
		const uint64_t run_before = run;
		Relation next;

		if (i % LOOK_ROWS == 0 && gpusort_host_cancelled(sort))
			return;
		if (i + PREFETCH_ROWS < sort->rows && is_looked_up(pick, i + PREFETCH_ROWS))
			__builtin_prefetch(gpusort_host_key(sort, sort->elements[i + PREFETCH_ROWS].ref));
		next = i + 1 < sort->rows ? relate(pick, i) : nothing_in_common;
		if (!before.run)
			run = i;
		if (!before.equal)
			group = i;
		if (is_kept(sort, i, run, group))
		{
			/* behind rows left out, it is of the last kept one's group if that has all of them */
			bool joined = i > 0 && (kept_before ? before.equal : !sort->run_peers && group < run_before + sort->run_rows);
			bool truncated = (element->ref & GPUSORT_HOST_REF_MARK) != 0;

			if (!joined)
			{
				if (part->divided)
					part->tie_rows += tied(ties);
				else
					part->first = ties;
				part->divided = true;
				ties = (TieGroup){0, false};
			}
			ties.rows++;
			ties.truncated |= truncated;
			to[part->kept] = *element;
			if (!next.equal)
				to[part->kept].ref &= ~GPUSORT_HOST_REF_MARK;
			if (sort->run_counts)
				to[part->kept].key = count_of(sort, element->ref);
			part->kept++;
			part->bytes += gpusort_host_ref_length(element->ref);
			kept_before = true;
		}
		else
		{
			if (sort->run_counts)
				*(part->kept > 0 ? &to[part->kept - 1].key : &part->lead) += count_of(sort, element->ref);
			kept_before = false;
		}
		before = next;
	}
	if (part->divided)
		part->final = ties;
	else
		part->first = ties;
}

/* Adds up what the parts have kept. */
static void
add_parts(Pick *pick)
{
	GpuSort *sort = pick->sort;
	TieGroup open = {0, false};
	GpuSortElement *last = NULL;

	sort->rows_out = sort->row_bytes = sort->tie_rows = 0;
	for (uint32_t p = 0; p < pick->nparts; p++)
	{
		PickPart *part = &pick->parts[p];

		part->place = sort->rows_out;
		sort->rows_out += part->kept;
		sort->row_bytes += part->bytes;
		open.rows += part->first.rows;
		open.truncated |= part->first.truncated;
		if (part->divided)
		{
			sort->tie_rows += tied(open) + part->tie_rows;
			open = part->final;
		}
		if (sort->run_counts && part->lead > 0)
			last->key += part->lead;
		if (part->kept > 0)
			last = sort->other + part->start + part->kept - 1;
	}
	sort->tie_rows += tied(open);
}

static void
put_back(void *arg, uint32_t p)
{
	const Pick *pick = arg;
	const PickPart *part = &pick->parts[p];

	memcpy(pick->sort->elements + part->place, pick->sort->other + part->start, part->kept * sizeof(GpuSortElement));
}

/*
 * Keeps the rows wanted of a sort of at least one row that is finished but for its ties: elements and their marks,
 * rows_out, row_bytes and tie_rows are of these then.  Fails when the sort is cancelled, and for nothing else.
 */
int
gpusort_host_pick(GpuSort *sort, GpuSortError *error)
{
	const uint64_t wanted = gpusort_threads_count(sort->threads) > 1 ? sort->rows / PART_ROWS + 1 : 1;
	const uint32_t run_left = varying_behind(sort);
	Pick pick;
	bool simple;

	pick.sort = sort;
	pick.whole = sort->packing.words == 1;
	pick.run_mask = run_left < 64 ? UINT64_MAX << run_left : 0;
	pick.groups = run_left == 0;
	pick.breaks = sort->may_tie && !sort->run_exact;
	pick.nparts = wanted < PARTS_MAX ? wanted : PARTS_MAX;
	for (uint32_t p = 0; p < pick.nparts; p++)
	{
		pick.parts[p].start = sort->rows * p / pick.nparts;
		pick.parts[p].end = sort->rows * (p + 1) / pick.nparts;
	}
	simple = is_simple(&pick);
	if (!simple)
	{
		gpusort_threads_run(sort->threads, pick.nparts, find_last_starts, &pick);
		if (gpusort_host_cancelled(sort))
			return gpusort_error_cancelled(error);
		pass_on_starts(&pick);
	}
	gpusort_threads_run(sort->threads, pick.nparts, simple ? pick_first_rows : pick_rows, &pick);
	if (gpusort_host_cancelled(sort))
		return gpusort_error_cancelled(error);
	add_parts(&pick);
	if (pick.nparts == 1 || sort->rows_out == sort->rows)
	{
		GpuSortElement *kept = sort->other;

		sort->other = sort->elements;
		sort->elements = kept;
	}
	else
		gpusort_threads_run(sort->threads, pick.nparts, put_back, &pick);
	return 0;
}
