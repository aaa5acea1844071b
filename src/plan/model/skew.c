/*-------------------------------------------------------------------------
 *
 * skew.c
 *	  Groups of which a few have a large part of the rows, as far as statistics say.
 *
 * Statistics tell which values are frequent, and how frequent.  Two things follow for a node that groups by a
 * column.  If ranges are cut between groups, one process has all rows of the largest group; and there are more groups
 * than PostgreSQL estimates.
 *
 * ANALYZE estimates how many values a column has from a sample of n of N rows, of which d values, f1 of them seen once
 * (Haas and Stokes, "Estimating the number of classes in a finite population", 1998, their Duj1):
 *
 *	  D = n d / (n - f1 + f1 n / N)
 *
 * which takes all values to be about as frequent.  Where one has half of the rows, n counts twice what tells of the
 * others, and D may be fifty times too small.  Of the sample D, N and the frequent values are kept.  Beside these it
 * had m rows; if each of their values was seen once or twice, which makes the least of it, then d = (m + f1) / 2 more,
 * and f1 follows from D.  The estimate of the others alone is the same formula of m, d, f1 and of the rows in the table
 * that have them.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/model/skew.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "commands/vacuum.h"
#include "utils/attoptcache.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

/* Frequent values that have fewer rows than this part leave PostgreSQL's estimate as it is. */
#define FREQUENT_MIN 0.2

/* ANALYZE takes so many rows for each value that default_statistics_target tells. */
#define SAMPLED_ROWS 300.0

/* The rows of a table that are not NULL, as ANALYZE has seen them. */
typedef struct ValueSample
{
	double rows;     /* in the sample */
	double of;       /* in the table */
	double others;   /* in the sample, that have no frequent value */
	double values;   /* that the table is estimated to have */
	double frequent; /* how many of these are frequent */
} ValueSample;

/* Returns true if each frequency is that of a number of rows of the sample, which then is as large as is thought. */
static bool
is_sample(double rows, const AttStatsSlot *slot)
{
	for (int i = 0; i < slot->nnumbers; i++)
	{
		const double seen = slot->numbers[i] * rows;

		if (fabs(seen - rint(seen)) > 0.01)
			return false;
	}
	return true;
}

/* Returns how many values a sample tells of, if the frequent ones are left out of account for the others. */
static double
expected_values(const ValueSample *sample)
{
	const double part = sample->rows / sample->of;
	double once = sample->rows * (sample->values - sample->frequent - sample->others / 2) /
		(sample->rows / 2 + sample->values * (1 - part));
	double in_table = sample->of * sample->others / sample->rows;
	double values;

	/* Some were seen more often, or the sample was another. */
	if (once <= 0 || once > sample->others * 1.001 + 2)
		return sample->values;
	once = Min(once, sample->others);
	values = sample->others * (sample->others + once) / 2 /
		(sample->others - once + once * sample->others / in_table);
	return sample->frequent + Min(values, in_table);
}

/* Returns how many times as many values as estimated a column has, of whose rows frequent ones have a part. */
static double
more_values(Form_pg_statistic statistics, const AttStatsSlot *slot, double frequent)
{
	const AttributeOpts *options = get_attribute_options(statistics->starelid, statistics->staattnum);
	const double sampled = SAMPLED_ROWS * default_statistics_target;
	const double part = 1 - statistics->stanullfrac;
	HeapTuple class = SearchSysCache1(RELOID, ObjectIdGetDatum(statistics->starelid));
	double rows = -1;
	ValueSample sample;

	if (HeapTupleIsValid(class))
	{
		rows = ((Form_pg_class) GETSTRUCT(class))->reltuples;
		ReleaseSysCache(class);
	}
	/* A person knows better; and of a sample of all rows so does PostgreSQL. */
	if ((options != NULL && (options->n_distinct != 0 || options->n_distinct_inherited != 0)) || rows <= sampled ||
		statistics->stadistinct == 0 || !is_sample(sampled, slot))
		return 1;
	sample.rows = sampled * part;
	sample.of = rows * part;
	sample.others = Max(sampled * (part - frequent), 0);
	sample.values = statistics->stadistinct > 0 ? statistics->stadistinct : -statistics->stadistinct * rows;
	sample.frequent = slot->nnumbers;
	return Max(expected_values(&sample) / sample.values, 1);
}

