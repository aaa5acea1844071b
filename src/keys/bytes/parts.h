/*-------------------------------------------------------------------------
 *
 * parts.h
 *	  Values that are made of others, as bytes: of these others' encodings, one after the other; for src/keys alone.
 *
 * A part is delimited: its bytes tell where they end, so that none of two different parts' begins with
 * the other's, and what follows a part decides only between values that have the same one.
 *
 *	  of a fixed number of bits		as many bytes, the highest first, as these take
 *	  numeric						see numeric_parts.c: the whole number
 *	  strings						their bytes and a zero byte, which they have none of; of bytea and
 *									bit strings, that may, a zero byte is 0 1, and the end 0 0.  Then
 *									of a bit string how many bits its last byte has
 *	  what is made of parts			as array.c, range.c, record.c, jsonb.c, tsvector.c and tsquery.c have it
 *
 * Bytes end, as those of a value that is not in the key whole, where there is no more room, and behind a part
 * whose bytes do not tell all of it: of a string under a collation of the C library, say.  Where that is follows from
 * the bytes up to there.  So values that have the same bytes up to the end of one of them either are equal, or both
 * end there and are left to the comparator.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARTS_H
#define GPUSORT_PARTS_H

#include "compat.h"

#include "keys/fixed/numbers.h"
#include "keys/types.h"
#include "port/pg_bswap.h"

/* Bytes being written; GPUSORT_STRING_SLACK behind the end may be, too. */
typedef struct GpuSortByteWriter
{
	char *next;
	char *end; /* end of the room */
} GpuSortByteWriter;

/* How the values of a part are encoded. */
typedef struct GpuSortPart
{
	GpuSortEncoding encoding;   /* NONE if they have no encoding */
	int fixed_bytes;            /* bytes of numbers of up to 64 bits; 0 for other values */
	const GpuSortKeyType *type; /* the encoding's row */
	void *state;
} GpuSortPart;

/* A varlena that was short, with a header of four bytes, aligned. */
typedef union GpuSortShortVarlena
{
	char data[VARATT_SHORT_MAX + VARHDRSZ];
	int64 align;
} GpuSortShortVarlena;

extern void gpusort_part_init(GpuSortPart *part, const GpuSortOrder *order);
extern bool gpusort_part_put_other(GpuSortByteWriter *to, const GpuSortPart *part, Datum value);
extern bool gpusort_part_put_string(GpuSortByteWriter *to, const GpuSortPart *part, const char *data, int length);
extern GpuSortOrder *gpusort_default_order(Oid type, Oid collation);
extern struct varlena *gpusort_flatten(Datum value, GpuSortShortVarlena *copy);

/* numeric_parts.c */
extern bool gpusort_numeric_put(GpuSortByteWriter *to, const struct varlena *numeric);

/*
 * Adds the lowest count (1 to 8) bytes of a number, which has no others.  Returns false if there was no room for all.
 */
static inline bool
gpusort_put_number(GpuSortByteWriter *to, uint64 value, int count)
{
	uint64 bytes = pg_hton64(value << (64 - 8 * count));

	StaticAssertStmt(GPUSORT_STRING_SLACK >= sizeof(bytes), "a number is written as a whole");
	memcpy(to->next, &bytes, sizeof(bytes));
	to->next += count;
	if (likely(to->next <= to->end))
		return true;
	to->next = to->end;
	return false;
}

/* Adds bytes.  Returns false if there was no room for all. */
static inline bool
gpusort_put_data(GpuSortByteWriter *to, const char *data, int count)
{
	int room = to->end - to->next;

	memcpy(to->next, data, Min(count, room));
	to->next += Min(count, room);
	return count <= room;
}

/*
 * Adds a part that is not NULL.  Returns false if nothing may follow:
 * there was no room, or its bytes do not tell all of it.
 */
static inline bool
gpusort_part_put(GpuSortByteWriter *to, const GpuSortPart *part, Datum value)
{
	if (part->fixed_bytes > 0)
		return gpusort_put_number(to, gpusort_fixed_value(part->encoding, value), part->fixed_bytes);
	return gpusort_part_put_other(to, part, value);
}

#endif /* GPUSORT_PARTS_H */
