/*-------------------------------------------------------------------------
 *
 * set_keys.c
 *	  The keys of the sorts of a set, as far as ranges are cut by them.
 *
 * There is one sort below most plans, two are below a merge join.  Rows of two sorts that are equal in
 * the range columns must be on the same side of each border, so these columns must
 * be alike in both keys: the planner sees to it that they are of the same types, or
 * encoded as if they were, and the prefixes of strings are made alike here.
 *
 *-------------------------------------------------------------------------
 */
#include "parallel/set_keys.h"

#include "keys/keys.h"

/* So many times as many rows as there are without a rank have one, nearly all of them, where sorts share ranks. */
#define KNOWN_ROWS_MIN 4

static const GpuSortKeys *
keys_of(const GpuSortSortSet *set, int i)
{
	return gpusort_parallel_sort_sort(set->sorts[i])->keys;
}

/* Compares by bytes, for qsort, to find those that are the same. */
static int
compare_bytes(const void *a, const void *b)
{
	const GpuSortKnownString *left = a;
	const GpuSortKnownString *right = b;
	int order = memcmp(left->data, right->data, Min(left->length, right->length));

	return order != 0 ? order : left->length - right->length;
}

/* Adds others, as far as they are not there, to the known values of a column; false if they are too many. */
static bool
add_known(const GpuSortColumn *column, GpuSortKnownValues *known, const GpuSortKnownValues *others)
{
	const GpuSortKnownValues own = *known;
	const GpuSortKnownValues *lists[] = {&own, others};
	GpuSortKnownString *strings = palloc((own.count + others->count) * sizeof(GpuSortKnownString));
	int count = 0;
	int different = 0;

	for (int l = 0; l < lengthof(lists); l++)
	{
		for (int i = 0; i < lists[l]->count; i++)
		{
			strings[count].data = gpusort_known_value(lists[l], i, &strings[count].length);
			count++;
		}
	}
	qsort(strings, count, sizeof(GpuSortKnownString), compare_bytes);
	for (int i = 0; i < count; i++)
	{
		if (i == 0 || compare_bytes(&strings[i], &strings[i - 1]) != 0)
			strings[different++] = strings[i];
	}
	return gpusort_keys_set_known(column, strings, different, known);
}

/*
 * Gives the strings of range column i ranks in all sorts, among the values that any of them knows, if those that
 * know nearly all of their values have most of the rows by far; else in none.  A few rows of values without a rank
 * do no harm, many would all be in the same ranges.
 */
static void
unify_known(const GpuSortSortSet *set, GpuSortPrefix **prefixes, int i, int string)
{
	GpuSortKnownValues *known = NULL;
	double known_rows = 0;
	double other_rows = 0;
	bool ranked = true;

	for (int s = 0; s < set->count; s++)
	{
		const GpuSortState *sort = gpusort_parallel_sort_sort(set->sorts[s]);
		GpuSortKnownValues *own = &prefixes[s][string].known;

		ranked &= gpusort_keys_may_rank(&sort->keys->columns[i]);
		if (!own->ranked || !own->complete)
			other_rows += sort->estimated_rows;
		else
		{
			known_rows += sort->estimated_rows;
			ranked &= known == NULL || add_known(&sort->keys->columns[i], own, known);
			known = own;
		}
	}
	ranked &= known != NULL && known_rows >= KNOWN_ROWS_MIN * other_rows;
	for (int s = 0; s < set->count; s++)
	{
		GpuSortKnownValues *own = &prefixes[s][string].known;

		if (ranked && own != known)
			*own = *known;
		own->ranked = ranked;
	}
}

/*
 * Makes the range columns of all sorts alike.  Strings have as much in the keys as the sort has that has most of
 * them, and nothing is left out, so that what most of them begin with is in the keys, too.
 */
