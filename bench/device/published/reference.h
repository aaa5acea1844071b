/*-------------------------------------------------------------------------
 *
 * reference.h
 *	  The published sorts that gpusort is measured against, each written from its
 *	  paper: for tests and the benchmark only, never part of the engine.
 *
 * gpusort_references[] holds the sorts of one GPU and of the CPU.  Each sorts keys
 * of 32 or 64 bits, as unsigned numbers in ascending order, and most can move
 * row ids along: row i's id is i, made by the sort itself.
 *
 *	size_t		bytes;
 *
 *	if (gpusort_reference_can(reference, rows, key_bytes, with_ids) &&
 *		reference->temp_bytes(rows, key_bytes, with_ids, &bytes) == cudaSuccess)
 *		... allocate, fill in args ...
 *		status = reference->sort(&args, stream);
 *
 * The caller owns all memory: device memory for a sort of the GPU, the host's for a
 * sort of the CPU.  keys_in is left as it is; keys_in, keys_out, ids_out and temp
 * do not overlap, and all are aligned to 16 bytes.  0 rows need none of them.
 *
 * A sort of the GPU works on `stream` of the current device; it may return before
 * it is done, and one with `waits` set waits for the device on its way (so time it
 * by events or by the clock after a synchronisation, never by the launch).  A
 * sort of the CPU is done when it returns, and ignores the stream.
 *
 * The sorts of several GPUs, from host memory to host memory, are in
 * multi_reference.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_REFERENCE_H
#define GPUSORT_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime.h>

typedef struct GpuSortReferenceArgs
{
	const void *keys_in; /* rows keys of key_bytes each */
	void *keys_out;      /* the keys in order */
	uint32_t *ids_out;   /* the row ids in the same order; NULL: keys only */
	uint32_t rows;
	int key_bytes; /* 4 or 8 */
	void *temp;    /* at least as large as temp_bytes() said */
	size_t temp_bytes;
	int threads; /* of a sort of the CPU; 0: one per core.  The GPU ignores it. */
} GpuSortReferenceArgs;

/* What a reference can sort. */
enum
{
	GPUSORT_REFERENCE_KEYS_4 = 1,  /* 32-bit keys alone */
	GPUSORT_REFERENCE_KEYS_8 = 2,  /* 64-bit keys alone */
	GPUSORT_REFERENCE_PAIRS_4 = 4, /* (32-bit key, row id) */
	GPUSORT_REFERENCE_PAIRS_8 = 8, /* (64-bit key, row id) */
};

typedef struct GpuSortReference
{
	const char *name;  /* one word, for command lines and tables */
	const char *paper; /* authors, title, section */
	bool on_cpu;
	unsigned int sorts; /* GPUSORT_REFERENCE_* */
	bool stable;        /* equal keys keep the order of their row ids */
	bool waits;         /* for the device, before it returns */
	uint32_t most_rows;

	/* How much temporary memory it takes.  cudaErrorInvalidValue if it cannot sort this. */
	cudaError_t (*temp_bytes)(uint32_t rows, int key_bytes, bool with_ids, size_t *bytes);

	/* Sorts.  cudaErrorInvalidValue if it cannot sort this, or temp is too small. */
	cudaError_t (*sort)(const GpuSortReferenceArgs *args, cudaStream_t stream);

	/*
	 * Bytes of device (or host) memory that it reads and writes per row, as counted from its steps
	 * for keys at random; caches are taken to help only within a block's tile.
	 */
	double (*bytes_per_row)(uint32_t rows, int key_bytes, bool with_ids);
} GpuSortReference;

extern const GpuSortReference gpusort_references[];
extern const int gpusort_reference_count;

static inline bool
gpusort_reference_can(const GpuSortReference *reference, uint32_t rows, int key_bytes, bool with_ids)
{
	unsigned int what = key_bytes == 4 ? GPUSORT_REFERENCE_KEYS_4 : GPUSORT_REFERENCE_KEYS_8;

	if (key_bytes != 4 && key_bytes != 8)
		return false;
	return (reference->sorts & (with_ids ? what << 2 : what)) != 0 && rows <= reference->most_rows;
}

#endif /* GPUSORT_REFERENCE_H */
