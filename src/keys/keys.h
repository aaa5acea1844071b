/*-------------------------------------------------------------------------
 *
 * keys.h
 *	  Sort keys as fixed-width words that compare like the rows do.
 *
 * What other folders need of this one; which types have keys is in types.h.  Legal
 * order: create once; then for each sort lay_out, when the prefixes of the strings are
 * known, set_common_prefixes where these come later, and encode for each row.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEYS_H
#define GPUSORT_KEYS_H

#include "compat.h"

#include "access/attnum.h"
#include "keys/types.h"

/* The most bytes of a string that the key leaves out, and that it has. */
#define GPUSORT_COMMON_PREFIX_MAX 1000 /* bytes */
#define GPUSORT_PREFIX_MAX        246  /* bytes */
#define GPUSORT_WORD_BYTES        8    /* bytes of an abbreviated value */

/* The most known values of a column, and their bytes in total; the bits of a rank among them. */
#define GPUSORT_KNOWN_MAX   1023
#define GPUSORT_KNOWN_BYTES 32768
#define GPUSORT_RANK_BITS   11

/* A string that may become a known value. */
typedef struct GpuSortKnownString
{
	const char *data;
	int length; /* bytes */
} GpuSortKnownString;

/* Values of a column of strings whose ranks are in the key: see encode.c. */
typedef struct GpuSortKnownValues
{
	bool ranked;   /* the column will have ranks, whether or not the values are chosen yet */
	bool complete; /* nearly all rows are expected to have one of these values */
	int count;
	uint16 ends[GPUSORT_KNOWN_MAX]; /* by value: the offset of its end in bytes */
	char bytes[GPUSORT_KNOWN_BYTES];
} GpuSortKnownValues;

/*
 * What goes into the key of a column's strings, or numerics: see encode.c.  It is chosen before the
 * first row is encoded; processes that add to the same sort share it.
 */
typedef struct GpuSortPrefix
{
	int length;        /* bytes of a string that are in the key, from where it differs from the common prefix;
						* of a numeric, digits to base 10000, and nothing else of this is for it */
	int common_length; /* bytes of the common prefix, which the key leaves out */
	char common[GPUSORT_COMMON_PREFIX_MAX];
	GpuSortKnownValues known; /* in the column's order */
	bool settled;             /* all of this comes from statistics, so first rows need not be looked at */

	/* first column only: fraction of comparisons that keys do not decide (gpusort_first_levels_tied) */
	double tied;
} GpuSortPrefix;

/* One ORDER BY column, as the planner found it. */
typedef struct GpuSortColumn
{
	AttrNumber attno;  /* in the child's rows */
	Oid sort_operator; /* < or > */
	Oid collation;
	bool nulls_first;
	Oid value_type; /* type of the values; needed if the operator's type is a pseudotype */
	Oid key_type;   /* a wider type whose keys are used, or InvalidOid */

	/* derived by gpusort_keys_create */
	bool descending;
	GpuSortEncoding encoding;
	int fixed_bits;             /* bits of numbers of up to 64 bits; 0 for other values */
	uint64 flip;                /* XORed with a value of fixed_bits: all bits for DESC */
	const GpuSortKeyType *type; /* the encoding's row */
	void *state;                /* the encoder's state, if it has one */
	List *libc_collations;      /* collations of the C library that the key depends on */
	Oid abbreviated_by;         /* the operator family that makes abbreviated keys, or InvalidOid */
	bool partial;               /* see gpusort_key_is_partial */

	/* derived by gpusort_keys_lay_out */
	uint32 bits;         /* number of its bits in the key; the first is the NULL bit */
	int difference_bits; /* strings: bits for where it differs from the common prefix; 0 if there is none */
	int prefix_length;   /* strings: bytes that follow; numerics: digits in the key */
	int size_bits;       /* bits that follow, for the length */
	int common_length;
	const char *common_prefix;       /* belongs to the keys */
	int rank_bits;                   /* strings: bits of a rank, behind the NULL bit; 0 if there are no ranks */
	struct GpuSortKnownTable *known; /* the values that have ranks, belongs to the keys; or NULL */
} GpuSortColumn;

