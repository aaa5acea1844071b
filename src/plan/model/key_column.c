/*-------------------------------------------------------------------------
 *
 * key_column.c
 *	  The table's column that a sort key has its values from, and what statistics say of it.
 *
 * A key's values may be those of a table's column: of a path's key, a member of its equivalence class that
 * is a Var; of a finished Sort's, what its column is found to be below.  Of other keys nothing is known.
 *
 * What takes reading a column's statistics through and making keys of them is remembered for as many columns
 * as most databases' queries sort by, until ANALYZE writes statistics, of whatever column.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/model/key_column.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_statistic.h"
#include "common/hashfn.h"
#include "facts/column_stats.h"
#include "keys/bytes/first_level.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/*
 * Rows are in order for PostgreSQL's sort, which notices,
 * from this correlation of a table's column with its pages on.
 */
#define IN_ORDER_CORRELATION 0.999

/* Of so many numbers of rows, the powers of two, it is known which part ties. */
#define KNOWN_ROWS_BITS 48

/* What statistics say of a column, since they last changed: plans ask for the same columns again and again. */
typedef struct KnownColumn
{
	GpuSortKeyColumn key;
	double ends;                 /* as gpusort_column_ends_keys has it; -1: not known yet */
	float tied[KNOWN_ROWS_BITS]; /* the part that ties under a libc collation, of 2^i rows; -1: not known yet */
	bool valid;
} KnownColumn;

#define KNOWN_COLUMNS 64
static KnownColumn known_columns[KNOWN_COLUMNS];

/* Finds the column that has the values of a path's key; false if it is none. */
bool
gpusort_path_key_column(PlannerInfo *root, const PathKey *key, GpuSortKeyColumn *found)
{
	ListCell *cell;

	foreach(cell, key->pk_eclass->ec_members)
	{
		const EquivalenceMember *member = lfirst_node(EquivalenceMember, cell);
		const Node *node = strip_implicit_coercions((Node *) member->em_expr);
		const Var *var = (const Var *) node;
		const RangeTblEntry *entry;
		const char *why_not;

		if (!IsA(node, Var) || var->varno <= 0 || var->varno >= root->simple_rel_array_size || var->varlevelsup > 0)
			continue;
		entry = planner_rt_fetch(var->varno, root);
		if (entry->rtekind != RTE_RELATION || var->varattno <= 0)
			continue;
		found->column = (GpuSortTableColumn){.table = entry->relid, .attno = var->varattno};
		found->type = exprType((Node *) member->em_expr);
		found->less_than =
			get_opfamily_member(key->pk_opfamily, member->em_datatype, member->em_datatype, BTLessStrategyNumber);
		found->collation = key->pk_eclass->ec_collation;
		found->encoding = gpusort_key_encoding(key->pk_opfamily, member->em_datatype, found->type, found->collation,
											   &why_not);
		if (OidIsValid(found->less_than))
			return true;
	}
	return false;
}

/* Finds the column that a finished Sort sorts by in place i, from 0; false if it is none. */
bool
gpusort_sort_key_column(List *rtable, const Sort *sort, int i, GpuSortKeyColumn *found)
{
	const Plan *child = outerPlan(sort);
	const TargetEntry *entry = get_tle_by_resno(child->targetlist, sort->sortColIdx[i]);
	const char *why_not;
	bool descending;

	if (entry == NULL || !gpusort_find_table_column(rtable, child, sort->sortColIdx[i], &found->column))
		return false;
	found->type = exprType((Node *) entry->expr);
	found->less_than = sort->sortOperators[i];
	found->collation = sort->collations[i];
	found->encoding = gpusort_operator_encoding(found->less_than, found->type, found->collation, &descending, &why_not);
	return true;
}

