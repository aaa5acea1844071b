/*-------------------------------------------------------------------------
 *
 * datum_rows.h
 *	  Single datums: the kind of row that is one value of a type.
 *
 * A row is the value behind a header of eight bytes:
 *
 *	  | length, uint32 | flags, uint8 | unused | NULL, uint8 | unused | value |
 *
 * by value as a Datum, by reference as its bytes.  Of a source's row values[0] and nulls[0] are all there is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DATUM_ROWS_H
#define GPUSORT_DATUM_ROWS_H

#include "compat.h"

#include "sort/row_kind.h"

extern const GpuSortRowKind gpusort_datum_rows;

/* What a row is shown as. */
typedef struct GpuSortDatum
{
	Datum value; /* by reference it points into the row */
	bool isnull;
} GpuSortDatum;

typedef struct GpuSortDatumRows
{
	GpuSortRows rows; /* must be first field */
	Oid type;
	int16 length; /* as in pg_type */
	bool by_value;
	GpuSortDatum opened;
	GpuSortDatum shown;
	void *sorted; /* the value that PostgreSQL's sort gave last, if we must free it; otherwise NULL */
} GpuSortDatumRows;

extern GpuSortDatumRows *gpusort_datum_rows_create(Oid type);

#endif /* GPUSORT_DATUM_ROWS_H */
