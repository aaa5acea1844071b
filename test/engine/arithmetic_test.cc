/*-------------------------------------------------------------------------
 *
 * arithmetic_test.cc
 *	  The arithmetic under the cuda engine's kernels, on the host: packed keys,
 *	  row refs, chunk bounds, tie counting.  Prints TAP.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/chunk.h"
#include "engine/tie_flags.h"
#include "sort/compact.h"

static uint64_t seed;
static int tests;
static int failures;

static uint64_t
next_random()
{
	uint64_t z = seed += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

static void
report(bool passed, const char *name)
{
	printf("%s %d - %s\n", passed ? "ok" : "not ok", ++tests, name);
	failures += !passed;
}

static uint64_t
random_mask()
{
	switch (next_random() % 6)
	{
		case 0:
			return 0;
		case 1:
			return ~UINT64_C(0);
		case 2:
			return UINT64_C(1) << next_random() % 64;
		case 3:
			return next_random() & next_random() & next_random();
		case 4:
			return next_random() | next_random();
		default:
			return next_random();
	}
}

/* ---- packed keys ---- */

#define KEYS_MAX 40

/* Some keys, what is known of them, and their plan. */
typedef struct Keys
{
	uint32_t words;
	uint32_t rows;
	uint64_t key[KEYS_MAX][GPUSORT_MAX_KEY_WORDS];
	GpuSortKeyStats stats;
	GpuSortPackPlan plan;
} Keys;

static Keys keys;

static void
plan_keys()
{
	GpuSortKeyStats parts[2];

	/* in two parts, which are joined */
	for (int part = 0; part < 2; part++)
		gpusort_key_stats_none(&parts[part]);
	for (uint32_t i = 0; i < keys.rows; i++)
	{
		GpuSortKeyStats *part = &parts[next_random() % 2];

		for (uint32_t w = 0; w < keys.words; w++)
		{
			uint64_t key = keys.key[i][w];

			part->key_or[w] |= key;
			part->key_and[w] &= key;
			part->key_min[w] = key < part->key_min[w] ? key : part->key_min[w];
			part->key_max[w] = key > part->key_max[w] ? key : part->key_max[w];
		}
	}
	gpusort_key_stats_join(&parts[0], &parts[1]);
	keys.stats = parts[0];
	gpusort_pack_plan(&keys.plan, keys.words, &keys.stats);
}

/* Gives word w of all keys one of the patterns that packing might trip over. */
static void
random_word(uint32_t w)
{
	uint64_t a = next_random();
	uint64_t b = next_random();
	uint64_t mask = random_mask();
	int bit = (int) (next_random() % 64);
	int low = (int) (next_random() % 64);
	int pattern = (int) (next_random() % 12);

	for (uint32_t i = 0; i < keys.rows; i++)
	{
		uint64_t random = next_random();
		uint64_t key;

		switch (pattern)
		{
			case 0: /* all equal */
				key = a;
				break;
			case 1: /* a single bit */
				key = (a & ~(UINT64_C(1) << bit)) | (random & 1) << bit;
				break;
			case 2: /* any bits */
				key = (a & ~mask) | (random & mask);
				break;
			case 3: /* on both sides of a power of two */
				key = (UINT64_C(1) << bit) - (random & 1);
				break;
			case 4: /* the same with any distance and any bits below */
				key = (UINT64_C(1) << bit) + random % 1000 - 500;
				break;
			case 5: /* both ends */
				key = random & 1 ? 0 : ~UINT64_C(0);
				break;
			case 6: /* close to an end */
				key = (a & 1 ? 0 : ~UINT64_C(0) - 1000) + random % 1001;
				break;
			case 7: /* small range anywhere, wrapping round now and then */
				key = a + random % (1 + b % 100000);
				break;
			case 8: /* alternating bits */
				key = random & 1 ? UINT64_C(0x5555555555555555) : UINT64_C(0xAAAAAAAAAAAAAAAA);
				break;
			case 9: /* a column of small range, constant bits, any bits */
				key = (a + random % (1 + b % 7)) << low | (random >> 8 & mask & gpusort_ones(low));
				break;
			case 10: /* range over constant low bits */
				key = (a + random % 9) << low;
				break;
			default:
				key = random;
				break;
		}
		keys.key[i][w] = key;
	}
}

