/*-------------------------------------------------------------------------
 *
 * key_stats_test.cu
 *	  Statistics of chunks' keys on the device against the host's, good chunks and bad ones;
 *	  and packed keys made on the device.  Prints TAP.
 *
 *-------------------------------------------------------------------------
 */
#include "device_test.h"

#include "sort/compact.h"
#include "sort/launch.h"
#include "test_stats.h"

/* A chunk of these keys as it lies in device memory, its records in any order; may spoil some rows. */
static std::vector<char>
make_chunk(const std::vector<Key> &keys, uint32_t words, uint32_t spoil, GpuSortDeviceChunk *chunk,
		   GpuSortKeyStats *expected, uint32_t *bad_rows)
{
	const uint32_t rows = (uint32_t) keys.size();
	std::vector<uint32_t> places(rows);
	std::vector<uint32_t> offsets(rows);
	std::vector<bool> readable(rows, true);
	std::vector<char> memory;

	std::iota(places.begin(), places.end(), 0);
	if (test_below(2))
	{
		for (uint32_t i = rows; i > 1; i--)
			std::swap(places[i - 1], places[test_below(i)]);
	}
	for (uint32_t row : places)
	{
		uint32_t length = (uint32_t) (GPUSORT_ROW_BYTES_MIN + test_below(20));
		size_t at = memory.size();

		offsets[row] = (uint32_t) at;
		memory.resize(at + 8 * words + (length + 7) / 8 * 8);
		memcpy(&memory[at], keys[row].data(), 8 * words);
		memcpy(&memory[at + 8 * words], &length, sizeof(length));
	}
	chunk->bytes = (uint32_t) memory.size();
	chunk->rows = rows;
	for (uint32_t i = 0; i < spoil; i++)
	{
		uint32_t row = (uint32_t) test_below(rows);
		uint32_t length = test_below(2) ? (uint32_t) test_below(GPUSORT_ROW_BYTES_MIN) : UINT32_MAX;
		const uint32_t wrong[] = {4, chunk->bytes, chunk->bytes - 8 * words, UINT32_MAX - 7, UINT32_MAX};

		if (!readable[row])
			continue;
		if (test_below(2))
		{
			offsets[row] = wrong[test_below(5)];
			readable[row] = false;
		}
		else
			memcpy(&memory[offsets[row] + 8 * words], &length, sizeof(length));
	}

	gpusort_key_stats_none(expected);
	*bad_rows = 0;
	for (uint32_t i = 0; i < rows; i++)
	{
		uint32_t length;

		if (!readable[i])
		{
			++*bad_rows;
			continue;
		}
		memcpy(&length, &memory[offsets[i] + 8 * words], sizeof(length));
		*bad_rows += length < GPUSORT_ROW_BYTES_MIN || length == UINT32_MAX;
		add_key(expected, keys[i].data(), words);
		if (i + 1 < rows && readable[i + 1])
			gpusort_key_stats_pair(expected, keys[i].data(), keys[i + 1].data(), words);
	}
	for (uint32_t i = rows; i-- > 0;)
		memory.insert(memory.end(), (char *) &offsets[i], (char *) &offsets[i] + sizeof(uint32_t));
	return memory;
}

static void
test_chunks(void)
{
	for (uint64_t round = 0; round < 2 * test_rounds; round++)
	{
		uint32_t words = (uint32_t) (1 + test_below(round % 4 ? 6 : GPUSORT_DEVICE_SORT_MAX_KEY_WORDS));
		uint32_t rows = std::min(random_rows(), (uint32_t) GPUSORT_REF_CHUNK_BYTES / 4 / (8 * words + 12));
		GpuSortKeyStats expected;
		GpuSortDeviceChunk chunk = {};
		uint32_t bad_rows;
		std::vector<char> memory = make_chunk(make_keys(rows, words), words, round % 3 ? 0 : 1 + rows / 8, &chunk,
											  &expected, &bad_rows);

		reset_stats();
		chunk.base = (uint64_t) (uintptr_t) test_device_copy(memory);
		TEST_CUDA((cudaError_t) gpusort_key_stats_chunk(&chunk, words, stats_there, bad_there,
														(struct CUstream_st *) test_stream));
		check_stats(&expected, bad_rows, "chunk", rows, words);
		test_free_all();
	}
	test_point("statistics of chunks, and their bad rows");
}

