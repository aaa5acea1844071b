/*-------------------------------------------------------------------------
 *
 * published_test.cu
 *	  The sorts of one GPU and of the CPU in bench/device/published/, each against
 *	  std::stable_sort: all key widths, with row ids and without, all
 *	  distributions, sizes around their tiles, and input made against each of
 *	  them.  Prints TAP.
 *
 *-------------------------------------------------------------------------
 */
#include "device_test.h"

#include "distributions.h"
#include "published/reference.h"
#include "sort/launch.h"

#define THREADS   256
#define HOST_ROWS 30000 /* of inputs made by the host, at most */

/* What is sorted, and what must come of it. */
typedef struct Input
{
	int key_bytes;
	uint32_t rows;
	void *keys; /* on the device */
	std::vector<char> right_keys;
	std::vector<uint32_t> right_ids;
} Input;

/* Memory for a sort of the CPU: a vector between bands. */
static std::vector<std::vector<unsigned char>> host_memory;

static void *
host_take(size_t bytes)
{
	std::vector<unsigned char> memory(bytes + 2 * TEST_GUARD_BYTES);

	for (size_t i = 0; i < memory.size(); i++)
		memory[i] = test_garbage(i);
	host_memory.push_back(std::move(memory));
	return host_memory.back().data() + TEST_GUARD_BYTES;
}

static void
host_free_all(const char *name)
{
	for (const std::vector<unsigned char> &memory : host_memory)
	{
		for (size_t i = 0; i < TEST_GUARD_BYTES; i++)
		{
			const size_t behind = memory.size() - 1 - i;

			TEST_CHECK(memory[i] == test_garbage(i) && memory[behind] == test_garbage(behind),
					   "%s has written beside its memory", name);
		}
	}
	host_memory.clear();
}

/* Keys, in device memory, with their right order; test_free_all() frees them. */
template <typename Key>
static Input
make_input(const std::vector<Key> &keys)
{
	Input input;

	input.key_bytes = sizeof(Key);
	input.rows = (uint32_t) keys.size();
	input.keys = test_device_copy(keys);
	input.right_ids = test_stable_order(keys.size(), [&](uint32_t a, uint32_t b)
										{ return keys[a] < keys[b]; });
	for (uint32_t row : input.right_ids)
		input.right_keys.insert(input.right_keys.end(), (const char *) &keys[row], (const char *) (&keys[row] + 1));
	return input;
}

/* How many words of device memory are not as they should be. */
static uint64_t
differences(const void *found, const void *right, uint64_t bytes)
{
	const std::vector<uint32_t> words = test_host_copy((const uint32_t *) found, bytes / 4);
	uint64_t count = 0;

	for (size_t i = 0; i < words.size(); i++)
		count += memcmp(&words[i], (const char *) right + 4 * i, 4) != 0;
	return count;
}

/* One sort, in memory of its own; `what` says in what is wrong what was sorted. */
static void
check_sort(const GpuSortReference *reference, const Input *input, bool with_ids, const char *what)
{
	const size_t key_bytes = (size_t) input->rows * input->key_bytes;
	const size_t id_bytes = with_ids ? (size_t) input->rows * 4 : 0;
	GpuSortReferenceArgs args = {};
	const std::vector<char> keys_before = test_host_copy((const char *) input->keys, key_bytes);
	void *keys_out = test_device(key_bytes);
	uint32_t *ids_out = (uint32_t *) test_device(id_bytes);
	uint64_t bad_keys;
	uint64_t bad_ids = 0;

	args.rows = input->rows;
	args.key_bytes = input->key_bytes;
	TEST_CUDA(reference->temp_bytes(input->rows, input->key_bytes, with_ids, &args.temp_bytes));
	if (reference->on_cpu)
	{
		void *keys_in = host_take(key_bytes);

		test_download(keys_in, input->keys, key_bytes);
		args.keys_in = keys_in;
		args.keys_out = host_take(key_bytes);
		args.ids_out = with_ids ? (uint32_t *) host_take(id_bytes) : NULL;
		args.temp = host_take(args.temp_bytes);
		args.threads = (int) test_below(6);
		TEST_CUDA(reference->sort(&args, NULL));
		test_upload(input->keys, keys_in, key_bytes);
		test_upload(keys_out, args.keys_out, key_bytes);
		if (with_ids)
			test_upload(ids_out, args.ids_out, id_bytes);
	}
	else
	{
		args.keys_in = input->keys;
		args.keys_out = keys_out;
		args.ids_out = with_ids ? ids_out : NULL;
		args.temp = test_device(args.temp_bytes);
		TEST_CUDA(reference->sort(&args, test_stream));
		memset(&args, 0xEE, sizeof(args)); /* not to be read any more */
	}
	TEST_CUDA(cudaStreamSynchronize(test_stream));

	bad_keys = differences(keys_out, input->right_keys.data(), key_bytes);
	if (with_ids && reference->stable)
		bad_ids = differences(ids_out, input->right_ids.data(), id_bytes);
	TEST_CHECK(bad_keys == 0 && bad_ids == 0,
			   "%s, %s, %u rows, %d-byte keys%s: %llu words of keys and %llu ids are wrong", reference->name, what,
			   input->rows, input->key_bytes, with_ids ? " with ids" : "", (unsigned long long) bad_keys,
			   (unsigned long long) bad_ids);
	TEST_CHECK(differences(input->keys, keys_before.data(), key_bytes) == 0, "%s has changed its input",
			   reference->name);
	host_free_all(reference->name);
}

