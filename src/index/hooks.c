/*-------------------------------------------------------------------------
 *
 * hooks.c
 *	  How gpusort comes to build indexes: in the place of btree's ambuild.
 *
 * There is no hook for it.  But before PostgreSQL builds a btree it asks the planner in how many processes
 * (plan_create_index_workers, called by index_build): that makes a query of the table alone, and asks for what is known
 * of the table, of which extensions are told.  Then the index to be built is open, and its relcache entry has the
 * methods of its access method, as a copy of its own: there the build of a btree is replaced by ours.  Which of the
 * table's indexes it is nobody tells, so this is done for each that is open.  An open entry that is invalidated is
 * filled in anew where it is, without these methods, so that the build finds ours.
 *
 * The method stays in the entry as long as that.  It decides anew for each build (build_choice.c), and does not take
 * part in anything else: PostgreSQL's btbuild builds what gpusort does not.
 *
 * PostgreSQL does not ask the planner for system catalogs while they are bootstrapped, and for the empty indexes of a
 * table that is truncated, nor where max_parallel_maintenance_workers is 0: these builds are its own.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/amapi.h"
#include "access/nbtree.h"
#include "access/transam.h"
#include "catalog/pg_am_d.h"
#include "index/build.h"
#include "miscadmin.h"
#include "nodes/pathnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "settings.h"
#include "utils/rel.h"
#include "utils/relcache.h"

static TableHook previous_table_hook = NULL;

/* Makes ours the method by which a btree is built. */
static void
replace_build(Relation index)
{
#ifdef INDEX_METHODS_ARE_CONSTANT
	static IndexAmRoutine own;

	own = *index->rd_indam;
	own.ambuild = gpusort_index_build;
	index->rd_indam = &own;
#else
	index->rd_indam->ambuild = gpusort_index_build;
#endif
}

/* Does so for the btrees of a table that are open. */
static void
replace_builds(Oid table)
{
	Relation heap = RelationIdGetRelation(table);
	List *indexes;
	ListCell *cell;

	if (heap == NULL)
		return;
	indexes = RelationGetIndexList(heap);
	foreach(cell, indexes)
	{
		Relation index = RelationIdGetRelation(lfirst_oid(cell));

		if (index == NULL)
			continue;
		if (index->rd_refcnt > 1 && index->rd_rel->relam == BTREE_AM_OID && index->rd_indam != NULL &&
			index->rd_indam->ambuild == btbuild)
			replace_build(index);
		RelationClose(index);
	}
	list_free(indexes);
	RelationClose(heap);
}

/* Returns true if the planner plans no query, but answers a command about a user's table that gpusort may serve. */
bool
gpusort_index_may_serve_command(const PlannerInfo *root, Oid table)
{
	const Query *parse = root->parse;

	return gpusort_index_builds && gpusort_settings_enabled() && table >= FirstNormalObjectId &&
		parse->jointree == NULL && parse->targetList == NIL && root->query_level == 1 &&
		list_length(parse->rtable) == 1;
}

static void
look_at_table(TABLE_HOOK_PARAMETERS)
{
	Oid table;

	if (previous_table_hook != NULL)
		previous_table_hook(TABLE_HOOK_ARGUMENTS);
	table = TABLE_HOOK_TABLE;
	if (gpusort_index_may_serve_command(root, table))
		replace_builds(table);
}

/* Installs the hooks; to be called once, at load. */
void
gpusort_index_init(void)
{
	previous_table_hook = TABLE_HOOK;
	TABLE_HOOK = look_at_table;
}
