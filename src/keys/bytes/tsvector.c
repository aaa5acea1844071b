/*-------------------------------------------------------------------------
 *
 * tsvector.c
 *	  tsvector as bytes that order as tsvector_cmp does.
 *
 * It compares sizes, those of the values uncompressed, then numbers of lexemes, then these in turn: one with positions
 * is before one without; then by their bytes; then of two with positions the one with more of them is first, and the
 * one whose first other position is later, and whose weight there is greater.  So a value is
 *
 *	  4 bytes	its size
 *	  4 bytes	the number of lexemes
 *
 * and then of each lexeme
 *
 *	  1 byte	0 with positions, 1 without
 *	  its bytes, of which none is zero, and a zero byte
 *	  2 bytes	of one with positions: their number, inverted
 *	  2 bytes	for each of these: the position and behind it the weight, inverted
 *
 *-------------------------------------------------------------------------
 */
#include "keys/encoders.h"

#include "keys/bytes/parts.h"
#include "tsearch/ts_type.h"

/* Adds the positions of a lexeme. */
static bool
put_positions(GpuSortByteWriter *to, TSVector vector, WordEntry *lexeme)
{
	const WordEntryPos *positions = POSDATAPTR(vector, lexeme);
	int count = POSDATALEN(vector, lexeme);
	bool room = gpusort_put_number(to, (uint16) ~count, 2);

	for (int i = 0; i < count && room; i++)
		room = gpusort_put_number(to, (uint16) ~(WEP_GETPOS(positions[i]) << 2 | WEP_GETWEIGHT(positions[i])), 2);
	return room;
}

/* A GpuSortBytesEncoder. */
int
gpusort_tsvector_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room, bool *whole)
{
	GpuSortByteWriter to = {.next = bytes, .end = bytes + room};
	GpuSortShortVarlena copy;
	TSVector vector = (TSVector) gpusort_flatten(value, &copy);
	WordEntry *lexemes = ARRPTR(vector);
	const char *strings = STRPTR(vector);
	bool goes_on = gpusort_put_number(&to, VARSIZE(vector), 4) && gpusort_put_number(&to, vector->size, 4);

	for (int i = 0; i < vector->size && goes_on; i++)
	{
		WordEntry *lexeme = &lexemes[i];

		goes_on = gpusort_put_number(&to, lexeme->haspos ? 0 : 1, 1) &&
			gpusort_put_data(&to, strings + lexeme->pos, lexeme->len) && gpusort_put_number(&to, 0, 1) &&
			(!lexeme->haspos || put_positions(&to, vector, lexeme));
	}
	*whole = goes_on;
	return to.next - bytes;
}
