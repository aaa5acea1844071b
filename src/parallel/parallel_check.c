/*-------------------------------------------------------------------------
 *
 * parallel_check.c
 *	  Has the order of shared sorts' rows verified by all of their processes.
 *
 * The process that has had the rows sorted and cut divides them into parts (order_check.c) and
 * begins; every process verifies the parts that it claims (claims.c); the one that began waits
 * until all have been verified.  No row is emitted before, so that there is a way back
 * whatever is found.  A worker that comes late finds no part left.
 *
 * What goes wrong in any process is noted in the claims, and ends the work of all.
 *
 *-------------------------------------------------------------------------
 */
#include "parallel/parallel_check.h"

#include "client/elapsed.h"
#include "server/jobs.h"
#include "sort/service_sort.h"
#include "parallel/parallel_sort.h"

/* Returns the sort that a part of all sorts' is of, and makes *part its number there. */
static GpuSortParallelSort *
sort_of_part(const GpuSortSortSet *set, uint32 *part)
{
	int i = 0;

	for (;;)
	{
		uint32 parts = gpusort_order_parts_of(gpusort_parallel_sort_rows(set->sorts[i]));

		if (*part < parts)
			return set->sorts[i];
		*part -= parts;
		i++;
		Assert(i < set->count);
	}
}

/* Verifies one part of a sort, which belongs to this process. */
static bool
check_part(GpuSortParallelSort *own, uint32 part, GpuSortClaims *claims, GpuSortFailure *failure)
{
	GpuSortState *sort = gpusort_parallel_sort_sort(own);
	GpuSortServiceSort *service = &sort->service;
	GpuSortOrderedRows *rows = gpusort_parallel_sort_rows(own);
	uint64 pairs = 0;

	gpusort_service_sort_create_check(sort);
	if (!gpusort_order_check_part(service->check, &service->reader, service->client, rows, part, &pairs, failure))
		return false;
	gpusort_claims_done_part(claims, &rows->pairs, pairs);
	gpusort_reader_init(&service->reader, service->client, &rows->expected);
	return true;
}

/*
 * Verifies parts of sorts that this process may read, until there are none left; false,
 * with a reason, if one is out of order, or lost.
 */
bool
gpusort_parallel_check_follow(GpuSortSortSet *set, GpuSortClaims *claims, GpuSortFailure *failure)
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

/* Divides the sorts whose order is to be verified into parts for so many processes; returns how many there are. */
static uint32
divide(GpuSortSortSet *set, int processes)
{
	uint32 parts = 0;

	for (int i = 0; i < set->count; i++)
	{
		GpuSortState *sort = gpusort_parallel_sort_sort(set->sorts[i]);
		GpuSortOrderedRows *rows = gpusort_parallel_sort_rows(set->sorts[i]);

		rows->part_ranges = 0;
		if (!sort->service.check_order)
			continue;
		gpusort_service_sort_show(sort, GPUSORT_PHASE_VERIFY, 0);
		parts += gpusort_order_parts(rows, processes);
	}
	return parts;
}

/*
 * Has so many processes verify the order of the sorts' rows where that is to be done, in the one that has had them
 * sorted; all must be there to be read.  false, with a reason, if they are out of order, or lost.
 */
bool
gpusort_parallel_check_lead(GpuSortSortSet *set, GpuSortClaims *claims, int processes, GpuSortFailure *failure)
{
	uint32 parts = divide(set, processes);
	instr_time start;

	if (parts == 0)
		return true;
	INSTR_TIME_SET_CURRENT(start);
	gpusort_claims_begin_parts(claims, GPUSORT_PARTS_VERIFY, parts);
	if (!gpusort_parallel_check_follow(set, claims, failure))
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
