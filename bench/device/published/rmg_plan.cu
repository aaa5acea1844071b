/*-------------------------------------------------------------------------
 *
 * rmg_plan.cu
 *	  What the host decides in RMG sort, from histograms that all devices send it; rmg_sort.cu
 *	  tells the steps, and does what devices do.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "published/rmg_plan.h"

#define DIGITS       GPUSORT_RMG_RADIX
#define SEGMENTS_MAX 128 /* sorted one by one */
#define SMALL_PARTS  100 /* of a chunk */

int
gpusort_rmg_pass_limit(const GpuSortMultiContext *context)
{
	return 8 * context->devices.key_bytes / GPUSORT_RMG_BITS;
}

/* All keys are one bucket. */
void
gpusort_rmg_begin_buckets(GpuSortMultiContext *context)
{
	context->buckets[0][0] = GpuSortRmgBucket{0, 0, 0, context->rows, -1};
	context->bucket_count = 1;
	for (int d = 0; d < context->devices.count; d++)
	{
		uint64_t first = gpusort_reference_min(context->chunk * (uint64_t) d, context->rows);

		context->pieces[0][d] = GpuSortRmgPiece{0, gpusort_reference_min(context->chunk, context->rows - first)};
	}
}

/* Sets the borders between devices; numbers the buckets that a border tears apart. */
void
gpusort_rmg_draw_borders(GpuSortMultiContext *context)
{
	const int count = context->devices.count;
	uint64_t at = 0;

	context->spanning_count = 0;
	context->borders[0] = 0;
	context->borders[count] = context->rows;
	for (int d = 1; d < count; d++)
	{
		uint64_t ideal = gpusort_reference_min(context->chunk * (uint64_t) d, context->rows);
		GpuSortRmgBucket *bucket;
		uint64_t before;
		uint64_t after;

		while (at + 1 < context->bucket_count && context->buckets[0][at + 1].begin <= ideal)
			at++;
		bucket = &context->buckets[0][at];
		before = ideal - bucket->begin;
		after = bucket->begin + bucket->count - ideal;
		context->borders[d] = ideal;
		if (before == 0 || after == 0 || bucket->passes == gpusort_rmg_pass_limit(context))
			continue;
		if (before <= context->slack || after <= context->slack)
			context->borders[d] = before <= after ? bucket->begin : bucket->begin + bucket->count;
		else if (bucket->spanning < 0)
			bucket->spanning = context->spanning_count++;
	}
}

/* Appends to the next list what a spanning bucket has become. */
static uint64_t
split_bucket(GpuSortMultiContext *context, const GpuSortRmgBucket *bucket, const GpuSortRmgPiece *pieces, uint64_t next)
{
	const uint64_t count = (uint64_t) context->devices.count;
	uint64_t offsets[GPUSORT_MULTI_REFERENCE_DEVICES];
	uint64_t begin = bucket->begin;

	for (uint64_t d = 0; d < count; d++)
		offsets[d] = pieces[d].offset;
	for (int digit = 0; digit < DIGITS; digit++)
	{
		GpuSortRmgBucket *part = &context->buckets[1][next];

		*part = GpuSortRmgBucket{bucket->prefix << GPUSORT_RMG_BITS | (uint64_t) digit, bucket->passes + 1, begin, 0,
								 -1};
		for (uint64_t d = 0; d < count; d++)
		{
			uint64_t keys = context->lanes[d].counted[bucket->spanning * DIGITS + digit];

			context->pieces[1][next * count + d] = GpuSortRmgPiece{offsets[d], keys};
			offsets[d] += keys;
			part->count += keys;
		}
		begin += part->count;
		if (part->count > 0)
			next++;
	}
	return next;
}

void
gpusort_rmg_split_buckets(GpuSortMultiContext *context)
{
	const uint64_t count = (uint64_t) context->devices.count;
	GpuSortRmgBucket *buckets = context->buckets[0];
	GpuSortRmgPiece *pieces = context->pieces[0];
	uint64_t next = 0;

	for (uint64_t b = 0; b < context->bucket_count; b++)
	{
		if (buckets[b].spanning >= 0)
			next = split_bucket(context, &buckets[b], &pieces[b * count], next);
		else
		{
			context->buckets[1][next] = buckets[b];
			memcpy(&context->pieces[1][next * count], &pieces[b * count], count * sizeof(GpuSortRmgPiece));
			next++;
		}
	}
	context->bucket_count = next;
	context->buckets[0] = context->buckets[1];
	context->buckets[1] = buckets;
	context->pieces[0] = context->pieces[1];
	context->pieces[1] = pieces;
}

/* A bucket's keys are ordered by the device they come from, where it matters: when it is torn apart. */
void
gpusort_rmg_plan_moves(GpuSortMultiContext *context)
{
	const int count = context->devices.count;

	context->move_count = 0;
	for (uint64_t b = 0; b < context->bucket_count; b++)
	{
		uint64_t at = context->buckets[0][b].begin;
		int to = 0;

		for (int from = 0; from < count; from++)
		{
			const GpuSortRmgPiece *piece = &context->pieces[0][b * (uint64_t) count + (uint64_t) from];
			uint64_t done = 0;

			while (done < piece->count)
			{
				GpuSortRmgMove *move = &context->moves[context->move_count++];

				while (context->borders[to + 1] <= at)
					to++;
				move->from = from;
				move->to = to;
				move->from_offset = piece->offset + done;
				move->to_offset = at - context->borders[to];
				move->count = gpusort_reference_min(piece->count - done, context->borders[to + 1] - at);
				done += move->count;
				at += move->count;
			}
		}
	}
}

/* Bits of a number without leading zeros. */
static int
bit_length(uint64_t number)
{
	int bits = 0;

	for (; number != 0; number >>= 1)
		bits++;
	return bits;
}

/* What device d has now, in segments to sort and to download. */
void
gpusort_rmg_plan_segments(GpuSortMultiContext *context, int d)
{
	const int key_bits = 8 * context->devices.key_bytes;
	const uint64_t begin = context->borders[d];
	const uint64_t end = context->borders[d + 1];
	const uint64_t small = context->chunk / SMALL_PARTS;
	GpuSortRmgLane *lane = &context->lanes[d];
	uint64_t segments = 0;

	for (uint64_t b = 0; b < context->bucket_count; b++)
	{
		const GpuSortRmgBucket *bucket = &context->buckets[0][b];
		uint64_t first = bucket->begin > begin ? bucket->begin : begin;
		uint64_t last = gpusort_reference_min(bucket->begin + bucket->count, end);
		int bits = key_bits - GPUSORT_RMG_BITS * bucket->passes;
		GpuSortRmgSegment *segment = &lane->segments[segments - (segments > 0)];

		if (first >= last)
			continue;
		if (segments > 0 && segment->passes == bucket->passes && bits == 0)
			segment->count += last - first;
		else if (segments > 0 && segment->passes == bucket->passes && segment->count + (last - first) < small)
		{
			segment->count += last - first;
			segment->bits = bits + bit_length(segment->first_prefix ^ bucket->prefix);
		}
		else
			lane->segments[segments++] =
				GpuSortRmgSegment{first - begin, last - first, bucket->prefix, bucket->passes, bits};
	}
	if (segments > SEGMENTS_MAX)
	{
		lane->segments[0] = GpuSortRmgSegment{0, end - begin, 0, 0, key_bits};
		segments = 1;
	}
	lane->segment_count = segments;
}
