/*-------------------------------------------------------------------------
 *
 * string_keys.c
 *	  The bytes of strings that keys are made of.
 *
 * Toasted values are fetched no further than needed, into the keys' scratch context,
 * which is reset when the bytes have been used.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/bytes/string_keys.h"

#include "access/detoast.h"
#include "keys/encoders.h"
#include "keys/bytes/libc_walk.h"
#include "utils/memutils.h"

/* So many bytes of a string under a libc collation are fetched first: characters have one to three bytes of weights. */
#define LIBC_BEGINNING_BYTES(room) (2 * (room) + 32)

/* The first bytes of a toasted value, wanted of them if it has so many, in keys->scratch. */
pg_noinline struct varlena *
gpusort_fetch_first(const GpuSortKeys *keys, struct varlena *value, int wanted)
{
	MemoryContext caller = MemoryContextSwitchTo(keys->scratch);
	int length = toast_raw_datum_size(PointerGetDatum(value)) - VARHDRSZ;
	struct varlena *first = detoast_attr_slice(value, 0, Min(length, wanted));

	MemoryContextSwitchTo(caller);
	return first;
}

/* A toasted value, whole, in keys->scratch. */
pg_noinline struct varlena *
gpusort_fetch_whole(const GpuSortKeys *keys, struct varlena *value)
{
	MemoryContext caller = MemoryContextSwitchTo(keys->scratch);
	struct varlena *plain = detoast_attr(value);

	MemoryContextSwitchTo(caller);
	return plain;
}

/*
 * The first bytes of a string under an ICU collation, as gpusort_icu_bytes has
 * them.  How much of it its sort key needs is not known, so it is fetched whole.
 */
static int
icu_string(const GpuSortKeys *keys, const GpuSortColumn *column, Datum value, char *bytes, int room, bool *whole)
{
	GpuSortStringBytes string = gpusort_find_bytes(keys, column->type->string, value, room, true);
	int length = gpusort_icu_bytes(column->state, string.data, string.length, bytes, room, whole);

	if (string.fetched)
		MemoryContextReset(keys->scratch);
	return length;
}

/* The same under a libc collation, of the beginning of a toasted string; -1 if that does not tell. */
static int
libc_beginning(const GpuSortKeys *keys, const GpuSortColumn *column, struct varlena *value, char *bytes, int room)
{
	const struct varlena *first = gpusort_fetch_first(keys, value, LIBC_BEGINNING_BYTES(room));
	int length = VARSIZE_ANY_EXHDR(first);
	bool goes_on = length < toast_raw_datum_size(PointerGetDatum(value)) - VARHDRSZ;

	length = gpusort_libc_bytes(column->state, VARDATA_ANY(first), length, goes_on, bytes, room);
	MemoryContextReset(keys->scratch);
	return length;
}

/* The first bytes of a string under a libc collation, as gpusort_libc_bytes has them. */
static int
libc_string(const GpuSortKeys *keys, const GpuSortColumn *column, Datum value, char *bytes, int room)
{
	GpuSortStringBytes string;
	int length = -1;

	if (column->type->string == GPUSORT_STRING_BYTES && !gpusort_is_plain((struct varlena *) DatumGetPointer(value)))
		length = libc_beginning(keys, column, (struct varlena *) DatumGetPointer(value), bytes, room);
	if (length >= 0)
		return length;
	string = gpusort_find_bytes(keys, column->type->string, value, room, true);
	length = gpusort_libc_bytes(column->state, string.data, string.length, false, bytes, room);
	if (string.fetched)
		MemoryContextReset(keys->scratch);
	return length;
}

/*
 * The first bytes of a string under a collation that does not order by bytes; *whole says whether that is all
 * of them, and equal ones mean equal strings.
 */
pg_noinline int
gpusort_collated_string(const GpuSortKeys *keys, const GpuSortColumn *column, Datum value, char *bytes, int room,
						bool *whole)
{
	if (column->type->source == GPUSORT_SOURCE_ICU)
		return icu_string(keys, column, value, bytes, room, whole);
	*whole = false;
	return libc_string(keys, column, value, bytes, room);
}

/* Writes the first bytes, room at most, of a string of this column to bytes.  Returns how many there are.  Errors: those of detoasting. */
int
gpusort_keys_own_string(const GpuSortKeys *keys, const GpuSortColumn *column, Datum value, char *bytes, int room)
{
	GpuSortStringBytes string = gpusort_find_bytes(keys, column->type->string, value, room, false);
	int length = Min(string.length, room);

	memcpy(bytes, string.data, length);
	if (string.fetched)
		MemoryContextReset(keys->scratch);
	return length;
}

/*
 * Writes the first bytes, room at most, of a string of this column, of what its key is
 * made of, to bytes, which has room for GPUSORT_STRING_SLACK more.  Returns how many
 * there are.  Errors: those of detoasting, of ICU and of gpusort_libc_bytes.
 */
int
gpusort_keys_string(const GpuSortKeys *keys, const GpuSortColumn *column, Datum value, char *bytes, int room)
{
	bool whole;

	StaticAssertStmt(GPUSORT_STRING_SLACK >= GPUSORT_ICU_SLACK && GPUSORT_STRING_SLACK >= GPUSORT_LIBC_SLACK,
					 "the bytes of collated strings have room");
	if (column->type->source != GPUSORT_SOURCE_STRING)
		return gpusort_collated_string(keys, column, value, bytes, room, &whole);
	return gpusort_keys_own_string(keys, column, value, bytes, room);
}

/*
 * The difference of a string that does not begin with the column's common prefix, as
 * encode.c has it; *differs_at is the first byte that differs.
 */
pg_noinline int
gpusort_find_difference(const GpuSortColumn *column, const char *data, int length, int *differs_at)
{
	int common = Min(length, column->common_length);
	int at = 0;

	while (at < common && data[at] == column->common_prefix[at])
		at++;
	*differs_at = at;
	if (at < length && (unsigned char) data[at] > (unsigned char) column->common_prefix[at])
		return 2 * column->common_length - at;
	return at;
}