/* The fewest bits a word can be packed into, by trying every cut on the keys themselves. */
static uint32_t
fewest_bits(uint32_t w)
{
	uint32_t fewest = 64;

	for (int k = 0; k <= 64; k++)
	{
		uint64_t min = ~UINT64_C(0);
		uint64_t max = 0;
		uint32_t bits = 0;

		for (uint32_t i = 0; i < keys.rows; i++)
		{
			uint64_t high = k < 64 ? keys.key[i][w] >> k : 0;

			min = high < min ? high : min;
			max = high > max ? high : max;
		}
		for (uint64_t range = max - min; range > 0; range /= 2)
			bits++;
		for (int bit = 0; bit < k; bit++)
		{
			bool varies = false;

			for (uint32_t i = 1; i < keys.rows; i++)
				varies |= ((keys.key[i][w] ^ keys.key[0][w]) >> bit & 1) != 0;
			bits += varies;
		}
		fewest = bits < fewest ? bits : fewest;
	}
	return fewest;
}

static int
compare_words(const uint64_t *a, const uint64_t *b, uint32_t words)
{
	for (uint32_t w = 0; w < words; w++)
	{
		if (a[w] != b[w])
			return a[w] < b[w] ? -1 : 1;
	}
	return 0;
}

/* The whole packed key, bit by bit, as a number of GPUSORT_MAX_KEY_WORDS words, the most significant first. */
static void
pack_whole(const uint64_t *key, uint64_t *packed)
{
	uint32_t place = 0; /* bits packed so far, from the least on */

	memset(packed, 0, GPUSORT_MAX_KEY_WORDS * sizeof(uint64_t));
	for (uint32_t w = keys.plan.key_words; w-- > 0;)
	{
		const GpuSortPackWord *word = &keys.plan.words[w];

		for (uint32_t bit = 0; bit < 64; bit++)
		{
			if ((word->kept >> bit & 1) == 0)
				continue;
			packed[GPUSORT_MAX_KEY_WORDS - 1 - place / 64] |= ((key[w] - word->base) >> bit & 1) << place % 64;
			place++;
		}
	}
}

/*
 * A window of a key, read where only the words that have a bit in it are there and
 * bit by bit from the whole packed key.
 */
static bool
window_right(const uint64_t *key, const uint64_t *packed, uint32_t from_top, uint32_t bits)
{
	const GpuSortPackPlan *plan = &keys.plan;
	const uint32_t end = from_top + bits < plan->packed_bits ? from_top + bits : plan->packed_bits;
	uint32_t first = plan->key_words;
	uint32_t last = 0;
	uint64_t expected = 0;
	uint64_t found;
	uint64_t windows64[2];
	uint32_t windows[2];
	uint64_t *part;
	GpuSortPackPlan window;

	for (uint32_t place = from_top; place < end; place++)
	{
		uint32_t bit = plan->packed_bits - 1 - place;

		expected = expected << 1 | (packed[GPUSORT_MAX_KEY_WORDS - 1 - bit / 64] >> bit % 64 & 1);
	}
	for (uint32_t w = 0, top = 0; w < plan->key_words; w++)
	{
		uint32_t word_end = top + plan->words[w].bits;

		if (top < end && word_end > from_top && word_end > top)
		{
			first = w < first ? w : first;
			last = w;
		}
		top = word_end;
	}
	if (first > last)
		return gpusort_pack_window64(plan, NULL, from_top, bits) == 0 && expected == 0;
	part = (uint64_t *) malloc((last - first + 1) * sizeof(uint64_t));
	memcpy(part, key + first, (last - first + 1) * sizeof(uint64_t));
	key = (const uint64_t *) ((uintptr_t) part - first * sizeof(uint64_t));
	found = gpusort_pack_window64(plan, key, from_top, bits);

	const uint64_t *const twice[2] = {key, key};

	gpusort_pack_window_plan(&window, plan, from_top, bits);
	gpusort_pack_keys(&window, twice, windows64);
	if (windows64[0] != found || windows64[1] != found)
		found = ~expected;
	if (bits <= 32)
	{
		gpusort_pack_keys(&window, twice, windows);
		if (gpusort_pack_window(plan, key, from_top, bits) != found || windows[0] != found || windows[1] != found ||
			gpusort_pack_key(&window, key) != found)
			found = ~expected;
	}
	free(part);
	return found == expected &&
		gpusort_pack_window_bits(plan, from_top, bits) == (from_top < end ? end - from_top : 0);
}

/* All that packing promises of the keys there are. */
static bool
packing_right()
{
	uint64_t packed[KEYS_MAX][GPUSORT_MAX_KEY_WORDS];
	uint32_t bits = 0;
	bool right = true;

	for (uint32_t w = 0; w < keys.words; w++)
	{
		right &= keys.plan.words[w].bits == fewest_bits(w);
		bits += keys.plan.words[w].bits;
	}
	right &= keys.plan.packed_bits == bits;

	for (uint32_t i = 0; i < keys.rows; i++)
	{
		pack_whole(keys.key[i], packed[i]);

		for (int n = 0; n < 3; n++)
			right &= window_right(keys.key[i], packed[i], (uint32_t) (next_random() % (bits + 2)),
								  (uint32_t) (1 + next_random() % 64));
		right &= window_right(keys.key[i], packed[i], 0, 32) && window_right(keys.key[i], packed[i], 32, 64);
	}
	for (uint32_t i = 0; i < keys.rows; i++)
		for (uint32_t j = 0; j < keys.rows; j++)
			right &= compare_words(keys.key[i], keys.key[j], keys.words) ==
				compare_words(packed[i], packed[j], GPUSORT_MAX_KEY_WORDS);
	return right;
}

