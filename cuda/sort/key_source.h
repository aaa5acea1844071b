/*-------------------------------------------------------------------------
 *
 * key_source.h
 *	  A row's key, wherever it lies; see GpuSortKeySource in device_sort.h.
 *
 * Kernels that read keys are templates over a form, so that each has only the
 * code for its own: words in an array, words before a row, or a plain value that
 * is made into a key of one word when it is read.
 *
 * Plain values become unsigned numbers of the same order.  PostgreSQL's order of
 * floating point numbers (btfloat8cmp) has -0 equal to 0, and all NaN equal and
 * larger than infinity.  A number's bits compare as the number does once the sign
 * bit is set, or all bits are inverted if it was set (Terdiman's trick).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_SOURCE_H
#define GPUSORT_KEY_SOURCE_H

#include "sort/device_sort.h"

typedef enum GpuSortKeyForm
{
	GPUSORT_FORM_WORDS,
	GPUSORT_FORM_REFS,
	GPUSORT_FORM_PLAIN,
} GpuSortKeyForm;

static inline GpuSortKeyForm
gpusort_source_form(const GpuSortKeySource *source)
{
	return source->kind == GPUSORT_KEYS_WORDS ? GPUSORT_FORM_WORDS : source->kind == GPUSORT_KEYS_REFS ? GPUSORT_FORM_REFS
																									   : GPUSORT_FORM_PLAIN;
}

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

#ifdef __cplusplus

/* The words of a row's key; *made is for forms that have no words in memory. */
template <int FORM>
GPUSORT_HD static inline const uint64_t *
gpusort_source_key(const GpuSortKeySource *source, uint32_t row, uint64_t *made)
{
	if (FORM == GPUSORT_FORM_WORDS)
		return (const uint64_t *) source->base + row * source->stride_words;
	if (FORM == GPUSORT_FORM_REFS)
	{
		GpuSortRowRef ref = source->refs[row];
		const char *place = (const char *) source->chunks[gpusort_ref_chunk(ref)].base + gpusort_ref_place(ref);

		return (const uint64_t *) place - source->key_words;
	}
	*made = gpusort_plain_key(source->kind, source->base, row);
	return made;
}

/*
 * The packed keys of a thread's rows, which are STEP apart, from row `start` on; past the last
 * row, its.  The plan keeps nothing but what fits Packed.  Keys have WORDS words, which are all
 * on their way before the first is waited for; or any number, for 0.
 */
template <int FORM, int WORDS, int STEP, int ITEMS, typename Packed>
GPUSORT_HD static GPUSORT_INLINE void
gpusort_pack_rows(const GpuSortKeySource &source, const GpuSortPackPlan &window, uint64_t start, uint32_t rows,
				  Packed (&packed)[ITEMS])
{
	constexpr int words = WORDS > 0 ? WORDS : 1;
	const uint64_t *places[ITEMS];
	uint64_t made[ITEMS];
	uint64_t keys[words][ITEMS];

	GPUSORT_UNROLL
	for (int k = 0; k < ITEMS; k++)
	{
		const uint64_t row = start + k * STEP;

		places[k] = gpusort_source_key<FORM>(&source, (uint32_t) (row < rows ? row : rows - 1), &made[k]);
	}
	GPUSORT_UNROLL
	for (int k = 0; k < ITEMS; k++)
	{
		packed[k] = 0;
		GPUSORT_UNROLL
		for (int w = 0; w < WORDS; w++)
			keys[w][k] = places[k][w];
	}
	if (WORDS == 0)
		gpusort_pack_keys(&window, places, packed);
	GPUSORT_UNROLL
	for (int w = 0; w < WORDS; w++)
		gpusort_pack_word(&window.words[w], keys[w], packed);
}

/*
 * Starts kernel<FORM, ...> of the source's form.  KERNEL(FORM) is the kernel's name with
 * its template arguments.
 */
#define GPUSORT_START_BY_FORM(source, KERNEL, grid, block, stream, ...)                               \
	do                                                                                                \
	{                                                                                                 \
		switch (gpusort_source_form(source))                                                          \
		{                                                                                             \
			case GPUSORT_FORM_WORDS:                                                                  \
				GPUSORT_START_KERNEL((KERNEL(GPUSORT_FORM_WORDS)), grid, block, stream, __VA_ARGS__); \
				break;                                                                                \
			case GPUSORT_FORM_REFS:                                                                   \
				GPUSORT_START_KERNEL((KERNEL(GPUSORT_FORM_REFS)), grid, block, stream, __VA_ARGS__);  \
				break;                                                                                \
			case GPUSORT_FORM_PLAIN:                                                                  \
				GPUSORT_START_KERNEL((KERNEL(GPUSORT_FORM_PLAIN)), grid, block, stream, __VA_ARGS__); \
				break;                                                                                \
		}                                                                                             \
	} while (0)

#endif /* __cplusplus */

#endif /* GPUSORT_KEY_SOURCE_H */
