/*-------------------------------------------------------------------------
 *
 * set_columns.c
 *	  What is computed of groups, for some of a query's grouping sets.
 *
 * A grouping set does not have all columns of GROUP BY: those that it lacks are NULL in its groups.  PostgreSQL's Agg
 * sees to that for columns that another of its sets has.  A path of some sets alone has no such columns, so NULL is put
 * in their place here.
 *
 * Which expression is such a column is decided as PostgreSQL's setrefs.c decides what an Agg reads of the rows below:
 *
 *	- A column of the target is one if it has the sortgroupref of a clause of GROUP BY.  Another column that is equal
 *	  to it is none, as the second 0 in SELECT 0 AS k, 0 ... GROUP BY k.
 *	- A part of an expression stands for the first column of GROUP BY that it is equal to.  A constant stands for none,
 *	  as 0 in HAVING sum(x) > 0.
 *
 * Arguments of aggregates are computed of the rows, where nothing is NULL.  Direct arguments are computed of groups.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/set_columns.h"

#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "rewrite/rewriteManip.h"

/* Returns true if a sortgroupref is that of a column of GROUP BY. */
static bool
is_group_ref(PlannerInfo *root, Index ref)
{
	return ref != 0 && get_sortgroupref_clause_noerr(ref, PROCESSED_GROUP_CLAUSE(root)) != NULL;
}

/* Returns the sortgroupref of the column of GROUP BY that a part of an expression stands for; 0: it stands for none. */
static Index
group_ref(PlannerInfo *root, const Node *node)
{
	ListCell *cell;

	if (IsA(node, Const))
		return 0;
	foreach(cell, root->processed_tlist)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, cell);

		if (is_group_ref(root, entry->ressortgroupref) && equal(entry->expr, node))
			return entry->ressortgroupref;
	}
	return 0;
}

/* Returns a NULL in the place of an expression. */
Node *
gpusort_null_of(const Node *node)
{
	return (Node *) makeNullConst(exprType(node), exprTypmod(node), exprCollation(node));
}

/* GROUPING() in a single set: a bit for each argument, which is set if the set does not have it. */
static Node *
grouping_value(const GpuSortSetColumns *columns, const GroupingFunc *grouping)
{
	uint32 bits = 0;
	ListCell *cell;

	foreach(cell, grouping->refs)
		bits = bits << 1 | (list_member_int(columns->refs, lfirst_int(cell)) ? 0 : 1);
	return (Node *) makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum((int32) bits), false, true);
}

/* An expression over groups as it is in these sets. */
static Node *
set_mutator(Node *node, void *arg)
{
	const GpuSortSetColumns *columns = arg;
	Index ref;

	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref))
	{
		Aggref *aggregate = makeNode(Aggref);

		*aggregate = *(const Aggref *) node;
		aggregate->aggdirectargs = (List *) set_mutator((Node *) aggregate->aggdirectargs, arg);
		return (Node *) aggregate;
	}
	if (IsA(node, GroupingFunc))
		return columns->one_set ? grouping_value(columns, (const GroupingFunc *) node) : node;
	ref = IsA(node, List) ? 0 : group_ref(columns->root, node);
	if (ref == 0)
		return expression_tree_mutator(node, set_mutator, arg);
	return list_member_int(columns->refs, ref) ? node : gpusort_null_of(node);
}

/*
 * From 18 on what grouping sets can make NULL is marked so.  An Agg of grouping sets is to have these marks, one of a
 * single set is not.
 */
static Node *
settle_marks(const GpuSortSetColumns *columns, Node *node)
{
	return columns->one_set ? WITHOUT_GROUPING_NULLS(columns->root, node) : node;
}

/*
 * Returns a target over groups as it is in these sets.  A column that they lack has no sortgroupref: it would be taken
 * for the column below it that has the same and is equal to it, as a constant NULL of GROUP BY is.
 */
PathTarget *
gpusort_set_target(GpuSortSetColumns *columns, const PathTarget *target)
{
	PathTarget *result = copy_pathtarget((PathTarget *) target);
	ListCell *cell;

	foreach(cell, result->exprs)
	{
		const int i = foreach_current_index(cell);
		const Index ref = get_pathtarget_sortgroupref(result, i);
		Node *column = lfirst(cell);

		if (!is_group_ref(columns->root, ref))
			column = set_mutator(column, columns);
		else if (!list_member_int(columns->refs, ref))
		{
			column = gpusort_null_of(column);
			result->sortgrouprefs[i] = 0;
		}
		lfirst(cell) = settle_marks(columns, column);
	}
	return result;
}

/* Returns conditions on groups as they are in these sets. */
List *
gpusort_set_having(GpuSortSetColumns *columns, List *having)
{
	return (List *) settle_marks(columns, set_mutator((Node *) having, columns));
}

static bool
ungrouped_walker(Node *node, void *root)
{
	if (node == NULL || IsA(node, Aggref) || IsA(node, GroupingFunc))
		return false;
	if (!IsA(node, List) && group_ref(root, node) != 0)
		return false;
	return IsA(node, Var) || IsA(node, PlaceHolderVar) || expression_tree_walker(node, ungrouped_walker, root);
}

/*
 * Returns true if a target or conditions over groups read what is not grouped by: columns beside a primary key, and,
 * from 18 on, constants that are equal to one of GROUP BY, which are computed with the rows.
 */
bool
gpusort_reads_ungrouped(PlannerInfo *root, const PathTarget *target, List *having)
{
	return ungrouped_walker((Node *) target->exprs, root) || ungrouped_walker((Node *) having, root);
}
