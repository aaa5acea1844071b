/*-------------------------------------------------------------------------
 *
 * interval_reader.h
 *	  The records of an interval of keys, from all runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_INTERVAL_READER_H
#define GPUSORT_EXTERNAL_INTERVAL_READER_H

#include "service/external/runs.h"

/* Where an interval of keys lies in each run. */
typedef struct GpuSortKeyInterval
{
	GpuSortRunPlace *starts; /* one for each run */
	GpuSortRunPlace *ends;
	uint64_t rows;
	uint64_t bytes; /* of records */
} GpuSortKeyInterval;

/* Reads records run by run, each in its order.  Belongs to the caller, who does not look inside. */
typedef struct GpuSortIntervalReader
{
	const GpuSortRuns *runs;
	const GpuSortKeyInterval *interval;
	uint32_t run;
	GpuSortRunPlace at;
	char *scratch; /* GPUSORT_CHUNK_BYTES, the caller's */
} GpuSortIntervalReader;

extern int gpusort_interval_create(const GpuSortRuns *runs, const uint64_t *first_key, const uint64_t *end_key,
								   char *scratch, GpuSortKeyInterval *interval, GpuSortError *error);
extern void gpusort_interval_free(GpuSortKeyInterval *interval);

extern void gpusort_interval_reader_init(GpuSortIntervalReader *reader, const GpuSortRuns *runs,
										 const GpuSortKeyInterval *interval, char *scratch);
extern int gpusort_interval_read(GpuSortIntervalReader *reader, char *to, uint32_t room, uint32_t room_per_row,
								 uint32_t *bytes, uint32_t *rows, GpuSortError *error);
extern void gpusort_interval_skip(GpuSortIntervalReader *reader, uint64_t rows, uint64_t *skipped);

#endif /* GPUSORT_EXTERNAL_INTERVAL_READER_H */
