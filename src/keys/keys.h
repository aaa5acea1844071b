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
	GPUSORT_ENCODE_NONE = 0, /* not at all */

	/* exact: equal bits mean equal values */
	GPUSORT_ENCODE_BOOL,
	GPUSORT_ENCODE_CHAR,
	GPUSORT_ENCODE_INT2,
	GPUSORT_ENCODE_INT4,
	GPUSORT_ENCODE_INT8,
	GPUSORT_ENCODE_UINT8, /* 8 bytes without a sign */
	GPUSORT_ENCODE_OID,
	GPUSORT_ENCODE_FLOAT4,
	GPUSORT_ENCODE_FLOAT8,
	GPUSORT_ENCODE_MACADDR,
	GPUSORT_ENCODE_MACADDR8,
	GPUSORT_ENCODE_TID,
	GPUSORT_ENCODE_UUID,
	GPUSORT_ENCODE_INTERVAL,
	GPUSORT_ENCODE_TIMETZ,
	GPUSORT_ENCODE_INET,

	/* prefix: a value that does not fit is inexact */
	GPUSORT_ENCODE_TEXT,
	GPUSORT_ENCODE_BPCHAR,
	GPUSORT_ENCODE_BYTEA,
	GPUSORT_ENCODE_NAME,
	GPUSORT_ENCODE_BIT, /* and varbit */
	GPUSORT_ENCODE_NUMERIC,
	GPUSORT_ENCODE_ICU_TEXT, /* under ICU collations */
	GPUSORT_ENCODE_ICU_BPCHAR,
	GPUSORT_ENCODE_ICU_NAME,

	/* exact, but for values that are newer than the query's snapshot */
	GPUSORT_ENCODE_ENUM,
} GpuSortEncoding;

/*
 * What goes into the key of a column's strings: see keys.c.  Heads and depths are
 * chosen before the first row is encoded (prefixes.c); processes that add to the
 * same sort share them.
 */
#define GPUSORT_HEAD_MAX       1000 /* bytes */
#define GPUSORT_PLACE_BITS_MAX 11   /* for heads of that length */
#define GPUSORT_DEPTH_MAX      246  /* bytes */

typedef struct GpuSortPrefix
{
	int depth;       /* bytes of a string that are in the key */
	int head_length; /* bytes that most strings begin with, which are not */
	char head[GPUSORT_HEAD_MAX];
} GpuSortPrefix;

/* The values of an enum type, in keys_enum.c. */
typedef struct GpuSortEnum GpuSortEnum;

/* An ICU collation, in keys_icu.c. */
#define GPUSORT_ICU_SLACK 8
typedef struct GpuSortIcu GpuSortIcu;

/* One ORDER BY column, as the planner found it. */
typedef struct GpuSortColumn
{
	AttrNumber attno;  /* in the child's rows */
	Oid sort_operator; /* < or > */
	Oid collation;
	bool nulls_first;

	/* what follows is derived by gpusort_keys_create */
	bool descending;
	GpuSortEncoding encoding;
	int fixed_bits;           /* bits after that of encodings of up to 64 bits; 0 for others */
	uint64 flip;              /* what a value of fixed_bits is XORed with: all of them for DESC */
	GpuSortEnum *enum_values; /* of enums; NULL for others */
	GpuSortIcu *icu;          /* of strings under ICU collations; NULL for others */
	bool is_string;           /* it has a GpuSortPrefix, and what follows */

	/* what follows is derived by gpusort_keys_lay_out */
	uint32 bits;    /* in the key; the first is its NULL bit */
	int place_bits; /* after that: 0 if no string can have a head */
	int depth;      /* bytes after that */
	int size_bits;  /* after these, for the length */
	int head_length;
	const char *head; /* belongs to the keys */
} GpuSortColumn;

typedef struct GpuSortKeys
{
	int count;
	GpuSortColumn *columns;
	int encodable;           /* how many leading columns have an encoding */
	int strings;             /* how many of them are strings */
	int encoded;             /* how many leading columns are in the key */
	int decided;             /* leading columns, not all, in which rows of equal keys are equal */
	AttrNumber last_attno;   /* the highest attribute that encoding needs */
	uint32 words;            /* 64-bit words of a key */
	bool may_tie;            /* rows can be inexact */
	bool one_fixed;          /* there is just one column, of fixed_bits */
	GpuSortPrefix *prefixes; /* of the strings, in order */
	MemoryContext scratch;   /* for detoasted values; reset after each row that used it */
} GpuSortKeys;

/* keys_choice.c */
extern GpuSortEncoding gpusort_key_encoding(Oid opfamily, Oid type, Oid collation, const char **why_not);
extern bool gpusort_key_encoding_is_string(GpuSortEncoding encoding);
extern bool gpusort_key_encoding_is_icu(GpuSortEncoding encoding);
extern GpuSortEncoding gpusort_operator_encoding(Oid sort_operator, Oid collation, bool *descending);

/* keys_layout.c */
extern GpuSortKeys *gpusort_keys_create(GpuSortColumn *columns, int count);
extern void gpusort_keys_lay_out(GpuSortKeys *keys, const GpuSortPrefix *prefixes, bool heads_later);
extern void gpusort_keys_set_heads(GpuSortKeys *keys, const GpuSortPrefix *prefixes);

/* keys.c */
#define GPUSORT_TIMETZ_BITS 96
#define GPUSORT_ENUM_BITS   32

/*
 * The widest intervals, of INT32_MAX months and days and INT64_MAX microseconds,
 * count less than 2^73 microseconds, with either sign.
 */
#define GPUSORT_INTERVAL_BITS 74

static inline uint64
gpusort_low_mask(int nbits)
{
	return ~UINT64CONST(0) >> (64 - nbits);
}

extern bool gpusort_keys_encode(const GpuSortKeys *keys, TupleTableSlot *slot, uint64 *words);
extern int gpusort_keys_string(const GpuSortKeys *keys, const GpuSortColumn *column, Datum value, char *bytes,
							   int room);
#define GPUSORT_STRING_SLACK GPUSORT_ICU_SLACK

/* keys_numeric.c */
#define GPUSORT_NUMERIC_BITS 90
extern bool gpusort_numeric_encode(Datum value, uint64 *high, uint64 *low);

/* keys_network.c */
#define GPUSORT_INET_BITS 137
extern uint64 gpusort_inet_encode(Datum value, uint64 *high, uint64 *low);

/* keys_enum.c */
extern GpuSortEnum *gpusort_enum_create(void);
extern bool gpusort_enum_encode(GpuSortEnum *values, Oid value, uint32 *position);

/* keys_icu.c */
extern bool gpusort_icu_has_keys(Oid collation);
extern GpuSortIcu *gpusort_icu_create(Oid collation);
extern int gpusort_icu_bytes(GpuSortIcu *state, const char *data, int length, char *bytes, int room, bool *whole);

#endif /* GPUSORT_KEYS_H */
