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
	GPUSORT_ENCODE_NONE = 0, /* no encoding */

	/* numbers of up to 64 bits, which encode.c encodes: it takes all from BOOL to TID for such */
	GPUSORT_ENCODE_BOOL,
	GPUSORT_ENCODE_CHAR,
	GPUSORT_ENCODE_INT2,
	GPUSORT_ENCODE_INT4,
	GPUSORT_ENCODE_INT8,
	GPUSORT_ENCODE_UINT8, /* an unsigned number of 8 bytes */
	GPUSORT_ENCODE_OID,
	GPUSORT_ENCODE_FLOAT4,
	GPUSORT_ENCODE_FLOAT8,
	GPUSORT_ENCODE_INT2_AS_INT4, /* encoded like a wider type */
	GPUSORT_ENCODE_INT2_AS_INT8,
	GPUSORT_ENCODE_INT4_AS_INT8,
	GPUSORT_ENCODE_FLOAT4_AS_FLOAT8,
	GPUSORT_ENCODE_MACADDR,
	GPUSORT_ENCODE_MACADDR8,
	GPUSORT_ENCODE_TID,

	/* values with an encoder of their own */
	GPUSORT_ENCODE_UUID,
	GPUSORT_ENCODE_INTERVAL,
	GPUSORT_ENCODE_TIMETZ,
	GPUSORT_ENCODE_INET,
	GPUSORT_ENCODE_NUMERIC,
	GPUSORT_ENCODE_ENUM,

	/* strings, with a prefix in the key */
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

	/* values that are made of other values */
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
	GPUSORT_STRING_NONE = 0, /* not a string */
	GPUSORT_STRING_BYTES,    /* all of a varlena */
	GPUSORT_STRING_PADDED,   /* a varlena without the blanks at its end */
	GPUSORT_STRING_NAME,     /* up to the first zero byte */
	GPUSORT_STRING_BITS,     /* a varlena that begins with the number of bits */
} GpuSortStringForm;

/* Where the bytes of a string's key come from. */
typedef enum GpuSortStringSource
{
	GPUSORT_SOURCE_STRING = 0,   /* the string */
	GPUSORT_SOURCE_ICU,          /* ICU's sort key */
	GPUSORT_SOURCE_LIBC,         /* the first level of the C library's collation key */
	GPUSORT_SOURCE_PARTS,        /* not a string: the encodings of its parts */
	GPUSORT_SOURCE_ABBREVIATION, /* not a string: the abbreviated key */
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
	Oid input_type; /* the type as which opfamily compares them */
	Oid type;       /* their own type, not a domain */
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
	int bits;           /* bits in the key, without the one for NULL; 0 if each sort decides how many bytes it takes */
	bool truncates;     /* a key may not hold its value whole, so that rows need a tie-break */
	GpuSortEncoding as; /* an encoding that gives equal values the same bits, or NONE */

	/* for a fixed number of bits, at most 192; NULL for short numbers, which encode.c encodes */
	GpuSortEncoder encode;
	bool detoast; /* encode gets varlenas that are neither compressed nor out of line */

	/* makes the state for an order, in the current memory context; NULL if none is needed */
	void *(*create)(const GpuSortOrder *order);

	/* for bytes; numerics use it only for samples and as parts of other values */
	GpuSortBytesEncoder bytes;
	GpuSortStringForm string;
	GpuSortStringSource source; /* if it is not STRING, the state belongs to the collation */
	GpuSortEncoding under_icu;  /* the encoding to use under ICU collations */
	GpuSortEncoding under_libc; /* the encoding to use under collations of the C library */

	/*
	 * of what is made of other values: the GpuSortOrder of each part of a type's values.  Those of whose first part
	 * there is no encoding, or that have no parts, have none.
	 */
	List *(*parts)(Oid type, Oid collation);
} GpuSortKeyType;

extern const GpuSortKeyType gpusort_key_types[GPUSORT_ENCODE_Count];

/* Returns true if equal values have equal keys in all sorts with the same layout. */
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