typedef struct GpuSortKeys
{
	int count;
	GpuSortColumn *columns;
	int encodable;           /* how many leading columns have an encoding */
	int sized;               /* how many of them each sort sizes: strings and numerics */
	int encoded;             /* how many leading columns are in the key */
	int exact_columns;       /* number of leading columns in which rows with equal keys are equal; not all columns */
	AttrNumber last_attno;   /* the highest attribute that encoding needs */
	uint32 words;            /* 64-bit words of a key */
	bool may_tie;            /* keys can be truncated */
	bool one_fixed;          /* the only column has fixed_bits */
	bool all_fixed;          /* all of several columns have fixed_bits */
	bool one_numeric;        /* the only column is a numeric of GPUSORT_NUMERIC_DIGITS digits */
	GpuSortPrefix *prefixes; /* of the sized columns, in order; NULL before there is a layout */
	MemoryContext scratch;   /* for detoasted values; reset after each row that used it */
	MemoryContext tables;    /* of known values, or NULL */
} GpuSortKeys;

static inline bool
gpusort_column_is_string(const GpuSortColumn *column)
{
	return column->type->string != GPUSORT_STRING_NONE;
}

/* Returns true if each sort decides how much of a column's values is in the key, in a GpuSortPrefix. */
static inline bool
gpusort_column_is_sized(const GpuSortColumn *column)
{
	return column->type->bytes != NULL;
}

/* Returns true if strings of a column that is in the key are under a libc collation. */
static inline bool
gpusort_column_is_libc(const GpuSortColumn *column)
{
	return column->type->source == GPUSORT_SOURCE_LIBC;
}

/* Returns true if the order of rows by a column that is in the key is verified by its comparator. */
static inline bool
gpusort_column_is_verified(const GpuSortColumn *column)
{
	return column->libc_collations != NIL || OidIsValid(column->abbreviated_by);
}

/* Returns the known value with this number, and its length in bytes. */
static inline const char *
gpusort_known_value(const GpuSortKnownValues *known, int i, int *length)
{
	int start = i == 0 ? 0 : known->ends[i - 1];

	*length = known->ends[i] - start;
	return known->bytes + start;
}

/* Returns true if two columns, laid out alike, have the same bits for the same values. */
static inline bool
gpusort_columns_have_same_keys(const GpuSortColumn *a, const GpuSortColumn *b)
{
	return (a->type->as != GPUSORT_ENCODE_NONE ? a->type->as : a->encoding) ==
		(b->type->as != GPUSORT_ENCODE_NONE ? b->type->as : b->encoding);
}

/* layout.c */
extern GpuSortKeys *gpusort_keys_create(GpuSortColumn *columns, int count);
extern void gpusort_keys_lay_out(GpuSortKeys *keys, const GpuSortPrefix *prefixes, bool common_later);
extern void gpusort_keys_set_common_prefixes(GpuSortKeys *keys, const GpuSortPrefix *prefixes);
extern uint32 gpusort_keys_range_bits(const GpuSortKeys *keys, int columns);

/* encode.c */
extern bool gpusort_keys_encode(const GpuSortKeys *keys, const Datum *values, const bool *nulls, uint64 *words);

/* known_values.c */
extern bool gpusort_keys_may_rank(const GpuSortColumn *column);
extern bool gpusort_keys_set_known(const GpuSortColumn *column, GpuSortKnownString *strings, int count,
								   GpuSortKnownValues *known);

/* string_keys.c */
extern int gpusort_keys_string(const GpuSortKeys *keys, const GpuSortColumn *column, Datum value, char *bytes,
							   int room, bool *whole);
extern int gpusort_keys_own_string(const GpuSortKeys *keys, const GpuSortColumn *column, Datum value, char *bytes,
								   int room);

/* abbreviation.c */
extern bool gpusort_keys_are_abbreviated(const GpuSortKeys *keys);
extern bool gpusort_keys_abbreviation_aborts(const GpuSortColumn *column);

/* libc.c */
extern bool gpusort_keys_by_libc(const GpuSortKeys *keys);
extern int gpusort_keys_compare_libc(const GpuSortColumn *column, const char *a, const char *b);
extern bool gpusort_keys_is_less_libc(const GpuSortColumn *column, char *a, uint32 length, const char *b);
extern int gpusort_keys_order_first_libc(const GpuSortColumn *column, const char *a, uint32 a_length, const char *b,
										 uint32 b_length);
extern uint64 gpusort_keys_libc_hash(const GpuSortKeys *keys);

#endif /* GPUSORT_KEYS_H */