/* All that a reference can make of the keys. */
template <typename Key>
static void
check_keys(const GpuSortReference *reference, const std::vector<Key> &keys, const char *what)
{
	const bool can[2] = {
		gpusort_reference_can(reference, (uint32_t) keys.size(), sizeof(Key), false),
		gpusort_reference_can(reference, (uint32_t) keys.size(), sizeof(Key), true)};
	Input input;

	if ((!can[0] && !can[1]) || !test_taken())
		return;
	input = make_input(keys);
	for (int with_ids = 0; with_ids < 2; with_ids++)
	{
		if (can[with_ids])
			check_sort(reference, &input, with_ids, what);
	}
	test_free_all();
}

/* Keys whose value is one of few, among them the largest, which padding has, too. */
template <typename Key>
static std::vector<Key>
few_keys(uint32_t rows)
{
	std::vector<Key> keys(rows);
	const Key values[4] = {0, (Key) ~(Key) 0, (Key) ~(Key) 1, (Key) test_random()};

	for (Key &key : keys)
		key = values[test_below(4)];
	return keys;
}

template <typename Key>
static std::vector<Key>
distributed_keys(uint32_t rows, int distribution)
{
	std::vector<Key> keys(rows);
	const uint64_t seed = test_random();

	for (uint32_t i = 0; i < rows; i++)
		keys[i] = sizeof(Key) == 4 ? (Key) gpusort_distribution_key32(distribution, i, rows, seed)
								   : (Key) gpusort_distribution_key64(distribution, i, rows, seed);
	return keys;
}

/* Keys whose highest bits, or lowest, are always the same. */
template <typename Key>
static std::vector<Key>
narrow_keys(uint32_t rows)
{
	std::vector<Key> keys(rows);
	const Key base = (Key) test_random();
	const int bits = (int) test_below(8 * sizeof(Key) + 1);
	const Key mask = bits == 0 ? 0 : (Key) ~(Key) 0 >> (8 * sizeof(Key) - bits);
	const bool high = test_below(2) == 1;

	for (Key &key : keys)
	{
		key = (Key) test_random();
		key = high ? (Key) ((base & mask) | (key & ~mask)) : (Key) ((base & ~mask) | (key & mask));
	}
	return keys;
}

/*
 * Against GPU-Quicksort's second phase: the median of the first, the middle and the last word of
 * what is left is always the second smallest, so that two words at a time are split off.  Follows how
 * its threads read and write (the block's threads are THREADS).
 */
template <typename Key>
static std::vector<Key>
bad_medians(uint32_t rows)
{
	std::vector<Key> keys(rows);
	std::vector<uint32_t> left(rows); /* rows without a key so far, as they lie */
	Key next = 1;

	std::iota(left.begin(), left.end(), 0);
	while (left.size() > 8)
	{
		const size_t end = left.size() - 1;
		std::vector<uint32_t> above;

		keys[left[0]] = next++;
		keys[left[end / 2 + end % 2]] = next++;
		for (size_t thread = 0; thread < THREADS; thread++)
		{
			for (size_t i = thread; i <= end; i += THREADS)
			{
				if (i != 0 && i != end / 2 + end % 2)
					above.push_back(left[i]);
			}
		}
		left.assign(above.rbegin(), above.rend());
	}
	for (uint32_t row : left)
		keys[row] = next++;
	return keys;
}

