/*-------------------------------------------------------------------------
 *
 * compression.c
 *	  Compression of what is kept in files, by LZ4, and whether it pays.
 *
 * Compressing takes a core's time to save the disk's.  Which of them is short is
 * seen from outside only: while the page cache takes what is written plain is
 * several times as fast; once the kernel makes writers wait for the disk, a third
 * less to write is a third less to wait.  So buffers are written one way, now and
 * then one the other way, and the faster way is taken for the next ones.
 *
 * Without LZ4 (the build's LZ4=no) nothing is compressed.
 *
 *-------------------------------------------------------------------------
 */
#ifdef GPUSORT_LZ4
#include <lz4.h>
#endif

#include "service/external/storage/compression.h"

/* Of so many buffers one is written the other way; the first of all are written plain, for a start is slow. */
#define TRY_EVERY   64
#define PLAIN_FIRST 2

/* Compression also costs the reader: it pays from this part of the plain cost on. */
#define PAYS_FROM 0.9

/* The part of a new measurement in what is known; of fewer bytes none is made. */
#define MEASURED_PART  0.25
#define MEASURED_BYTES ((uint32_t) 1 << 20)

/* Returns true if there is a compression. */
bool
gpusort_compression_exists(void)
{
#ifdef GPUSORT_LZ4
	return true;
#else
	return false;
#endif
}

/*
 * Compresses so many bytes.  Returns how many it became, an eighth fewer at least; 0 if
 * that cannot be.  There is room for as many as there were.
 */
uint32_t
gpusort_compress(const char *from, uint32_t bytes, char *to)
{
#ifdef GPUSORT_LZ4
	int stored = LZ4_compress_default(from, to, (int) bytes, (int) (bytes - bytes / 8));

	return stored > 0 && (uint32_t) stored < bytes ? (uint32_t) stored : 0;
#else
	(void) from;
	(void) bytes;
	(void) to;
	return 0;
#endif
}

/* Decompresses what became so many bytes; false if it was not exactly those. */
bool
gpusort_decompress(const char *from, uint32_t stored, char *to, uint32_t bytes)
{
#ifdef GPUSORT_LZ4
	return LZ4_decompress_safe(from, to, (int) stored, (int) bytes) == (int) bytes;
#else
	(void) from;
	(void) stored;
	(void) to;
	(void) bytes;
	return false;
#endif
}

/* Returns true if the next buffer is to be compressed.  To be asked once for each. */
bool
gpusort_compression_pays(GpuSortCompression *compression)
{
	uint64_t number = compression->buffers++;
	bool pays;

	if (!gpusort_compression_exists() || compression->mode == GPUSORT_COMPRESSION_NEVER)
		return false;
	if (compression->mode == GPUSORT_COMPRESSION_ALWAYS)
		return true;
	pays = compression->cost[true] > 0 && compression->cost[true] < PAYS_FROM * compression->cost[false];
	return number % TRY_EVERY == PLAIN_FIRST ? !pays : pays;
}

/* A buffer of so many bytes of records was written in so many milliseconds. */
void
gpusort_compression_measured(GpuSortCompression *compression, bool compressed, uint32_t bytes, double ms)
{
	double *cost = &compression->cost[compressed];
	double measured = ms * 1e6 / bytes;

	if (bytes >= MEASURED_BYTES)
		*cost = *cost == 0 ? measured : *cost + (measured - *cost) * MEASURED_PART;
}