static void
unify(const GpuSortSortSet *set, GpuSortPrefix **prefixes, bool *common_later)
{
	const GpuSortKeys *first = keys_of(set, 0);
	const int columns = gpusort_parallel_sort_range_columns(set->sorts[0]);
	int string = 0;

	for (int i = 0; i < columns; i++)
	{
		int length = 0;

		for (int s = 0; s < set->count; s++)
		{
			const GpuSortKeys *keys = keys_of(set, s);

			if (i >= keys->encodable || !gpusort_columns_have_same_keys(&keys->columns[i], &first->columns[i]))
				return;
			if (gpusort_column_is_sized(&keys->columns[i]))
				length = Max(length, prefixes[s][string].length + prefixes[s][string].common_length);
		}
		if (!gpusort_column_is_sized(&first->columns[i]))
			continue;
		unify_known(set, prefixes, i, string);
		for (int s = 0; s < set->count; s++)
		{
			prefixes[s][string].length = Min(length, GPUSORT_PREFIX_MAX);
			prefixes[s][string].common_length = 0;
			common_later[s] = false;
		}
		string++;
	}
}

/*
 * Leaves range columns of the one sort, or those that should not be parted, ranks only where nearly all values are
 * known, or statistics say that they are so few that first rows will show them.  Values that are not known differ
 * behind the bits that ranges are cut by, and are all in a few ranges.
 */
static void
keep_ranges(const GpuSortSortSet *set, GpuSortPrefix *prefixes)
{
	const GpuSortKeys *keys = keys_of(set, 0);
	const int columns =
		set->whole_columns > 0 ? set->whole_columns : gpusort_parallel_sort_range_columns(set->sorts[0]);

	for (int i = 0; i < Min(columns, keys->encodable); i++)
	{
		if (!gpusort_column_is_sized(&keys->columns[i]))
			continue;
		prefixes->known.ranked &= prefixes->known.complete || prefixes->known.count > 0;
		prefixes++;
	}
}

/* Settles what of strings is in the keys, as far as ranges are cut by it: prefixes are those that each sort chose. */
void
gpusort_set_keys_choose(const GpuSortSortSet *set, GpuSortPrefix **prefixes, bool *common_later)
{
	if (set->count > 1)
		unify(set, prefixes, common_later);
	else
		keep_ranges(set, prefixes[0]);
}

/* Returns true if the strings of column i have ranks among the same values in both, or none in either. */
static bool
has_same_ranks(const GpuSortKeys *a, const GpuSortKeys *b, int i)
{
	const GpuSortKnownValues *left;
	const GpuSortKnownValues *right;
	int string = 0;

	if (a->columns[i].rank_bits != b->columns[i].rank_bits)
		return false;
	if (a->columns[i].rank_bits == 0)
		return true;
	for (int before = 0; before < i; before++)
		string += gpusort_column_is_sized(&a->columns[before]);
	left = &a->prefixes[string].known;
	right = &b->prefixes[string].known;
	return left->count == right->count && memcmp(left->ends, right->ends, left->count * sizeof(left->ends[0])) == 0 &&
		memcmp(left->bytes, right->bytes, left->count > 0 ? left->ends[left->count - 1] : 0) == 0;
}

/*
 * Returns true if keys of the two have the same bits for the same values of their column i.  Ranks are not the same
 * where known values are not.
 */
static bool
is_laid_out_alike(const GpuSortKeys *a, const GpuSortKeys *b, int i)
{
	const GpuSortColumn *left = &a->columns[i];
	const GpuSortColumn *right = &b->columns[i];

	return gpusort_columns_have_same_keys(left, right) && left->collation == right->collation &&
		left->descending == right->descending && left->nulls_first == right->nulls_first &&
		has_same_ranks(a, b, i) &&
		left->bits == right->bits && left->difference_bits == right->difference_bits &&
		left->prefix_length == right->prefix_length && left->size_bits == right->size_bits &&
		left->common_length == right->common_length &&
		(left->common_length == 0 || memcmp(left->common_prefix, right->common_prefix, left->common_length) == 0);
}

/*
 * Returns in how many leading bits of the keys, which are laid out, ranges differ; 0 if there are none that all sorts
 * have alike.
 */
uint32
gpusort_set_keys_range_bits(const GpuSortSortSet *set)
{
	const GpuSortKeys *first = keys_of(set, 0);
	int columns = gpusort_parallel_sort_range_columns(set->sorts[0]);

	for (int s = 0; s < set->count; s++)
	{
		const GpuSortKeys *other = keys_of(set, s);
		int alike = 0;

		columns = Min(columns, Min(gpusort_parallel_sort_range_columns(set->sorts[s]), other->encoded));
		while (alike < columns && (other == first || is_laid_out_alike(first, other, alike)))
			alike++;
		columns = alike;
	}
	return gpusort_keys_range_bits(first, columns);
}
