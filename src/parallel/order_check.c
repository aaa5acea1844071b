/*-------------------------------------------------------------------------
 *
 * order_check.c
 *	  Verifies the order of a sort's rows in parts, by several processes.
 *
 * The process that has ordered and cut the rows divides them into parts and begins; every process verifies the parts
 * that it claims (claims.c); the one that began waits until all have been verified.  No row is emitted before, so that
 * there is a way back whatever is found.  A worker that comes late finds no part left.  What goes wrong in any process
 * is noted in the claims, and ends the work of all.
 *
 * A part is some neighbouring ranges.  Whoever verifies it reads the range after it, too, and compares that one's first
 * run with the part's last: so one process looks at every border, and no string need be handed from one to another.
 * Rows of a run are in one range.
 *
 *-------------------------------------------------------------------------
 */
#include "parallel/order_check.h"

#include "client/elapsed.h"
#include "server/jobs.h"
#include "sort/collation_check.h"
#include "sort/service_sort.h"

/* So many parts a process: one has more to do than another, and the last to end is waited for. */
#define PARTS_PER_PROCESS 4

/* Returns how many parts the rows have, when they have been divided. */
static uint32
parts_of(const GpuSortOrderedRows *rows)
{
	return rows->part_ranges == 0 ? 0 : (rows->ranges + rows->part_ranges - 1) / rows->part_ranges;
}

/* Returns the sort that one of the parts of all sorts belongs to; *part becomes its number there. */
static GpuSortParallelSort *
sort_of_part(const GpuSortSortSet *set, uint32 *part)
{
	int i = 0;

	for (;;)
	{
		uint32 parts = parts_of(gpusort_parallel_sort_rows(set->sorts[i]));

		if (*part < parts)
			return set->sorts[i];
		*part -= parts;
		i++;
		Assert(i < set->count);
	}
}

/*
 * Verifies the order of a part of a sort that this process has claimed, and that between it and the next one.  false,
 * with a reason, if rows are out of order, or lost; the reader is of no more use then.
 */
static bool
check_part(GpuSortParallelSort *own, uint32 part, GpuSortClaims *claims, GpuSortFailure *failure)
{
	GpuSortState *sort = gpusort_parallel_sort_sort(own);
	GpuSortServiceSort *service = &sort->service;
	GpuSortReader *reader = &service->reader;
	GpuSortOrderedRows *rows = gpusort_parallel_sort_rows(own);
	uint32 range = part * rows->part_ranges;
	uint32 next = Min(range + rows->part_ranges, rows->ranges);
	uint32 end = next;
	uint64 first = rows->first_rows[range];
	uint64 count = rows->first_rows[next] - first;
	uint64 pairs = 0;

	if (count > 0)
	{
		/* Ranges that were cut like another sort's may be empty. */
		while (end < rows->ranges && rows->first_rows[end] == rows->first_rows[next])
			end++;
		gpusort_service_sort_create_check(sort);
		gpusort_reader_init(reader, service->client, &rows->expected);
		if (!gpusort_reader_ask(reader, first, rows->first_rows[end], false, failure) ||
			!gpusort_reader_begin_range(reader, failure) ||
			!gpusort_collation_check_rows(service->check, reader, count, &pairs, failure) ||
			!gpusort_reader_skip_range(reader, failure))
			return false;
		gpusort_reader_init(reader, service->client, &rows->expected);
	}
	gpusort_claims_done_part(claims, &rows->pairs, pairs);
	return true;
}

/*
 * Verifies parts of the sorts, which this process may read, until there are none left; false, with a reason, if one is
 * out of order, or lost.
 */
bool
gpusort_order_check_follow(GpuSortSortSet *set, GpuSortClaims *claims, GpuSortFailure *failure)
{
	int claimed;

	while ((claimed = gpusort_claims_next_part(claims, GPUSORT_PARTS_VERIFY)) >= 0)
	{
		uint32 part = claimed;
		GpuSortParallelSort *own = sort_of_part(set, &part);

		if (!check_part(own, part, claims, failure))
			return false;
	}
	return true;
}

/* Divides the sorts that need a verification into parts for so many processes; returns the number of parts. */
static uint32
divide_all(GpuSortSortSet *set, int processes)
{
	const uint32 parts_wanted = (uint32) processes * PARTS_PER_PROCESS;
	uint32 parts = 0;

	for (int i = 0; i < set->count; i++)
	{
		GpuSortState *sort = gpusort_parallel_sort_sort(set->sorts[i]);
		GpuSortOrderedRows *rows = gpusort_parallel_sort_rows(set->sorts[i]);

		rows->part_ranges = 0;
		if (!sort->service.check_order)
			continue;
		gpusort_service_sort_show(sort, GPUSORT_PHASE_VERIFY, 0);
		rows->pairs = 0;
		rows->part_ranges = Max((rows->ranges + parts_wanted - 1) / parts_wanted, 1);
		parts += parts_of(rows);
	}
	return parts;
}

/*
 * Verifies the order of rows in the sorts that need it, with so many processes, in the one that has ordered
 * them; all rows must be there to be read.  false, with a reason, if they are out of order, or lost.
 */
bool
gpusort_order_check_lead(GpuSortSortSet *set, GpuSortClaims *claims, int processes, GpuSortFailure *failure)
{
	uint32 parts = divide_all(set, processes);
	instr_time start;

	if (parts == 0)
		return true;
	INSTR_TIME_SET_CURRENT(start);
	gpusort_claims_begin_parts(claims, GPUSORT_PARTS_VERIFY, parts);
	if (!gpusort_order_check_follow(set, claims, failure))
		return false;
	gpusort_claims_finish_parts(claims);
	for (int i = 0; i < set->count; i++)
	{
		GpuSortState *sort = gpusort_parallel_sort_sort(set->sorts[i]);

		if (sort->service.check_order)
			gpusort_service_sort_note_check(sort, gpusort_parallel_sort_rows(set->sorts[i])->pairs, gpusort_ms_since(start));
	}
	return true;
}
