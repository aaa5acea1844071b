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

#include "../../cuda/compact.h"
#include "../../cuda/row_ref.h"
#include "../../cuda/tie_rows.h"

static uint64_t seed;
static int	tests;
static int	failures;

static uint64_t
next_random()
{
	uint64_t	z = seed += UINT64_C(0x9E3779B97F4A7C15);

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

/* Bit number `bit` of a packed key, counted from the least significant. */
static bool
packed_bit(const GpuSortPackPlan *plan, const uint64_t *key, uint32_t bit)
{
	return gpusort_pack_key(plan, key, bit / 64) >> bit % 64 & 1;
}

/* Every bit of the packed key against a walk over the bits kept, one by one. */
static void
test_pack()
{
	bool		passed = true;

	for (int round = 0; round < 3000; round++)
	{
		uint32_t	key_words = 1 + next_random() % (round % 10 ? 4 : 32);
		uint64_t	key_or[GPUSORT_MAX_KEY_WORDS];
		uint64_t	key_and[GPUSORT_MAX_KEY_WORDS];
		uint64_t	key[GPUSORT_MAX_KEY_WORDS];
		GpuSortPackPlan plan;
		uint32_t	packed = 0;

		for (uint32_t w = 0; w < key_words; w++)
		{
			uint64_t	kept = random_mask();

			key_and[w] = next_random() & ~kept;
			key_or[w] = key_and[w] | kept;
			key[w] = key_and[w] | (next_random() & kept);
		}
		gpusort_pack_plan(&plan, key_words, key_or, key_and);
		for (uint32_t w = key_words; w-- > 0;)
		{
			for (int bit = 0; bit < 64; bit++)
			{
				if (((key_or[w] ^ key_and[w]) >> bit & 1) == 0)
					continue;
				if (packed_bit(&plan, key, packed) != (key[w] >> bit & 1))
					passed = false;
				packed++;
			}
		}
		if (plan.packed_bits != packed)
			passed = false;

		/* nothing above the last bit, and the words' bits add up */
		for (uint32_t i = 0, left = packed; i < gpusort_packed_words(&plan); i++)
		{
			int			bits = gpusort_packed_word_bits(&plan, i);

			if (bits < 64 && gpusort_pack_key(&plan, key, i) >> bits != 0)
				passed = false;
			left -= bits;
			if (i + 1 == gpusort_packed_words(&plan) && left != 0)
				passed = false;
		}
	}
	report(passed, "packed keys hold the bits that vary, in order");
}

static void
test_refs()
{
	const uint32_t chunks[] = {0, 1, 12345, GPUSORT_REF_MAX_CHUNKS - 1};
	const uint32_t places[] = {8, 16, 264, GPUSORT_CHUNK_BYTES - 16};
	const uint32_t lengths[] = {8, 9, 16, 4000, GPUSORT_CHUNK_BYTES - 20};
	bool		passed = true;

	for (uint32_t chunk : chunks)
		for (uint32_t place : places)
			for (uint32_t length : lengths)
				for (int flags = 0; flags < 4; flags++)
				{
					GpuSortRowRef ref = gpusort_ref_make(chunk, place, length, (uint8_t) flags);

					if (gpusort_ref_chunk(ref) != chunk || gpusort_ref_place(ref) != place ||
						gpusort_ref_words(ref) != (length + 7) / 8 ||
						gpusort_ref_inexact(ref) != ((flags & GPUSORT_ROW_INEXACT) != 0))
						passed = false;
				}
	report(passed, "row refs keep what they are made of");
}

static void
test_bounds()
{
	bool		passed = true;

	for (uint32_t key_words = 1; key_words <= GPUSORT_MAX_KEY_WORDS; key_words++)
	{
		uint32_t	record = 8 * key_words + 8;
		uint32_t	most = gpusort_chunk_rows_max(key_words);

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
	uint64_t	head = UINT64_C(0xAABBCC0000001234);
	uint64_t	flags = (uint64_t) (GPUSORT_ROW_INEXACT | GPUSORT_ROW_OVERFLOW) << 32;

	report(gpusort_row_head_out(head | flags, false) == (head | (uint64_t) GPUSORT_ROW_OVERFLOW << 32) &&
		   gpusort_row_head_out(head | flags, true) ==
		   (head | (uint64_t) (GPUSORT_ROW_OVERFLOW | GPUSORT_ROW_TIE_NEXT) << 32),
		   "a row's head leaves with its tie and without INEXACT");
}

/* Any grouping of pieces of any size against one walk over all rows. */
static void
test_ties()
{
	bool		passed = true;

	for (int round = 0; round < 3000; round++)
	{
		uint32_t	rows = (uint32_t) (1 + next_random() % 700);
		uint32_t	density = (uint32_t) (1 + next_random() % 20);
		bool		equal[700];
		bool		inexact[700];
		uint64_t	expected = 0;
		GpuSortTieSummary parts[700];
		uint32_t	part_count = 0;

		for (uint32_t i = 0; i < rows; i++)
		{
			equal[i] = i + 1 < rows && next_random() % density != 0;
			inexact[i] = next_random() % density == 0;
		}
		for (uint32_t start = 0, end; start < rows; start = end)
		{
			bool		any = inexact[start];

			for (end = start + 1; equal[end - 1]; end++)
				any |= inexact[end];
			if (any && end - start > 1)
				expected += end - start;
		}

		for (uint32_t i = 0; i < rows;)
		{
			uint32_t	here = (uint32_t) (next_random() % 33);
			uint32_t	equal_bits = 0;
			uint32_t	inexact_bits = 0;

			if (here > rows - i)
				here = rows - i;
			for (uint32_t k = 0; k < here; k++)
			{
				equal_bits |= (uint32_t) equal[i + k] << k;
				inexact_bits |= (uint32_t) inexact[i + k] << k;
			}
			parts[part_count++] = gpusort_ties_of_bits(equal_bits, inexact_bits, here);
			i += here;
			if (part_count == 700)
				break;
		}

		/* join neighbours at random until one is left */
		while (part_count > 1)
		{
			uint32_t	at = (uint32_t) (next_random() % (part_count - 1));

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
	test_pack();
	test_refs();
	test_bounds();
	test_head();
	test_ties();
	printf("1..%d\n", tests);
	return failures > 0;
}
