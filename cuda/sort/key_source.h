/*-------------------------------------------------------------------------
 *
 * key_source.h
 *	  Where the keys of a sort lie, and how kernels read them: each ends where its row
 *	  begins, found through a ref and a table of chunks (row_ref.h).
 *
 * Kernels that read keys are templates over a form.  There is one here.  A program that
 * compiles this library for itself may have others: GPUSORT_KEY_SOURCE is then the header
 * that stands in for this one's definitions (bench/device/array/array_source.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_SOURCE_H
#define GPUSORT_KEY_SOURCE_H

#include "sort/compact.h"
#include "sort/row_ref.h"

#ifdef GPUSORT_KEY_SOURCE
#include GPUSORT_KEY_SOURCE
#else

typedef struct GpuSortKeySource
{
	uint32_t key_words;               /* of 64 bits, before each row */
	const GpuSortRowRef *refs;        /* of each row */
	const GpuSortDeviceChunk *chunks; /* that they refer to */
} GpuSortKeySource;

#ifdef __cplusplus

#define GPUSORT_FORM_REFS                  0

/* The words of a row's key. */
template <int FORM>
GPUSORT_HD static inline const uint64_t *
gpusort_source_key(const GpuSortKeySource *source, uint32_t row, uint64_t *)
{
	GpuSortRowRef ref = source->refs[row];
	const char *place = (const char *) source->chunks[gpusort_ref_chunk(ref)].base + gpusort_ref_place(ref);

	return (const uint64_t *) place - source->key_words;
}

/* CALL(FORM) for the source's form. */
#define GPUSORT_CALL_BY_FORM(source, CALL) CALL(GPUSORT_FORM_REFS)

/* Starts the kernel KERNEL(FORM), a name with its template arguments, for the source's form. */
#define GPUSORT_START_BY_FORM(source, KERNEL, grid, block, stream, ...) \
	GPUSORT_START_KERNEL((KERNEL(GPUSORT_FORM_REFS)), grid, block, stream, __VA_ARGS__)

#endif /* __cplusplus */
#endif /* GPUSORT_KEY_SOURCE */

#ifdef __cplusplus

/*
 * The packed keys of a thread's rows, which are STEP apart, from row `start` on; past the last
 * row, its.  The plan keeps nothing but what fits Packed.
 */
template <int FORM, int STEP, int ITEMS, typename Packed>
GPUSORT_HD static GPUSORT_INLINE void
gpusort_pack_rows(const GpuSortKeySource &source, const GpuSortPackPlan &window, uint64_t start, uint32_t rows,
				  Packed (&packed)[ITEMS])
{
	const uint64_t *places[ITEMS];
	uint64_t made[ITEMS];

	GPUSORT_UNROLL
	for (int k = 0; k < ITEMS; k++)
	{
		const uint64_t row = start + k * STEP;

		places[k] = gpusort_source_key<FORM>(&source, (uint32_t) (row < rows ? row : rows - 1), &made[k]);
	}
	gpusort_pack_keys(&window, places, packed);
}

#endif /* __cplusplus */

#endif /* GPUSORT_KEY_SOURCE_H */
