/*-------------------------------------------------------------------------
 *
 * sort_pick.c
 *	  The first rows of each run: which are wanted, and which an engine has kept; see sort_case.h.
 *
 * On one device an engine keeps what is wanted and nothing else.  Several look at their own rows
 * alone and keep more, so which those are is asked of the engine first.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include "sort_case.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t *
key_at(const SortCase *from, uint64_t place)
{
	return from->keys + (uint64_t) from->whole[place] * from->spec.key_words;
}

static bool
truncated_at(const SortCase *from, uint64_t place)
{
	return from->flags[from->whole[place]] & GPUSORT_ROW_KEY_TRUNCATED;
}

/* Whether the first so many bits of the key are those of the row before. */
static bool
goes_on(const SortCase *from, uint64_t place, uint32_t bits)
{
	for (uint32_t bit = 0; bit < bits; bit++)
	{
		uint64_t mask = UINT64_C(1) << (63 - bit % 64);

		if (bit % 64 == 0 && bits - bit >= 64 && key_at(from, place - 1)[bit / 64] == key_at(from, place)[bit / 64])
			bit += 63;
		else if ((key_at(from, place - 1)[bit / 64] ^ key_at(from, place)[bit / 64]) & mask)
			return false;
	}
	return true;
}

uint64_t
sort_case_count(const SortCase *from, uint64_t row)
{
	return from->spec.counts_every > 0 && (row + 1) % from->spec.counts_every == 0 ? 3 : 1;
}

/* The order becomes what is picked of the whole of it; each row has the counts of those behind it. */
static void
take(SortCase *made)
{
	uint64_t rows = 0;

	for (uint64_t place = 0; place < made->spec.rows; place++)
	{
		if (made->picked[place])
		{
			made->order[rows] = made->whole[place];
			made->counts[rows++] = 0;
		}
		made->counts[rows - 1] += sort_case_count(made, made->whole[place]);
	}
	made->rows_out = rows;
}

void
sort_case_pick(SortCase *made)
{
	const CaseSpec *spec = &made->spec;
	const bool peers = spec->run_peers || (spec->run_exact && !spec->claim_no_ties);
	uint64_t run = 0;
	uint64_t group = 0;

	memcpy(made->whole, made->order, spec->rows * sizeof(uint32_t));
	for (uint64_t place = 0; place < spec->rows; place++)
	{
		if (place > 0 && !goes_on(made, place, 64 * spec->key_words))
			group = place;
		if (place > 0 &&
			(!goes_on(made, place, spec->run_bits) ||
			 (!spec->run_exact && (truncated_at(made, place) || truncated_at(made, place - 1)))))
			run = group = place;
		made->picked[place] = (peers ? group : place) - run < spec->run_rows;
	}
	take(made);
}

bool
sort_case_note_picked(SortCase *made, const GpuSortEngineOps *ops, GpuSort *sort, char *out, uint64_t rows,
					  CaseFailure *failure)
{
	const uint32_t key_bytes = 8 * made->spec.key_words;
	uint64_t wanted = made->rows_out;
	uint64_t place = 0;
	bool truncates = false;
	GpuSortEmitted emitted;
	GpuSortError error;

	for (uint64_t row = 0; row < rows; row += emitted.rows)
	{
		uint32_t at = 0;

		if (ops->emit(sort, row, rows, true, out, &emitted, &error) != 0)
			return case_failed(failure, "emit of records: %s", error.text);
		for (uint32_t r = 0; r < emitted.rows; r++)
		{
			uint32_t number = 0;

			memcpy(&number, out + at + key_bytes + 5, 3);
			if (number >= made->spec.rows)
				return case_failed(failure, "row %u came, of %llu", number, (unsigned long long) made->spec.rows);
			at += key_bytes + GPUSORT_ALIGN8(made->lengths[number]);
			for (; place < made->spec.rows && made->whole[place] != number; place++)
				if (made->picked[place])
					return case_failed(failure, "place %llu was left out", (unsigned long long) place);
			if (place == made->spec.rows)
				return case_failed(failure, "row %u came out of order", number);
			made->picked[place++] = 1;
		}
	}
	for (; place < made->spec.rows; place++)
		if (made->picked[place])
			return case_failed(failure, "place %llu was left out", (unsigned long long) place);
	for (uint64_t i = 0; i < made->spec.rows; i++)
		truncates |= truncated_at(made, i);
	if (!truncates && !made->spec.run_peers && (!made->spec.run_exact || made->spec.claim_no_ties) &&
		rows > wanted + (uint64_t) made->borders * made->spec.run_rows)
		return case_failed(failure, "%llu rows came of %llu wanted", (unsigned long long) rows,
						   (unsigned long long) wanted);
	take(made);
	return true;
}
