/*-------------------------------------------------------------------------
 *
 * order_check.c
 *	  Verifies the order of a sort's rows in parts, by several processes.
 *
 * A part is some neighbouring ranges of a shared sort.  Whoever verifies
 * it reads it with the range after it, of which the first run is compared
 * with the last one of the part: so every border is looked at by one process,
 * and no string need be handed from one to another.  Rows of a run are in one range.
 *
 * Where nothing but this cuts the rows ranges are small, so that little is read in vain.
 *
 *-------------------------------------------------------------------------
 */
#include "parallel/order_check.h"

/* So many parts a process: one has more to do than another, and the last to end is waited for. */
#define PARTS_PER_PROCESS 4

/* So many ranges a part, where there is a choice, of which none has fewer rows. */
#define RANGES_PER_PART 8
#define RANGE_ROWS_MIN  500

/*
 * Cuts the rows of a shared sort, all of which rows->expected describes, for nothing but to be verified by so many
 * processes; false, with a reason, if they are lost.
 */
bool
gpusort_order_cut(GpuSortClient *client, GpuSortOrderedRows *rows, int processes, GpuSortFailure *failure)
{
	uint64 most = Min((uint64) processes * PARTS_PER_PROCESS * RANGES_PER_PART, rows->expected.rows / RANGE_ROWS_MIN);

	rows->expected.range_bits = 64 * rows->expected.key_words;
	if (!gpusort_client_cut(client, rows->expected.range_bits, Max(Min(most, GPUSORT_RANGES_MAX), 1), 0,
							rows->first_rows, &rows->ranges, failure))
		return false;
	rows->first_rows[rows->ranges] = rows->expected.rows;
	return true;
}

/* Divides rows that have been cut into parts, for so many processes; returns how many. */
uint32
gpusort_order_parts(GpuSortOrderedRows *rows, int processes)
{
	uint32 parts = (uint32) processes * PARTS_PER_PROCESS;

	rows->pairs = 0;
	rows->part_ranges = Max((rows->ranges + parts - 1) / parts, 1);
	return gpusort_order_parts_of(rows);
}

/*
 * Verifies the order of a part, and that between it and the next one; client may read the sort, and has been asked for
 * nothing.  Adds to *pairs how many pairs of neighbours have been compared.  false, with a reason, if they
 * are out of order, or lost.  The reader is of no more use then.
 */
bool
gpusort_order_check_part(GpuSortCollationCheck *check, GpuSortReader *reader, GpuSortClient *client,
						 const GpuSortOrderedRows *rows, uint32 part, uint64 *pairs, GpuSortFailure *failure)
{
	uint32 range = part * rows->part_ranges;
	uint32 next = Min(range + rows->part_ranges, rows->ranges);
	uint32 end = next;
	uint64 first = rows->first_rows[range];
	uint64 count = rows->first_rows[next] - first;

	if (count == 0)
		return true;
	/* Ranges that were cut like another sort's may be empty. */
	while (end < rows->ranges && rows->first_rows[end] == rows->first_rows[next])
		end++;
	gpusort_reader_init(reader, client, &rows->expected);
	return gpusort_reader_ask(reader, first, rows->first_rows[end], false, failure) &&
		gpusort_reader_begin_range(reader, failure) &&
		gpusort_collation_check_rows(check, reader, count, pairs, failure) && gpusort_reader_skip_range(reader, failure);
}

/*
 * Verifies one part of a sort after another, as this process claims them;
 * false, with a reason, if one is bad, or lost.
 */
bool
gpusort_order_check_parts(const GpuSortOrderReader *own, GpuSortOrderedRows *rows, GpuSortClaims *claims,
						  GpuSortFailure *failure)
{
	int part;

	while ((part = gpusort_claims_next_part(claims, GPUSORT_PARTS_VERIFY)) >= 0)
	{
		uint64 pairs = 0;

		if (!gpusort_order_check_part(own->check, own->reader, own->client, rows, part, &pairs, failure))
			return false;
		gpusort_claims_done_part(claims, &rows->pairs, pairs);
	}
	return true;
}
