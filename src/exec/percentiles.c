/*-------------------------------------------------------------------------
 *
 * percentiles.c
 *	  percentile_disc() and percentile_cont() of all rows of a GpuSort, read by their numbers, and hypothetical sets.
 *
 * PostgreSQL's Agg puts every row into a sort of its own, and then reads one row of it, or two for each fraction.  Over
 * a GpuSort these rows have numbers (numbered_rows.c).  So an Agg without groups that has only such aggregates, by
 * what the GpuSort sorts by, gets another way to run: it reads the rows that its fractions ask for, and those that tell
 * where another row would stand (hypothetical.c).  The GpuSort's plan says so (GPUSORT_USE_NUMBERS), for the path has
 * decided it (plan/offer/ordered_aggregates.c).
 *
 * It stays PostgreSQL's node, as a WindowAgg does in running.c: rescans and the end are its own, and wherever the
 * service does not have the rows it computes everything itself.
 *
 * Where the values are cast to floats the GpuSort is by what they are cast from (gpusort_aggregate_without_cast), and
 * only the rows that are read are cast.
 *
 * NULLs are not counted.  They are the last of the rows, or the first, so that one row tells whether there are any; if
 * so halving finds their number.  Where rows cannot be read from any number on, since keys may tie that do not
 * hold their values whole, or rows are verified, all are read once to count them, and then up to those asked for.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/percentiles.h"

#include <math.h>

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type_d.h"
#include "commands/explain.h"
#include "exec/hypothetical.h"
#include "exec/numbered_rows.h"
#include "exec/stream.h"
#include "executor/executor.h"
#include "executor/nodeAgg.h"
#include "facts/aggregates.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

/* The value of an aggregate between those of two neighbouring rows. */
typedef Datum (*Interpolate)(Datum low, Datum high, double part);

/* One aggregate. */
typedef struct Percentile
{
	ExprState *fraction; /* a float8, or an array of them */
	bool array;
	Interpolate interpolate;           /* of continuous ones; NULL: it is a row's value */
	GpuSortHypothetical *hypothetical; /* it is no percentile but that; else NULL */
	ExprState *argument;               /* the value of a row, of this type */
	Oid type;
	int16 length;
	bool by_value;
	char align;
} Percentile;

/* A row that is asked for, and its value. */
typedef struct WantedRow
{
	uint64 number; /* among those that are not NULL, from 0 */
	const Percentile *percentile;
	Datum value; /* for that */
} WantedRow;

/* One fraction of one aggregate. */
typedef struct Fraction
{
	bool is_null;
	double part; /* of the way from row low to row high */
	int low;     /* in the list of wanted rows */
	int high;
} Fraction;

/* The fractions of one aggregate, evaluated. */
typedef struct Fractions
{
	bool is_null;     /* there is no answer */
	ArrayType *shape; /* of an array of them */
	int count;
	Fraction *list;
} Fractions;

struct GpuSortPercentiles
{
	ExecProcNodeMtd native; /* how the Agg runs by itself */
	GpuSortNumberedRows rows;
	AttrNumber attno; /* number of the percentiles' key column in the scan's rows; 0 if there are no percentiles */
	Percentile *list; /* by number of the aggregate */

	/* of the current rows */
	uint64 first;  /* the first that is not NULL */
	uint64 values; /* so many are not */
	int nwanted;
	int room;
	WantedRow *wanted;
};

static Datum
between_floats(Datum low, Datum high, double part)
{
	double from = DatumGetFloat8(low);

	return Float8GetDatum(from + part * (DatumGetFloat8(high) - from));
}

static Datum
between_intervals(Datum low, Datum high, double part)
{
	Datum whole = DirectFunctionCall2(interval_mi, high, low);

	return DirectFunctionCall2(interval_pl, DirectFunctionCall2(interval_mul, whole, Float8GetDatum(part)), low);
}