/*
 * How many rows show all that a reference does: the CPU's threads and GPU-Quicksort's first phase
 * want more than others, emulated bitonic sorts take long, and the limiter is not the sort's.
 */
static uint32_t
most_rows(const GpuSortReference *reference)
{
	uint64_t rows = std::min(test_rows, (uint64_t) HOST_ROWS);

	if (reference->on_cpu)
		rows *= 8;
	else if (strcmp(reference->name, "gpu-quicksort") == 0)
		rows *= 4;
	else if (strncmp(reference->name, "bitonic", 7) == 0 || strcmp(reference->name, "implicit-radix-limited") == 0)
		rows -= rows / 2;

	return (uint32_t) std::min(rows, (uint64_t) reference->most_rows);
}

/* Each kind of keys in one of the widths: with them all, it would take too long. */
template <typename Make4, typename Make8>
static void
check_widths(const GpuSortReference *reference, Make4 make4, Make8 make8, const char *what)
{
	if (test_below(2))
		check_keys(reference, make4(), what);
	else
		check_keys(reference, make8(), what);
}

static void
check_distribution(const GpuSortReference *reference, uint32_t rows, int distribution)
{
	check_widths(
		reference, [=]()
		{ return distributed_keys<uint32_t>(rows, distribution); },
		[=]()
		{ return distributed_keys<uint64_t>(rows, distribution); },
		gpusort_distribution_name(distribution));
}

static void
check_few(const GpuSortReference *reference, uint32_t rows)
{
	check_widths(
		reference, [=]()
		{ return few_keys<uint32_t>(rows); },
		[=]()
		{ return few_keys<uint64_t>(rows); },
		"few keys");
}

static void
test_sizes(const GpuSortReference *reference)
{
	/* around warps, blocks, lines, vectors and tiles */
	static const uint32_t sizes[] = {0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 255, 256,
									 257, 1023, 1024, 1025, 2047, 2048, 2049, 3071, 3073, 3839, 3840, 3841,
									 4096, 4097, 6145, 7681, 8192, 8193, 16384, 16385, 32768, 32769, 65537, 131073};

	for (uint32_t size : sizes)
	{
		if (size > most_rows(reference))
			continue;
		if (test_below(2))
			check_few(reference, size);
		else
			check_distribution(reference, size, GPUSORT_UNIFORM);
	}
	test_point("%s: rows around its tiles", reference->name);
}

static void
test_distributions(const GpuSortReference *reference)
{
	const uint32_t rows = most_rows(reference);
	const uint32_t short_rows = std::min(rows, 16384u);

	for (int distribution = 0; distribution < GPUSORT_DISTRIBUTIONS; distribution++)
		check_distribution(reference, rows - distribution % 2, distribution);
	check_widths(
		reference, [=]()
		{ return bad_medians<uint32_t>(short_rows); },
		[=]()
		{ return bad_medians<uint64_t>(short_rows); },
		"bad medians");
	test_point("%s: all distributions, %u rows", reference->name, rows);
}

static void
test_at_random(const GpuSortReference *reference)
{
	for (uint64_t round = 0; round < test_rounds; round++)
	{
		const uint32_t rows = (uint32_t) test_below(most_rows(reference) / (test_below(2) ? 1 : 8) + 1);

		switch (test_below(3))
		{
			case 0:
				check_widths(
					reference, [=]()
					{ return narrow_keys<uint32_t>(rows); },
					[=]()
					{ return narrow_keys<uint64_t>(rows); },
					"narrow keys");
				break;
			case 1:
				check_few(reference, rows);
				break;
			default:
				check_distribution(reference, rows, (int) test_below(GPUSORT_DISTRIBUTIONS));
				break;
		}
	}
	test_point("%s: %llu input(s) at random", reference->name, (unsigned long long) test_rounds);
}

