/*-------------------------------------------------------------------------
 *
 * few_values.c
 *	  Which columns of strings have ranks in a sort's keys, and of which values.
 *
 * What ranks are is said in keys/encode.c.  With them the key goes on behind a string that it does not
 * hold whole, as it never does under the C library's collations.  They are worth it where nearly
 * all rows have one of few values; which these are is told by the column's statistics, most
 * common values and where there are few others the bounds of the histogram, and by first rows.
 *
 * What first rows say of others is estimated by Turing: the part of the rows whose value is in none of
 * them is about that of those in them whose value no other one has (I. J. Good, The Population
 * Frequencies of Species, Biometrika 40, 1953).
 *
 * Values that mislead cost time, never order: see encode.c.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/few_values.h"

#include "column_stats.h"
#include "common/hashfn.h"

/* Strings of bytes that are no longer in the key than this have no ranks: they are exact, and as short. */
#define SHORT_BYTES 14

/* The most strings of statistics and of first rows. */
#define STRINGS_MAX (2 * GPUSORT_KNOWN_MAX + GPUSORT_FEW_VALUES_ROWS)

/* A column's strings, in a memory context of their own. */
typedef struct Strings
{
	const GpuSortKeys *keys;
	const GpuSortColumn *column;
	int count;
	bool too_long; /* one of them is */
	GpuSortKnownString strings[STRINGS_MAX];
	char bytes[GPUSORT_KNOWN_BYTES + GPUSORT_STRING_SLACK];
} Strings;

/* Adds a string. */
static void
add_string(Strings *strings, const char *data, int length)
{
	char *copy = palloc(Max(length, 1));

	memcpy(copy, data, length);
	strings->strings[strings->count++] = (GpuSortKnownString){.data = copy, .length = length};
}

/* A GpuSortValueCallback. */
static void
add_value(Datum value, int count, void *arg)
{
	Strings *strings = arg;
	int length = gpusort_keys_own_string(strings->keys, strings->column, value, strings->bytes, GPUSORT_KNOWN_BYTES);

	if (length == GPUSORT_KNOWN_BYTES)
		strings->too_long = true;
	else if (strings->count < STRINGS_MAX)
		add_string(strings, strings->bytes, length);
}

/* Adds values of the first rows, spread over them, but not evenly; returns of how many rows. */
static int
add_first_rows(Strings *strings, GpuSortFirstRows *first)
{
	int stride = Max(first->count / GPUSORT_FEW_VALUES_ROWS, 1);
	int before = strings->count;

	for (int i = 0; i * stride < first->count && i < GPUSORT_FEW_VALUES_ROWS; i++)
	{
		int row = Min(i * stride + hash_bytes_uint32(i) % stride, first->count - 1);
		bool isnull;
		Datum value;

		ExecStoreMinimalTuple(first->rows[row], first->slot, false);
		value = slot_getattr(first->slot, strings->column->attno, &isnull);
		if (!isnull)
			add_value(value, 1, strings);
	}
	ExecClearTuple(first->slot);
	return strings->count - before;
}

static int
compare_strings(const void *a, const void *b)
{
	const GpuSortKnownString *left = a;
	const GpuSortKnownString *right = b;
	int order = memcmp(left->data, right->data, Min(left->length, right->length));

	return order != 0 ? order : left->length - right->length;
}

/* Returns which part of the rows is thought to have one of the values of these, by these alone; they are reordered. */
static double
known_share(GpuSortKnownString *strings, int count)
{
	int single = 0;

	qsort(strings, count, sizeof(GpuSortKnownString), compare_strings);
	for (int i = 0; i < count; i++)
	{
		single += (i == 0 || compare_strings(&strings[i], &strings[i - 1]) != 0) &&
			(i + 1 == count || compare_strings(&strings[i], &strings[i + 1]) != 0);
	}
	return count == 0 ? 0 : 1 - (double) single / count;
}

static Strings *
create_strings(const GpuSortKeys *keys, const GpuSortColumn *column)
{
	Strings *strings = palloc(sizeof(Strings));

	strings->keys = keys;
	strings->column = column;
	strings->count = 0;
	strings->too_long = false;
	return strings;
}