/* Finds whether the value in the row of that number is NULL; false if the rows are lost. */
static bool
look(GpuSortPercentiles *percentiles, uint64 number, bool *is_null)
{
	TupleTableSlot *row = gpusort_numbered_row(&percentiles->rows, number);

	if (row == NULL)
		return false;
	*is_null = slot_attisnull(row, percentiles->attno);
	return true;
}

/* Counts the values that are not NULL by reading all rows; false if they are lost. */
static bool
count_all(GpuSortPercentiles *percentiles, uint64 rows)
{
	for (uint64 i = 0; i < rows; i++)
	{
		TupleTableSlot *row = gpusort_numbered_next(&percentiles->rows);

		if (row == NULL)
			return false;
		percentiles->values += !slot_attisnull(row, percentiles->attno);
	}
	return true;
}

/* Counts the values that are not NULL by halving; false if the rows are lost. */
static bool
count_by_halving(GpuSortPercentiles *percentiles, uint64 rows, bool nulls_first)
{
	uint64 low = 0;
	uint64 high = rows;
	bool is_null;

	if (!look(percentiles, nulls_first ? 0 : rows - 1, &is_null))
		return false;
	if (!is_null)
	{
		percentiles->values = rows;
		return true;
	}
	/* The first so many rows, low at least and high at most, are like the first. */
	while (low < high)
	{
		uint64 middle = low + (high - low) / 2;

		if (!look(percentiles, middle, &is_null))
			return false;
		if (is_null == nulls_first)
			low = middle + 1;
		else
			high = middle;
	}
	percentiles->values = nulls_first ? rows - low : low;
	return true;
}

/* Finds which rows have a value that is not NULL; false if the rows are lost. */
static bool
count_values(GpuSortPercentiles *percentiles)
{
	const uint64 rows = gpusort_numbered_count(&percentiles->rows);
	const bool nulls_first = percentiles->rows.scan->sort->columns[0].nulls_first;
	bool counted;

	percentiles->values = 0;
	percentiles->first = 0;
	if (rows == 0)
		return true;
	if (!gpusort_numbered_go_to(&percentiles->rows, rows - 1))
		return false;
	if (percentiles->rows.next == 0)
		counted = count_all(percentiles, rows);
	else
		counted = count_by_halving(percentiles, rows, nulls_first);
	if (nulls_first)
		percentiles->first = rows - percentiles->values;
	return counted;
}

/* Adds a row to those that are wanted for a percentile; returns where it is among them. */
static int
want(GpuSortPercentiles *percentiles, const Percentile *percentile, uint64 number)
{
	if (percentiles->nwanted == percentiles->room)
	{
		percentiles->room *= 2;
		percentiles->wanted = repalloc(percentiles->wanted, percentiles->room * sizeof(WantedRow));
	}
	percentiles->wanted[percentiles->nwanted].number = number;
	percentiles->wanted[percentiles->nwanted].percentile = percentile;
	return percentiles->nwanted++;
}

/* Raises PostgreSQL's error if there is no such fraction. */
static void
check_fraction(double fraction)
{
	if (fraction < 0 || fraction > 1 || isnan(fraction))
		ereport(ERROR,
				errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				errmsg("percentile value %g is not between 0 and 1", fraction));
}

/* Returns a fraction, and adds the rows that it needs to the wanted ones. */
static Fraction
place_fraction(GpuSortPercentiles *percentiles, const Percentile *percentile, double value)
{
	Fraction fraction = {0};

	check_fraction(value);
	if (percentile->interpolate == NULL)
	{
		int64 row = (int64) ceil(value * percentiles->values);

		fraction.low = fraction.high = want(percentiles, percentile, Max(row, 1) - 1);
	}
	else
	{
		double place = value * (percentiles->values - 1);

		fraction.low = fraction.high = want(percentiles, percentile, (uint64) floor(place));
		if (ceil(place) > floor(place))
			fraction.high = want(percentiles, percentile, (uint64) ceil(place));
		fraction.part = place - floor(place);
	}
	return fraction;
}