static void
test_pack_random()
{
	bool passed = true;

	for (int round = 0; round < 2000; round++)
	{
		keys.words = (uint32_t) (1 + next_random() % (round % 10 ? 4 : GPUSORT_MAX_KEY_WORDS));
		keys.rows = (uint32_t) (1 + next_random() % (round % 20 ? 12 : KEYS_MAX));
		for (uint32_t w = 0; w < keys.words; w++)
			random_word(w);

		/* rows that agree in their first words, and equal ones */
		for (uint32_t i = 1; i < keys.rows; i++)
		{
			if (next_random() % 2)
				memcpy(keys.key[i], keys.key[next_random() % i],
					   next_random() % (keys.words + 1) * sizeof(uint64_t));
		}
		plan_keys();
		passed &= packing_right();
	}
	report(passed, "packed keys have the fewest bits, the keys' order, and the keys' equality");
}

/* One word of these values, and how many bits it must come to. */
static bool
word_packs_to(uint32_t bits, uint64_t a, uint64_t b, uint64_t c)
{
	keys.words = 1;
	keys.rows = 3;
	keys.key[0][0] = a;
	keys.key[1][0] = b;
	keys.key[2][0] = c;
	plan_keys();
	if (keys.plan.packed_bits == bits && packing_right())
		return true;
	printf("# %llx %llx %llx: %u bits, not %u\n", (unsigned long long) a, (unsigned long long) b,
		   (unsigned long long) c, keys.plan.packed_bits, bits);
	return false;
}

static void
test_pack_known()
{
	const uint64_t top = UINT64_C(1) << 63;
	const uint64_t all = ~UINT64_C(0);
	bool passed = true;

	for (int bit = 0; bit < 64; bit++)
	{
		uint64_t one = UINT64_C(1) << bit;

		passed &= word_packs_to(1, 0, one, one) && word_packs_to(1, all, all ^ one, all);
		passed &= word_packs_to(1, one, one - 1, one);
		if (bit >= 2)
			passed &= word_packs_to(2, one - 1, one + 1, one);
	}
	passed &= word_packs_to(0, all, all, all) && word_packs_to(0, 0, 0, 0);
	passed &= word_packs_to(64, 0, all, 0) && word_packs_to(64, 0, all, top) && word_packs_to(63, 0, top - 1, 1);
	passed &= word_packs_to(63, all, top + 1, top) && word_packs_to(63, 1, top, top - 1);
	passed &= word_packs_to(64, UINT64_C(0x5555555555555555), UINT64_C(0xAAAAAAAAAAAAAAAA), 0);

	/* a column across a power of two, a constant bit, and one bit far down */
	passed &= word_packs_to(2, UINT64_C(0x7FFF) << 40, UINT64_C(0x8000) << 40 | 8, UINT64_C(0x7FFF) << 40);
	passed &= word_packs_to(2, UINT64_C(0x7FFF) << 40 | 8, UINT64_C(0x8000) << 40, UINT64_C(0x7FFF) << 40);
	report(passed, "known words pack to the bits they should");

	gpusort_key_stats_none(&keys.stats);
	gpusort_pack_plan(&keys.plan, GPUSORT_MAX_KEY_WORDS, &keys.stats);
	report(keys.plan.packed_bits == 0 && gpusort_pack_window(&keys.plan, NULL, 0, 32) == 0,
		   "keys of no rows pack to no bits");
}

static void
test_refs()
{
	const uint32_t chunks[] = {0, 1, 12345, GPUSORT_REF_MAX_CHUNKS - 1};
	const uint32_t places[] = {8, 16, 264, GPUSORT_CHUNK_BYTES - 16};
	const uint32_t lengths[] = {8, 9, 16, 4000, GPUSORT_CHUNK_BYTES - 20};
	bool passed = true;

	for (uint32_t chunk : chunks)
		for (uint32_t place : places)
			for (uint32_t length : lengths)
				for (int flags = 0; flags < 4; flags++)
				{
					GpuSortRowRef ref = gpusort_ref_make(chunk, place, length, (flags & GPUSORT_ROW_KEY_TRUNCATED) != 0);

					if (gpusort_ref_chunk(ref) != chunk || gpusort_ref_place(ref) != place ||
						gpusort_ref_words(ref) != (length + 7) / 8 ||
						gpusort_ref_truncated(ref) != ((flags & GPUSORT_ROW_KEY_TRUNCATED) != 0))
						passed = false;
				}
	report(passed, "row refs keep what they are made of");
}

