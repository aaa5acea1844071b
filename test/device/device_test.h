/*-------------------------------------------------------------------------
 *
 * device_test.h
 *	  What the tests of the device library and of the references share: TAP,
 *	  random numbers, device memory with guard bands, the order that is right.
 *
 * The same sources run on a GPU and on the CPU, where CUDA is emulated.  A
 * program's main() is
 *
 *		test_begin(argc, argv, rows, rounds);	-- defaults of --rows and --rounds
 *		...
 *		test_point("what has been shown");		-- one TAP point for all checks since the last
 *		...
 *		return test_end();
 *
 * Every run takes a fresh seed, prints it, and repeats itself exactly with --seed.
 *
 * Device memory that a test takes by test_device() lies between guard bands; it
 * and the bands are filled with garbage that depends on the place.  test_point()
 * checks the bands of all memory that is there, and test_free_all() does before
 * it frees.  With GPUSORT_TEST_RAW in the environment there is neither band nor
 * garbage: compute-sanitizer then sees what goes beyond, and what is read before
 * it was written.
 *
 * With GPUSORT_TEST_ONE_IN=N in the environment a test takes about one case in N of
 * those that ask test_taken(): for tools under which a kernel takes a thousand times
 * as long.  Which ones depends on the seed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_TEST_H
#define GPUSORT_DEVICE_TEST_H

#include <cuda_runtime.h>

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <vector>

#define TEST_GUARD_BYTES (test_raw() ? 0 : (size_t) 512)

typedef struct TestMemory
{
	char *base;   /* of the band before */
	size_t bytes; /* between the bands */
} TestMemory;

static uint64_t test_rows;   /* --rows: the largest count that random cases take */
static uint64_t test_rounds; /* --rounds: random cases of each kind */
static uint64_t test_seed;
static uint64_t test_state;      /* of test_random() */
static uint64_t test_one_in = 1; /* GPUSORT_TEST_ONE_IN */
static uint64_t test_cases;      /* that have asked test_taken() */
static uint64_t test_pick;       /* of each test_one_in of them, the one that is taken */
static int test_points;
static int test_failures;
static int test_bad; /* failed checks since the last point */
static cudaStream_t test_stream;
static std::vector<TestMemory> test_memory;

static inline bool
test_raw(void)
{
	static const bool raw = getenv("GPUSORT_TEST_RAW") != NULL;

	return raw;
}