/* What a reference has to refuse, and what it says of itself. */
static void
test_arguments(const GpuSortReference *reference)
{
	static const int key_bytes[] = {0, 2, 4, 8, 16};
	GpuSortReferenceArgs none = {};
	uint64_t word[2] = {};

	for (int bytes : key_bytes)
	{
		for (int with_ids = 0; with_ids < 2; with_ids++)
		{
			GpuSortReferenceArgs args = {};
			const bool can = gpusort_reference_can(reference, 1000, bytes, with_ids);
			const cudaError_t status = reference->temp_bytes(1000, bytes, with_ids, &args.temp_bytes);

			TEST_CHECK(status == (can ? cudaSuccess : cudaErrorInvalidValue), "%s, %d-byte keys: temp_bytes says %d",
					   reference->name, bytes, status);
			args.keys_in = &word[0];
			args.keys_out = &word[1];
			args.ids_out = with_ids ? (uint32_t *) word : NULL;
			args.rows = 1000;
			args.key_bytes = bytes;
			args.temp = word;
			if (can)
				args.temp_bytes--; /* a byte too few */
			TEST_CHECK((can && args.temp_bytes == SIZE_MAX) ||
						   reference->sort(&args, test_stream) == cudaErrorInvalidValue,
					   "%s takes what it cannot sort", reference->name);
			TEST_CHECK(!can || reference->bytes_per_row(1000, bytes, with_ids) >= 2 * bytes + 4 * with_ids,
					   "%s claims to move less than its input and output", reference->name);
		}
	}
	TEST_CHECK(reference->temp_bytes(UINT32_MAX, 4, false, &none.temp_bytes) == cudaErrorInvalidValue,
			   "%s takes more rows than there are numbers", reference->name);
	none.key_bytes = 4;
	none.temp_bytes = 0;
	TEST_CHECK(reference->sort(&none, test_stream) == cudaSuccess, "%s cannot sort no rows", reference->name);
	test_point("%s: arguments", reference->name);
}

template <typename Key>
static __global__ void
fill_keys(Key *keys, uint32_t rows, int distribution, uint64_t seed)
{
	for (uint64_t i = blockIdx.x * (uint64_t) THREADS + threadIdx.x; i < rows; i += (uint64_t) gridDim.x * THREADS)
		keys[i] = sizeof(Key) == 4 ? (Key) gpusort_distribution_key32(distribution, i, rows, seed)
								   : (Key) gpusort_distribution_key64(distribution, i, rows, seed);
}

/* What is found of a sort's output. */
enum
{
	BAD_ROWS,
	HASH_IN,
	HASH_OUT,
	FOUND
};

/*
 * Proves an order without another sort.  With ids: (key, id) rises strictly, so no id comes twice, and
 * each key is that of its id.  Without: the keys do not fall, and a hash of all of them, in whatever
 * order, is that of the input.
 */
template <typename Key>
static __global__ void
check_order(const Key *keys_in, const Key *keys_out, const uint32_t *ids, uint32_t rows, unsigned long long *found)
{
	unsigned long long mine[FOUND] = {0, 0, 0};

	for (uint64_t i = blockIdx.x * (uint64_t) THREADS + threadIdx.x; i < rows; i += (uint64_t) gridDim.x * THREADS)
	{
		const Key key = keys_out[i];

		mine[HASH_IN] += gpusort_row_random(0, keys_in[i], 0);
		mine[HASH_OUT] += gpusort_row_random(0, key, 0);
		if (i > 0 && keys_out[i - 1] > key)
			mine[BAD_ROWS]++;
		if (ids != NULL &&
			(ids[i] >= rows || keys_in[ids[i]] != key || (i > 0 && keys_out[i - 1] == key && ids[i - 1] >= ids[i])))
			mine[BAD_ROWS]++;
	}
	for (int i = 0; i < FOUND; i++)
		atomicAdd(&found[i], mine[i]);
}