/* Returns true if the rows of a table lie in the order of a column, as far as statistics say. */
bool
gpusort_column_is_in_order(Oid table, AttrNumber attno, bool descending)
{
	float correlation = 0;
	HeapTuple tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table), Int16GetDatum(attno),
									  BoolGetDatum(false));
	AttStatsSlot slot;

	if (!HeapTupleIsValid(tuple))
		return false;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_CORRELATION, InvalidOid, ATTSTATSSLOT_NUMBERS))
	{
		correlation = slot.numbers[0];
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return descending ? correlation <= -IN_ORDER_CORRELATION : correlation >= IN_ORDER_CORRELATION;
}

/* How many different values a column has among so many rows; 1 if statistics do not say. */
double
gpusort_column_groups(const GpuSortTableColumn *column, double rows)
{
	double groups = 1;
	HeapTuple tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(column->table), Int16GetDatum(column->attno),
									  BoolGetDatum(false));

	if (!HeapTupleIsValid(tuple))
		return 1;
	groups = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
	ReleaseSysCache(tuple);
	return Max(groups < 0 ? -groups * rows : groups, 1);
}

/* A GpuSortValueCallback. */
static void
add_string(Datum value, int count, void *arg)
{
	for (int i = 0; i < count; i++)
		gpusort_first_levels_add(arg, value);
}

/* A SyscacheCallbackFunction: statistics have changed, of whatever column. */
static void
forget_columns(Datum arg, int cache, uint32 hash)
{
	memset(known_columns, 0, sizeof(known_columns));
}

/* Finds out which part of so many rows of a column tie whose keys are partial. */
static double
find_tied(const GpuSortKeyColumn *column, double rows)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpusort statistics", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GpuSortColumn key = {.sort_operator = column->less_than, .collation = column->collation, .value_type = column->type};
	GpuSortFirstLevels *levels = palloc0(sizeof(GpuSortFirstLevels));
	double tied = 0;

	levels->keys = gpusort_keys_create(&key, 1);
	levels->column = &key;
	if (levels->keys->encodable > 0 && key.partial)
	{
		(void) gpusort_column_values(&column->column, column->type, add_string, levels);
		tied = gpusort_first_levels_tied(levels, rows);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return tied;
}

/* Returns what is known of a column, nothing yet perhaps; valid until the next one is asked for. */
static KnownColumn *
known_column(const GpuSortKeyColumn *key)
{
	static bool registered = false;
	KnownColumn *known =
		&known_columns[hash_combine(key->column.table * 31 + key->column.attno, key->collation) % KNOWN_COLUMNS];

	if (!registered)
		CacheRegisterSyscacheCallback(STATRELATTINH, forget_columns, (Datum) 0);
	registered = true;
	if (!known->valid || known->key.column.table != key->column.table || known->key.column.attno != key->column.attno ||
		known->key.column.one_of_several != key->column.one_of_several || known->key.type != key->type ||
		known->key.less_than != key->less_than || known->key.collation != key->collation)
	{
		*known = (KnownColumn){.key = *key, .ends = -1, .valid = true};
		for (int i = 0; i < KNOWN_ROWS_BITS; i++)
			known->tied[i] = -1;
	}
	return known;
}

/*
 * Returns which part of the comparisons of a sort of so many rows is left to PostgreSQL where it begins with this
 * column, whose keys are partial: of values that tie though they differ.
 */
double
gpusort_column_tied_part(const GpuSortKeyColumn *column, double rows)
{
	const int bits = Min((int) ceil(log2(Max(rows, 1))), KNOWN_ROWS_BITS - 1);
	double tied = known_column(column)->tied[bits];

	if (tied < 0)
	{
		tied = find_tied(column, exp2(bits));
		known_column(column)->tied[bits] = tied;
	}
	return tied;
}

/* Returns for about which part of the rows the key of a sort ends with this column, as strings are cut off. */
double
gpusort_column_ends_part(const GpuSortKeyColumn *key)
{
	double ends = known_column(key)->ends;

	if (ends < 0)
	{
		if (gpusort_key_types[key->encoding].parts != NULL)
			ends = gpusort_key_is_partial(key->encoding, key->type, key->collation) ? 1 : 0;
		else
			ends = gpusort_column_ends_keys(&key->column, key->type, key->encoding);
		known_column(key)->ends = ends;
	}
	return ends;
}
