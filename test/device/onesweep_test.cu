/*-------------------------------------------------------------------------
 *
 * onesweep_test.cu
 *	  The radix core's kernels with small tiles and portions, so that thousands of
 *	  rows take the paths that billions take with the shipped ones.  Prints TAP.
 *
 *-------------------------------------------------------------------------
 */
#include "device_test.h"

#include "sort/radix/onesweep.cuh"

/* Tiles of 1,024 rows, three of them a launch. */
typedef GpuSortOnesweep<256, 4, 2, 2, 4, 3> SmallTiles;

/* Looks back at one tile at a time. */
typedef GpuSortOnesweep<256, 4, 2, 4, 1, 1000> LongWalks;

template <typename Core>
static void
check_sort(uint32_t rows, int bits, uint32_t most)
{
	if (!test_taken())
		return;

	const uint32_t mask = bits == 32 ? ~0U : (1U << bits) - 1;
	std::vector<uint32_t> keys(rows);
	uint32_t bad = 0;

	for (uint32_t i = 0; i < rows; i++)
		keys[i] = (uint32_t) test_below(most);

	std::vector<uint32_t> order = test_stable_order(rows, [&](uint32_t a, uint32_t b)
													{ return (keys[a] & mask) < (keys[b] & mask); });
	uint32_t *device_keys = test_device_copy(keys);
	uint32_t *ids = (uint32_t *) test_device(rows * sizeof(uint32_t));
	const size_t temp_bytes = Core::temp_bytes(rows, bits);
	void *temp = test_device(temp_bytes);

	GpuSortRadixSort sort = {};

	sort.temp = temp;
	sort.temp_bytes = temp_bytes;
	sort.keys_in = device_keys;
	sort.rows = rows;
	sort.bits = bits;
	sort.ids_out = ids;
	TEST_CUDA(Core::sort(&sort, test_stream));
	TEST_CUDA(cudaStreamSynchronize(test_stream));

	std::vector<uint32_t> got = test_host_copy(ids, rows);

	for (uint32_t i = 0; i < rows; i++)
		bad += got[i] != order[i];
	TEST_CHECK(bad == 0, "%u rows, %d bits, keys below %u: %u ids are wrong", rows, bits, most, bad);
	test_free_all();
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv, 20000, 8);
	for (uint32_t rows : {1024, 1025, 3071, 3072, 3073, 6144, 6145, 9999})
		check_sort<SmallTiles>(rows, 32, ~0U);
	test_point("launches of three tiles: sizes around their ends");
	for (int bits : {1, 8, 9, 16, 24, 25, 31})
		check_sort<SmallTiles>(7000, bits, ~0U);
	test_point("launches of three tiles: any number of passes");
	for (uint32_t most : {1, 2, 255, 70000})
		check_sort<SmallTiles>(13000, 32, most);
	test_point("launches of three tiles: keys that tie");
	for (uint64_t i = 0; i < test_rounds; i++)
		check_sort<SmallTiles>(1 + (uint32_t) test_below(test_rows), 1 + (int) test_below(32), ~0U);
	test_point("launches of three tiles: at random");
	for (uint64_t i = 0; i < test_rounds; i++)
		check_sort<LongWalks>(1 + (uint32_t) test_below(test_rows), 1 + (int) test_below(32), ~0U);
	test_point("one launch of many tiles");
	return test_end();
}
