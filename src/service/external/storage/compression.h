/*-------------------------------------------------------------------------
 *
 * compression.h
 *	  Compression of what is kept in files, and whether it pays.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_COMPRESSION_H
#define GPUSORT_EXTERNAL_COMPRESSION_H

#include <stdbool.h>
#include <stdint.h>

/* When blocks in files are compressed. */
typedef enum GpuSortCompressionMode
{
	GPUSORT_COMPRESSION_AUTO, /* while it is faster */
	GPUSORT_COMPRESSION_NEVER,
	GPUSORT_COMPRESSION_ALWAYS,
} GpuSortCompressionMode;

/* Measured times of writing with and without compression; under its owner's lock. */
typedef struct GpuSortCompression
{
	GpuSortCompressionMode mode;
	uint64_t buffers; /* number of buffers so far */
	double cost[2];   /* time to write plain and compressed, in ns per byte of records; 0 if not known */
} GpuSortCompression;

extern bool gpusort_compression_exists(void);
extern uint32_t gpusort_compress(const char *from, uint32_t bytes, char *to);
extern bool gpusort_decompress(const char *from, uint32_t stored, char *to, uint32_t bytes);

extern bool gpusort_compression_pays(GpuSortCompression *compression);
extern void gpusort_compression_measured(GpuSortCompression *compression, bool compressed, uint32_t bytes, double ms);

#endif /* GPUSORT_EXTERNAL_COMPRESSION_H */