/* SplitMix64 (Steele, Lea, Flood, 2014). */
static inline uint64_t
test_random(void)
{
	uint64_t z = test_state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* 0 <= result < limit */
static inline uint64_t
test_below(uint64_t limit)
{
	return test_random() % limit;
}

/* Returns true if this case is to be taken: one at random of each test_one_in that ask. */
static inline bool
test_taken(void)
{
	if (test_one_in <= 1)
		return true;
	if (test_cases % test_one_in == 0)
		test_pick = test_below(test_one_in);
	return test_cases++ % test_one_in == test_pick;
}

/* A check that failed says what; the point that it belongs to fails. */
__attribute__((format(printf, 1, 2))) static inline void
test_fail(const char *format, ...)
{
	va_list args;

	if (++test_bad > 10) /* enough has been said */
		return;
	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

#define TEST_CHECK(condition, ...)  \
	do                              \
	{                               \
		if (!(condition))           \
			test_fail(__VA_ARGS__); \
	} while (0)

/* A CUDA call without which nothing can be tested. */
#define TEST_CUDA(call)                                                                                  \
	do                                                                                                   \
	{                                                                                                    \
		cudaError_t status_ = (call);                                                                    \
		if (status_ != cudaSuccess)                                                                      \
		{                                                                                                \
			printf("Bail out! %s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status_)); \
			exit(1);                                                                                     \
		}                                                                                                \
	} while (0)

/* Garbage that is different at each place and in each run. */
static inline unsigned char
test_garbage(size_t place)
{
	return (unsigned char) ((place * 167 + 13) ^ test_seed ^ place >> 8);
}

static inline void
test_upload(void *to, const void *from, size_t bytes)
{
	TEST_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, test_stream));
	TEST_CUDA(cudaStreamSynchronize(test_stream));
}

static inline void
test_download(void *to, const void *from, size_t bytes)
{
	TEST_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, test_stream));
	TEST_CUDA(cudaStreamSynchronize(test_stream));
}

/* bytes of device memory, aligned to 256, filled with garbage, between guard bands; but see above. */
static inline void *
test_device(size_t bytes)
{
	TestMemory memory = {NULL, bytes};
	size_t all = bytes + 2 * TEST_GUARD_BYTES;
	std::vector<unsigned char> garbage(test_raw() ? 0 : all);

	TEST_CUDA(cudaMalloc((void **) &memory.base, all > 0 ? all : 1));
	for (size_t i = 0; i < garbage.size(); i++)
		garbage[i] = test_garbage(i);
	if (!garbage.empty())
		test_upload(memory.base, garbage.data(), all);
	test_memory.push_back(memory);
	return memory.base + TEST_GUARD_BYTES;
}

template <typename Item>
static inline Item *
test_device_copy(const std::vector<Item> &items)
{
	Item *copy = (Item *) test_device(items.size() * sizeof(Item));

	if (!items.empty())
		test_upload(copy, items.data(), items.size() * sizeof(Item));
	return copy;
}

template <typename Item>
static inline std::vector<Item>
test_host_copy(const Item *items, size_t count)
{
	std::vector<Item> copy(count);

	if (count > 0)
		test_download(copy.data(), items, count * sizeof(Item));
	return copy;
}

static inline void
test_check_guards(void)
{
	for (const TestMemory &memory : test_memory)
	{
		for (size_t band = 0; band < 2; band++)
		{
			size_t from = band * (TEST_GUARD_BYTES + memory.bytes);
			std::vector<unsigned char> found = test_host_copy((unsigned char *) memory.base + from, TEST_GUARD_BYTES);

			for (size_t i = 0; i < TEST_GUARD_BYTES; i++)
			{
				if (found[i] != test_garbage(from + i))
				{
					test_fail("written %s memory of %zu bytes, at its byte %lld", band ? "behind" : "before",
							  memory.bytes, (long long) (from + i) - (long long) TEST_GUARD_BYTES);
					break;
				}
			}
		}
	}
}

/* Checks the guard bands and frees all memory that tests have taken. */
static inline void
test_free_all(void)
{
	test_check_guards();
	for (const TestMemory &memory : test_memory)
		TEST_CUDA(cudaFree(memory.base));
	test_memory.clear();
}

/* One TAP point for all checks since the last. */
__attribute__((format(printf, 1, 2))) static inline void
test_point(const char *format, ...)
{
	va_list args;

	test_check_guards();
	if (test_bad > 10)
		printf("# and %d more\n", test_bad - 10);
	printf("%s %d - ", test_bad ? "not ok" : "ok", ++test_points);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	test_failures += test_bad > 0;
	test_bad = 0;
}

static inline void
test_begin(int argc, char **argv, uint64_t rows, uint64_t rounds)
{
	test_rows = rows;
	test_rounds = rounds;
	test_seed = (uint64_t) time(NULL) * 1000003 + (uint64_t) getpid();
	for (int i = 1; i < argc; i += 2)
	{
		uint64_t *option = strcmp(argv[i], "--rows") == 0 ? &test_rows : strcmp(argv[i], "--rounds") == 0 ? &test_rounds
			: strcmp(argv[i], "--seed") == 0                                                              ? &test_seed
																										  : NULL;

		if (option == NULL || i + 1 == argc)
		{
			fprintf(stderr, "usage: %s [--rows N] [--rounds N] [--seed N]\n", argv[0]);
			exit(2);
		}
		*option = strtoull(argv[i + 1], NULL, 10);
	}
	if (getenv("GPUSORT_TEST_ONE_IN") != NULL)
		test_one_in = strtoull(getenv("GPUSORT_TEST_ONE_IN"), NULL, 10);
	test_state = test_seed;
	printf("# seed %llu\n", (unsigned long long) test_seed);
	fflush(stdout);
	TEST_CUDA(cudaStreamCreateWithFlags(&test_stream, cudaStreamNonBlocking));
}

static inline int
test_end(void)
{
	test_free_all();
	if (test_bad > 0)
		test_point("guard bands at the end");
	TEST_CUDA(cudaStreamDestroy(test_stream));
	printf("1..%d\n", test_points);
	return test_failures > 0;
}

/* The rows' numbers in the order of less(a, b), ties by number. */
template <typename Less>
static inline std::vector<uint32_t>
test_stable_order(size_t rows, Less less)
{
	std::vector<uint32_t> order(rows);

	std::iota(order.begin(), order.end(), 0);
	std::stable_sort(order.begin(), order.end(), less);
	return order;
}

#endif /* GPUSORT_DEVICE_TEST_H */
