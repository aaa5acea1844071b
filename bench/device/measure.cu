/*-------------------------------------------------------------------------
 *
 * measure.cu
 *	  Memory, times and failures of the device benchmark; see bench.h.
 *
 *-------------------------------------------------------------------------
 */
#include "bench.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#define COPY_BYTES    ((size_t) 2 << 30)
#define COPY_REPEATS  5
#define TOUCH_THREADS 32 /* at most */

int bench_failures;

int
bench_failed(const char *format, ...)
{
	va_list args;

	printf("FAILED: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	bench_failures++;
	return -1;
}

/* After an error that spoils the context nothing can be measured any more. */
int
bench_cuda_failed(cudaError_t status, const char *call)
{
	bench_failed("%.*s: %s", (int) strcspn(call, "("), call, cudaGetErrorString(status));
	(void) cudaGetLastError();
	if (cudaDeviceSynchronize() != cudaSuccess)
	{
		printf("the device cannot go on\n");
		if (bench_csv != NULL)
			fclose(bench_csv);
		exit(1);
	}
	return -1;
}

int
bench_device_alloc(void **memory, size_t bytes)
{
	cudaError_t status;

	*memory = NULL;
	status = cudaMalloc(memory, bytes > 0 ? bytes : 1);
	if (status != cudaSuccess)
		*memory = NULL;
	if (status == cudaErrorMemoryAllocation)
	{
		(void) cudaGetLastError();
		return bench_failed("no %.2f GiB of device memory", (double) bytes / (1 << 30));
	}
	BENCH_CUDA(status);
	return 0;
}

size_t
bench_free_bytes(void)
{
	size_t free_bytes = 0;
	size_t all_bytes;

	if (cudaMemGetInfo(&free_bytes, &all_bytes) != cudaSuccess)
		return 0;
	return free_bytes;
}

/* ---- page-locked memory ---- */

typedef struct Touch
{
	pthread_t thread;
	char *memory;
	size_t bytes;
} Touch;

static void *
touch_pages(void *argument)
{
	Touch *touch = (Touch *) argument;

	for (size_t i = 0; i < touch->bytes; i += 4096)
		*(volatile char *) (touch->memory + i) = 0;
	return NULL;
}

/*
 * Fresh pages are what takes the time of cudaHostAlloc: here all cores make them, as huge pages
 * where the system has them, and then they are registered.
 */
int
bench_host_alloc(void **memory, size_t bytes)
{
	Touch touches[TOUCH_THREADS];
	int threads = (int) std::min((long) TOUCH_THREADS, std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
	size_t share = (bytes / (size_t) threads + 4095) / 4096 * 4096;
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	cudaError_t status;

	*memory = NULL;
	if (pages == MAP_FAILED)
		return bench_failed("no %.2f GiB of host memory", (double) bytes / (1 << 30));
	(void) madvise(pages, bytes, MADV_HUGEPAGE);
	for (int i = 0; i < threads; i++)
	{
		size_t from = std::min(bytes, (size_t) i * share);

		touches[i].memory = (char *) pages + from;
		touches[i].bytes = std::min(bytes - from, share);
		if (pthread_create(&touches[i].thread, NULL, touch_pages, &touches[i]) != 0)
		{
			touches[i].thread = pthread_self();
			touch_pages(&touches[i]);
		}
	}
	for (int i = 0; i < threads; i++)
	{
		if (!pthread_equal(touches[i].thread, pthread_self()))
			pthread_join(touches[i].thread, NULL);
	}
	status = cudaHostRegister(pages, bytes, cudaHostRegisterPortable);
	if (status != cudaSuccess)
	{
		(void) munmap(pages, bytes);
		return bench_cuda_failed(status, "cudaHostRegister(");
	}
	*memory = pages;
	return 0;
}

void
bench_host_free(void *memory, size_t bytes)
{
	if (memory == NULL)
		return;
	(void) cudaHostUnregister(memory);
	(void) munmap(memory, bytes);
}

/* ---- times ---- */

double
bench_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e3 + (double) now.tv_nsec / 1e6;
}

void
bench_times_add(BenchTimes *times, double ms)
{
	int at = times->count;

	if (times->count == 32)
		return;
	/* the list is kept in order */
	for (; at > 0 && times->ms[at - 1] > ms; at--)
		times->ms[at] = times->ms[at - 1];
	times->ms[at] = ms;
	times->count++;
	times->median = (times->ms[(times->count - 1) / 2] + times->ms[times->count / 2]) / 2;
	times->least = times->ms[0];
	times->most = times->ms[times->count - 1];
}

int
bench_timer_open(BenchTimer *timer)
{
	timer->begun = NULL;
	timer->ended = NULL;
	BENCH_CUDA(cudaEventCreate(&timer->begun));
	BENCH_CUDA(cudaEventCreate(&timer->ended));
	return 0;
}

int
bench_timer_begin(BenchTimer *timer, cudaStream_t stream)
{
	BENCH_CUDA(cudaStreamSynchronize(stream));
	BENCH_CUDA(cudaEventRecord(timer->begun, stream));
	return 0;
}

int
bench_timer_end(BenchTimer *timer, cudaStream_t stream, double *ms)
{
	float elapsed = 0;

	BENCH_CUDA(cudaEventRecord(timer->ended, stream));
	BENCH_CUDA(cudaEventSynchronize(timer->ended));
	BENCH_CUDA(cudaEventElapsedTime(&elapsed, timer->begun, timer->ended));
	*ms = elapsed;
	return 0;
}

void
bench_timer_close(BenchTimer *timer)
{
	if (timer->begun != NULL)
		(void) cudaEventDestroy(timer->begun);
	if (timer->ended != NULL)
		(void) cudaEventDestroy(timer->ended);
}

static int
measure_copy(double *bytes_per_second)
{
	size_t bytes = std::min(COPY_BYTES, bench_free_bytes() / 16 / 4096 * 4096);
	void *from;
	void *to = NULL;
	BenchTimer timer = {};
	double best = 0;
	double ms = 0;
	int status = bench_device_alloc(&from, bytes);

	if (status == 0)
		status = bench_device_alloc(&to, bytes);
	if (status == 0)
		status = bench_timer_open(&timer);
	for (int i = 0; i <= COPY_REPEATS && status == 0; i++)
	{
		status = bench_timer_begin(&timer, 0);
		if (status == 0 && cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, 0) != cudaSuccess)
			status = bench_failed("cudaMemcpyAsync");
		if (status == 0)
			status = bench_timer_end(&timer, 0, &ms);
		if (i > 0 && ms > 0)
			best = std::max(best, 2.0 * (double) bytes / ms * 1e3);
	}
	bench_timer_close(&timer);
	(void) cudaFree(from);
	(void) cudaFree(to);
	*bytes_per_second = best;
	return status;
}

