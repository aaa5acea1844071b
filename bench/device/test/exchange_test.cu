/*-------------------------------------------------------------------------
 *
 * exchange_test.cu
 *	  Splitters, partition and the reading of pieces (multi/exchange.h), against
 *	  what they should be by definition.  Prints TAP.
 *
 *-------------------------------------------------------------------------
 */
#include "device_test.h"

#include "distributions.h"
#include "multi/exchange.h"

/* Keys of 32 or 64 bits, as numbers. */
static std::vector<uint64_t>
make_keys(uint64_t rows, int distribution, uint32_t key_bytes)
{
	std::vector<uint64_t> keys(rows);
	uint64_t seed = test_random();

	for (uint64_t i = 0; i < rows; i++)
		keys[i] = key_bytes == 4 ? gpusort_distribution_key32(distribution, i, rows, seed)
								 : gpusort_distribution_key64(distribution, i, rows, seed);
	return keys;
}

/* The same as they lie in memory. */
static std::vector<char>
pack_keys(const std::vector<uint64_t> &keys, uint32_t key_bytes)
{
	std::vector<char> packed(keys.size() * key_bytes);

	for (size_t i = 0; i < keys.size(); i++)
		memcpy(packed.data() + i * key_bytes, &keys[i], key_bytes);
	return packed;
}

static bool
below(uint64_t key, uint64_t row, const GpuSortSplitter &splitter)
{
	return key != splitter.key ? key < splitter.key : row < splitter.row;
}

static uint32_t
right_bin(const std::vector<GpuSortSplitter> &splitters, uint64_t key, uint64_t row)
{
	uint32_t bin = 0;

	while (bin < splitters.size() && !below(key, row, splitters[bin]))
		bin++;
	return bin;
}

/* ---- splitters ---- */

static void
check_splitters(uint64_t rows, int distribution, uint32_t key_bytes, uint32_t bins, uint64_t samples)
{
	std::vector<uint64_t> keys = make_keys(rows, distribution, key_bytes);
	std::vector<char> packed = pack_keys(keys, key_bytes);
	std::vector<GpuSortSplitter> scratch(samples);
	std::vector<GpuSortSplitter> splitters(bins - 1);
	std::vector<uint64_t> counts(bins);

	gpusort_choose_splitters(packed.data(), key_bytes, rows, bins, samples, test_random(), scratch.data(),
							 splitters.data());
	for (uint32_t i = 0; i + 1 < bins; i++)
	{
		TEST_CHECK(splitters[i].row < rows && splitters[i].key == keys[splitters[i].row], "splitter %u is no row", i);
		TEST_CHECK(i == 0 || below(splitters[i - 1].key, splitters[i - 1].row, splitters[i]),
				   "splitters %u and %u are out of order", i - 1, i);
	}
	for (uint64_t i = 0; i < rows; i++)
		counts[right_bin(splitters, keys[i], i)]++;
	for (uint32_t i = 0; i < bins && samples == rows; i++)
		TEST_CHECK(counts[i] == rows * (i + 1) / bins - rows * i / bins, "bin %u of %u has %llu of %llu rows", i, bins,
				   (unsigned long long) counts[i], (unsigned long long) rows);
	for (uint32_t i = 0; i < bins && samples >= 64 * bins; i++)
		TEST_CHECK(counts[i] < 3 * rows / bins, "bin %u of %u has %llu of %llu rows", i, bins,
				   (unsigned long long) counts[i], (unsigned long long) rows);
}

static void
test_splitters(void)
{
	for (int distribution = 0; distribution < GPUSORT_DISTRIBUTIONS; distribution++)
	{
		check_splitters(1000, distribution, 4, 7, 1000);
		check_splitters(20000, distribution, 8, 32, 64 * 32);
		check_splitters(777, distribution, 8, 13, 20);
	}
	check_splitters(1, GPUSORT_UNIFORM, 4, 1, 1);
	check_splitters(5, GPUSORT_ZERO, 4, 5, 5);
	test_point("splitters are rows, in order, and cut evenly whatever the keys");
}

/* ---- partition ---- */

