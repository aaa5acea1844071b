/*-------------------------------------------------------------------------
 *
 * bench.h
 *	  What the parts of the device benchmark share: inputs, algorithms, times,
 *	  results.
 *
 *	main.cu			command line, sections
 *	marks.cu		the speeds that were to be reached, and what is
 *	multi.cu		its rows for several GPUs, host memory to host memory
 *	sweep.cu		every algorithm on every distribution, key and size
 *	algorithms.cu	gpusort's sorts and the references as BenchAlgorithms
 *	cub_sort.cu		CUB's
 *	input.cu		keys made on the device, results checked there
 *	measure.cu		memory, times
 *	report.cu		the CSV file and the tables
 *
 * Functions return 0, or -1 after they have said what is wrong (bench_failed); the
 * case at hand is then given up and the next one begins.  Nothing but a context
 * that an error has spoilt ends the program.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BENCH_H
#define GPUSORT_BENCH_H

#include <cuda_runtime.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "distributions.h"
#include "sort/device_sort.h"

/* ---- keys ---- */

typedef enum BenchKey
{
	BENCH_U32,
	BENCH_U64,
	BENCH_FLOAT,     /* 32 bits */
	BENCH_COMPOSITE, /* three words, 40 bits of which vary, scattered over them */
	BENCH_KEYS
} BenchKey;

static inline const char *
bench_key_name(int key)
{
	static const char *const names[BENCH_KEYS] = {"u32", "u64", "float", "composite"};

	return names[key];
}

static inline size_t
bench_key_bytes(int key)
{
	return key == BENCH_COMPOSITE ? 24 : key == BENCH_U64 ? 8
														  : 4;
}

/* Keys in device memory. */
typedef struct BenchInput
{
	BenchKey key;
	int distribution; /* GpuSortDistribution */
	uint64_t rows;
	uint64_t seed;
	void *keys;
} BenchInput;

/* Makes the keys; memory is allocated.  bench_input_free takes any input, also one of zeros. */
extern int bench_input_make(BenchInput *input, BenchKey key, int distribution, uint64_t rows, uint64_t seed);
extern void bench_input_free(BenchInput *input);

/* Rows [first, first + count) of an input's keys into device memory, whatever input->keys is. */
extern int bench_input_fill(const BenchInput *input, uint64_t first, uint64_t count, void *keys, cudaStream_t stream);

/* What a sort has made of an input. */
typedef struct BenchOutput
{
	const void *keys;    /* in order, or NULL */
	const uint32_t *ids; /* in order, or NULL */
	bool stable;         /* is to be checked */
	uint64_t count;      /* of ids, if they are only the first rows; else 0 */
} BenchOutput;

/*
 * Checks a result in device memory: ids are a permutation and put the keys into
 * order, equal ones by row number if it is to be stable; keys are in order and
 * are those of the ids, or, without ids, are the input's (by count and a sum of
 * hashes).  Of the first rows alone: that no other row goes before the last of them.
 */
extern int bench_check(const BenchInput *input, const BenchOutput *output, const char *what);

/*
 * The same for rows in host memory, part by part; the input's keys are made again.
 * ids may be NULL.
 */
extern int bench_check_host(const BenchInput *input, const void *keys, const uint32_t *ids, const char *what);

/* ---- algorithms ---- */

struct BenchAlgorithm;

/* One algorithm at work on one input. */
typedef struct BenchRun
{
	const struct BenchAlgorithm *algorithm;
	const BenchInput *input;
	cudaStream_t stream;
	void *memory[6];      /* the algorithm's own: device memory, freed with the run */
	void *host_memory[3]; /* freed by free() */
	void *pinned;         /* by cudaFreeHost() */
	size_t temp_bytes;
	GpuSortPackPlan plan;
	int order;          /* GpuSortInputOrder */
	BenchOutput output; /* once it has sorted; in host memory for a sort of the CPU */
} BenchRun;

typedef struct BenchAlgorithm
{
	const char *name;
	const char *what; /* in a few words */
	bool on_cpu;
	bool with_ids;         /* moves row ids */
	int variant;           /* for the functions */
	const void *reference; /* GpuSortReference, or NULL */
	bool (*can)(const struct BenchAlgorithm *algorithm, BenchKey key, uint64_t rows);
	int (*open)(BenchRun *run);    /* allocates; not timed */
	int (*restore)(BenchRun *run); /* before each sort, not timed; may be NULL */
	int (*sort)(BenchRun *run);    /* timed */
	/* bytes of device memory read and written per row, for uniform keys; 0: not known */
	double (*bytes_per_row)(const struct BenchAlgorithm *algorithm, BenchKey key, uint64_t rows);
} BenchAlgorithm;

