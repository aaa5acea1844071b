/*-------------------------------------------------------------------------
 *
 * column_stats.c
 *	  Values that statistics keep of a table's column.
 *
 * Where rows come from several tables, the first one's statistics stand for all.
 *
 *-------------------------------------------------------------------------
 */
#include "column_stats.h"

#include "access/htup_details.h"
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

	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(column->table), Int16GetDatum(column->attno),
							BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(column->table), Int16GetDatum(column->attno),
								BoolGetDatum(true));
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
