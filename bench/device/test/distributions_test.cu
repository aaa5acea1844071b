/*-------------------------------------------------------------------------
 *
 * distributions_test.cu
 *	  Whether the distributions of bench/device/distributions.h are what they are
 *	  said to be.  Runs on the host.  Prints TAP.
 *
 *-------------------------------------------------------------------------
 */
#include "device_test.h"

#include "distributions.h"

static std::vector<uint64_t>
make_keys(int distribution, int bits, uint64_t rows)
{
	std::vector<uint64_t> keys(rows);
	uint64_t seed = test_random();

	for (uint64_t i = 0; i < rows; i++)
		keys[i] = bits == 64 ? gpusort_distribution_key64(distribution, i, rows, seed)
							 : gpusort_distribution_key32(distribution, i, rows, seed);
	return keys;
}

/* The share of the keys up to `limit`. */
static double
share_up_to(const std::vector<uint64_t> &keys, uint64_t limit)
{
	return (double) std::count_if(keys.begin(), keys.end(), [=](uint64_t key)
								  { return key <= limit; }) /
		(double) keys.size();
}

static void
check_share(const char *what, double got, double expected, size_t rows)
{
	/* six deviations of a binomial share */
	double tolerance = 6 * sqrt(expected * (1 - expected) / (double) rows) + 1e-9;

	TEST_CHECK(fabs(got - expected) <= tolerance, "%s: %.5f, not %.5f", what, got, expected);
}

static void
test_orders(int bits)
{
	for (uint64_t rows : {(uint64_t) 1, (uint64_t) 2, (uint64_t) 127, (uint64_t) 128, test_rows})
	{
		std::vector<uint64_t> sorted = make_keys(GPUSORT_SORTED, bits, rows);
		std::vector<uint64_t> reverse = make_keys(GPUSORT_REVERSE, bits, rows);
		std::vector<uint64_t> nearly = make_keys(GPUSORT_NEARLY, bits, rows);
		std::vector<uint64_t> zero = make_keys(GPUSORT_ZERO, bits, rows);
		double range = bits == 64 ? 0x1p64 : 0x1p32;
		double falling = 0;

		for (uint64_t i = 0; i < rows; i++)
		{
			TEST_CHECK(i == 0 || sorted[i - 1] <= sorted[i], "sorted: row %llu", (unsigned long long) i);
			TEST_CHECK(i == 0 || reverse[i - 1] > reverse[i], "reverse: row %llu", (unsigned long long) i);
			TEST_CHECK(fabs((double) sorted[i] / range * (double) rows - ((double) i + 0.5)) <= 0.51,
					   "sorted: row %llu is out of its place", (unsigned long long) i);
			TEST_CHECK(zero[i] == 0, "zero: row %llu", (unsigned long long) i);
			falling += i > 0 && nearly[i - 1] > nearly[i];
		}
		TEST_CHECK(rows < 1000 || (falling > 0.2 * (double) rows && falling < 0.5 * (double) rows),
				   "nearly: %.0f of %llu rows fall", falling, (unsigned long long) rows);
	}
	test_point("%d bits: sorted, nearly, reverse, zero", bits);
}

static void
test_spread(int bits)
{
	const uint64_t half = bits == 64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
	const uint64_t bucket = half / 64;
	const uint64_t rows = test_rows / 128 * 128;
	const uint64_t block = rows / 128;
	std::vector<uint64_t> uniform = make_keys(GPUSORT_UNIFORM, bits, rows);
	std::vector<uint64_t> gaussian = make_keys(GPUSORT_GAUSSIAN, bits, rows);
	std::vector<uint64_t> buckets = make_keys(GPUSORT_BUCKET, bits, rows);
	std::vector<uint64_t> staggered = make_keys(GPUSORT_STAGGERED, bits, rows);

	check_share("uniform, a quarter", share_up_to(uniform, half / 2), 0.25, rows);
	check_share("uniform, a half", share_up_to(uniform, half), 0.5, rows);
	/* the distribution of the sum of four uniform numbers (Irwin and Hall), at 1 and 2 */
	check_share("gaussian, a quarter", share_up_to(gaussian, half / 2), 1.0 / 24, rows);
	check_share("gaussian, a half", share_up_to(gaussian, half), 0.5, rows);
	for (uint64_t i = 0; i < rows; i++)
	{
		uint64_t in_block = i / block;

		TEST_CHECK(buckets[i] / bucket == i % block * 128 / block, "bucket: row %llu", (unsigned long long) i);
		TEST_CHECK(staggered[i] / bucket == (in_block < 64 ? 2 * in_block + 1 : 2 * (in_block - 64)),
				   "staggered: row %llu", (unsigned long long) i);
	}
	test_point("%d bits: uniform, gaussian, bucket, staggered", bits);
}

static void
test_zipf(int bits)
{
	const double most = bits == 64 ? 0x1p64 : 0x1p32;
	std::vector<uint64_t> half = make_keys(GPUSORT_ZIPF_HALF, bits, test_rows);
	std::vector<uint64_t> one = make_keys(GPUSORT_ZIPF_ONE, bits, test_rows);
	std::vector<uint64_t> two = make_keys(GPUSORT_ZIPF_TWO, bits, test_rows);
	double harmonic = log(most) + 0.5772156649;
	double thousand = 0;

	for (int k = 1; k <= 1000; k++)
		thousand += 1.0 / k;
	TEST_CHECK(*std::min_element(one.begin(), one.end()) == 1, "zipf1 does not begin at 1");
	check_share("zipf0.5, a quarter", share_up_to(half, (uint64_t) (most / 4)), 0.5, half.size());
	check_share("zipf1, key 1", share_up_to(one, 1), 1 / harmonic, one.size());
	check_share("zipf1, 1000 keys", share_up_to(one, 1000), thousand / harmonic, one.size());
	check_share("zipf2, key 1", share_up_to(two, 1), 6 / (M_PI * M_PI), two.size());
	check_share("zipf2, 2 keys", share_up_to(two, 2), 1.25 * 6 / (M_PI * M_PI), two.size());
	test_point("%d bits: zipf", bits);
}

static void
test_few(int bits)
{
	std::vector<uint64_t> keys = make_keys(GPUSORT_FEW, bits, test_rows);
	std::vector<uint64_t> sorted = keys;

	std::sort(sorted.begin(), sorted.end());
	TEST_CHECK(std::unique(sorted.begin(), sorted.end()) - sorted.begin() <= GPUSORT_FEW_KEYS, "few: too many keys");
	check_share("few, one key", (double) std::count(keys.begin(), keys.end(), keys[0]) / (double) keys.size(),
				1.0 / GPUSORT_FEW_KEYS, keys.size());
	test_point("%d bits: few", bits);
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv, 200000, 1);
	for (int bits = 32; bits <= 64; bits += 32)
	{
		test_orders(bits);
		test_spread(bits);
		test_zipf(bits);
		test_few(bits);
	}
	return test_end();
}
