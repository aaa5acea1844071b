/*-------------------------------------------------------------------------
 *
 * block_ranges.c
 *	  GpuSort of the first rows of a table, of which a BRIN index tells in which blocks they can be.
 *
 * The executor reads ranges of blocks best first, by the leading key, until no other can have a row that is wanted
 * (exec/range_scan.c).  How many these are is estimated in two ways, of which the lesser holds:
 *
 *	- each range that is read has one of the first rows, at least, where all of them fulfil the conditions, and the index
 *	  says nothing of rows that are gone;
 *	- where rows lie in the order of the key, the first are side by side.
 *
 * If the estimate is wrong all ranges are read, which takes a sequential scan of all blocks.  So a path competes only
 * where PostgreSQL does that.  Where it does so in several processes more is at stake: the second estimate counts
 * alone, with conditions ten times of it, and there is no path if one of them is on the key.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/block_ranges.h"

#include <math.h>

#include "access/brin.h"
#include "access/brin_internal.h"
#include "access/genam.h"
#include "access/sysattr.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "node.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "plan/model/constants.h"
#include "plan/model/shape.h"
#include "plan/offer/paths.h"
#include "settings.h"
#include "sort/top_rows.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

/* If more of the ranges must be read, a scan in order is as good. */
#define MOST_RANGES 0.5

/* What an index is to tell of a table, as far as it is known when a query is planned. */
typedef struct Candidate
{
	PlannerInfo *root;
	RelOptInfo *table;
	List *pathkeys;
	Node *key; /* what the first of them sorts by */
	GpuSortBlockIndex index;
	double ranges;
	double summarised_pages; /* of the table, when it was vacuumed or analysed last */
} Candidate;

/* Returns PostgreSQL's sort, alone or below a Gather Merge; NULL if path is neither. */
static const SortPath *
sort_of(const Path *path)
{
	if (IsA(path, GatherMergePath))
		path = ((const GatherMergePath *) path)->subpath;
	while (IsA(path, ProjectionPath))
		path = ((const ProjectionPath *) path)->subpath;
	return IsA(path, SortPath) ? (const SortPath *) path : NULL;
}

/* Returns the path below a sort that scans a table, whatever is computed of its rows; NULL if there is none. */
static const Path *
scan_below(const Path *path)
{
	while (IsA(path, ProjectionPath) || IsA(path, GatherPath))
		path = IsA(path, ProjectionPath) ? ((const ProjectionPath *) path)->subpath : ((const GatherPath *) path)->subpath;
	return path->pathtype == T_SeqScan ? path : NULL;
}

/*
 * Returns true if rel is a table of its own, whose rows come by the page, and no condition is without a column, or to
 * be evaluated for each row.
 */
static bool
is_plain_table(PlannerInfo *root, const RelOptInfo *rel)
{
	const RangeTblEntry *entry;

	if (rel->reloptkind != RELOPT_BASEREL || rel->rtekind != RTE_RELATION || rel->indexlist == NIL ||
		root->hasPseudoConstantQuals || !bms_is_empty(rel->lateral_relids) ||
		contain_volatile_functions((Node *) rel->baserestrictinfo))
		return false;
	entry = planner_rt_fetch(rel->relid, root);
	return !entry->inh && entry->tablesample == NULL && gpusort_table_is_by_page(entry->relid);
}

/*
 * Returns the one expression of a table that has the values of a key, and its type as the operators have it; NULL if
 * there is none, or another that could be sorted by in its place.
 */
static Node *
key_of_table(const RelOptInfo *rel, const PathKey *key, Oid *type)
{
	Node *found = NULL;
	ListCell *cell;

	foreach(cell, key->pk_eclass->ec_members)
	{
		const EquivalenceMember *member = lfirst_node(EquivalenceMember, cell);

		if (member->em_is_const || member->em_is_child)
			continue;
		if (found != NULL || !bms_equal(member->em_relids, rel->relids))
			return NULL;
		found = (Node *) member->em_expr;
		*type = member->em_datatype;
	}
	return found;
}

/* Returns true if a column of an index has the least and the greatest value of a range, by this operator. */
static bool
has_extremes(const IndexOptInfo *index, int column, Oid less_than)
{
	const Oid family = index->opfamily[column];
	const Oid type = index->opcintype[column];
	const Oid kind = get_opfamily_proc(family, type, type, BRIN_PROCNUM_OPCINFO);

	return (kind == F_BRIN_MINMAX_OPCINFO || kind == F_BRIN_MINMAX_MULTI_OPCINFO) &&
		get_opfamily_member(family, type, type, BTLessStrategyNumber) == less_than;
}

/* Finds an index whose summaries are in the order of the first key; false if there is none. */
static bool
find_index(Candidate *candidate)
{
	const PathKey *key = linitial_node(PathKey, candidate->pathkeys);
	Oid type = InvalidOid;
	Oid less_than;
	ListCell *cell;

	candidate->key = key_of_table(candidate->table, key, &type);
	if (candidate->key == NULL)
		return false;
	less_than = get_opfamily_member(key->pk_opfamily, type, type, BTLessStrategyNumber);
	foreach(cell, OidIsValid(less_than) ? candidate->table->indexlist : NIL)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, cell);

		if (index->relam != BRIN_AM_OID || index->hypothetical || (index->indpred != NIL && !index->predOK))
			continue;
		for (int i = 0; i < index->nkeycolumns; i++)
		{
			if (index->indexcollations[i] != key->pk_eclass->ec_collation || !has_extremes(index, i, less_than) ||
				!match_index_to_operand(candidate->key, i, index))
				continue;
			candidate->index = (GpuSortBlockIndex){.index = index->indexoid, .column = i + 1};
			return true;
		}
	}
	return false;
}

