/*-------------------------------------------------------------------------
 *
 * string_keys.c
 *	  The bytes of strings that keys are made of.
 *
 * Toasted values are fetched no further than needed, into the keys' scratch context,
 * which is reset when the bytes have been used or copied.
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

/* The first bytes of a toasted value, wanted of them if it has so many, in scratch. */
pg_noinline struct varlena *
gpusort_fetch_first(MemoryContext scratch, struct varlena *value, int wanted)
{
	MemoryContext caller = MemoryContextSwitchTo(scratch);
	int length = toast_raw_datum_size(PointerGetDatum(value)) - VARHDRSZ;
	struct varlena *first = detoast_attr_slice(value, 0, Min(length, wanted));

	MemoryContextSwitchTo(caller);
	return first;
}

/* A toasted value, whole, in scratch. */
pg_noinline struct varlena *
gpusort_fetch_whole(MemoryContext scratch, struct varlena *value)
{
	MemoryContext caller = MemoryContextSwitchTo(scratch);
	struct varlena *plain = detoast_attr(value);

	MemoryContextSwitchTo(caller);
	return plain;
}

/*
 * A GpuSortBytesEncoder of strings that order by their own bytes;
 * those of bit strings are never whole, as they lack the length in bits.
 */
int
gpusort_own_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room, bool *whole)
{
	GpuSortStringBytes string = gpusort_find_bytes(CurrentMemoryContext, type->string, value, room + 1, false);
	int length = Min(string.length, room);

	memcpy(bytes, string.data, length);
	*whole = string.length <= room && type->string != GPUSORT_STRING_BITS;
	return length;
}

/*
 * A GpuSortBytesEncoder of strings under an ICU collation, as gpusort_icu_bytes has them.  How much of one its sort
 * key needs is not known, so it is fetched whole.
 */
int
gpusort_icu_string_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room, bool *whole)
{
	GpuSortStringBytes string = gpusort_find_bytes(CurrentMemoryContext, type->string, value, room, true);

	StaticAssertStmt(GPUSORT_STRING_SLACK >= GPUSORT_ICU_SLACK, "the bytes of strings have room");
	return gpusort_icu_bytes(state, string.data, string.length, bytes, room, whole);
}

/* The bytes of the beginning of a toasted string under a libc collation; -1 if that does not tell. */
static int
libc_beginning(void *state, struct varlena *value, char *bytes, int room)
{
	const struct varlena *first = gpusort_fetch_first(CurrentMemoryContext, value, LIBC_BEGINNING_BYTES(room));
	int length = VARSIZE_ANY_EXHDR(first);
	bool goes_on = length < toast_raw_datum_size(PointerGetDatum(value)) - VARHDRSZ;

	return gpusort_libc_bytes(state, VARDATA_ANY(first), length, goes_on, bytes, room);
}

/* A GpuSortBytesEncoder of strings under a libc collation, as gpusort_libc_bytes has them: never whole. */
int
gpusort_libc_string_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room, bool *whole)
{
	struct varlena *stored = (struct varlena *) DatumGetPointer(value);
	GpuSortStringBytes string;
	int length = -1;

	StaticAssertStmt(GPUSORT_STRING_SLACK >= GPUSORT_LIBC_SLACK, "the bytes of strings have room");
	*whole = false;
	if (type->string == GPUSORT_STRING_BYTES && !gpusort_is_plain(stored))
		length = libc_beginning(state, stored, bytes, room);
	if (length >= 0)
		return length;
	string = gpusort_find_bytes(CurrentMemoryContext, type->string, value, room, true);
	return gpusort_libc_bytes(state, string.data, string.length, false, bytes, room);
}

/*
 * Writes the first bytes, room at most, of a string of this column to bytes.
 * Returns how many there are.  Errors: those of detoasting.
 */
int
gpusort_keys_own_string(const GpuSortKeys *keys, const GpuSortColumn *column, Datum value, char *bytes, int room)
{
	GpuSortStringBytes string = gpusort_find_bytes(keys->scratch, column->type->string, value, room, false);
	int length = Min(string.length, room);

	memcpy(bytes, string.data, length);
	if (string.fetched)
		MemoryContextReset(keys->scratch);
	return length;
}

/*
 * Writes the first bytes, room at most, that the key of a value of this column is made of to bytes, as its
 * GpuSortBytesEncoder does.  Errors: those of detoasting and of the encoder.
 */
int
gpusort_keys_string(const GpuSortKeys *keys, const GpuSortColumn *column, Datum value, char *bytes, int room,
					bool *whole)
{
	MemoryContext caller = MemoryContextSwitchTo(keys->scratch);
	int length = column->type->bytes(column->type, column->state, value, bytes, room, whole);

	MemoryContextSwitchTo(caller);
	MemoryContextReset(keys->scratch);
	return length;
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