static void
check_partition(uint32_t rows, int distribution, uint32_t key_bytes, uint32_t bins, uint64_t first_row,
				bool with_rows)
{
	std::vector<uint64_t> keys = make_keys(rows, distribution, key_bytes);
	std::vector<GpuSortSplitter> splitters(bins - 1);
	std::vector<uint32_t> bin_of(rows);
	std::vector<uint32_t> counts(bins);

	/* half of them rows of this chunk, so that keys tie on both sides; others before, behind, or of no row */
	for (GpuSortSplitter &splitter : splitters)
	{
		uint64_t number = rows > 0 ? test_below(rows) : 0;

		splitter.key = rows > 0 && test_below(4) > 0 ? keys[number] : test_random() >> (64 - 8 * key_bytes);
		splitter.row = first_row + number;
		if (test_below(4) == 0)
			splitter.row = test_random() >> test_below(64);
	}
	std::sort(splitters.begin(), splitters.end(), [](const GpuSortSplitter &a, const GpuSortSplitter &b)
			  { return below(a.key, a.row, b); });
	for (uint32_t i = 0; i < rows; i++)
		counts[bin_of[i] = right_bin(splitters, keys[i], first_row + i)]++;
	std::vector<uint32_t> order = test_stable_order(rows, [&](uint32_t a, uint32_t b)
													{ return bin_of[a] < bin_of[b]; });

	GpuSortPartition partition = {};
	uint32_t *temp = (uint32_t *) test_device(gpusort_partition_temp_bytes(rows, bins));

	partition.keys = test_device_copy(pack_keys(keys, key_bytes));
	partition.key_bytes = key_bytes;
	partition.rows = rows;
	partition.first_row = first_row;
	partition.splitters = test_device_copy(splitters);
	partition.bins = bins;
	partition.keys_out = test_device((size_t) rows * key_bytes);
	partition.rows_out = with_rows ? (uint32_t *) test_device(rows * sizeof(uint32_t)) : NULL;
	partition.bin_rows = (uint32_t *) test_device(bins * sizeof(uint32_t));
	TEST_CUDA(gpusort_partition(&partition, temp, test_stream));
	TEST_CUDA(cudaStreamSynchronize(test_stream));

	std::vector<char> got = test_host_copy((char *) partition.keys_out, (size_t) rows * key_bytes);
	std::vector<uint32_t> got_rows = test_host_copy(partition.rows_out, with_rows ? rows : 0);
	uint32_t bad = 0;

	for (uint32_t i = 0; i < rows; i++)
	{
		bad += memcmp(got.data() + (size_t) i * key_bytes, &keys[order[i]], key_bytes) != 0 ||
			(with_rows && got_rows[i] != (uint32_t) (first_row + order[i]));
	}
	TEST_CHECK(bad == 0, "%u rows, %s, %u bytes, %u bins: %u rows are wrong", rows,
			   gpusort_distribution_name(distribution), key_bytes, bins, bad);
	TEST_CHECK(test_host_copy(partition.bin_rows, bins) == counts, "%u rows, %u bins: rows of bins are wrong", rows,
			   bins);
	test_free_all();
}

static void
test_partition(void)
{
	static const uint32_t sizes[] = {0, 1, 31, 32, 33, 511, 512, 513, 4095, 4096, 4097, 8192, 12289};

	for (uint32_t size : sizes)
	{
		check_partition(size, GPUSORT_UNIFORM, 4, 9, 0, true);
		check_partition(size, GPUSORT_ZIPF_ONE, 8, 256, (uint64_t) 5 << 32, size % 2 == 0);
	}
	test_point("partition: rows around the sizes of warps, blocks and tiles");

	for (uint32_t bins : {1, 2, 3, 4, 5, 31, 32, 33, 127, 128, 129, 255, 256})
		check_partition((uint32_t) std::min(test_rows, (uint64_t) 5000), GPUSORT_GAUSSIAN, bins % 2 ? 4 : 8, bins,
						12345, true);
	test_point("partition: 1 to 256 bins");

	/* more tiles than scan_tiles has threads */
	check_partition(4096 * 257 + 3, GPUSORT_ZERO, 4, 3, 99, false);
	test_point("partition: many tiles");

	for (uint64_t i = 0; i < test_rounds; i++)
		check_partition((uint32_t) test_below(test_rows + 1), (int) test_below(GPUSORT_DISTRIBUTIONS),
						test_below(2) ? 4 : 8, 1 + (uint32_t) test_below(256), test_random() >> test_below(64) >> 1,
						test_below(2));
	test_point("partition: %llu at random", (unsigned long long) test_rounds);
}

/* ---- moving rows ---- */

static void
check_pieces(uint32_t row_bytes, uint32_t piece_count, uint32_t most_rows, uint32_t source_count)
{
	GpuSortSources sources = {};
	std::vector<std::vector<char>> arrays(source_count);
	std::vector<GpuSortBinPiece> pieces;
	std::vector<char> right;
	uint32_t rows = 0;

	for (uint32_t i = 0; i < source_count; i++)
	{
		arrays[i].resize((size_t) (most_rows + 100) * row_bytes);
		for (char &byte : arrays[i])
			byte = (char) test_random();
		sources.base[i] = test_device_copy(arrays[i]);
	}
	for (uint32_t i = 0; i < piece_count; i++)
	{
		GpuSortBinPiece piece = {};

		piece.source = (uint32_t) test_below(source_count);
		piece.rows = 1 + (uint32_t) (test_below(3) ? test_below(most_rows) : test_below(3));
		piece.from_row = test_below(most_rows + 100 - piece.rows);
		piece.to_row = rows;
		rows += piece.rows;
		right.insert(right.end(), arrays[piece.source].begin() + piece.from_row * row_bytes,
					 arrays[piece.source].begin() + (piece.from_row + piece.rows) * row_bytes);
		pieces.push_back(piece);
	}

	char *to = (char *) test_device((size_t) rows * row_bytes);

	TEST_CUDA(gpusort_read_pieces(&sources, row_bytes, test_device_copy(pieces), piece_count, rows, to, test_stream));
	TEST_CHECK(test_host_copy(to, (size_t) rows * row_bytes) == right, "%u pieces of rows of %u bytes", piece_count,
			   row_bytes);
	test_free_all();
}

