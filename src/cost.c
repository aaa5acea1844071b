/*-------------------------------------------------------------------------
 *
 * cost.c
 *	  What the planner thinks that a GpuSort costs over its input.
 *
 * Costs are in PostgreSQL's unit, and fitted so that GpuSort's are to those of
 * PostgreSQL's sort as their times are; doc/design.md says how.  setup_cost is
 * what a sort costs before its first row: the service's answer and the first
 * chunk.  row_cost is what a row without a byte costs on its way in, through the
 * sort and out.  Parallel processes share the way in.  Settings and constants
 * come from bench/costs; see doc/measurements.md.
 *
 *-------------------------------------------------------------------------
 */
#include "cost.h"

#include <math.h>

#include "catalog/pg_statistic.h"
#include "client.h"
#include "gpusort.h"
#include "keys.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "plan_info.h"
#include "shared.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

/* So many bytes of a row cost once more what the row does, over what PostgreSQL's sort takes for them. */
#define BYTES_LIKE_A_ROW		1000.0

/*
 * What comes to the setup where a GPU sorts, for launches and copies that wait
 * for each other: so much setup again, of any key.
 */
#define CUDA_SETUPS				2.0

/* What comes to the setup of a connection's first sort, which maps the staging pool: so much setup again. */
#define FIRST_USE_SETUPS		4.0

/*
 * Rows that are in order already: PostgreSQL's sort notices, is done in a third
 * of the time that it is thought to take, and wins up to 10,000 rows.
 */
#define IN_ORDER_CORRELATION	0.999
#define IN_ORDER_SETUPS			4.0

/*
 * Strings cost PostgreSQL's sort two to three times as much as its estimate,
 * which takes all keys for alike.  GpuSort's has to be too low by as much.
 */
#define STRING_KEY_FACTOR		0.5

/* Would a service with these engines sort on a GPU? */
bool
gpusort_would_use_cuda(uint32 engines)
{
	return gpusort_engine != GPUSORT_ENGINE_HOST && (engines & (1 << GPUSORT_ENGINE_CUDA)) != 0;
}

/*
 * Is the input a table whose rows lie in the order of the first sort key?  Says
 * what statistics say of a plain column.
 */
static bool
is_in_order(PlannerInfo *root, const Path *input)
{
	const PathKey *key = linitial_node(PathKey, root->sort_pathkeys);
	RangeTblEntry *rte;
	ListCell   *cell;

	if (input->pathtype != T_SeqScan)
		return false;
	rte = planner_rt_fetch(input->parent->relid, root);
	foreach(cell, key->pk_eclass->ec_members)
	{
		const Var  *var = (Var *) lfirst_node(EquivalenceMember, cell)->em_expr;
		float		correlation = 0;
		HeapTuple	tuple;
		AttStatsSlot slot;

		if (!IsA(var, Var) || var->varno != input->parent->relid || var->varlevelsup != 0)
			continue;
		tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(rte->relid), Int16GetDatum(var->varattno),
								BoolGetDatum(false));
		if (!HeapTupleIsValid(tuple))
			continue;
		if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_CORRELATION, InvalidOid, ATTSTATSSLOT_NUMBERS))
		{
			correlation = slot.numbers[0];
			free_attstatsslot(&slot);
		}
		ReleaseSysCache(tuple);
		if (key->pk_cmptype == COMPARE_GT ? correlation <= -IN_ORDER_CORRELATION
			: correlation >= IN_ORDER_CORRELATION)
			return true;
	}
	return false;
}

/*
 * What comparing costs per row, where only the first encodable sort keys are
 * encoded: as cost_sort has it, for the rows that are equal in these.
 */
static double
compare_cost(PlannerInfo *root, double rows, int encodable)
{
	List	   *exprs = NIL;
	double		groups = 0;

	if (encodable == list_length(root->sort_pathkeys))
		return 0;
	for (int i = 0; i < encodable; i++)
	{
		const EquivalenceClass *eclass = list_nth_node(PathKey, root->sort_pathkeys, i)->pk_eclass;
		Expr	   *expr = linitial_node(EquivalenceMember, eclass->ec_members)->em_expr;

		/* Columns of set operations have no statistics: the guess that cost_incremental_sort makes. */
		if (bms_is_member(0, pull_varnos(root, (Node *) expr)))
			groups = DEFAULT_NUM_DISTINCT;
		exprs = lappend(exprs, expr);
	}
	if (groups == 0)
		groups = estimate_num_groups(root, exprs, rows, NULL, NULL);
	return 2.0 * cpu_operator_cost * log2(Max(rows / groups, 1));
}

/* What GpuSort of rows from input costs, encodable leading keys of which go into the sort key. */
GpuSortCost
gpusort_estimate_cost(PlannerInfo *root, const Path *input, int encodable)
{
	const EquivalenceClass *first = linitial_node(PathKey, root->sort_pathkeys)->pk_eclass;
	const EquivalenceMember *member = linitial_node(EquivalenceMember, first->ec_members);
	const char *why_not;
	GpuSortCost cost;

	cost.setup = gpusort_setup_cost;
	if (!gpusort_client_has_pool())
		cost.setup += gpusort_setup_cost * FIRST_USE_SETUPS;
	if (is_in_order(root, input))
		cost.setup += gpusort_setup_cost * IN_ORDER_SETUPS;
	cost.row = gpusort_row_cost * (1 + gpusort_row_bytes(input->pathtarget->width) / BYTES_LIKE_A_ROW);
	if (gpusort_key_encoding_is_string(gpusort_key_encoding(linitial_oid(first->ec_opfamilies), member->em_datatype,
															first->ec_collation, &why_not)))
	{
		cost.setup *= STRING_KEY_FACTOR;
		cost.row *= STRING_KEY_FACTOR;
	}
	if (gpusort_would_use_cuda(gpusort_shared_service().engines))
		cost.setup += gpusort_setup_cost * CUDA_SETUPS;
	cost.compare = compare_cost(root, input->rows, encodable);
	return cost;
}
