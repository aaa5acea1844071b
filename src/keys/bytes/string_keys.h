/*-------------------------------------------------------------------------
 *
 * string_keys.h
 *	  Puts strings into keys; for this folder alone.
 *
 * Functions that write are inline, so that the key stays in registers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STRING_KEYS_H
#define GPUSORT_STRING_KEYS_H

#include "compat.h"

#include "keys/bit_writer.h"
#include "keys/keys.h"
#include "utils/builtins.h"
#include "utils/varbit.h"

#define GPUSORT_BIT_HEADER_BYTES ((int) VARBITHDRSZ) /* the length of a bit string, before its bytes */

/* A string's bytes. */
typedef struct GpuSortStringBytes
{
	const char *data;
	int length;
	bool fetched; /* they are in the scratch context */
} GpuSortStringBytes;

extern struct varlena *gpusort_fetch_first(MemoryContext scratch, struct varlena *value, int wanted);
extern struct varlena *gpusort_fetch_whole(MemoryContext scratch, struct varlena *value);
extern int gpusort_find_difference(const GpuSortColumn *column, const char *data, int length, int *differs_at);

/* Returns true if this datum is neither compressed nor kept elsewhere. */
static inline bool
gpusort_is_plain(const struct varlena *value)
{
	return VARATT_IS_4B_U(value) || (VARATT_IS_1B(value) && !VARATT_IS_1B_E(value));
}

/*
 * Finds the bytes of a string, whatever its form: all of them; of a toasted one, which is fetched into scratch, no
 * more than the first wanted, if it is not wanted whole.
 */
static pg_attribute_always_inline GpuSortStringBytes
gpusort_find_bytes(MemoryContext scratch, GpuSortStringForm form, Datum value, int wanted, bool whole)
{
	struct varlena *stored = (struct varlena *) DatumGetPointer(value);
	struct varlena *plain = stored;
	GpuSortStringBytes bytes = {0};

	if (form == GPUSORT_STRING_NAME)
	{
		bytes.data = NameStr(*DatumGetName(value));
		bytes.length = strnlen(bytes.data, NAMEDATALEN);
		return bytes;
	}
	if (!gpusort_is_plain(stored))
	{
		/* Blanks at the end of a padded one are found in the whole only. */
		if (whole || form == GPUSORT_STRING_PADDED)
			plain = gpusort_fetch_whole(scratch, stored);
		else
			plain = gpusort_fetch_first(scratch, stored, wanted + GPUSORT_BIT_HEADER_BYTES);
		bytes.fetched = true;
	}
	bytes.data = VARDATA_ANY(plain);
	bytes.length = VARSIZE_ANY_EXHDR(plain);
	if (form == GPUSORT_STRING_PADDED)
		bytes.length = bpchartruelen(unconstify(char *, bytes.data), bytes.length);
	else if (form == GPUSORT_STRING_BITS)
	{
		bytes.data += GPUSORT_BIT_HEADER_BYTES;
		bytes.length -= GPUSORT_BIT_HEADER_BYTES;
	}
	return bytes;
}

/* How many bytes of a string are enough for its key: when there are as many, others do not matter. */
static inline int
gpusort_wanted_bytes(const GpuSortColumn *column)
{
	return column->common_length + column->prefix_length + 1;
}

/* Returns true if the first count bytes are the same. */
static inline bool
gpusort_same_bytes(const char *a, const char *b, int count)
{
	uint64 left;
	uint64 right;
	int i = 0;

	if (count < 8)
		return memcmp(a, b, count) == 0;
	for (; i < count - 8; i += 8)
	{
		memcpy(&left, a + i, 8);
		memcpy(&right, b + i, 8);
		if (left != right)
			return false;
	}
	memcpy(&left, a + count - 8, 8);
	memcpy(&right, b + count - 8, 8);
	return left == right;
}

/* Adds the first bytes of a string, prefix_length of them, and then size: see encode.c. */
static pg_attribute_always_inline void
gpusort_put_prefix(GpuSortBitWriter *key, const GpuSortColumn *column, const char *data, int length, uint64 size)
{
	uint64 flip = column->descending ? PG_UINT64_MAX : 0;
	int tail_bytes = column->prefix_length % 8;
	int tail_bits = 8 * tail_bytes + column->size_bits;
	uint64 tail = 0;

	for (int i = column->prefix_length / 8; i > 0; i--)
	{
		gpusort_put_bits(key, 64, gpusort_load_bytes(data, length) ^ flip);
		data += 8;
		length -= 8;
	}
	if (tail_bytes > 0)
		tail = gpusort_load_bytes(data, length) >> (64 - 8 * tail_bytes);
	tail = tail << column->size_bits | size;
	gpusort_put_bits(key, tail_bits, (tail ^ flip) & gpusort_low_mask(tail_bits));
}

/*
 * Adds a string, of which data has length bytes: all if it is whole, else as many as
 * gpusort_wanted_bytes says, or those that come before zeros only.  Returns false if
 * the key does not hold it whole.
 */
static pg_attribute_always_inline bool
gpusort_put_string(GpuSortBitWriter *key, const GpuSortColumn *column, const char *data, int length, bool whole)
{
	int prefix_length = column->prefix_length;

	if (column->difference_bits > 0)
	{
		int difference = column->common_length;
		int differs_at = difference;

		if (unlikely(length < difference || !gpusort_same_bytes(data, column->common_prefix, difference)))
			difference = gpusort_find_difference(column, data, length, &differs_at);
		gpusort_put_bits(key, column->difference_bits,
						 column->descending ? difference ^ gpusort_low_mask(column->difference_bits) : difference);
		data += differs_at;
		length -= differs_at;
	}
	gpusort_put_prefix(key, column, data, length, whole ? Min(length, prefix_length + 1) : prefix_length + 1);
	return whole && length <= prefix_length;
}

#endif /* GPUSORT_STRING_KEYS_H */
