/*-------------------------------------------------------------------------
 *
 * inline_encoders.h
 *	  Encoders that are shorter than a call; for this folder alone.
 *
 * types.c has them in its table like others;
 * encode.c names them, too, for the compiler to see.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INLINE_ENCODERS_H
#define GPUSORT_INLINE_ENCODERS_H

#include "compat.h"

#include "keys/bit_writer.h"
#include "utils/date.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#define GPUSORT_UUID_BITS     128
#define GPUSORT_TIMETZ_BITS   96
#define GPUSORT_INTERVAL_BITS 74

/* Encodes a uuid, whose bytes order it.  Always true: exact. */
static inline bool
gpusort_uuid_encode(void *state, Datum value, GpuSortBits *bits)
{
	const char *data = (const char *) DatumGetUUIDP(value)->data;

	bits->high = gpusort_load_bytes(data, 8);
	bits->low = gpusort_load_bytes(data + 8, 8);
	return true;
}

/*
 * Encodes an interval: the microseconds that its comparator counts, as
 * interval_cmp_value has it, made unsigned.  The widest, of INT32_MAX months and days
 * and INT64_MAX microseconds, count less than 2^73, with either sign; so
 * GPUSORT_INTERVAL_BITS bits hold all.  Always true: exact.
 */
static inline bool
gpusort_interval_encode(void *state, Datum value, GpuSortBits *bits)
{
	const Interval *interval = DatumGetIntervalP(value);
	int64 days = interval->month * INT64CONST(30) + interval->day;
	uint128 count = (uint128) ((int128) days * USECS_PER_DAY + interval->time) +
		((uint128) 1 << (GPUSORT_INTERVAL_BITS - 1));

	bits->high = (uint64) (count >> 64);
	bits->low = (uint64) count;
	return true;
}

/*
 * Encodes a timetz: the time in UTC, then the zone, as timetz_cmp_internal compares
 * them; a zone can be of any size.  Always true: exact.
 */
static inline bool
gpusort_timetz_encode(void *state, Datum value, GpuSortBits *bits)
{
	const TimeTzADT *time = DatumGetTimeTzADTP(value);
	uint64 utc = (uint64) (time->time + time->zone * USECS_PER_SEC) ^ UINT64CONST(0x8000000000000000);
	uint32 zone = (uint32) time->zone ^ 0x80000000;

	bits->high = utc >> 32;
	bits->low = utc << 32 | zone;
	return true;
}

#endif /* GPUSORT_INLINE_ENCODERS_H */
