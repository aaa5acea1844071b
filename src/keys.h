/*-------------------------------------------------------------------------
 *
 * keys.h
 *	  Sort keys as fixed-width words that compare like the rows do.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEYS_H
#define GPUSORT_KEYS_H

#include "compat.h"

#include "executor/tuptable.h"
#include "nodes/pg_list.h"

/* How the values of a column become bits. */
typedef enum GpuSortEncoding
{
	GPUSORT_ENCODE_NONE = 0,	/* not at all */

	/* exact: equal bits mean equal values */
	GPUSORT_ENCODE_BOOL,
	GPUSORT_ENCODE_INT2,
	GPUSORT_ENCODE_INT4,
	GPUSORT_ENCODE_INT8,
	GPUSORT_ENCODE_OID,
	GPUSORT_ENCODE_FLOAT4,
	GPUSORT_ENCODE_FLOAT8,
	GPUSORT_ENCODE_UUID,

	/* prefix: a value that does not fit is inexact */
	GPUSORT_ENCODE_TEXT,
	GPUSORT_ENCODE_BPCHAR,
	GPUSORT_ENCODE_BYTEA,
	GPUSORT_ENCODE_NAME,
	GPUSORT_ENCODE_NUMERIC,
} GpuSortEncoding;

/* The prefixes of strings, in bytes; with its length a prefix fills whole words, nearly. */
#define GPUSORT_PREFIX_SHORT	14
#define GPUSORT_PREFIX_LONG		22

/* One ORDER BY column, as the planner found it. */
typedef struct GpuSortColumn
{
	AttrNumber	attno;			/* in the child's rows */
	Oid			sort_operator;	/* < or > */
	Oid			collation;
	bool		nulls_first;
	int			prefix_bytes;	/* of string encodings; 0 for others */

	/* what follows is derived by gpusort_keys_create */
	bool		descending;
	GpuSortEncoding encoding;
	uint32		bits;			/* in the key; the first is its NULL bit */
	int			fixed_bits;		/* bits after that of encodings of up to 64 bits; 0 for others */
	uint64		flip;			/* what a value of fixed_bits is XORed with: all of them for DESC */
} GpuSortColumn;

typedef struct GpuSortKeys
{
	int			count;
	GpuSortColumn *columns;
	int			encoded;		/* how many leading columns are in the key */
	AttrNumber	last_attno;		/* the highest attribute that encoding needs */
	uint32		words;			/* 64-bit words of a key */
	bool		may_tie;		/* rows can be inexact */
	bool		one_fixed;		/* there is just one column, of fixed_bits */
	MemoryContext scratch;		/* for detoasted values; reset after each row that used it */
} GpuSortKeys;

extern GpuSortEncoding gpusort_key_encoding(Oid opfamily, Oid type, Oid collation, const char **why_not);
extern bool gpusort_key_encoding_is_string(GpuSortEncoding encoding);
extern GpuSortEncoding gpusort_operator_encoding(Oid sort_operator, Oid collation, bool *descending);
extern GpuSortKeys *gpusort_keys_create(GpuSortColumn *columns, int count);
extern bool gpusort_keys_encode(const GpuSortKeys *keys, TupleTableSlot *slot, uint64 *words);

/* keys_numeric.c */
#define GPUSORT_NUMERIC_BITS	90
extern bool gpusort_numeric_encode(Datum value, uint64 *high, uint64 *low);

#endif							/* GPUSORT_KEYS_H */
