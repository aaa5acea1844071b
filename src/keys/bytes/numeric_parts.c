/*-------------------------------------------------------------------------
 *
 * numeric_parts.c
 *	  Numerics that are parts of other values, as bytes: whole, of any number of digits.
 *
 *	  1 byte	class, as numeric_digits.h has them in order
 *	  2 bytes	weight + 32768, of negative and positive ones only
 *	  2 bytes	for each digit: twice the digit, and one more if there is another one behind it
 *
 * with all but the class inverted for negative ones.  A number without more digits is nearer to zero than one that
 * goes on.  The last digit is not zero, so equal values have the same bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/encoders.h"

#include "keys/bytes/parts.h"
#include "keys/bytes/string_keys.h"
#include "keys/fixed/numeric_digits.h"

/* Adds a numeric, of which nothing is toasted.  Returns false if there was no room for all of it. */
bool
gpusort_numeric_put(GpuSortByteWriter *to, const struct varlena *numeric)
{
	GpuSortNumericDigits read = gpusort_numeric_read(numeric);
	uint16 flip = read.class == GPUSORT_NUMERIC_NEGATIVE ? PG_UINT16_MAX : 0;
	bool room = gpusort_put_number(to, read.class, 1);

	if (read.class != GPUSORT_NUMERIC_NEGATIVE && read.class != GPUSORT_NUMERIC_POSITIVE)
		return room;
	room = gpusort_put_number(to, (uint16) (read.weight + 32768) ^ flip, 2);
	for (int i = 0; i < read.count && room; i++)
	{
		uint16 digit = gpusort_numeric_digit(&read, i) << 1 | (i + 1 < read.count);

		room = gpusort_put_number(to, digit ^ flip, 2);
	}
	return room;
}

/* A GpuSortBytesEncoder. */
int
gpusort_numeric_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room, bool *whole)
{
	GpuSortByteWriter to = {.next = bytes, .end = bytes + room};
	struct varlena *numeric = (struct varlena *) DatumGetPointer(value);

	if (!gpusort_is_plain(numeric))
		numeric = gpusort_fetch_whole(CurrentMemoryContext, numeric);
	*whole = gpusort_numeric_put(&to, numeric);
	return to.next - bytes;
}