/* Does the same for the fractions of an array. */
static void
place_fractions(GpuSortPercentiles *percentiles, const Percentile *percentile, Datum array, Fractions *fractions)
{
	Datum *values;
	bool *nulls;

	fractions->shape = DatumGetArrayTypeP(array);
	deconstruct_array(fractions->shape, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &values, &nulls,
					  &fractions->count);
	fractions->list = palloc0(fractions->count * sizeof(Fraction));
	for (int i = 0; i < fractions->count; i++)
	{
		if (nulls[i])
			fractions->list[i].is_null = true;
		else
			fractions->list[i] = place_fraction(percentiles, percentile, DatumGetFloat8(values[i]));
	}
}

/* Evaluates what an aggregate is asked for, and finds the rows that this needs. */
static Fractions
evaluate(GpuSortPercentiles *percentiles, const Percentile *percentile, ExprContext *context)
{
	Fractions fractions = {0};
	bool is_null;
	Datum value = ExecEvalExpr(percentile->fraction, context, &is_null);

	/* A fraction alone is checked even where there is no row. */
	if (!is_null && !percentile->array)
		check_fraction(DatumGetFloat8(value));
	fractions.is_null = is_null || percentiles->values == 0;
	if (fractions.is_null)
		return fractions;
	if (percentile->array)
	{
		place_fractions(percentiles, percentile, value, &fractions);
		return fractions;
	}
	fractions.count = 1;
	fractions.list = palloc(sizeof(Fraction));
	fractions.list[0] = place_fraction(percentiles, percentile, DatumGetFloat8(value));
	return fractions;
}

static int
compare_wanted(const void *a, const void *b)
{
	const uint64 one = (*(WantedRow *const *) a)->number;
	const uint64 other = (*(WantedRow *const *) b)->number;

	return one < other ? -1 : one > other;
}

/* Reads the rows that are wanted, in their order, each once for all that have one type; false if they are lost. */
static bool
read_wanted(GpuSortPercentiles *percentiles, ExprContext *context)
{
	TupleTableSlot *outer = context->ecxt_outertuple;
	WantedRow **order = palloc(Max(percentiles->nwanted, 1) * sizeof(WantedRow *));

	for (int i = 0; i < percentiles->nwanted; i++)
		order[i] = &percentiles->wanted[i];
	qsort(order, percentiles->nwanted, sizeof(WantedRow *), compare_wanted);
	for (int i = 0; i < percentiles->nwanted; i++)
	{
		const Percentile *percentile = order[i]->percentile;
		bool is_null;
		Datum value;

		if (i > 0 && order[i]->number == order[i - 1]->number && percentile->type == order[i - 1]->percentile->type)
		{
			order[i]->value = order[i - 1]->value;
			continue;
		}
		context->ecxt_outertuple = gpusort_numbered_row(&percentiles->rows, percentiles->first + order[i]->number);
		if (context->ecxt_outertuple == NULL)
			return false;
		value = ExecEvalExpr(percentile->argument, context, &is_null);
		if (is_null)
			elog(ERROR, "a row of a sort is NULL where none is expected");
		order[i]->value = datumCopy(value, percentile->by_value, percentile->length);
	}
	context->ecxt_outertuple = outer;
	return true;
}

/* Returns the value of a fraction. */
static Datum
fraction_value(const GpuSortPercentiles *percentiles, const Percentile *percentile, const Fraction *fraction)
{
	const Datum low = percentiles->wanted[fraction->low].value;

	if (fraction->low == fraction->high)
		return low;
	return percentile->interpolate(low, percentiles->wanted[fraction->high].value, fraction->part);
}

