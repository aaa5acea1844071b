/*-------------------------------------------------------------------------
 *
 * sort_set.c
 *	  The GpuSorts whose rows are cut at the same borders.
 *
 * One below most plans, two below a merge join.  Rows of two sorts that are equal in
 * the range columns must be on the same side of each border, so these columns must
 * be alike in both keys: the planner sees to it that they are of the same types, or
 * encoded as if they were, and the prefixes of strings are made alike here.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/sort_set.h"

/*
 * Adds the GpuSorts that ps and what is below it read, in the order of the plan; all nodes between start over when this
 * parameter changes.  They are kept in the current memory context.
 */
void
gpusort_shared_sorts_find(GpuSortSharedSorts *sorts, PlanState *ps, int rescan_param)
{
	CustomScan *plan;

	if (ps == NULL)
		return;
	plan = (CustomScan *) ps->plan;
	if (!bms_is_member(rescan_param, plan->scan.plan.allParam))
		return;
	if (IsA(ps, CustomScanState) && plan->methods == &gpusort_scan_methods)
	{
		GpuSortScanState *sort = (GpuSortScanState *) ps;

		if (sort->shared == NULL)
			return;
		if (sorts->sorts == NULL)
			sorts->sorts = palloc(sizeof(GpuSortScanState *));
		else
			sorts->sorts = repalloc(sorts->sorts, (sorts->count + 1) * sizeof(GpuSortScanState *));
		sorts->sorts[sorts->count++] = sort;
		return;
	}
	gpusort_shared_sorts_find(sorts, IsA(ps, SubqueryScanState) ? ((SubqueryScanState *) ps)->subplan : ps->lefttree,
							  rescan_param);
	gpusort_shared_sorts_find(sorts, ps->righttree, rescan_param);
}

/*
 * Has the range columns of all sorts be alike: strings have as much in the keys as the sort has that has most of
 * them, and nothing is left out, so that what most of them begin with is in the keys, too.
 */
void
gpusort_shared_sorts_unify(const GpuSortSharedSorts *sorts, GpuSortPrefix **prefixes, bool *common_later)
{
	const GpuSortScanState *first = sorts->sorts[0];
	int string = 0;

	for (int i = 0; i < first->info.range_columns; i++)
	{
		int length = 0;

		for (int s = 0; s < sorts->count; s++)
		{
			const GpuSortKeys *keys = sorts->sorts[s]->keys;

			if (i >= keys->encodable || !gpusort_columns_have_same_keys(&keys->columns[i], &first->keys->columns[i]))
				return;
			if (gpusort_column_is_string(&keys->columns[i]))
				length = Max(length, prefixes[s][string].length + prefixes[s][string].common_length);
		}
		if (!gpusort_column_is_string(&first->keys->columns[i]))
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
 * Has range columns of a sort have ranks only where nearly all values are known, or statistics say that they are so few that first
 * rows will show them: those that are not known differ behind the bits that ranges are cut by, and are all in a few of them.
 */
void
gpusort_shared_sorts_keep_ranges(const GpuSortScanState *state, GpuSortPrefix *prefixes)
{
	const GpuSortKeys *keys = state->keys;

	for (int i = 0; i < Min(state->info.range_columns, keys->encodable); i++)
	{
		if (!gpusort_column_is_string(&keys->columns[i]))
			continue;
		prefixes->known.ranked &= prefixes->known.complete || prefixes->known.count > 0;
		prefixes++;
	}
}

/* Returns true if keys of the two have the same bits for the same values of their column i.  Ranks are not the same where known values are not. */
static bool
is_laid_out_alike(const GpuSortScanState *a, const GpuSortScanState *b, int i)
{
	const GpuSortColumn *left = &a->keys->columns[i];
	const GpuSortColumn *right = &b->keys->columns[i];

	return gpusort_columns_have_same_keys(left, right) && left->collation == right->collation &&
		left->descending == right->descending && left->nulls_first == right->nulls_first &&
		left->rank_bits == 0 && right->rank_bits == 0 &&
		left->bits == right->bits && left->difference_bits == right->difference_bits &&
		left->prefix_length == right->prefix_length && left->size_bits == right->size_bits &&
		left->common_length == right->common_length &&
		(left->common_length == 0 || memcmp(left->common_prefix, right->common_prefix, left->common_length) == 0);
}

/* Returns in how many leading bits of the keys, which are laid out, ranges differ; 0: there are none that all sorts have alike. */
uint32
gpusort_shared_sorts_range_bits(const GpuSortSharedSorts *sorts)
{
	const GpuSortScanState *first = sorts->sorts[0];
	int columns = first->info.range_columns;

	for (int s = 0; s < sorts->count; s++)
	{
		const GpuSortScanState *other = sorts->sorts[s];
		int alike = 0;

		columns = Min(columns, Min(other->info.range_columns, other->keys->encoded));
		while (alike < columns && (other == first || is_laid_out_alike(first, other, alike)))
			alike++;
		columns = alike;
	}
	return gpusort_keys_range_bits(first->keys, columns);
}
