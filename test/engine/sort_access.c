/*-------------------------------------------------------------------------
 *
 * sort_access.c
 *	  Sorted rows by intervals, keys by number and numbers by key; see sort_case.h.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include "sort_case.h"

#include <stdlib.h>
#include <string.h>

/* Intervals that are read of each case, and chunks of one at most. */
#define INTERVALS       16
#define INTERVAL_CHUNKS 3

/* Keys that are looked up at once, if the case does not say. */
#define KEYS_MOST 40

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The row after those that a chunk takes from `first` on. */
static uint64_t
chunk_end(const SortCase *from, uint64_t first)
{
	uint64_t bytes = 0;

	while (first < from->rows_out)
	{
		bytes += sort_case_emitted_bytes(from, from->order[first]);
		if (bytes > GPUSORT_CHUNK_BYTES)
			break;
		first++;
	}
	return first;
}

bool
sort_case_read_intervals(const SortCase *from, const GpuSortEngineOps *ops, GpuSort *sort, char *out,
						 CaseFailure *failure)
{
	const uint64_t rows = from->rows_out;
	uint64_t state = from->salt ^ 1;
	uint64_t first = 0;
	uint64_t place = 0;
	uint64_t end = 0;

	for (int i = 0; i < INTERVALS && rows > 0; i++)
	{
		/* what follows, the same once more, or anything */
		switch (rig_random_below(&state, 4))
		{
			case 0:
				first = place < rows ? place : 0;
				break;
			case 1:
				break;
			default:
				first = rig_random_below(&state, rows);
		}
		switch (rig_random_below(&state, 6))
		{
			case 0:
				end = first + 1;
				break;
			case 1:
				end = chunk_end(from, first);
				break;
			case 2:
				end = least(rows, chunk_end(from, first) + 1);
				break;
			case 3:
				end = chunk_end(from, first);
				end = end - first > 1 ? end - 1 : end;
				break;
			case 4:
				end = rows;
				break;
			default:
				end = first + 1 + rig_random_below(&state, rows - first);
		}
		place = first;
		if (!sort_case_read(from, ops, sort, out, &place, end, 1 + rig_random_below(&state, INTERVAL_CHUNKS), failure))
		{
			char text[sizeof(failure->text)];

			memcpy(text, failure->text, sizeof(text));
			return case_failed(failure, "rows %llu to %llu: %.400s", (unsigned long long) first,
							   (unsigned long long) end, text);
		}
	}
	return true;
}

/* The first `bits` bits of a key, the rest zeros. */
static void
mask_key(uint64_t *masked, const uint64_t *key, uint32_t key_words, uint32_t bits)
{
	for (uint32_t w = 0; w < key_words; w++)
	{
		if (bits >= 64 * (w + 1))
			masked[w] = key[w];
		else if (bits > 64 * w)
			masked[w] = key[w] & UINT64_MAX << (64 * (w + 1) - bits);
		else
			masked[w] = 0;
	}
}

/* How many keys to look up at once. */
static uint32_t
choose_count(const SortCase *from, uint64_t *state)
{
	return from->spec.look_ups > 0 ? from->spec.look_ups : rig_random_below(state, KEYS_MOST + 1);
}

static const uint64_t *
key_at(const SortCase *from, uint64_t place)
{
	return from->keys + (uint64_t) from->order[place] * from->spec.key_words;
}