/* Fills in what is known of the ranges. */
static void
count_ranges(Candidate *candidate)
{
	Relation index = index_open(candidate->index.index, NoLock);
	const Oid table = planner_rt_fetch(candidate->table->relid, candidate->root)->relid;
	HeapTuple class = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	BrinStatsData stats;

	brinGetStats(index, &stats);
	index_close(index, NoLock);
	candidate->ranges = ceil((double) candidate->table->pages / stats.pagesPerRange);
	candidate->summarised_pages = 0;
	if (!HeapTupleIsValid(class))
		return;
	candidate->summarised_pages = ((Form_pg_class) GETSTRUCT(class))->relpages;
	ReleaseSysCache(class);
}

/* Returns true if a condition is one on the key, which says where rows that fulfil it are. */
static bool
has_key_condition(const Candidate *candidate)
{
	const Index relid = candidate->table->relid;
	Bitmapset *columns = NULL;
	Bitmapset *others = NULL;
	ListCell *cell;

	pull_varattnos(candidate->key, relid, &columns);
	foreach(cell, candidate->table->baserestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, cell)->clause, relid, &others);
	return bms_overlap(columns, others);
}

/*
 * Returns how many ranges of a table are read for so many first rows of those that a scan of it gives; cautious: if
 * rows lie in the order of the key.
 */
static double
ranges_read(const Candidate *candidate, double first, double rows, bool cautious)
{
	const double tuples = Max(candidate->table->tuples, 1);
	const double ranges = candidate->ranges;
	double looked_at = first * tuples / Max(rows, 1);
	double nulls = 0;
	double different;
	double correlation = 0;
	double in_order;
	VariableStatData column;
	bool is_default;

	examine_variable(candidate->root, candidate->key, 0, &column);
	different = get_variable_numdistinct(&column, &is_default);
	if (HeapTupleIsValid(column.statsTuple))
	{
		AttStatsSlot slot;

		nulls = ((Form_pg_statistic) GETSTRUCT(column.statsTuple))->stanullfrac;
		if (get_attstatsslot(&slot, column.statsTuple, STATISTIC_KIND_CORRELATION, InvalidOid, ATTSTATSSLOT_NUMBERS))
		{
			correlation = slot.numbers[0];
			free_attstatsslot(&slot);
		}
	}
	ReleaseVariableStats(column);

	/* Rows that are equal by the key to the last one that is wanted are looked at, too. */
	if (list_length(candidate->pathkeys) > 1)
		looked_at += Max(tuples / Max(different, 1),
						 linitial_node(PathKey, candidate->pathkeys)->pk_nulls_first ? nulls * tuples : 0);
	in_order = looked_at * ranges / tuples + 1 + ranges * sqrt(Max(1 - correlation * correlation, 0));
	return Min(cautious ? in_order : Min(looked_at, in_order), ranges);
}

/*
 * Returns the part of its blocks that is read for so many first rows; 1 if it is not known. Those behind the table's
 * last vacuum may not be summarised.
 */
static double
part_read(const Candidate *candidate, double first, double rows, bool parallel)
{
	const double pages = candidate->table->pages;
	double read = ranges_read(candidate, first, rows, parallel);

	if (pages == 0 || (parallel && has_key_condition(candidate)))
		return 1;
	if (parallel && candidate->table->baserestrictinfo != NIL)
		read *= GPUSORT_GUESS;
	return Min((read + 1) / candidate->ranges + Max(1 - candidate->summarised_pages / pages, 0), 1);
}

/*
 * Returns a path of GpuSort in the place of a sort of PostgreSQL's, or of a Gather Merge of sorts, of which so many
 * first rows are wanted, that reads no more blocks than can have these by a BRIN index; NULL if there is none.
 */
Path *
gpusort_block_ranges_path(PlannerInfo *root, const Path *path, double first)
{
	const SortPath *sort = sort_of(path);
	const Path *native = sort != NULL ? scan_below(sort->subpath) : NULL;
	Candidate candidate = {.root = root, .pathkeys = path->pathkeys};
	Path *scan;
	double part;

	if (first < 1 || first > GPUSORT_TOP_ROWS_MAX || native == NULL || path->pathkeys == NIL ||
		!is_plain_table(root, native->parent) ||
		contain_volatile_functions((Node *) sort->subpath->pathtarget->exprs))
		return NULL;
	candidate.table = native->parent;
	if (!find_index(&candidate))
		return NULL;
	scan = create_seqscan_path(root, candidate.table, NULL, 0);
	if (PATH_REQ_OUTER(scan) != NULL)
		return NULL;
	scan = apply_projection_to_path(root, candidate.table, scan, sort->subpath->pathtarget);
	count_ranges(&candidate);
	part = part_read(&candidate, first, scan->rows, native->parallel_workers > 0);
	if (part > MOST_RANGES)
	{
		if (!gpusort_force)
			return NULL;
		part = MOST_RANGES;
	}
	scan->total_cost = scan->startup_cost + (scan->total_cost - scan->startup_cost) * part;
	return gpusort_first_blocks_path(root, path->parent, scan, scan->rows * part, path->pathkeys, &candidate.index,
									 candidate.ranges * gpusort_constant(GPUSORT_TIME_SUMMARY, false));
}