/* Has known be the values of strings; returns false if these are too many. */
static bool
set_known(Strings *strings, GpuSortKnownValues *known)
{
	return !strings->too_long && strings->count > 0 &&
		gpusort_keys_set_known(strings->column, strings->strings, strings->count, known);
}

/* Adds what statistics know of the column; returns as gpusort_column_known_values does. */
static double
add_statistics(Strings *strings, PlanState *child, double *different)
{
	AttrNumber attno = strings->column->attno;
	GpuSortTableColumn column;

	if (!gpusort_find_table_column(child->state->es_range_table, child->plan, attno, &column))
		return -1;
	return gpusort_column_known_values(&column, TupleDescAttr(ExecGetResultType(child), attno - 1)->atttypid, add_value,
									   strings, different);
}

/* Chooses by statistics, which know the values of this share of the rows. */
static void
choose_by_statistics(Strings *strings, GpuSortFirstRows *first, double share, double different, bool behind,
					 GpuSortKnownValues *known)
{
	bool enough = share >= GPUSORT_KNOWN_SHARE;

	if (!enough && different > GPUSORT_FEW_VALUES)
		return;
	known->ranked = set_known(strings, known) && (enough || behind);
	known->complete = enough;
	if (known->ranked && first != NULL)
	{
		(void) add_first_rows(strings, first);
		known->complete |= set_known(strings, known);
	}
}

/* Chooses by first rows alone. */
static void
choose_by_first_rows(Strings *strings, GpuSortFirstRows *first, GpuSortKnownValues *known)
{
	(void) add_first_rows(strings, first);
	known->ranked = known_share(strings->strings, strings->count) >= GPUSORT_KNOWN_SHARE && set_known(strings, known);
	known->complete = known->ranked;
}

/*
 * Chooses the known values of column i, a string's, whose other choices have been made; first as for gpusort_prefixes_choose.
 * statistics: they are worth a look.  What it takes is in the current memory context.
 */
void
gpusort_few_values_choose(const GpuSortKeys *keys, int i, PlanState *child, GpuSortFirstRows *first, bool statistics,
						  GpuSortPrefix *prefix)
{
	const GpuSortColumn *column = &keys->columns[i];
	bool by_bytes = column->type->source == GPUSORT_SOURCE_STRING;
	bool behind = i + 1 < keys->encodable;
	Strings *strings;
	double share = -1;
	double different;

	if (!gpusort_keys_may_rank(column) || (by_bytes && prefix->length <= SHORT_BYTES))
		return;
	strings = create_strings(keys, column);
	if (statistics)
		share = add_statistics(strings, child, &different);
	if (share >= 0)
		choose_by_statistics(strings, first, share, different, behind, &prefix->known);
	else if (first != NULL)
		choose_by_first_rows(strings, first, &prefix->known);
	else
		prefix->known.ranked = behind && !by_bytes;
}

/*
 * Adds values of the first rows of a process to those that are known, of columns with ranks of which too few are known.  What it takes
 * is in the current memory context.
 */
void
gpusort_few_values_add(const GpuSortKeys *keys, GpuSortFirstRows *first, GpuSortPrefix *prefixes)
{
	for (int i = 0; i < keys->encodable; i++)
	{
		const GpuSortColumn *column = &keys->columns[i];
		GpuSortKnownValues *known;
		Strings *strings;

		if (!gpusort_column_is_string(column))
			continue;
		known = &prefixes++->known;
		if (!known->ranked || known->complete)
			continue;
		strings = create_strings(keys, column);
		(void) add_first_rows(strings, first);
		if (known->count == 0 && known_share(strings->strings, strings->count) < GPUSORT_KNOWN_SHARE)
			continue;
		for (int v = 0; v < known->count; v++)
		{
			int length;
			const char *data = gpusort_known_value(known, v, &length);

			add_string(strings, data, length);
		}
		(void) set_known(strings, known);
	}
}
