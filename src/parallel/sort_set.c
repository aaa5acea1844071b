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

#include "parallel/joint_sort_state.h"

/* Adds a sort; the set grows in the current memory context. */
void
gpusort_joint_sorts_add(GpuSortJointSorts *sorts, GpuSortJointSort *sort)
{
	if (sorts->sorts == NULL)
		sorts->sorts = palloc(sizeof(GpuSortJointSort *));
	else
		sorts->sorts = repalloc(sorts->sorts, (sorts->count + 1) * sizeof(GpuSortJointSort *));
	sorts->sorts[sorts->count++] = sort;
}

/*
 * Has the range columns of all sorts be alike: strings have as much in the keys as the sort has that has most of
 * them, and nothing is left out, so that what most of them begin with is in the keys, too.
 */
void
gpusort_joint_sorts_unify(const GpuSortJointSorts *sorts, GpuSortPrefix **prefixes, bool *common_later)
{
	const GpuSortJointSort *first = sorts->sorts[0];
	int string = 0;

	for (int i = 0; i < first->range_columns; i++)
	{
		int length = 0;

		for (int s = 0; s < sorts->count; s++)
		{
			const GpuSortKeys *keys = sorts->sorts[s]->sort->keys;

			if (i >= keys->encodable || !gpusort_columns_have_same_keys(&keys->columns[i], &first->sort->keys->columns[i]))
				return;
			if (gpusort_column_is_string(&keys->columns[i]))
				length = Max(length, prefixes[s][string].length + prefixes[s][string].common_length);
		}
		if (!gpusort_column_is_string(&first->sort->keys->columns[i]))
			continue;
		for (int s = 0; s < sorts->count; s++)
		{
			prefixes[s][string].known.ranked = false;
			prefixes[s][string].length = Min(length, GPUSORT_PREFIX_MAX);
			prefixes[s][string].common_length = 0;
			common_later[s] = false;
		}
		string++;
	}
}

/*
 * Has range columns of a sort have ranks only where nearly all values are known,
 * or statistics say that they are so few that first rows will show them:
 * those that are not known differ behind the bits that ranges are cut by, and are all in a few of them.
 */
void
gpusort_joint_sorts_keep_ranges(const GpuSortJointSort *own, GpuSortPrefix *prefixes)
{
	const GpuSortKeys *keys = own->sort->keys;

	for (int i = 0; i < Min(own->range_columns, keys->encodable); i++)
	{
		if (!gpusort_column_is_string(&keys->columns[i]))
			continue;
		prefixes->known.ranked &= prefixes->known.complete || prefixes->known.count > 0;
		prefixes++;
	}
}

/*
 * Returns true if keys of the two have the same bits for the same values of their column i.  Ranks are not the same
 * where known values are not.
 */
static bool
is_laid_out_alike(const GpuSortJointSort *a, const GpuSortJointSort *b, int i)
{
	const GpuSortColumn *left = &a->sort->keys->columns[i];
	const GpuSortColumn *right = &b->sort->keys->columns[i];

	return gpusort_columns_have_same_keys(left, right) && left->collation == right->collation &&
		left->descending == right->descending && left->nulls_first == right->nulls_first &&
		left->rank_bits == 0 && right->rank_bits == 0 &&
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
gpusort_joint_sorts_range_bits(const GpuSortJointSorts *sorts)
{
	const GpuSortJointSort *first = sorts->sorts[0];
	int columns = first->range_columns;

	for (int s = 0; s < sorts->count; s++)
	{
		const GpuSortJointSort *other = sorts->sorts[s];
		int alike = 0;

		columns = Min(columns, Min(other->range_columns, other->sort->keys->encoded));
		while (alike < columns && (other == first || is_laid_out_alike(first, other, alike)))
			alike++;
		columns = alike;
	}
	return gpusort_keys_range_bits(first->sort->keys, columns);
}