/* What statistics say of groups by a column. */
static GpuSortSkew
column_skew(PlannerInfo *root, Node *column)
{
	GpuSortSkew skew = {.more = 1};
	VariableStatData variable;
	AttStatsSlot slot;

	examine_variable(root, column, 0, &variable);
	if (HeapTupleIsValid(variable.statsTuple))
	{
		Form_pg_statistic statistics = (Form_pg_statistic) GETSTRUCT(variable.statsTuple);
		double frequent = 0;

		skew.largest = statistics->stanullfrac;
		if (get_attstatsslot(&slot, variable.statsTuple, STATISTIC_KIND_MCV, InvalidOid, ATTSTATSSLOT_NUMBERS))
		{
			for (int i = 0; i < slot.nnumbers; i++)
			{
				skew.largest = Max(skew.largest, slot.numbers[i]);
				frequent += slot.numbers[i];
			}
			if (frequent >= FREQUENT_MIN)
				skew.more = more_values(statistics, &slot, frequent);
			free_attstatsslot(&slot);
		}
		skew.frequent = Min(frequent + statistics->stanullfrac, 1);
	}
	ReleaseVariableStats(variable);
	return skew;
}

/* Returns true if an expression is a column of one of the query's relations. */
static bool
is_column(const PlannerInfo *root, const Node *expr)
{
	const Var *var = (const Var *) expr;

	while (IsA(var, RelabelType))
		var = (const Var *) ((const RelabelType *) var)->arg;
	return IsA(var, Var) && var->varlevelsup == 0 && var->varattno > 0 && var->varno > 0 &&
		(int) var->varno < root->simple_rel_array_size && root->simple_rel_array[var->varno] != NULL;
}

/* The column of a path's rows that a clause refers to; NULL: it is none. */
static Node *
clause_column(const PlannerInfo *root, const PathTarget *target, const SortGroupClause *clause)
{
	int i = 0;
	ListCell *cell;

	foreach(cell, target->sortgrouprefs != NULL ? target->exprs : NIL)
	{
		if (target->sortgrouprefs[i++] == clause->tleSortGroupRef && is_column(root, lfirst(cell)))
			return lfirst(cell);
	}
	return NULL;
}

/* The column whose values a path's rows are sorted by first; NULL: there is none. */
static Node *
key_column(const PlannerInfo *root, const Path *path)
{
	ListCell *cell;

	foreach(cell, path->pathkeys != NIL ? linitial_node(PathKey, path->pathkeys)->pk_eclass->ec_members : NIL)
	{
		const EquivalenceMember *member = lfirst_node(EquivalenceMember, cell);

		if (is_column(root, (const Node *) member->em_expr))
			return (Node *) member->em_expr;
	}
	return NULL;
}

/* Returns what statistics say of the groups that a node makes; nothing, unless these are of one column. */
GpuSortSkew
gpusort_path_skew(PlannerInfo *root, const Path *path)
{
	Node *column = NULL;

	if (IsA(path, AggPath) && list_length(((const AggPath *) path)->groupClause) == 1)
		column = clause_column(root, ((const AggPath *) path)->subpath->pathtarget,
							   linitial(((const AggPath *) path)->groupClause));
	else if (IsA(path, GroupPath) && list_length(((const GroupPath *) path)->groupClause) == 1)
		column = key_column(root, ((const GroupPath *) path)->subpath);
	else if (IsA(path, UpperUniquePath) && ((const UpperUniquePath *) path)->numkeys == 1)
		column = key_column(root, ((const UpperUniquePath *) path)->subpath);
	return column != NULL ? column_skew(root, column) : (GpuSortSkew){.more = 1};
}