/* How many of the rows that come out are below a key by their first bits. */
static uint64_t
count_below(const SortCase *from, const uint64_t *key, uint32_t bits)
{
	const uint32_t key_words = from->spec.key_words;
	uint64_t wanted[GPUSORT_MAX_KEY_WORDS];
	uint64_t low = 0;
	uint64_t high = from->rows_out;

	mask_key(wanted, key, key_words, bits);
	while (low < high)
	{
		const uint64_t middle = (low + high) / 2;
		uint64_t here[GPUSORT_MAX_KEY_WORDS];
		uint32_t w = 0;

		mask_key(here, key_at(from, middle), key_words, bits);
		while (w < key_words && here[w] == wanted[w])
			w++;
		if (w < key_words && here[w] < wanted[w])
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* keys and rows have room for as many as choose_count says at most. */
static bool
check_keys_at(const SortCase *from, const GpuSortEngineOps *ops, GpuSort *sort, uint64_t *state, uint64_t *keys,
			  uint64_t *rows, CaseFailure *failure)
{
	const uint32_t key_words = from->spec.key_words;
	const uint32_t count = from->rows_out > 0 ? choose_count(from, state) : 0;
	GpuSortError error;

	for (uint32_t i = 0; i < count; i++)
		rows[i] = i == 0 ? 0 : i == 1 ? from->rows_out - 1
									  : rig_random_below(state, from->rows_out);
	memset(keys, 0xA5, (size_t) count * key_words * sizeof(uint64_t));
	if (ops->keys_at(sort, rows, count, keys, &error) != 0)
		return case_failed(failure, "keys_at: %s", error.text);
	for (uint32_t i = 0; i < count; i++)
	{
		if (memcmp(keys + i * key_words, key_at(from, rows[i]), key_words * sizeof(uint64_t)) != 0)
			return case_failed(failure, "row %llu has another key", (unsigned long long) rows[i]);
	}
	return true;
}

/* A row's key, with a bit or all behind some bit turned; or anything, or the least or the greatest. */
static void
make_key(const SortCase *from, uint64_t *state, uint64_t *key)
{
	const uint32_t key_words = from->spec.key_words;
	const uint32_t bit = rig_random_below(state, 64 * key_words);
	const uint64_t kind = from->rows_out > 0 ? rig_random_below(state, 8) : 7;

	for (uint32_t w = 0; w < key_words; w++)
		key[w] = kind == 5 ? 0 : kind == 6 ? UINT64_MAX
										   : rig_random(state);
	if (kind > 4)
		return;
	memcpy(key, key_at(from, rig_random_below(state, from->rows_out)), key_words * sizeof(uint64_t));
	if (kind == 1)
		key[bit / 64] ^= UINT64_C(1) << (63 - bit % 64);
	if (kind == 2)
		mask_key(key, key, key_words, bit);
}

static bool
check_rows_below(const SortCase *from, const GpuSortEngineOps *ops, GpuSort *sort, uint64_t *state, uint64_t *keys,
				 uint64_t *rows, CaseFailure *failure)
{
	const uint32_t key_words = from->spec.key_words;
	const uint32_t count = choose_count(from, state);
	const uint32_t bits = rig_random_below(state, 3) ? 1 + rig_random_below(state, 64 * key_words)
													 : 64 * (1 + rig_random_below(state, key_words));
	GpuSortError error;

	for (uint32_t i = 0; i < count; i++)
		make_key(from, state, keys + i * key_words);
	memset(rows, 0xA5, count * sizeof(uint64_t));
	if (ops->rows_below(sort, bits, keys, count, rows, &error) != 0)
		return case_failed(failure, "rows_below: %s", error.text);
	for (uint32_t i = 0; i < count; i++)
	{
		const uint64_t right = count_below(from, keys + i * key_words, bits);

		if (rows[i] != right)
			return case_failed(failure, "%llu rows are below a key by %u of %u bits, not %llu",
							   (unsigned long long) right, bits, 64 * key_words, (unsigned long long) rows[i]);
	}
	return true;
}

bool
sort_case_look_up(const SortCase *from, const GpuSortEngineOps *ops, GpuSort *sort, CaseFailure *failure)
{
	const uint64_t most = from->spec.look_ups > 0 ? from->spec.look_ups : KEYS_MOST;
	uint64_t *keys = sort_case_allocate(most * from->spec.key_words * sizeof(uint64_t));
	uint64_t *rows = sort_case_allocate(most * sizeof(uint64_t));
	uint64_t state = from->salt ^ 2;
	bool passed = true;

	for (int i = 0; i < 3 && passed; i++)
		passed = check_keys_at(from, ops, sort, &state, keys, rows, failure) &&
			check_rows_below(from, ops, sort, &state, keys, rows, failure);
	free(rows);
	free(keys);
	return passed;
}