static void
test_bounds()
{
	bool passed = true;

	for (uint32_t key_words = 1; key_words <= GPUSORT_MAX_KEY_WORDS; key_words++)
	{
		uint32_t record = 8 * key_words + 8;
		uint32_t most = gpusort_chunk_rows_most(key_words);

		if (!gpusort_chunk_shape_ok(most, most * record, key_words) ||
			gpusort_chunk_shape_ok(most + 1, (most + 1) * record, key_words) ||
			gpusort_chunk_shape_ok(2, 2 * record - 1, key_words))
			passed = false;
		if (!gpusort_record_readable(0, record, key_words) || gpusort_record_readable(8, record, key_words) ||
			gpusort_record_readable(4, 2 * record, key_words) ||
			gpusort_record_readable(UINT32_MAX - 7, UINT32_MAX, key_words))
			passed = false;
		if (!gpusort_row_length_ok(0, 8, record, key_words) || gpusort_row_length_ok(0, 7, record, key_words) ||
			gpusort_row_length_ok(0, 9, record, key_words) || gpusort_row_length_ok(0, UINT32_MAX, record, key_words))
			passed = false;
	}
	if (gpusort_chunk_shape_ok(1, UINT32_MAX - 3, 1) || gpusort_chunk_shape_ok(UINT32_MAX, UINT32_MAX, 1))
		passed = false;
	report(passed, "nothing outside a chunk passes for a row of it");
}

static void
test_head()
{
	uint64_t head = UINT64_C(0xAABBCC0000001234);
	uint64_t flags = (uint64_t) (GPUSORT_ROW_KEY_TRUNCATED | GPUSORT_ROW_OVERFLOW) << 32;

	report(gpusort_row_head_out(head | flags, false) == (head | (uint64_t) GPUSORT_ROW_OVERFLOW << 32) &&
			   gpusort_row_head_out(head | flags, true) ==
				   (head | (uint64_t) (GPUSORT_ROW_OVERFLOW | GPUSORT_ROW_TIE_NEXT) << 32),
		   "a row's head leaves with its tie and without KEY_TRUNCATED");
}

/* Any grouping of pieces of any size against one walk over all rows. */
static void
test_ties()
{
	bool passed = true;

	for (int round = 0; round < 3000; round++)
	{
		uint32_t rows = (uint32_t) (1 + next_random() % 700);
		uint32_t density = (uint32_t) (1 + next_random() % 20);
		bool equal[700];
		bool truncated[700];
		uint64_t expected = 0;
		GpuSortTieSummary parts[700];
		uint32_t part_count = 0;

		for (uint32_t i = 0; i < rows; i++)
		{
			equal[i] = i + 1 < rows && next_random() % density != 0;
			truncated[i] = next_random() % density == 0;
		}
		for (uint32_t start = 0, end; start < rows; start = end)
		{
			bool any = truncated[start];

			for (end = start + 1; equal[end - 1]; end++)
				any |= truncated[end];
			if (any && end - start > 1)
				expected += end - start;
		}

		for (uint32_t i = 0; i < rows;)
		{
			uint32_t here = (uint32_t) (next_random() % 33);
			uint32_t equal_bits = 0;
			uint32_t truncated_bits = 0;

			if (here > rows - i)
				here = rows - i;
			for (uint32_t k = 0; k < here; k++)
			{
				equal_bits |= (uint32_t) equal[i + k] << k;
				truncated_bits |= (uint32_t) truncated[i + k] << k;
			}
			parts[part_count++] = gpusort_ties_of_bits(equal_bits, truncated_bits, here);
			i += here;
			if (part_count == 700)
				break;
		}

		/* join neighbours at random until one is left */
		while (part_count > 1)
		{
			uint32_t at = (uint32_t) (next_random() % (part_count - 1));

			parts[at] = gpusort_ties_join(parts[at], parts[at + 1]);
			memmove(&parts[at + 1], &parts[at + 2], sizeof(parts[0]) * (part_count - at - 2));
			part_count--;
		}
		if (gpusort_ties_total(parts[0]) != expected)
			passed = false;
	}
	report(passed, "tie rows are counted right however the rows are cut");
}

int
main(int argc, char **argv)
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t) time(NULL);
	printf("# seed %llu\n", (unsigned long long) seed);
	test_pack_random();
	test_pack_known();
	test_refs();
	test_bounds();
	test_head();
	test_ties();
	printf("1..%d\n", tests);
	return failures > 0;
}