double
bench_copy_bandwidth(void)
{
	static double bandwidth = -1;

	if (bandwidth < 0 && measure_copy(&bandwidth) != 0)
		bandwidth = 0;
	return bandwidth;
}

/* ---- an algorithm ---- */

/* One sort, timed: by events, by the clock on the CPU. */
static int
sort_once(BenchRun *run, BenchTimer *timer, double *ms)
{
	double begun;

	if (run->algorithm->restore != NULL && run->algorithm->restore(run) != 0)
		return -1;
	if (run->algorithm->on_cpu)
	{
		begun = bench_clock();
		if (run->algorithm->sort(run) != 0)
			return -1;
		*ms = bench_clock() - begun;
		return 0;
	}
	if (bench_timer_begin(timer, run->stream) != 0 || run->algorithm->sort(run) != 0)
		return -1;
	return bench_timer_end(timer, run->stream, ms);
}

static int
check_run(const BenchRun *run, const char *what)
{
	BenchOutput output = run->output;
	size_t key_bytes = run->input->rows * bench_key_bytes(run->input->key);
	size_t id_bytes = run->input->rows * 4;
	void *keys = NULL;
	void *ids = NULL;
	int status = 0;

	if (run->algorithm->on_cpu)
	{
		status = bench_device_alloc(&keys, key_bytes);
		if (status == 0 && output.ids != NULL)
			status = bench_device_alloc(&ids, id_bytes);
		if (status == 0 &&
			(cudaMemcpy(keys, output.keys, key_bytes, cudaMemcpyHostToDevice) != cudaSuccess ||
			 (ids != NULL && cudaMemcpy(ids, output.ids, id_bytes, cudaMemcpyHostToDevice) != cudaSuccess)))
			status = bench_failed("cudaMemcpy");
		output.keys = keys;
		output.ids = (const uint32_t *) ids;
	}
	if (status == 0)
		status = bench_check(run->input, &output, what);
	(void) cudaFree(keys);
	(void) cudaFree(ids);
	return status;
}

static int
measure_run(BenchRun *run, int repeat, double most_ms, BenchTimes *times)
{
	BenchTimer timer = {};
	char what[200];
	double ms;
	double all_ms = 0;
	int status;

	snprintf(what, sizeof(what), "%s, %s keys, %s, %llu rows", run->algorithm->name, bench_key_name(run->input->key),
			 gpusort_distribution_name(run->input->distribution), (unsigned long long) run->input->rows);
	if (run->algorithm->open(run) != 0)
		return bench_failed("%s: not measured", what);
	status = bench_timer_open(&timer);
	if (status == 0)
		status = sort_once(run, &timer, &ms);
	if (status == 0)
		status = check_run(run, what);
	if (status == 0 && ms > most_ms)
		bench_times_add(times, ms);
	else
	{
		for (int i = 0; i < repeat && status == 0 && (i == 0 || all_ms < most_ms); i++)
		{
			status = sort_once(run, &timer, &ms);
			if (status == 0)
				bench_times_add(times, ms);
			all_ms += ms;
		}
	}
	bench_timer_close(&timer);
	return status == 0 ? 0 : bench_failed("%s: not measured", what);
}

int
bench_measure(const BenchAlgorithm *algorithm, const BenchInput *input, int repeat, double most_ms, BenchTimes *times)
{
	BenchRun run;
	int status;

	memset(&run, 0, sizeof(run));
	memset(times, 0, sizeof(*times));
	run.algorithm = algorithm;
	run.input = input;
	BENCH_CUDA(cudaStreamCreateWithFlags(&run.stream, cudaStreamNonBlocking));
	status = measure_run(&run, repeat, most_ms, times);
	(void) cudaStreamSynchronize(run.stream);
	for (void *memory : run.memory)
	{
		if (memory != NULL)
			(void) cudaFree(memory);
	}
	for (void *memory : run.host_memory)
		free(memory);
	if (run.pinned != NULL)
		(void) cudaFreeHost(run.pinned);
	(void) cudaStreamDestroy(run.stream);
	return status;
}