/* Rows that are made and checked on the device, so that there may be many. */
template <typename Key>
static void
check_many(const GpuSortReference *reference, uint64_t rows, bool with_ids, int distribution)
{
	const size_t key_bytes = rows * sizeof(Key);
	const size_t id_bytes = with_ids ? rows * sizeof(uint32_t) : 0;
	const uint32_t blocks = (uint32_t) std::min((rows + THREADS - 1) / THREADS, (uint64_t) 2048);
	const char *name = gpusort_distribution_name(distribution);
	GpuSortReferenceArgs args = {};
	size_t free_bytes;
	size_t all_bytes;
	Key *keys;
	unsigned long long *found;
	unsigned long long result[FOUND];

	if (reference->on_cpu || rows > UINT32_MAX ||
		!gpusort_reference_can(reference, (uint32_t) rows, sizeof(Key), with_ids))
		return;
	args.rows = (uint32_t) rows;
	args.key_bytes = sizeof(Key);
	TEST_CUDA(reference->temp_bytes(args.rows, sizeof(Key), with_ids, &args.temp_bytes));
	TEST_CUDA(cudaMemGetInfo(&free_bytes, &all_bytes));
	if (free_bytes < 2 * key_bytes + id_bytes + args.temp_bytes + (1 << 28))
	{
		printf("# %s: the device has not the memory for %llu rows\n", reference->name, (unsigned long long) rows);
		return;
	}
	TEST_CUDA(cudaMalloc((void **) &keys, key_bytes));
	TEST_CUDA(cudaMalloc(&args.keys_out, key_bytes));
	if (with_ids)
		TEST_CUDA(cudaMalloc((void **) &args.ids_out, id_bytes));
	TEST_CUDA(cudaMalloc(&args.temp, args.temp_bytes));
	TEST_CUDA(cudaMalloc((void **) &found, sizeof(result)));
	TEST_CUDA(cudaMemsetAsync(found, 0, sizeof(result), test_stream));
	GPUSORT_START_KERNEL(fill_keys<Key>, blocks, THREADS, test_stream, keys, args.rows, distribution, test_random());
	TEST_CUDA(cudaGetLastError());

	args.keys_in = keys;
	TEST_CUDA(reference->sort(&args, test_stream));
	GPUSORT_START_KERNEL(check_order<Key>, blocks, THREADS, test_stream, (const Key *) keys,
						 (const Key *) args.keys_out, (const uint32_t *) args.ids_out, args.rows, found);
	TEST_CUDA(cudaGetLastError());
	test_download(result, found, sizeof(result));
	TEST_CHECK(result[BAD_ROWS] == 0 && result[HASH_IN] == result[HASH_OUT],
			   "%s, %s, %llu rows, %d-byte keys%s: %llu rows are out of order, the keys are %s", reference->name, name,
			   (unsigned long long) rows, (int) sizeof(Key), with_ids ? " with ids" : "", result[BAD_ROWS],
			   result[HASH_IN] == result[HASH_OUT] ? "the same" : "others");
	TEST_CUDA(cudaFree(keys));
	TEST_CUDA(cudaFree(args.keys_out));
	if (with_ids)
		TEST_CUDA(cudaFree(args.ids_out));
	TEST_CUDA(cudaFree(args.temp));
	TEST_CUDA(cudaFree(found));
}

/* Up to --rows rows: 2^31 and more take some seconds with each of the bitonic sorts. */
static void
test_many(const GpuSortReference *reference)
{
	static const uint64_t sizes[] = {2049, 4000037, ((uint64_t) 1 << 28) + 1, ((uint64_t) 1 << 30) + 1,
									 (uint64_t) 1 << 31, UINT32_MAX - 1};
	uint64_t most = 0;

	for (uint64_t size : sizes)
	{
		if (size > test_rows)
			break;
		if (size == 4000037)
		{
			for (int distribution = 0; distribution < GPUSORT_DISTRIBUTIONS; distribution++)
			{
				check_many<uint32_t>(reference, size, true, distribution);
				check_many<uint64_t>(reference, size, false, distribution);
			}
		}
		else
		{
			check_many<uint32_t>(reference, size, false, GPUSORT_UNIFORM);
			check_many<uint32_t>(reference, size, true, GPUSORT_ZIPF_ONE);
		}
		most = size;
	}
	test_point("%s: %llu rows made on the device", reference->name, (unsigned long long) most);
}

/*
 * A quarter of what takes GPU-Quicksort through both its phases is 4097 rows, and so is an eighth of
 * what cpu-merge sorts in two blocks.  Under a sanitizer as few will do; by default a GPU gets some
 * millions, made on it.
 */
int
main(int argc, char **argv)
{
#ifdef __CUDACC__
	test_begin(argc, argv, 5000000, 5);
#else
	test_begin(argc, argv, 4200, 2);
#endif
	for (int i = 0; i < gpusort_reference_count; i++)
	{
		const GpuSortReference *reference = &gpusort_references[i];

		test_arguments(reference);
		test_sizes(reference);
		test_distributions(reference);
		test_at_random(reference);
		if (!reference->on_cpu)
			test_many(reference);
	}
	return test_end();
}
