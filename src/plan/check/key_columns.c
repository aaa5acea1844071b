/*-------------------------------------------------------------------------
 *
 * key_columns.c
 *	  Rules of finished plans: the columns that rows are sorted, grouped and compared by are there, of a type that the
 *	  operators take.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/check/rules.h"

#include "catalog/pg_type_d.h"
#include "node.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/tlist.h"
#include "parser/parse_coerce.h"
#include "parser/parse_type.h"
#include "parser/parsetree.h"
#include "plan/finish/plan_tree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

/* Columns of rows that a node compares. */
typedef struct Compared
{
	const Plan *plan;
	List *columns; /* of the rows: a target list */
	const char *what;
} Compared;

static void
check_column(const Compared *compared, AttrNumber attno, Oid operator, Oid collation)
{
	const Plan *plan = compared->plan;
	const TargetEntry *entry = get_tle_by_resno(compared->columns, attno);
	Oid type;
	Oid left;
	Oid right;

	if (entry == NULL)
		gpusort_refuse_plan(plan, "%s by column %d of rows that have %d", compared->what, attno,
							list_length(compared->columns));
	type = exprType((Node *) entry->expr);
	op_input_types(operator, & left, &right);
	/* PostgreSQL sorts a text that a citext was cast to by citext's operator, too. */
	if (!IsBinaryCoercible(type, left) && !IsBinaryCoercible(left, type))
		gpusort_refuse_plan(plan, "%s by column %d, of %s, with an operator for %s", compared->what, attno,
							format_type_be(type), format_type_be(left));
	if (OidIsValid(collation) != OidIsValid(exprCollation((Node *) entry->expr)))
		gpusort_refuse_plan(plan, "%s by column %d, with collation %u, and the column has %u", compared->what, attno,
							collation, exprCollation((Node *) entry->expr));
}

static void
check_columns(const Plan *plan, const Plan *rows, const char *what, int count, const AttrNumber *attnos,
			  const Oid *operators, const Oid *collations)
{
	const Compared compared = {.plan = plan, .columns = rows->targetlist, .what = what};

	for (int i = 0; i < count; i++)
		check_column(&compared, attnos[i], operators[i], collations[i]);
}

/* An Agg's columns, and those of the Aggs and Sorts chained to it, which read what it reads. */
static void
check_agg(const Agg *agg)
{
	const Plan *plan = &agg->plan;
	ListCell *cell;

	check_columns(plan, outerPlan(plan), "groups", agg->numCols, agg->grpColIdx, agg->grpOperators,
				  agg->grpCollations);
	foreach(cell, agg->chain)
	{
		const Agg *chained = lfirst_node(Agg, cell);
		const Sort *sort = (const Sort *) outerPlan(chained);

		check_columns(plan, outerPlan(plan), "groups", chained->numCols, chained->grpColIdx, chained->grpOperators,
					  chained->grpCollations);
		if (sort != NULL)
			check_columns(plan, outerPlan(plan), "sorts", sort->numCols, sort->sortColIdx, sort->sortOperators,
						  sort->collations);
	}
}

static void
check_gpusort(const CustomScan *scan)
{
	const Compared compared = {
		.plan = &scan->scan.plan,
		.columns = outerPlan(scan)->targetlist,
		.what = "sorts",
	};
	GpuSortPlanInfo info;

	gpusort_plan_unpack(scan, &info);
	for (int i = 0; i < info.ncolumns; i++)
		check_column(&compared, info.columns[i].attno, info.columns[i].sort_operator, info.columns[i].collation);
}

/* Raises an error where a column that a node sorts, groups or compares by is not there, or of another type. */
void
gpusort_check_key_columns(Plan *plan)
{
	const Plan *below = outerPlan(plan);

	switch (nodeTag(plan))
	{
		case T_Agg:
			check_agg((const Agg *) plan);
			break;
		case T_CustomScan:
			if (gpusort_plan_is(plan, &gpusort_scan_methods) || gpusort_plan_is(plan, &gpusort_ingest_scan_methods))
				check_gpusort((const CustomScan *) plan);
			break;
		case T_GatherMerge:
			{
				const GatherMerge *merge = (const GatherMerge *) plan;

				check_columns(plan, below, "merges", merge->numCols, merge->sortColIdx, merge->sortOperators,
							  merge->collations);
				break;
			}
		case T_Group:
			{
				const Group *group = (const Group *) plan;

				check_columns(plan, below, "groups", group->numCols, group->grpColIdx, group->grpOperators,
							  group->grpCollations);
				break;
			}
		case T_Limit:
			{
				const Limit *limit = (const Limit *) plan;

				check_columns(plan, below, "compares", limit->uniqNumCols, limit->uniqColIdx, limit->uniqOperators,
							  limit->uniqCollations);
				break;
			}
		case T_MergeAppend:
			{
				const MergeAppend *merge = (const MergeAppend *) plan;

				check_columns(plan, plan, "merges", merge->numCols, merge->sortColIdx, merge->sortOperators,
							  merge->collations);
				break;
			}
		case T_RecursiveUnion:
			{
				const RecursiveUnion *all = (const RecursiveUnion *) plan;

				check_columns(plan, plan, "compares", all->numCols, all->dupColIdx, all->dupOperators,
							  all->dupCollations);
				break;
			}
		case T_SetOp:
			{
				const SetOp *set = (const SetOp *) plan;

				check_columns(plan, below, "compares", set->numCols, SETOP_COLUMNS(set), SETOP_OPERATORS(set),
							  SETOP_COLLATIONS(set));
				break;
			}
		case T_IncrementalSort:
		case T_Sort:
			{
				const Sort *sort = (const Sort *) plan;

				check_columns(plan, below, "sorts", sort->numCols, sort->sortColIdx, sort->sortOperators,
							  sort->collations);
				break;
			}
		case T_Unique:
			{
				const Unique *unique = (const Unique *) plan;

				check_columns(plan, below, "compares", unique->numCols, unique->uniqColIdx, unique->uniqOperators,
							  unique->uniqCollations);
				break;
			}
		case T_WindowAgg:
			{
				const WindowAgg *window = (const WindowAgg *) plan;

				check_columns(plan, below, "parts rows", window->partNumCols, window->partColIdx, window->partOperators,
							  window->partCollations);
				check_columns(plan, below, "has peers", window->ordNumCols, window->ordColIdx, window->ordOperators,
							  window->ordCollations);
				break;
			}
		default:
			break;
	}
}
