/*-------------------------------------------------------------------------
 *
 * types.h
 *	  Which encoding the values of a sort key have, and what each encoding is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TYPES_H
#define GPUSORT_TYPES_H

#include "compat.h"

#include "nodes/pg_list.h"

/* How the values of a column become bits; gpusort_key_types has a row for each. */
typedef enum GpuSortEncoding
{
	GPUSORT_ENCODE_NONE = 0, /* not at all */

	/* numbers of up to 64 bits, which encode.c encodes: it takes all from BOOL to TID for such */
	GPUSORT_ENCODE_BOOL,
	GPUSORT_ENCODE_CHAR,
	GPUSORT_ENCODE_INT2,
	GPUSORT_ENCODE_INT4,
	GPUSORT_ENCODE_INT8,
	GPUSORT_ENCODE_UINT8, /* 8 bytes without a sign */
	GPUSORT_ENCODE_OID,
	GPUSORT_ENCODE_FLOAT4,
	GPUSORT_ENCODE_FLOAT8,
	GPUSORT_ENCODE_INT2_AS_INT4, /* with the keys of a wider type */
	GPUSORT_ENCODE_INT2_AS_INT8,
	GPUSORT_ENCODE_INT4_AS_INT8,
	GPUSORT_ENCODE_FLOAT4_AS_FLOAT8,
	GPUSORT_ENCODE_MACADDR,
	GPUSORT_ENCODE_MACADDR8,
	GPUSORT_ENCODE_TID,

	/* by an encoder of their own */
	GPUSORT_ENCODE_UUID,
	GPUSORT_ENCODE_INTERVAL,
	GPUSORT_ENCODE_TIMETZ,
	GPUSORT_ENCODE_INET,
	GPUSORT_ENCODE_NUMERIC,
	GPUSORT_ENCODE_ENUM,

	/* strings, of which a prefix is in the key */
	GPUSORT_ENCODE_TEXT,
	GPUSORT_ENCODE_BPCHAR,
	GPUSORT_ENCODE_BYTEA,
	GPUSORT_ENCODE_NAME,
	GPUSORT_ENCODE_BIT,      /* and varbit */
	GPUSORT_ENCODE_ICU_TEXT, /* under ICU collations */
	GPUSORT_ENCODE_ICU_BPCHAR,
	GPUSORT_ENCODE_ICU_NAME,
	GPUSORT_ENCODE_LIBC_TEXT, /* under the C library's collations */
	GPUSORT_ENCODE_LIBC_BPCHAR,
	GPUSORT_ENCODE_LIBC_NAME,

	/* what is made of other values */
	GPUSORT_ENCODE_ARRAY,
	GPUSORT_ENCODE_RANGE,
	GPUSORT_ENCODE_MULTIRANGE,
	GPUSORT_ENCODE_RECORD,
	GPUSORT_ENCODE_JSONB,
	GPUSORT_ENCODE_TSVECTOR,
	GPUSORT_ENCODE_TSQUERY,

	GPUSORT_ENCODE_ABBREVIATION, /* words that the operator class makes */

	GPUSORT_ENCODE_Count,
} GpuSortEncoding;

/* Where a string's bytes are. */
typedef enum GpuSortStringForm
{
	GPUSORT_STRING_NONE = 0, /* it is no string */
	GPUSORT_STRING_BYTES,    /* all of a varlena */
	GPUSORT_STRING_PADDED,   /* a varlena without the blanks at its end */
	GPUSORT_STRING_NAME,     /* up to the first zero byte */
	GPUSORT_STRING_BITS,     /* of a varlena that begins with their number */
} GpuSortStringForm;

/* What a string's bytes in the key are. */
typedef enum GpuSortStringSource
{
	GPUSORT_SOURCE_STRING = 0,   /* its own */
	GPUSORT_SOURCE_ICU,          /* of ICU's sort key */
	GPUSORT_SOURCE_LIBC,         /* of the first level of the C library's */
	GPUSORT_SOURCE_PARTS,        /* it is no string: of the encodings of what it is made of */
	GPUSORT_SOURCE_ABBREVIATION, /* nor here: of what its operator class makes of it */
} GpuSortStringSource;

struct GpuSortBits; /* bit_writer.h */

/*
 * Encodes a value that is not NULL as a number of the type's bits.
 * Returns true if equal bits mean an equal value;
 * false if the key is truncated, and rows of equal keys need a tie-break.
 */