/* Returns an aggregate's value, which must have one. */
static Datum
aggregate_value(const GpuSortPercentiles *percentiles, const Percentile *percentile, const Fractions *fractions)
{
	Datum *values;
	bool *nulls;

	if (!percentile->array)
		return fraction_value(percentiles, percentile, &fractions->list[0]);
	if (fractions->count == 0)
		return PointerGetDatum(construct_empty_array(percentile->type));
	values = palloc0(fractions->count * sizeof(Datum));
	nulls = palloc0(fractions->count * sizeof(bool));
	for (int i = 0; i < fractions->count; i++)
	{
		nulls[i] = fractions->list[i].is_null;
		if (!nulls[i])
			values[i] = fraction_value(percentiles, percentile, &fractions->list[i]);
	}
	return PointerGetDatum(construct_md_array(values, nulls, ARR_NDIM(fractions->shape), ARR_DIMS(fractions->shape),
											  ARR_LBOUND(fractions->shape), percentile->type, percentile->length,
											  percentile->by_value, percentile->align));
}

/* Computes all aggregates into the Agg's expression context; false if the rows are lost. */
static bool
compute(GpuSortPercentiles *percentiles, AggState *agg)
{
	ExprContext *context = agg->ss.ps.ps_ExprContext;
	Fractions *fractions = palloc(agg->numaggs * sizeof(Fractions));

	percentiles->nwanted = 0;
	percentiles->room = 16;
	percentiles->wanted = palloc(percentiles->room * sizeof(WantedRow));
	if (percentiles->attno != 0 && !count_values(percentiles))
		return false;
	for (int i = 0; i < agg->numaggs; i++)
	{
		if (percentiles->list[i].hypothetical == NULL)
			fractions[i] = evaluate(percentiles, &percentiles->list[i], context);
	}
	if (!read_wanted(percentiles, context))
		return false;
	for (int i = 0; i < agg->numaggs; i++)
	{
		GpuSortHypothetical *hypothetical = percentiles->list[i].hypothetical;
		Datum *value = &context->ecxt_aggvalues[i];

		context->ecxt_aggnulls[i] = hypothetical == NULL && fractions[i].is_null;
		if (context->ecxt_aggnulls[i])
			*value = (Datum) 0;
		else if (hypothetical == NULL)
			*value = aggregate_value(percentiles, &percentiles->list[i], &fractions[i]);
		else if (!gpusort_hypothetical_value(hypothetical, &percentiles->rows, context, value))
			return false;
	}
	return true;
}

/* Sorts the rows, and computes the aggregates; false if the Agg has to do that by itself. */
static bool
compute_in_service(GpuSortPercentiles *percentiles, AggState *agg)
{
	ExprContext *context = agg->ss.ps.ps_ExprContext;
	PlanState *scan = outerPlanState(agg);
	const uint64 read = percentiles->rows.read;
	MemoryContext caller;
	bool in_service;
	bool done = false;

	if (scan->instrument != NULL)
		InstrStartNode(scan->instrument);
	in_service = gpusort_stream_sort(percentiles->rows.scan);
	if (in_service)
	{
		ResetExprContext(context);
		context->ecxt_outertuple = ExecStoreAllNullTuple(agg->ss.ss_ScanTupleSlot);
		caller = MemoryContextSwitchTo(context->ecxt_per_tuple_memory);
		done = compute(percentiles, agg);
		MemoryContextSwitchTo(caller);
	}
	if (scan->instrument != NULL)
		InstrStopNode(scan->instrument, percentiles->rows.read - read);
	if (in_service && !done)
	{
		/* The rows are lost: sort again, for the Agg. */
		gpusort_stream_end(percentiles->rows.scan);
		if (outerPlanState(scan)->chgParam == NULL)
			ExecReScan(outerPlanState(scan));
	}
	return done;
}

/* Computes the node's row, as its ExecProcNode. */
static TupleTableSlot *
exec_percentiles(PlanState *ps)
{
	AggState *agg = castNode(AggState, ps);
	GpuSortPercentiles *percentiles = ((GpuSortScanState *) outerPlanState(ps))->percentiles;

	CHECK_FOR_INTERRUPTS();
	if (agg->agg_done)
		return NULL;
	if (!compute_in_service(percentiles, agg))
		return percentiles->native(ps);
	agg->agg_done = true;
	if (!ExecQual(ps->qual, ps->ps_ExprContext))
		return NULL;
	return ExecProject(ps->ps_ProjInfo);
}

