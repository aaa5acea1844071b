/*-------------------------------------------------------------------------
 *
 * test_stats.h
 *	  Keys for tests of their statistics (sort/key_stats.h), and what the device found of
 *	  them against what the host did.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TEST_STATS_H
#define GPUSORT_TEST_STATS_H

#include "device_test.h"

#include "sort/key_stats.h"

typedef std::vector<uint64_t> Key;

static GpuSortKeyStats *stats_there; /* on the device */
static uint32_t *bad_there;

static inline void
reset_stats(void)
{
	stats_there = (GpuSortKeyStats *) test_device(sizeof(GpuSortKeyStats));
	bad_there = (uint32_t *) test_device(sizeof(uint32_t));
	TEST_CUDA((cudaError_t) gpusort_key_stats_reset(stats_there, (struct CUstream_st *) test_stream));
	TEST_CUDA(cudaMemsetAsync(bad_there, 0, sizeof(uint32_t), test_stream));
}

/* Adds one key to what the host knows. */
static inline void
add_key(GpuSortKeyStats *stats, const uint64_t *key, uint32_t words)
{
	for (uint32_t w = 0; w < words; w++)
	{
		stats->key_or[w] |= key[w];
		stats->key_and[w] &= key[w];
		stats->key_min[w] = std::min(stats->key_min[w], key[w]);
		stats->key_max[w] = std::max(stats->key_max[w], key[w]);
	}
}

/* What the device found against what the host did. */
static inline void
check_stats(const GpuSortKeyStats *expected, uint32_t bad_rows, const char *what, uint32_t rows, uint32_t words)
{
	GpuSortKeyStats found;
	uint32_t bad;

	test_download(&found, stats_there, sizeof(found));
	test_download(&bad, bad_there, sizeof(bad));
	for (uint32_t w = 0; w < GPUSORT_DEVICE_SORT_MAX_KEY_WORDS; w++)
		TEST_CHECK(found.key_or[w] == expected->key_or[w] && found.key_and[w] == expected->key_and[w] &&
					   found.key_min[w] == expected->key_min[w] && found.key_max[w] == expected->key_max[w],
				   "%s, %u rows of %u words: word %u", what, rows, words, w);
	TEST_CHECK(found.pairs == expected->pairs && found.descents == expected->descents,
			   "%s, %u rows of %u words: %llu descents of %llu pairs, not %llu of %llu", what, rows, words,
			   (unsigned long long) found.descents, (unsigned long long) found.pairs,
			   (unsigned long long) expected->descents, (unsigned long long) expected->pairs);
	TEST_CHECK(bad == bad_rows, "%s: %u bad rows, not %u", what, bad, bad_rows);
}

/* Keys of some pattern: any, few distinct words, or in some order. */
static inline std::vector<Key>
make_keys(uint32_t rows, uint32_t words)
{
	std::vector<Key> keys(rows, Key(words));
	uint64_t high = test_random();
	uint64_t distinct = test_below(2) ? 0 : 1 + test_below(3);
	uint32_t same = (uint32_t) test_below(words + 1);
	int order = (int) test_below(4);

	for (Key &key : keys)
		for (uint32_t w = 0; w < words; w++)
			key[w] = w < same ? high : distinct > 0 ? high + test_below(distinct)
													: test_random();
	if (order == 1 || order == 2)
		std::sort(keys.begin(), keys.end());
	if (order == 2)
		std::reverse(keys.begin(), keys.end());
	if (order > 0 && test_below(2) && rows > 1)
		std::swap(keys[0], keys[test_below(rows)]);
	return keys;
}

static inline uint32_t
random_rows(void)
{
	const uint32_t sizes[] = {1, 2, 31, 32, 33, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049};

	if (test_below(2))
		return sizes[test_below(sizeof(sizes) / sizeof(sizes[0]))];
	return (uint32_t) (1 + test_below(test_below(4) ? std::min(test_rows, (uint64_t) 5000) : test_rows));
}

#endif /* GPUSORT_TEST_STATS_H */