static void
check_move(uint32_t row_bytes, uint32_t rows)
{
	const uint32_t first = (uint32_t) test_random();
	std::vector<char> from((size_t) 1000 * row_bytes);
	std::vector<uint32_t> numbers(rows);
	std::vector<char> right;

	for (char &byte : from)
		byte = (char) test_random();
	for (uint32_t &number : numbers)
	{
		size_t at = test_below(1000);

		number = first + (uint32_t) at; /* beyond 2^32 too */
		right.insert(right.end(), from.begin() + at * row_bytes, from.begin() + (at + 1) * row_bytes);
	}

	char *to = (char *) test_device((size_t) rows * row_bytes);

	TEST_CUDA(gpusort_move_rows(test_device_copy(from), row_bytes, test_device_copy(numbers), first, rows, to,
								test_stream));
	TEST_CHECK(test_host_copy(to, (size_t) rows * row_bytes) == right, "%u rows of %u bytes", rows, row_bytes);
	test_free_all();
}

static void
check_words(uint32_t rows)
{
	std::vector<uint64_t> keys = make_keys(std::max(rows, 1u), GPUSORT_UNIFORM, 8);
	std::vector<uint32_t> numbers(rows);
	std::vector<uint32_t> right(rows);
	uint32_t *words = (uint32_t *) test_device(rows * sizeof(uint32_t));
	uint64_t *device_keys = test_device_copy(keys);

	for (uint32_t i = 0; i < rows; i++)
	{
		numbers[i] = (uint32_t) test_below(rows);
		right[i] = (uint32_t) (keys[numbers[i]] >> 32);
	}
	TEST_CUDA(gpusort_key_words(device_keys, test_device_copy(numbers), rows, 32, words, test_stream));
	TEST_CHECK(test_host_copy(words, rows) == right, "%u high words by number", rows);
	TEST_CUDA(gpusort_key_words(device_keys, NULL, rows, 0, words, test_stream));
	for (uint32_t i = 0; i < rows; i++)
		right[i] = (uint32_t) keys[i];
	TEST_CHECK(test_host_copy(words, rows) == right, "%u low words", rows);
	test_free_all();
}

static void
test_moves(void)
{
	for (uint32_t row_bytes : {4, 8, 12, 16, 20, 24, 48, 64, 100, 4096})
	{
		check_pieces(row_bytes, 1, 1, 1);
		check_pieces(row_bytes, 20, 40000 / row_bytes, 3);
		check_pieces(row_bytes, 3, 200000 / row_bytes, 16);
		check_move(row_bytes, 0);
		check_move(row_bytes, 1);
		check_move(row_bytes, 40000 / row_bytes);
	}
	check_pieces(4, 300, 10, 2);
	test_point("pieces and rows of many sizes");
	check_words(0);
	check_words(1);
	check_words(5000);
	test_point("words of keys");
}

static void
test_refusals(void)
{
	GpuSortPartition partition = {};
	GpuSortSources sources = {};

	partition.key_bytes = 4;
	TEST_CHECK(gpusort_partition(&partition, NULL, test_stream) == cudaErrorInvalidValue, "no bin");
	partition.bins = 257;
	TEST_CHECK(gpusort_partition(&partition, NULL, test_stream) == cudaErrorInvalidValue, "too many bins");
	partition.bins = 1;
	partition.key_bytes = 5;
	TEST_CHECK(gpusort_partition(&partition, NULL, test_stream) == cudaErrorInvalidValue, "keys of 5 bytes");
	TEST_CHECK(gpusort_read_pieces(&sources, 6, NULL, 1, 1, NULL, test_stream) == cudaErrorInvalidValue,
			   "rows of 6 bytes");
	TEST_CHECK(gpusort_move_rows(NULL, 0, NULL, 0, 1, NULL, test_stream) == cudaErrorInvalidValue, "rows of no bytes");
	test_point("arguments out of range are refused");
}

int
main(int argc, char **argv)
{
#ifdef __CUDACC__
	test_begin(argc, argv, 300000, 200);
#else
	test_begin(argc, argv, 20000, 20);
#endif
	test_splitters();
	test_partition();
	test_moves();
	test_refusals();
	return test_end();
}
