/*-------------------------------------------------------------------------
 *
 * test_keys.h
 *	  Keys of several words for tests of sorts: how they are made, their plan, their
 *	  right order, and where they lie on the device.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TEST_KEYS_H
#define GPUSORT_TEST_KEYS_H

#include "device_test.h"

#include "sort/device_sort.h"

/* Rows with keys of several words, one after the other. */
typedef struct Keys
{
	uint32_t words;
	std::vector<uint64_t> all;
} Keys;

static inline uint32_t
rows_of(const Keys &keys)
{
	return (uint32_t) (keys.all.size() / keys.words);
}

/* Pinned memory that sorts read back into. */
static inline void *
mirror_memory(void)
{
	static void *mirror;

	if (mirror == NULL)
		TEST_CUDA(cudaMallocHost(&mirror, GPUSORT_DEVICE_SORT_MIRROR_BYTES));
	return mirror;
}

/* The plan of the keys' own statistics, which the host takes. */
static inline GpuSortPackPlan
plan_of(const Keys &keys)
{
	GpuSortKeyStats stats;
	GpuSortPackPlan plan;

	gpusort_key_stats_none(&stats);
	for (size_t i = 0; i < keys.all.size(); i++)
	{
		const uint32_t w = (uint32_t) (i % keys.words);

		stats.key_or[w] |= keys.all[i];
		stats.key_and[w] &= keys.all[i];
		stats.key_min[w] = std::min(stats.key_min[w], keys.all[i]);
		stats.key_max[w] = std::max(stats.key_max[w], keys.all[i]);
	}
	memset((void *) &plan, 0x5A, sizeof(plan));
	gpusort_pack_plan(&plan, keys.words, &stats);
	return plan;
}

/* A mask of so many bits at random places of one word. */
static inline uint64_t
random_mask(uint32_t bits)
{
	uint64_t mask = 0;

	while ((uint32_t) __builtin_popcountll(mask) < bits)
		mask |= UINT64_C(1) << test_below(64);
	return mask;
}

/* In each word so many bits vary; the others have a value of their own. */
static inline Keys
masked_keys(uint32_t rows, uint32_t words, uint32_t bits)
{
	std::vector<uint64_t> masks(words);
	std::vector<uint64_t> constants(words);
	Keys keys = {words, {}};

	for (uint32_t w = 0; w < words; w++)
	{
		masks[w] = random_mask(bits);
		constants[w] = test_random();
	}
	for (uint32_t i = 0; i < rows; i++)
	{
		for (uint32_t w = 0; w < words; w++)
			keys.all.push_back((test_random() & masks[w]) | (constants[w] & ~masks[w]));
	}
	return keys;
}

static inline void
shuffle(Keys *keys)
{
	for (uint32_t i = rows_of(*keys); i > 1; i--)
	{
		const size_t a = (size_t) (i - 1) * keys->words;
		const size_t b = (size_t) test_below(i) * keys->words;

		if (a != b)
			std::swap_ranges(keys->all.begin() + a, keys->all.begin() + a + keys->words, keys->all.begin() + b);
	}
}

/*
 * Runs of these lengths that tie on the first word, 32 bits of which vary; each later word
 * has `values` values, spread over all its bits.
 */
static inline Keys
keys_of_runs(const std::vector<uint32_t> &lengths, uint32_t words, uint64_t values)
{
	Keys keys = {words, {}};

	for (uint32_t length : lengths)
	{
		const uint64_t first = test_random() >> 32;

		for (uint32_t i = 0; i < length; i++)
		{
			keys.all.push_back(first);
			for (uint32_t w = 1; w < words; w++)
				keys.all.push_back(test_below(values) * (UINT64_MAX / (values > 1 ? values - 1 : 1)));
		}
	}
	shuffle(&keys);
	return keys;
}

/* The order that a run has before it is sorted. */
typedef enum RunOrder
{
	RUN_EQUAL,
	RUN_RISING,
	RUN_FALLING,
	RUN_MIXED,
	RUN_ONE_DESCENT, /* equal, but for one row that goes before all others */
} RunOrder;

/*
 * Runs that tie on the first word, and tell their rows apart by the last one alone.  The words
 * between are the same in all of a run, and have all bits different from run to run.
 */
static inline void
add_run(Keys *keys, uint32_t rows, RunOrder order, uint32_t descent)
{
	const uint64_t first = test_random() >> 32;
	const uint64_t between = keys->all.empty() ? UINT64_MAX : ~keys->all[keys->all.size() - keys->words + 1];

	for (uint32_t i = 0; i < rows; i++)
	{
		uint64_t last = 7;

		if (order == RUN_RISING)
			last = i / 3;
		if (order == RUN_FALLING)
			last = rows - i;
		if (order == RUN_MIXED)
			last = test_below(rows);
		if (order == RUN_ONE_DESCENT && i == descent)
			last = 6;
		keys->all.push_back(first);
		for (uint32_t w = 1; w + 1 < keys->words; w++)
			keys->all.push_back(between);
		keys->all.push_back(last);
	}
}

static inline int
compare_keys(const Keys &keys, uint32_t a, uint32_t b)
{
	for (uint32_t w = 0; w < keys.words; w++)
	{
		const uint64_t x = keys.all[(size_t) a * keys.words + w];
		const uint64_t y = keys.all[(size_t) b * keys.words + w];

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

static inline std::vector<uint32_t>
right_order(const Keys &keys)
{
	return test_stable_order(rows_of(keys), [&](uint32_t a, uint32_t b)
							 { return compare_keys(keys, a, b) < 0; });
}

/* Keys before rows of several lengths in several chunks. */
static inline GpuSortKeySource
upload_refs(const Keys &keys)
{
	const uint32_t rows = rows_of(keys);
	std::vector<GpuSortRowRef> refs;
	std::vector<GpuSortDeviceChunk> chunks;
	GpuSortKeySource source = {};
	uint32_t row = 0;

	while (row < rows)
	{
		const uint32_t here = std::min<uint32_t>(rows - row, 1 + (uint32_t) test_below(5000));
		std::vector<uint64_t> memory;
		GpuSortDeviceChunk chunk = {};

		chunk.rows = here;
		chunk.first_row = row;
		for (uint32_t i = 0; i < here; i++, row++)
		{
			const uint32_t row_words = 1 + (uint32_t) test_below(3);

			memory.insert(memory.end(), keys.all.begin() + (size_t) row * keys.words,
						  keys.all.begin() + (size_t) (row + 1) * keys.words);
			refs.push_back(
				gpusort_ref_make((uint32_t) chunks.size(), (uint32_t) (8 * memory.size()), 8 * row_words, false));
			for (uint32_t w = 0; w < row_words; w++)
				memory.push_back(test_random());
		}
		chunk.bytes = (uint32_t) (8 * memory.size());
		chunk.base = (uint64_t) (uintptr_t) test_device_copy(memory);
		chunks.push_back(chunk);
	}
	source.key_words = keys.words;
	source.refs = test_device_copy(refs);
	source.chunks = test_device_copy(chunks);
	return source;
}

/* That the first `count` ids are those that are right. */
static inline void
check_ids(const char *what, const std::vector<uint32_t> &ids, const std::vector<uint32_t> &right, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
	{
		if (ids[i] != right[i])
		{
			test_fail("%s: of %zu rows, place %u has row %u instead of %u", what, right.size(), i, ids[i], right[i]);
			return;
		}
	}
}

#endif /* GPUSORT_TEST_KEYS_H */