typedef bool (*GpuSortEncoder)(void *state, Datum value, struct GpuSortBits *bits);

/* How values are ordered. */
typedef struct GpuSortOrder
{
	Oid opfamily;
	Oid input_type; /* which opfamily compares them as */
	Oid type;       /* their own, no domain */
	Oid collation;
} GpuSortOrder;

struct GpuSortKeyType;

/* Digits to base 10000 of a numeric that are in a key, the bits of it (numeric.h), and its bytes (numeric_parts.c). */
#define GPUSORT_NUMERIC_DIGITS        5 /* at least */
#define GPUSORT_NUMERIC_DIGITS_MAX    17
#define GPUSORT_NUMERIC_BITS(digits)  (3 + 16 + 14 * (digits) + 1)
#define GPUSORT_NUMERIC_BYTES(digits) (3 + 2 * (digits))

/* Bytes that a GpuSortBytesEncoder may write beyond those asked for. */
#define GPUSORT_STRING_SLACK 8

/*
 * Encodes a value that is not NULL, in the encoding of this row, as bytes of any number that order as the values do:
 * writes the first room of them, 1 at least, to bytes, which has room for GPUSORT_STRING_SLACK more.  Returns
 * how many there are; *whole says whether that is all of them, and equal ones mean equal values.  What
 * is detoasted is in the current memory context, and left there.
 */
typedef int (*GpuSortBytesEncoder)(const struct GpuSortKeyType *type, void *state, Datum value, char *bytes, int room,
								   bool *whole);

/* One encoding, of one of two forms: a fixed number of bits, or bytes.  See types.c on what a new one takes. */
typedef struct GpuSortKeyType
{
	int bits;           /* in the key, without the one for NULL; 0: bytes, of which each sort takes as many as it needs */
	bool truncates;     /* a value may not be in the key whole, so that rows need a tie-break */
	GpuSortEncoding as; /* equal values of that encoding have the same bits; NONE: of this one alone */

	/* of a fixed number of bits that is not left to encode.c, as short numbers are: at most 192 */
	GpuSortEncoder encode;
	bool detoast; /* encode gets a varlena neither compressed nor kept elsewhere */

	/* makes the state for values of an order, which lives as long as the current memory context; NULL: none is needed */
	void *(*create)(const GpuSortOrder *order);

	/* of bytes; of numerics, only for samples and as parts of others */
	GpuSortBytesEncoder bytes;
	GpuSortStringForm string;
	GpuSortStringSource source; /* if it is not the string, the state is the collation's */
	GpuSortEncoding under_icu;  /* what takes its place under ICU collations */
	GpuSortEncoding under_libc; /* and under the C library's */

	/*
	 * of what is made of other values: the GpuSortOrder of each part of a type's values.  Those of whose first part
	 * there is no encoding, or that have no parts, have none.
	 */
	List *(*parts)(Oid type, Oid collation);
} GpuSortKeyType;

extern const GpuSortKeyType gpusort_key_types[GPUSORT_ENCODE_Count];

/* Returns true if the same values have the same keys in all sorts, once they are laid out alike. */
static inline bool
gpusort_keys_are_same_everywhere(GpuSortEncoding encoding)
{
	const GpuSortKeyType *type = &gpusort_key_types[encoding];

	if (type->source == GPUSORT_SOURCE_PARTS || type->source == GPUSORT_SOURCE_ABBREVIATION)
		return false;
	return type->string != GPUSORT_STRING_NONE || type->create == NULL;
}

extern GpuSortEncoding gpusort_key_encoding(Oid opfamily, Oid input_type, Oid type, Oid collation,
											const char **why_not);
extern GpuSortEncoding gpusort_part_encoding(const GpuSortOrder *order, const char **why_not);
extern List *gpusort_key_libc_collations(GpuSortEncoding encoding, Oid type, Oid collation);
extern bool gpusort_key_is_partial(GpuSortEncoding encoding, Oid type, Oid collation);
extern Oid gpusort_common_key_type(Oid opfamily, Oid a, Oid b);
extern GpuSortEncoding gpusort_encoding_as(GpuSortEncoding encoding, Oid type);
extern bool gpusort_operator_order(Oid sort_operator, Oid type, Oid collation, GpuSortOrder *order, bool *descending);
extern GpuSortEncoding gpusort_operator_encoding(Oid sort_operator, Oid type, Oid collation, bool *descending,
												 const char **why_not);

#endif /* GPUSORT_TYPES_H */
