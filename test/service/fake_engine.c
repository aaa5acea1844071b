/*-------------------------------------------------------------------------
 *
 * fake_engine.c
 *	  A "cuda engine" for the tests of the service: the host engine, but for
 *	  what the environment variable GPUSORT_FAKE says:
 *
 *	abi				is of another version
 *	build			is of another build
 *	open			has no device
 *	begin put sort emit		that call fails with reason DEVICE
 *	odd				each other sort fails with reason DEVICE, the first one first
 *	hang begin, hang put, hang sort, hang end
 *					that call never returns
 *	slow			sort does not return until it is cancelled
 *	good			nothing is wrong
 *
 *	  A call that hangs or is slow leaves a file call-PID in the directory GPUSORT_FAKE_TELLS
 *	  when it begins.
 *
 *-------------------------------------------------------------------------
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build_id.h"
#include "service/engine.h"

extern GpuSortEngineOps gpusort_cuda_engine;

/* Host sorts do not know the cancelled flag by themselves. */
static __thread const int *cancelled;

static int
fails(const char *what, GpuSortError *error)
{
	const char *fake = getenv("GPUSORT_FAKE");

	if (fake == NULL || strcmp(fake, what) != 0)
		return 0;
	error->reason = strcmp(what, "open") == 0 ? GPUSORT_REASON_NO_ENGINE : GPUSORT_REASON_DEVICE;
	snprintf(error->text, sizeof(error->text), "fake failure of %s", what);
	return -1;
}

/* Returns true, and leaves a file, if calls are to be that way. */
static bool
begins(const char *what)
{
	const char *directory = getenv("GPUSORT_FAKE_TELLS");
	GpuSortError ignored;
	char path[128];

	if (!fails(what, &ignored))
		return false;
	if (directory != NULL)
	{
		snprintf(path, sizeof(path), "%s/call-%d", directory, (int) getpid());
		close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
	return true;
}

/* Does not return if that call is to hang. */
static void
hang(const char *what)
{
	if (!begins(what))
		return;
	for (;;)
		pause();
}

static int
fake_open(const GpuSortEngineConfig *config, GpuSortEngine **engine, GpuSortError *error)
{
	return fails("open", error) ? -1 : gpusort_host_engine.open(config, engine, error);
}

static int
fake_describe(GpuSortEngine *engine, GpuSortDevice *devices, int max)
{
	gpusort_host_engine.describe(engine, devices, max);
	snprintf(devices->name, sizeof(devices->name), "fake device");
	return 1;
}

static int
fake_begin(GpuSortEngine *engine, const GpuSortRequest *request, const int *cancelled_flag,
		   GpuSort **sort, GpuSortPlace *place, GpuSortError *error)
{
	cancelled = cancelled_flag;
	hang("hang begin");
	if (fails("begin", error))
		return -1;
	if (gpusort_host_engine.begin(engine, request, cancelled, sort, place, error))
		return -1;
	snprintf(place->device, sizeof(place->device), "fake device");
	return 0;
}

static int
fake_put(GpuSort *sort, const void *chunk, uint32_t rows, uint32_t bytes, uint32_t rows_max, GpuSortError *error)
{
	hang("hang put");
	return fails("put", error) ? -1 : gpusort_host_engine.put(sort, chunk, rows, bytes, rows_max, error);
}

static int
fake_sort(GpuSort *sort, GpuSortOutcome *outcome, GpuSortError *error)
{
	static int sorts; /* atomic */

	hang("hang sort");
	if (fails("sort", error))
		return -1;
	if (__atomic_fetch_add(&sorts, 1, __ATOMIC_RELAXED) % 2 == 0 && fails("odd", error))
		return -1;
	if (begins("slow"))
	{
		while (!__atomic_load_n(cancelled, __ATOMIC_RELAXED))
			usleep(1000);
	}
	return gpusort_host_engine.sort(sort, outcome, error);
}

static int
fake_emit(GpuSort *sort, uint64_t first, uint64_t end, bool records, void *chunk, GpuSortEmitted *emitted,
		  GpuSortError *error)
{
	return fails("emit", error) ? -1 : gpusort_host_engine.emit(sort, first, end, records, chunk, emitted, error);
}

static void
fake_end(GpuSort *sort)
{
	hang("hang end");
	gpusort_host_engine.end(sort);
}

GpuSortEngineOps gpusort_cuda_engine;

static void __attribute__((constructor))
fill_in(void)
{
	GpuSortError ignored;

	gpusort_cuda_engine = gpusort_host_engine;
	gpusort_cuda_engine.kind = GPUSORT_ENGINE_CUDA;
	gpusort_cuda_engine.build = GPUSORT_BUILD;
	if (fails("build", &ignored))
		gpusort_cuda_engine.build++;
	if (fails("abi", &ignored))
		gpusort_cuda_engine.abi = GPUSORT_ENGINE_ABI + 1;
	gpusort_cuda_engine.open = fake_open;
	gpusort_cuda_engine.describe = fake_describe;
	gpusort_cuda_engine.begin = fake_begin;
	gpusort_cuda_engine.put = fake_put;
	gpusort_cuda_engine.sort = fake_sort;
	gpusort_cuda_engine.emit = fake_emit;
	gpusort_cuda_engine.end = fake_end;
}
