/*-------------------------------------------------------------------------
 *
 * column_stats.c
 *	  Values that statistics keep of a table's column.
 *
 * Where rows come from several tables, the first one's statistics stand for all.
 *
 *-------------------------------------------------------------------------
 */
#include "facts/column_stats.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "parser/parse_coerce.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* What stands for a whole column: so many bounds of equal parts, or values that have this share of the rows. */
#define BOUNDS_MIN 50
#define SHARE_MIN  0.95

/* So many values are enough; of the frequent ones, fewer. */
#define VALUES_MAX   128
#define FREQUENT_MAX 32

/*
 * Returns what statistics there are of a column, those of it
 * with its children where it has none of its own; not valid: none.
 */
static HeapTuple
find_statistics(const GpuSortTableColumn *column)
{
	HeapTuple tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(column->table), Int16GetDatum(column->attno),
									  BoolGetDatum(false));

	if (!HeapTupleIsValid(tuple))
		tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(column->table), Int16GetDatum(column->attno),
								BoolGetDatum(true));
	return tuple;
}

/*
 * Calls back for values of a column, if they are of this type: those that
 * divide them into parts of equal size, once; and frequent ones twice, about as many
 * as there are rows of them beside the others.  NULLs are not among them.  The values are valid
 * during the call.  Returns true if they stand for all of the column's.
 */
bool
gpusort_column_values(const GpuSortTableColumn *column, Oid type, GpuSortValueCallback callback, void *arg)
{
	HeapTuple tuple;
	AttStatsSlot slot;
	int bounds = 0;
	double share; /* of all rows, as far as known which values they have */

	tuple = find_statistics(column);
	if (!HeapTupleIsValid(tuple))
		return false;
	share = ((Form_pg_statistic) GETSTRUCT(tuple))->stanullfrac;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_HISTOGRAM, InvalidOid, ATTSTATSSLOT_VALUES))
	{
		if (IsBinaryCoercible(slot.valuetype, type))
			bounds = Min(slot.nvalues, VALUES_MAX);
		for (int i = 0; i < bounds; i++)
			callback(slot.values[(int64) i * slot.nvalues / bounds], 1, arg);
		free_attstatsslot(&slot);
	}
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_MCV, InvalidOid, ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
	{
		int pairs = Min(slot.nvalues, FREQUENT_MAX);

		for (int i = 0; i < slot.nnumbers; i++)
			share += slot.numbers[i];
		if (bounds > 0)
			pairs = Min(pairs, (int) (bounds * share / Max(1 - share, 0.01) / 2));
		if (!IsBinaryCoercible(slot.valuetype, type))
			pairs = 0;
		for (int i = 0; i < pairs; i++)
			callback(slot.values[i], 2, arg);
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return bounds >= BOUNDS_MIN || share >= SHARE_MIN;
}

/* Returns how many different values a column has; INFINITY if that is not known. */
static double
different_values(const GpuSortTableColumn *column, Form_pg_statistic statistics)
{
	double rows = -1;
	HeapTuple class;

	if (statistics->stadistinct > 0)
		return statistics->stadistinct;
	class = SearchSysCache1(RELOID, ObjectIdGetDatum(column->table));
	if (HeapTupleIsValid(class))
	{
		rows = ((Form_pg_class) GETSTRUCT(class))->reltuples;
		ReleaseSysCache(class);
	}
	return statistics->stadistinct == 0 || rows <= 0 ? INFINITY : ceil(-statistics->stadistinct * rows);
}

/*
 * Calls back, once each, for the values of a column that statistics keep, if they are of this type: frequent ones;
 * and those that divide the others into parts, where these are few.  Returns which part of the table's rows are
 * thought to have one of them, or NULL; -1 if there are no statistics.  *different is how many values there are, or
 * INFINITY. callback may be NULL.
 */
double
gpusort_column_known_values(const GpuSortTableColumn *column, Oid type, GpuSortValueCallback callback, void *arg,
							double *different)
{
	HeapTuple tuple = find_statistics(column);
	Form_pg_statistic statistics;
	AttStatsSlot slot;
	double share;
	int frequent = 0;

	*different = INFINITY;
	if (!HeapTupleIsValid(tuple))
		return -1;
	statistics = (Form_pg_statistic) GETSTRUCT(tuple);
	*different = different_values(column, statistics);
	share = statistics->stanullfrac;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_MCV, InvalidOid, ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
	{
		if (IsBinaryCoercible(slot.valuetype, type))
		{
			frequent = slot.nvalues;
			for (int i = 0; i < slot.nvalues && callback != NULL; i++)
				callback(slot.values[i], 1, arg);
			for (int i = 0; i < slot.nnumbers; i++)
				share += slot.numbers[i];
		}
		free_attstatsslot(&slot);
	}
	if (*different <= GPUSORT_FEW_VALUES &&
		get_attstatsslot(&slot, tuple, STATISTIC_KIND_HISTOGRAM, InvalidOid, ATTSTATSSLOT_VALUES))
	{
		if (IsBinaryCoercible(slot.valuetype, type))
		{
			for (int i = 0; i < slot.nvalues && callback != NULL; i++)
				callback(slot.values[i], 1, arg);
			share += Max(1 - share, 0) * Min(slot.nvalues / Max(*different - frequent, 1), 1);
		}
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return Min(share, 1);
}

/*
 * Returns for about which part of a table's rows the key of a sort ends with this column, whose values have this type
 * and encoding: rows that are equal in it and in those before tie, whatever follows. Strings under a collation of the
 * C library end it, but for NULLs and values that have ranks (sort/few_values.c), and so do abbreviated values; others
 * are taken to be whole.
 */
double
gpusort_column_ends_keys(const GpuSortTableColumn *column, Oid type, GpuSortEncoding encoding)
{
	double different;
	double share;

	if (encoding == GPUSORT_ENCODE_ABBREVIATION)
		return 1;
	if (gpusort_key_types[encoding].source != GPUSORT_SOURCE_LIBC)
		return 0;
	share = gpusort_column_known_values(column, type, NULL, NULL, &different);
	if (share < 0)
		return 1;
	/* First rows know what statistics do not. */
	if (share < GPUSORT_KNOWN_SHARE && different <= GPUSORT_FEW_VALUES)
		share = GPUSORT_KNOWN_SHARE;
	return share >= GPUSORT_KNOWN_SHARE ? 1 - share : 1;
}