static __global__ void
pack_windows(const uint64_t *keys, const __grid_constant__ GpuSortPackPlan plan, uint32_t rows, uint32_t from_top,
			 uint32_t bits, uint64_t *windows)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < rows)
		windows[i] = gpusort_pack_window64(&plan, keys + (uint64_t) i * plan.key_words, from_top, bits);
}

/* The same by a plan of the window alone, two rows at a time. */
static __global__ void
pack_pairs(const uint64_t *keys, const __grid_constant__ GpuSortPackPlan window, uint32_t rows, uint32_t *packed)
{
	uint32_t i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
	uint32_t other = i + 1 < rows ? i + 1 : i;

	if (i < rows)
	{
		const uint64_t *const places[2] = {keys + (uint64_t) i * window.key_words,
										   keys + (uint64_t) other * window.key_words};
		uint32_t pair[2];

		gpusort_pack_keys(&window, places, pair);
		packed[i] = pair[0];
		packed[other] = pair[1];
	}
}

static void
test_windows(void)
{
	for (uint64_t round = 0; round < test_rounds; round++)
	{
		uint32_t words = (uint32_t) (1 + test_below(5));
		uint32_t rows = random_rows();
		std::vector<uint64_t> memory;
		uint64_t *there;
		GpuSortKeyStats stats;
		GpuSortPackPlan plan;
		GpuSortPackPlan window;
		uint32_t from_top;
		uint32_t bits = (uint32_t) (1 + test_below(64));
		uint64_t *windows = (uint64_t *) test_device(rows * sizeof(uint64_t));
		uint32_t *packed = (uint32_t *) test_device(rows * sizeof(uint32_t));
		std::vector<uint64_t> found;
		std::vector<uint32_t> pairs;

		gpusort_key_stats_none(&stats);
		for (const Key &key : make_keys(rows, words))
		{
			add_key(&stats, key.data(), words);
			memory.insert(memory.end(), key.begin(), key.end());
		}
		there = test_device_copy(memory);
		gpusort_pack_plan(&plan, words, &stats);
		from_top = (uint32_t) test_below(plan.packed_bits + 1);
		GPUSORT_START_KERNEL(pack_windows, (rows + 255) / 256, 256, test_stream, (const uint64_t *) there, plan,
							 rows, from_top, bits, windows);
		TEST_CUDA(cudaGetLastError());
		found = test_host_copy(windows, rows);
		for (uint32_t i = 0; i < rows; i++)
			TEST_CHECK(found[i] == gpusort_pack_window64(&plan, &memory[(size_t) i * words], from_top, bits),
					   "row %u of %u words, %u bits from %u of %u", i, words, bits, from_top, plan.packed_bits);

		/* a plan of the window alone */
		bits = (bits + 1) / 2;
		gpusort_pack_window_plan(&window, &plan, from_top, bits);
		TEST_CHECK(window.packed_bits == gpusort_pack_window_bits(&plan, from_top, bits), "%u bits from %u of %u",
				   bits, from_top, plan.packed_bits);
		GPUSORT_START_KERNEL(pack_pairs, (rows + 255) / 256, 256, test_stream, (const uint64_t *) there, window,
							 rows, packed);
		TEST_CUDA(cudaGetLastError());
		pairs = test_host_copy(packed, rows);
		for (uint32_t i = 0; i < rows; i++)
			TEST_CHECK(pairs[i] == gpusort_pack_window64(&plan, &memory[(size_t) i * words], from_top, bits),
					   "row %u of %u words, %u bits from %u of %u", i, words, bits, from_top, plan.packed_bits);
		test_free_all();
	}
	test_point("windows of packed keys are the same on the device and on the host");
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv, 30000, 40);
	test_chunks();
	test_windows();
	return test_end();
}
