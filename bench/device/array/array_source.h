/*-------------------------------------------------------------------------
 *
 * array_source.h
 *	  Keys in arrays beside those of rows: what stands in for the definitions of
 *	  cuda/sort/key_source.h where that library is compiled for the benchmark.
 *
 * Each kernel that reads keys is there once for each form: words in an array, words
 * before a row, or a plain value that is made into a key of one word when it is read.
 *
 * Plain values become unsigned numbers of the same order.  PostgreSQL's order of
 * floating point numbers (btfloat8cmp) has -0 equal to 0, and all NaN equal and
 * larger than infinity.  A number's bits compare as the number does once the sign
 * bit is set, or all bits are inverted if it was set (Terdiman's trick).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ARRAY_SOURCE_H
#define GPUSORT_ARRAY_SOURCE_H

#include "sort/compact.h"
#include "sort/row_ref.h"

typedef enum GpuSortKeyKind
{
	GPUSORT_KEYS_REFS,  /* key_words words before each row, found through refs and chunks */
	GPUSORT_KEYS_WORDS, /* key_words words each, stride_words apart, from base on */

	/* arrays of plain values at base, each a key of one word, made when it is read: */
	GPUSORT_KEYS_UINT32,
	GPUSORT_KEYS_INT32,
	GPUSORT_KEYS_INT64,
	GPUSORT_KEYS_FLOAT, /* PostgreSQL's order: -0 = 0, all NaN equal and largest */
	GPUSORT_KEYS_DOUBLE,
} GpuSortKeyKind;

typedef struct GpuSortKeySource
{
	GpuSortKeyKind kind;
	uint32_t key_words;
	uint64_t stride_words;            /* WORDS: from one row's key to the next one's */
	const void *base;                 /* all but REFS: row 0's key */
	const GpuSortRowRef *refs;        /* REFS: of each row */
	const GpuSortDeviceChunk *chunks; /* REFS */
} GpuSortKeySource;

enum
{
	GPUSORT_FORM_REFS,
	GPUSORT_FORM_WORDS,
	GPUSORT_FORM_PLAIN,
};

GPUSORT_HD static inline uint32_t
gpusort_float_key(uint32_t bits)
{
	if ((bits & 0x7FFFFFFF) > 0x7F800000)
		return UINT32_MAX;
	if (bits == 0x80000000)
		bits = 0;
	return bits ^ (bits >> 31 ? UINT32_MAX : 0x80000000);
}

GPUSORT_HD static inline uint64_t
gpusort_double_key(uint64_t bits)
{
	const uint64_t sign = UINT64_C(1) << 63;

	if ((bits & ~sign) > UINT64_C(0x7FF0000000000000))
		return UINT64_MAX;
	if (bits == sign)
		bits = 0;
	return bits ^ (bits >> 63 ? UINT64_MAX : sign);
}

/* Bytes of a plain value; 0: not of that kind. */
static inline int
gpusort_plain_bytes(GpuSortKeyKind kind)
{
	switch (kind)
	{
		case GPUSORT_KEYS_UINT32:
		case GPUSORT_KEYS_INT32:
		case GPUSORT_KEYS_FLOAT:
			return 4;
		case GPUSORT_KEYS_INT64:
		case GPUSORT_KEYS_DOUBLE:
			return 8;
		default:
			return 0;
	}
}

/* The key of a plain value. */
GPUSORT_HD static inline uint64_t
gpusort_plain_key(GpuSortKeyKind kind, const void *base, uint32_t row)
{
	switch (kind)
	{
		case GPUSORT_KEYS_UINT32:
			return ((const uint32_t *) base)[row];
		case GPUSORT_KEYS_INT32:
			return ((const uint32_t *) base)[row] ^ 0x80000000;
		case GPUSORT_KEYS_INT64:
			return ((const uint64_t *) base)[row] ^ UINT64_C(1) << 63;
		case GPUSORT_KEYS_FLOAT:
			return gpusort_float_key(((const uint32_t *) base)[row]);
		case GPUSORT_KEYS_DOUBLE:
			return gpusort_double_key(((const uint64_t *) base)[row]);
		default:
			return 0;
	}
}

/* The words of a row's key; *made is for plain values, which have no words in memory. */
template <int FORM>
GPUSORT_HD static inline const uint64_t *
gpusort_source_key(const GpuSortKeySource *source, uint32_t row, uint64_t *made)
{
	if (FORM == GPUSORT_FORM_WORDS)
		return (const uint64_t *) source->base + row * source->stride_words;
	if (FORM == GPUSORT_FORM_REFS)
		return gpusort_ref_row(source->chunks, source->refs[row]) - source->key_words;
	*made = gpusort_plain_key(source->kind, source->base, row);
	return made;
}

/* CALL(FORM) for the source's form. */
#define GPUSORT_CALL_BY_FORM(source, CALL)             \
	do                                                 \
	{                                                  \
		if ((source)->kind == GPUSORT_KEYS_REFS)       \
		{                                              \
			CALL(GPUSORT_FORM_REFS);                   \
		}                                              \
		else if ((source)->kind == GPUSORT_KEYS_WORDS) \
		{                                              \
			CALL(GPUSORT_FORM_WORDS);                  \
		}                                              \
		else                                           \
		{                                              \
			CALL(GPUSORT_FORM_PLAIN);                  \
		}                                              \
	} while (0)

/* Starts the kernel KERNEL(FORM), a name with its template arguments, for the source's form. */
#define GPUSORT_START_BY_FORM(source, KERNEL, grid, block, stream, ...)                           \
	do                                                                                            \
	{                                                                                             \
		if ((source)->kind == GPUSORT_KEYS_REFS)                                                  \
			GPUSORT_START_KERNEL((KERNEL(GPUSORT_FORM_REFS)), grid, block, stream, __VA_ARGS__);  \
		else if ((source)->kind == GPUSORT_KEYS_WORDS)                                            \
			GPUSORT_START_KERNEL((KERNEL(GPUSORT_FORM_WORDS)), grid, block, stream, __VA_ARGS__); \
		else                                                                                      \
			GPUSORT_START_KERNEL((KERNEL(GPUSORT_FORM_PLAIN)), grid, block, stream, __VA_ARGS__); \
	} while (0)

#endif /* GPUSORT_ARRAY_SOURCE_H */
