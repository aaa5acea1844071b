/*-------------------------------------------------------------------------
 *
 * hooks.c
 *	  How gpusort comes to cluster tables: in the place of heap's relation_copy_for_cluster.
 *
 * There is no hook for it.  But before PostgreSQL copies a table's rows in the order of a btree it asks the planner
 * whether to sort them, or to read them by the index (plan_cluster_use_sort), and that asks for what is known of the
 * table, of which extensions are told.  Then table and index are open, and the table's relcache entry points to heap's
 * methods: if gpusort is to copy the rows, there it is made to point to a copy of them with a method of ours, and the
 * planner is shown no index, so that it chooses the sort, as PostgreSQL then tells the user.
 *
 * Our method is called next.  It puts heap's own back before it does anything, since heap_getnext refuses tables whose
 * methods are others.  If it is not called, because an error comes before, the end of the statement puts them back.  An
 * entry that is made anew has heap's own methods, and PostgreSQL sorts.
 *
 * This is done in CLUSTER alone, and REPACK from 19 on: others who ask the planner the same do their own copying.
 * PostgreSQL does not ask where it has no choice, with enable_indexscan off or an index that is no btree.
 *
 *-------------------------------------------------------------------------
 */
#include "cluster/cluster.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "catalog/pg_am_d.h"
#include "cluster/copy.h"
#include "cluster/copy_choice.h"
#include "index/index.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "shards/transaction.h"
#include "tcop/utility.h"
#include "utils/rel.h"
#include "utils/relcache.h"

static TableHook previous_table_hook = NULL;
static ProcessUtility_hook_type previous_utility_hook = NULL;

static bool in_cluster = false;   /* the statement is CLUSTER, and the hook may replace the method */
static Relation replaced = NULL;  /* open, with our method; NULL: there is none */
static bool native_sorts = false; /* PostgreSQL would sort its rows */
static TableAmRoutine own_methods;

/* Makes the methods of the table that has ours heap's own again. */
static void
put_back(void)
{
	if (replaced != NULL)
		replaced->rd_tableam = GetHeapamTableAmRoutine();
	replaced = NULL;
}

/* The method relation_copy_for_cluster. */
static void
copy_for_cluster(CLUSTER_COPY_PARAMETERS)
{
	const GpuSortClusterTask task = {
		.table = table,
		.copy = copy,
		.index = index,
		.oldest_xmin = oldest_xmin,
		.freeze_limit = *xid_cutoff,
		.multi_cutoff = *multi_cutoff};
	GpuSortClusterResult result;

	put_back();
	if (!CLUSTER_COPY_IS_OF_SNAPSHOT)
	{
		if (gpusort_cluster_copy(&task, &result))
		{
			*tuples = result.tuples;
			*vacuumed = result.dead;
			return;
		}
		use_sort = native_sorts;
	}
	table->rd_tableam->relation_copy_for_cluster(CLUSTER_COPY_ARGUMENTS);
}

/* Makes ours the method by which a table is copied. */
static void
replace_copy(Relation table)
{
	put_back();
	own_methods = *table->rd_tableam;
	own_methods.relation_copy_for_cluster = copy_for_cluster;
	table->rd_tableam = &own_methods;
	replaced = table;
}

/* Returns the btree of these that is open, and is so longer than the caller holds it; NULL: there is none. */
static Relation
find_open_index(const List *indexes)
{
	ListCell *cell;

	foreach(cell, indexes)
	{
		Relation index = RelationIdGetRelation(lfirst_node(IndexOptInfo, cell)->indexoid);

		if (index == NULL)
			continue;
		if (index->rd_refcnt > 1 && index->rd_rel->relam == BTREE_AM_OID)
			return index;
		RelationClose(index);
	}
	return NULL;
}

/* Returns what PostgreSQL's planner says by itself. */
static bool
would_sort(Relation table, Relation index)
{
	bool sorts;

	in_cluster = false;
	sorts = plan_cluster_use_sort(RelationGetRelid(table), RelationGetRelid(index));
	in_cluster = true;
	return sorts;
}

/* Makes ours the method by which a table is copied that is about to be clustered, if gpusort is chosen. */
static void
look_at_clustered(Oid id, RelOptInfo *rel)
{
	Relation table = RelationIdGetRelation(id);
	Relation index = find_open_index(rel->indexlist);

	if (table != NULL && index != NULL && table->rd_refcnt > 1 && table->rd_tableam == GetHeapamTableAmRoutine())
	{
		native_sorts = would_sort(table, index);
		if (gpusort_cluster_is_chosen(table, index, native_sorts))
		{
			replace_copy(table);
			rel->indexlist = NIL;
		}
	}
	if (index != NULL)
		RelationClose(index);
	if (table != NULL)
		RelationClose(table);
}

static void
look_at_table(TABLE_HOOK_PARAMETERS)
{
	Oid table;

	if (previous_table_hook != NULL)
		previous_table_hook(TABLE_HOOK_ARGUMENTS);
	table = TABLE_HOOK_CLUSTERED;
	if (in_cluster && gpusort_index_may_serve_command(root, table))
		look_at_clustered(table, rel);
}

/* Runs a command in the way in which it is run without gpusort. */
static void
run_next(PlannedStmt *plan, const char *query, bool read_only, ProcessUtilityContext context, ParamListInfo params,
		 QueryEnvironment *environment, DestReceiver *receiver, QueryCompletion *completion)
{
	if (previous_utility_hook != NULL)
		previous_utility_hook(plan, query, read_only, context, params, environment, receiver, completion);
	else
		standard_ProcessUtility(plan, query, read_only, context, params, environment, receiver, completion);
}

static void
run_utility(PlannedStmt *plan, const char *query, bool read_only, ProcessUtilityContext context, ParamListInfo params,
			QueryEnvironment *environment, DestReceiver *receiver, QueryCompletion *completion)
{
	const bool outer = in_cluster;

	gpusort_shards_note_command(plan->utilityStmt);
	if (nodeTag(plan->utilityStmt) != T_ClusterStmt)
	{
		run_next(plan, query, read_only, context, params, environment, receiver, completion);
		return;
	}
	in_cluster = true;
	PG_TRY();
	{
		run_next(plan, query, read_only, context, params, environment, receiver, completion);
	}
	PG_FINALLY();
	{
		in_cluster = outer;
		put_back();
	}
	PG_END_TRY();
}

/* Installs the hooks; to be called once, at load. */
void
gpusort_cluster_init(void)
{
	previous_table_hook = TABLE_HOOK;
	TABLE_HOOK = look_at_table;
	previous_utility_hook = ProcessUtility_hook;
	ProcessUtility_hook = run_utility;
}