/* Fills in what a percentile is. */
static void
know_function(Oid function, Percentile *percentile)
{
	switch (function)
	{
		case F_PERCENTILE_DISC__FLOAT8_ANYELEMENT:
		case F_PERCENTILE_CONT__FLOAT8_FLOAT8:
		case F_PERCENTILE_CONT__FLOAT8_INTERVAL:
			percentile->array = true;
			break;
		default:
			break;
	}
	switch (function)
	{
		case F_PERCENTILE_DISC_FLOAT8_ANYELEMENT:
		case F_PERCENTILE_DISC__FLOAT8_ANYELEMENT:
			break;
		case F_PERCENTILE_CONT_FLOAT8_FLOAT8:
		case F_PERCENTILE_CONT__FLOAT8_FLOAT8:
			percentile->interpolate = between_floats;
			break;
		case F_PERCENTILE_CONT_FLOAT8_INTERVAL:
		case F_PERCENTILE_CONT__FLOAT8_INTERVAL:
			percentile->interpolate = between_intervals;
			break;
		default:
			elog(ERROR, "aggregate %u does not read rows by number", function);
	}
}

/* Notes what computes the values of the rows, and their type. */
static void
note_argument(Percentile *percentile, const Aggref *aggregate)
{
	Expr *argument = linitial_node(TargetEntry, aggregate->args)->expr;

	percentile->argument = ExecInitExpr(argument, NULL);
	percentile->type = exprType((Node *) argument);
	get_typlenbyvalalign(percentile->type, &percentile->length, &percentile->by_value, &percentile->align);
}

/* Fills in what an aggregate is, of rows that are sorted by these columns. */
static void
add_aggregate(GpuSortPercentiles *percentiles, const AggStatePerAggData *aggregate, const GpuSortColumn *columns,
			  Percentile *percentile)
{
	if (gpusort_aggregate_is_hypothetical(aggregate->aggref->aggfnoid))
	{
		percentile->hypothetical = gpusort_hypothetical_create(aggregate, columns);
		return;
	}
	know_function(aggregate->aggref->aggfnoid, percentile);
	percentile->fraction = linitial(aggregate->aggdirectargs);
	percentiles->attno = columns[0].attno;
	note_argument(percentile, aggregate->aggref);
}

/*
 * Changes how agg, the node above a GpuSort, computes its one row, for which all of its aggregates read rows by number.
 * Both must have been begun.
 */
void
gpusort_percentiles_begin(AggState *agg, GpuSortScanState *scan)
{
	MemoryContext caller = MemoryContextSwitchTo(agg->ss.ps.state->es_query_cxt);
	GpuSortPercentiles *percentiles = palloc0(sizeof(GpuSortPercentiles));

	Assert(scan->parallel == NULL && (scan->eflags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)) == 0);
	percentiles->list = palloc0(agg->numaggs * sizeof(Percentile));
	for (int i = 0; i < agg->numaggs; i++)
		add_aggregate(percentiles, &agg->peragg[i], scan->info.columns, &percentiles->list[i]);
	MemoryContextSwitchTo(caller);
	percentiles->native = agg->ss.ps.ExecProcNodeReal;
	percentiles->rows.scan = scan;
	scan->percentiles = percentiles;
	ExecSetExecProcNode(&agg->ss.ps, exec_percentiles);
}

/* Shows how many rows are read by their numbers. */
void
gpusort_percentiles_explain(const GpuSortPercentiles *percentiles, ExplainState *es)
{
	ExplainPropertyText("Rows Read", "by number", es);
	if (es->analyze)
		ExplainPropertyUInteger("Rows Read by Number", NULL, percentiles->rows.read, es);
}
