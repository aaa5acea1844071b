/*-------------------------------------------------------------------------
 *
 * index_rows.h
 *	  Index tuples: the kind of row that a btree is built of.
 *
 * A row is an IndexTuple behind a header of eight bytes, in a chunk and as a source gives it:
 *
 *	  | length, uint32 | flags, uint8 | unused | dead, uint8 | unused | IndexTuple |
 *
 * dead says of a tuple that no other is its duplicate, since its heap row is dead to all but old snapshots.  Values of
 * a row are those of the index's attributes, and behind them its TID, as one attribute more: where that is the last
 * column to sort by, rows have the order of a btree.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_ROWS_H
#define GPUSORT_INDEX_ROWS_H

#include "compat.h"

#include "access/itup.h"
#include "sort/row_kind.h"
#include "utils/relcache.h"

extern const GpuSortRowKind gpusort_index_rows;

typedef struct GpuSortIndexRows
{
	GpuSortRows rows; /* must be first field */
	Relation heap;
	Relation index;
	TupleDesc desc; /* of the index */

	/* of the row that was opened last, desc->natts + 1 of them */
	Datum *values;
	bool *nulls;

	char *sorted; /* the row in memory that PostgreSQL's sort returned last, or NULL */
	Size sorted_capacity;
} GpuSortIndexRows;

#define GPUSORT_INDEX_ROW_HEADER sizeof(uint64)
#define GPUSORT_INDEX_ROW_DEAD   6

extern GpuSortIndexRows *gpusort_index_rows_create(Relation heap, Relation index);
extern char *gpusort_index_row_form(const GpuSortIndexRows *index, const Datum *values, const bool *nulls,
									const ItemPointerData *tid, bool dead, MemoryContext context);
extern void gpusort_index_row_open(const GpuSortIndexRows *index, char *row, Datum *values, bool *nulls);

/* Returns the tuple of a row in memory; it lies in that.  Errors: it is no such row. */
static inline IndexTuple
gpusort_index_row_tuple(char *row)
{
	IndexTuple tuple = (IndexTuple) (row + GPUSORT_INDEX_ROW_HEADER);

	if (unlikely(IndexTupleSize(tuple) + GPUSORT_INDEX_ROW_HEADER != gpusort_row_length(row)))
		gpusort_row_report_damaged();
	return tuple;
}

/* Returns true if a row's tuple is dead, and so never a duplicate in a unique index. */
static inline bool
gpusort_index_row_is_dead(const char *row)
{
	return row[GPUSORT_INDEX_ROW_DEAD] != 0;
}

#endif /* GPUSORT_INDEX_ROWS_H */
