/*-------------------------------------------------------------------------
 *
 * copy_choice.c
 *	  Decides whether gpusort is to copy a table's rows in the order of an index, and says why not.
 *
 * What is not known to be right is left to PostgreSQL: indexes of expressions, whose values no row has; tables whose
 * changes are decoded as those of catalogs, since that needs to know where each row has gone.
 *
 * Then time decides.  PostgreSQL reads, sorts, forms and writes all rows in one process; here all of them do that, but
 * for what the service does.  gpusort.force overrules time.
 *
 *-------------------------------------------------------------------------
 */
#include "cluster/copy_choice.h"

#include "catalog/catalog.h"
#include "catalog/index.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "plan/model/constants.h"
#include "plan/model/shape.h"
#include "settings.h"
#include "utils/rel.h"

#define TIME(constant) gpusort_constant(GPUSORT_TIME_##constant, false)

/*
 * Finds what a table's rows are sorted by as an index is: columns of the table; they are palloc'd.  If they cannot be
 * sorted returns false, and why as the rest of a sentence that begins with the index.
 */
bool
gpusort_cluster_order(Relation table, Relation index, GpuSortIndexOrder *order, const char **why_not)
{
	if (!gpusort_index_order(index, order, why_not))
		return false;
	order->count--; /* the last is the TID */
	for (int i = 0; i < order->count; i++)
	{
		order->columns[i].attno = index->rd_index->indkey.values[i];
		if (order->columns[i].attno > 0)
			continue;
		*why_not = psprintf("column %d is an expression", i + 1);
		return false;
	}
	return true;
}

/* Estimates a table's rows, and their width. */
double
gpusort_cluster_estimate(Relation table, int *width)
{
	*width = get_rel_data_width(table, NULL);
	return gpusort_index_estimate_rows(table);
}

/* Returns how many workers PostgreSQL would build the index with. */
int
gpusort_cluster_workers(Relation table, Relation index)
{
	return plan_create_index_workers(RelationGetRelid(table), RelationGetRelid(index));
}

/*
 * Returns true if our way as a whole is faster by the margin; the time is of a sort of as many rows.  An index is read
 * in its place where PostgreSQL finds that cheaper, so it must be faster than what takes least then, a table that is in
 * order.
 */
static bool
is_faster(const GpuSortTime *time, double rows, int workers, bool native_sorts)
{
	const double processes = (workers + 1) / gpusort_crowd(workers);
	const double order =
		native_sorts ? gpusort_index_native_sort_time(time, rows, 1) : rows * TIME(REWRITE_BY_INDEX);
	const double native = order + rows * TIME(REWRITE_ROW);
	const double shared = time->ingest + time->compare + time->emit + TIME(REWRITE_SORTED_ROW);

	return native > GPUSORT_MARGIN * (time->setup + rows * (shared / processes + time->order));
}

/* The same, and why not as the rest of a sentence.  May start the service. */
static bool
choose(Relation table, Relation index, bool native_sorts, const char **why_not)
{
	GpuSortIndexOrder order = {0};
	GpuSortTime time;

	*why_not = "";
	if (RelationIsAccessibleInLogicalDecoding(table))
	{
		*why_not = "it is decoded as a catalog";
		return false;
	}
	/* the model knows the order by the index's columns */
	if (!gpusort_cluster_order(table, index, &order, why_not) || !gpusort_index_order(index, &order, why_not))
		return false;
	order.rows = gpusort_cluster_estimate(table, &order.width);
	if (!gpusort_index_is_sortable(table, index, BuildIndexInfo(index), &order, &time, why_not))
		return false;
	if (gpusort_force || is_faster(&time, order.rows, gpusort_cluster_workers(table, index), native_sorts))
		return true;
	*why_not = "that is not much slower";
	return false;
}

/*
 * Returns true if gpusort is to copy a table's rows in the order of an index, and tells the log; native_sorts: if not,
 * PostgreSQL sorts them.
 */
bool
gpusort_cluster_is_chosen(Relation table, Relation index, bool native_sorts)
{
	const char *why_not;
	const bool chosen = choose(table, index, native_sorts, &why_not);

	if (!gpusort_log_decisions)
		return chosen;
	if (chosen)
		ereport(LOG, (errmsg("gpusort: clustering table \"%s\"", RelationGetRelationName(table))));
	else
		ereport(LOG,
				(errmsg("gpusort: PostgreSQL clusters table \"%s\": %s", RelationGetRelationName(table), why_not)));
	return chosen;
}