extern const BenchAlgorithm *bench_algorithms(int *count);
extern const BenchAlgorithm *bench_algorithm(const char *name); /* NULL if there is none */

/* What gpusort's sort of uniform keys moves per row; see algorithms.cu. */
extern double bench_gpusort_bytes(BenchKey key, uint64_t rows, bool with_statistics);

/* ---- times ---- */

typedef struct BenchTimes
{
	int count;
	double ms[32]; /* in ascending order */
	double median;
	double least;
	double most;
} BenchTimes;

/* Adds a time and brings median, least and most up to date. */
extern void bench_times_add(BenchTimes *times, double ms);

/*
 * Runs an algorithm on an input: once to warm up, which is checked, then `repeat`
 * times, or fewer when they take more than most_ms together.  What took longer than
 * most_ms at once is not repeated: the first run counts.
 */
extern int bench_measure(const BenchAlgorithm *algorithm, const BenchInput *input, int repeat, double most_ms,
						 BenchTimes *times);

/* Clock, in milliseconds from some time on. */
extern double bench_clock(void);

/* Times work on a stream. */
typedef struct BenchTimer
{
	cudaEvent_t begun;
	cudaEvent_t ended;
	double clock_begun;
} BenchTimer;

extern int bench_timer_open(BenchTimer *timer);
extern int bench_timer_begin(BenchTimer *timer, cudaStream_t stream);
extern int bench_timer_end(BenchTimer *timer, cudaStream_t stream, double *ms); /* waits */
extern void bench_timer_close(BenchTimer *timer);

/*
 * Device memory read and written by a copy from device to device, bytes per
 * second, best of several; measured once per run of the program.
 */
extern double bench_copy_bandwidth(void);

/* ---- failures and memory ---- */

/* Says what failed; returns -1. */
extern int bench_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern int bench_cuda_failed(cudaError_t status, const char *call);
extern int bench_failures; /* cases given up, results that were wrong */

#define BENCH_CUDA(call)                              \
	do                                                \
	{                                                 \
		cudaError_t status_ = (call);                 \
		if (status_ != cudaSuccess)                   \
			return bench_cuda_failed(status_, #call); \
	} while (0)

extern int bench_device_alloc(void **memory, size_t bytes);

/* Page-locked host memory, made quickly. */
extern int bench_host_alloc(void **memory, size_t bytes);
extern void bench_host_free(void *memory, size_t bytes);

/* Free memory of the current device. */
extern size_t bench_free_bytes(void);

/* ---- results ---- */

extern FILE *bench_csv; /* or NULL */

typedef struct BenchResult
{
	const char *section;
	const char *algorithm;
	const char *key;
	const char *distribution;
	uint64_t rows;
	int devices;
	bool with_ids;
	double bytes_per_row; /* 0: not counted */
	const char *detail;   /* or NULL */
} BenchResult;

extern void bench_record_head(void);
extern void bench_record(const BenchResult *result, const BenchTimes *times);

/* A line of the table of marks.  got is "" if it was not measured; why says why, or adds to it. */
extern void bench_mark(const char *work, const char *mark, const char *got, double ratio, double wanted,
					   const char *note);
extern void bench_print_marks(void);

/* "5.31 ms" */
extern const char *bench_duration(double ms, char *text);

#define BENCH_TEXT 160

/* ---- sections ---- */

typedef struct BenchOptions
{
	int repeat;
	int shrink;     /* marks: all rows divided by 2^shrink, for trying things out */
	double seconds; /* sweep: no new case after so long */
	double most_ms; /* sweep: sizes above one that took longer are left out */
	uint64_t seed;
	const char *rmg;    /* RMG sort's own program, or NULL */
	uint64_t sizes[32]; /* sweep, multi: numbers of rows */
	int size_count;
	uint32_t distributions; /* sweep: bits */
	uint32_t keys;          /* sweep: bits */
	const char *algorithms; /* sweep: names, comma-separated, or NULL */
	const char *rows;       /* marks: numbers of those wanted, or NULL */
} BenchOptions;

extern void bench_marks(const BenchOptions *options);
extern void bench_multi_marks(const BenchOptions *options);
extern void bench_sweep(const BenchOptions *options);
extern void bench_survey(const BenchOptions *options);
extern void bench_multi_sweep(const BenchOptions *options);

/* Returns true if name is in a comma-separated list; one that is NULL has all. */
extern bool bench_listed(const char *list, const char *name);

#endif /* GPUSORT_BENCH_H */
