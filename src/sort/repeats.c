/*-------------------------------------------------------------------------
 *
 * repeats.c
 *	  The keys of rows that were put of late, by which rows that are equal to one of them are dropped.
 *
 * Where one row of each group is wanted, and all columns that are sorted by tell groups apart, a row is not wanted once
 * one of an equal key that holds its values whole was put: it is dropped before it is formed and copied.  The keys have
 * places by their hashes in a table that fits the processor's cache, from which newer ones drive older ones out.  So
 * no repeat is dropped for certain, and most are where there are few groups or equal rows are near each other.  It
 * gives up where it drops too few.
 *
 * Legal order of calls: create; then for each row drops and, if the row was put, took, until useless is set.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/repeats.h"

#include "port/pg_bitutils.h"

/* The table fits the second cache of a core, beside the rows. */
#define TABLE_BYTES 65536

/* Makes an empty table for keys of so many words, in the current memory context. */
GpuSortRepeats *
gpusort_repeats_create(uint32 words)
{
	const uint32 place_bytes = (1 + words) * sizeof(uint64);
	const int place_bits = pg_leftmost_one_pos32(TABLE_BYTES / place_bytes);
	GpuSortRepeats *repeats = palloc0(sizeof(GpuSortRepeats));

	repeats->words = words;
	repeats->shift = 64 - place_bits;
	repeats->places = palloc0(((Size) 1 << place_bits) * place_bytes);
	return repeats;
}
