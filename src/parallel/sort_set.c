/*-------------------------------------------------------------------------
 *
 * sort_set.c
 *	  The sorts whose rows are cut at the same borders.
 *
 * One below most plans, two below a merge join.  Rows of two sorts that are equal in
 * the range columns must be on the same side of each border, so these columns must
 * be alike in both keys: the planner sees to it that they are of the same types, or
 * encoded as if they were, and the prefixes of strings are made alike here.
 *
 *-------------------------------------------------------------------------
 */
#include "parallel/sort_set.h"

#include "parallel/parallel_sort_state.h"

/* So many times as many rows as there are without a rank have one, nearly all of them, where sorts share ranks. */
#define KNOWN_ROWS_MIN 4

/* Adds a sort; the set grows in the current memory context. */
void
gpusort_sort_set_add(GpuSortSortSet *set, GpuSortParallelSort *sort)
{
	if (set->sorts == NULL)
		set->sorts = palloc(sizeof(GpuSortParallelSort *));
	else
		set->sorts = repalloc(set->sorts, (set->count + 1) * sizeof(GpuSortParallelSort *));
	set->sorts[set->count++] = sort;
}

/* A qsort comparator: by bytes, to find those that are the same. */
static int
compare_bytes(const void *a, const void *b)
{
	const GpuSortKnownString *left = a;
	const GpuSortKnownString *right = b;
	int order = memcmp(left->data, right->data, Min(left->length, right->length));

	return order != 0 ? order : left->length - right->length;
}

/* Copies the known values of a column to known, and those of others that are not among them; false: too many. */
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
 * Has the strings of range column i have ranks in all sorts, among the values that any of them knows, if those that
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
		GpuSortState *sort = set->sorts[s]->sort;
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
 * Has the range columns of all sorts be alike: strings have as much in the keys as the sort has that has most of
 * them, and nothing is left out, so that what most of them begin with is in the keys, too.
 */
void
gpusort_sort_set_unify(const GpuSortSortSet *set, GpuSortPrefix **prefixes, bool *common_later)
{
	const GpuSortParallelSort *first = set->sorts[0];
	int string = 0;

	for (int i = 0; i < first->range_columns; i++)
	{
		int length = 0;

		for (int s = 0; s < set->count; s++)
		{
			const GpuSortKeys *keys = set->sorts[s]->sort->keys;

			if (i >= keys->encodable || !gpusort_columns_have_same_keys(&keys->columns[i], &first->sort->keys->columns[i]))
				return;
			if (gpusort_column_is_sized(&keys->columns[i]))
				length = Max(length, prefixes[s][string].length + prefixes[s][string].common_length);
		}
		if (!gpusort_column_is_sized(&first->sort->keys->columns[i]))
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
 * Has range columns of the one sort, or those that should not be parted, have ranks only where nearly all values are
 * known, or statistics say that they are so few that first rows will show them: those that are not known differ behind
 * the bits that ranges are cut by, and are all in a few of them.
 */
void
gpusort_sort_set_keep_ranges(const GpuSortSortSet *set, GpuSortPrefix *prefixes)
{
	const GpuSortParallelSort *own = set->sorts[0];
	const GpuSortKeys *keys = own->sort->keys;
	const int columns = set->whole_columns > 0 ? set->whole_columns : own->range_columns;

	for (int i = 0; i < Min(columns, keys->encodable); i++)
	{
		if (!gpusort_column_is_sized(&keys->columns[i]))
			continue;
		prefixes->known.ranked &= prefixes->known.complete || prefixes->known.count > 0;
		prefixes++;
	}
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
is_laid_out_alike(const GpuSortParallelSort *a, const GpuSortParallelSort *b, int i)
{
	const GpuSortColumn *left = &a->sort->keys->columns[i];
	const GpuSortColumn *right = &b->sort->keys->columns[i];

	return gpusort_columns_have_same_keys(left, right) && left->collation == right->collation &&
		left->descending == right->descending && left->nulls_first == right->nulls_first &&
		has_same_ranks(a->sort->keys, b->sort->keys, i) &&
		left->bits == right->bits && left->difference_bits == right->difference_bits &&
		left->prefix_length == right->prefix_length && left->size_bits == right->size_bits &&
		left->common_length == right->common_length &&
		(left->common_length == 0 || memcmp(left->common_prefix, right->common_prefix, left->common_length) == 0);
}

/*
 * Returns in how many leading bits of the keys, which are laid out,
 * ranges differ; 0: there are none that all sorts have alike.
 */
uint32
gpusort_sort_set_range_bits(const GpuSortSortSet *set)
{
	const GpuSortParallelSort *first = set->sorts[0];
	int columns = first->range_columns;

	for (int s = 0; s < set->count; s++)
	{
		const GpuSortParallelSort *other = set->sorts[s];
		int alike = 0;

		columns = Min(columns, Min(other->range_columns, other->sort->keys->encoded));
		while (alike < columns && (other == first || is_laid_out_alike(first, other, alike)))
			alike++;
		columns = alike;
	}
	return gpusort_keys_range_bits(first->sort->keys, columns);
}
