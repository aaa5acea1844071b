/*-------------------------------------------------------------------------
 *
 * emulate.cc
 *	  CUDA on the CPU, as far as cuda/ needs it; see cuda_runtime.h.
 *
 *	GPUSORT_EMULATE_FAIL=N in the environment makes the Nth call that can fail do
 *	so: allocations with "out of memory", others with a launch failure that every
 *	later call repeats, as CUDA does when a context is spoilt.
 *	GPUSORT_EMULATE_DEVICES=N: how many devices there are, 2 otherwise.
 *
 *-------------------------------------------------------------------------
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "cuda_runtime.h"

#define DEVICE_BYTES ((size_t) 3 << 30)
#define STACK_BYTES  ((size_t) 64 << 10)
#define BLOCK_MAX    1024 /* threads */
#define MASKS_MAX    8    /* different masks that a warp's threads wait with at a time */

__thread dim3 threadIdx;
__thread dim3 blockIdx;
__thread dim3 blockDim;
__thread dim3 gridDim;

/*
 * Bytes of dynamic shared memory that a block may have: as on compute capability 9.0, or
 * GPUSORT_EMULATE_SHARED in the environment.
 */
static size_t
emulate_shared_most()
{
	const char *bytes = getenv("GPUSORT_EMULATE_SHARED");

	return bytes != NULL ? (size_t) atol(bytes) : 227 << 10;
}

/* ---- calls that fail on request ---- */

static std::atomic<long> calls_left{getenv("GPUSORT_EMULATE_FAIL") ? atol(getenv("GPUSORT_EMULATE_FAIL")) : 0};
static std::atomic<bool> emulate_spoilt{false};

/* Counts a call; true: it is the one to fail. */
static bool
emulate_call_fails()
{
	return calls_left > 0 && --calls_left == 0;
}

static cudaError_t
emulate_plain_call()
{
	if (emulate_call_fails())
		emulate_spoilt = true;
	return emulate_spoilt ? cudaErrorLaunchFailure : cudaSuccess;
}

void
emulate_fail(long call)
{
	emulate_spoilt = false;
	calls_left = call;
}

cudaError_t
cudaGetLastError()
{
	return emulate_spoilt ? cudaErrorLaunchFailure : cudaSuccess;
}

const char *
cudaGetErrorString(cudaError_t status)
{
	return status == cudaErrorMemoryAllocation ? "out of memory" : "unspecified launch failure";
}

/* ---- the threads of a block ---- */

/* The threads of a warp that meet under one mask. */
struct Meeting
{
	uint32_t mask;
	EmulatedExchange exchanges[2];
	uint32_t arrived;
	uint32_t turn;
};

struct Warp
{
	Meeting meetings[MASKS_MAX];
};

/* Started once, then runs one kernel thread after the other. */
struct Coroutine
{
	ucontext_t start;
	jmp_buf place;
	bool started;
	bool done;            /* with this block's thread */
	const uint32_t *turn; /* what it waits for: that this is no longer last_turn; NULL: nothing */
	uint32_t last_turn;
};

struct Block
{
	Coroutine threads[BLOCK_MAX];
	std::unique_ptr<char[]> stacks;
	std::unique_ptr<uint64_t[]> shared; /* dynamic */
	Warp warps[BLOCK_MAX / 32];
	jmp_buf scheduler;
	unsigned int current;
	unsigned int live;
	unsigned int at_barrier;
	uint32_t barrier_turn;
	const std::function<void()> *kernel;
};

static thread_local Block block;

/* Lets the other threads of the block run, until *turn has changed. */
static void
await_turn(const uint32_t *turn, uint32_t last_turn)
{
	Coroutine *thread = &block.threads[block.current];
	dim3 index = threadIdx;

	if (*turn != last_turn)
		return;
	thread->turn = turn;
	thread->last_turn = last_turn;
	if (_setjmp(thread->place) == 0)
		_longjmp(block.scheduler, 1);
	threadIdx = index;
}

/* Lets all go on if all that are left wait at the barrier. */
static void
look_at_barrier()
{
	if (block.at_barrier == block.live)
	{
		block.at_barrier = 0;
		block.barrier_turn++;
	}
}

void
__syncthreads()
{
	const uint32_t turn = block.barrier_turn;

	block.at_barrier++;
	look_at_barrier();
	await_turn(&block.barrier_turn, turn);
}

/* A free meeting or the one under this mask. */
static Meeting *
find_meeting(Warp *warp, uint32_t mask)
{
	for (Meeting &meeting : warp->meetings)
	{
		if (meeting.mask == mask)
			return &meeting;
	}
	for (Meeting &meeting : warp->meetings)
	{
		if (meeting.mask == 0)
		{
			meeting.mask = mask;
			return &meeting;
		}
	}
	fprintf(stderr, "a warp meets under more than %d masks\n", MASKS_MAX);
	abort();
}

const EmulatedExchange *
emulate_warp_exchange(uint32_t mask, uint32_t value)
{
	const uint32_t lane = threadIdx.x % 32;
	Meeting *meeting = find_meeting(&block.warps[threadIdx.x / 32], mask);
	const uint32_t turn = meeting->turn;
	EmulatedExchange *exchange = &meeting->exchanges[turn % 2];

	if ((mask >> lane & 1) == 0)
	{
		fprintf(stderr, "lane %u is not in its own mask %08x\n", lane, mask);
		abort();
	}
	if (meeting->arrived == 0)
		exchange->votes = 0;
	exchange->values[lane] = value;
	exchange->votes |= (value & 1) << lane;
	if (++meeting->arrived == (uint32_t) __builtin_popcount(mask))
	{
		meeting->arrived = 0;
		meeting->turn++;
	}
	await_turn(&meeting->turn, turn);
	return exchange;
}

void *
emulate_dynamic_shared()
{
	return block.shared.get();
}

static void
run_thread()
{
	for (;;)
	{
		(*block.kernel)();
		block.threads[block.current].done = true;
		block.live--;
		look_at_barrier();
		if (_setjmp(block.threads[block.current].place) == 0)
			_longjmp(block.scheduler, 1);
	}
}

/* Runs the current thread until it pauses or ends. */
static __attribute__((noinline)) void
resume_thread(Coroutine *thread)
{
	if (_setjmp(block.scheduler) != 0)
		return;
	threadIdx = dim3(block.current);
	if (thread->started)
		_longjmp(thread->place, 1);
	thread->started = true;
	getcontext(&thread->start);
	thread->start.uc_stack.ss_sp = &block.stacks[block.current * STACK_BYTES];
	thread->start.uc_stack.ss_size = STACK_BYTES;
	thread->start.uc_link = NULL;
	makecontext(&thread->start, run_thread, 0);
	setcontext(&thread->start);
}

static void
run_block()
{
	block.live = blockDim.x;
	block.at_barrier = 0;
	memset(block.warps, 0, sizeof(block.warps));
	for (unsigned int i = 0; i < blockDim.x; i++)
	{
		block.threads[i].done = false;
		block.threads[i].turn = NULL;
	}
	while (block.live > 0)
	{
		bool resumed = false;

		for (block.current = 0; block.current < blockDim.x; block.current++)
		{
			Coroutine *thread = &block.threads[block.current];

			if (thread->done || (thread->turn != NULL && *thread->turn == thread->last_turn))
				continue;
			resume_thread(thread);
			resumed = true;
		}
		if (!resumed)
		{
			fprintf(stderr, "a barrier that not all threads of the block reach\n");
			abort();
		}
	}
}

void
emulate_blocks(dim3 grid, dim3 block_size, size_t shared_bytes, const std::function<void()> &kernel)
{
	if (block_size.x > BLOCK_MAX || shared_bytes > emulate_shared_most())
	{
		fprintf(stderr, "blocks of up to %d threads and %zu bytes are emulated\n", BLOCK_MAX, emulate_shared_most());
		abort();
	}
	if (block.stacks == NULL)
		block.stacks.reset(new char[BLOCK_MAX * STACK_BYTES]);

	/* as large as asked for, so that the address sanitizer sees what goes beyond */
	block.shared.reset(new uint64_t[shared_bytes / 8 + 1]);
	block.kernel = &kernel;
	gridDim = grid;
	blockDim = block_size;
	for (unsigned int y = 0; y < grid.y; y++)
	{
		for (unsigned int x = 0; x < grid.x; x++)
		{
			blockIdx = dim3(x, y);
			memset(block.shared.get(), 0xCD, shared_bytes);
			run_block();
		}
	}
}

void
emulate_shared_limit(const void *kernel, size_t shared_bytes, size_t most_bytes)
{
	static std::mutex lock;
	static std::map<const void *, size_t> limits;
	std::lock_guard<std::mutex> guard(lock);

	if (shared_bytes > most_bytes || limits.insert({kernel, most_bytes}).first->second != most_bytes)
	{
		fprintf(stderr, "a kernel's limit of dynamic shared memory is not the same at each start\n");
		abort();
	}
}

/* ---- streams ---- */

struct EmulatedStream
{
	std::vector<std::function<void()>> work; /* not run yet */
	uint64_t first;                          /* number of work[0] since the stream's start */
};

struct EmulatedEvent
{
	cudaStream_t stream;
	uint64_t end; /* all work below this number has run when the event has happened */
};

/* All streams that this thread made. */
static thread_local std::set<EmulatedStream *> streams;

static void
run_until(cudaStream_t stream, uint64_t end)
{
	while (stream != NULL && stream->first < end)
	{
		std::function<void()> next = stream->work.front();

		stream->work.erase(stream->work.begin());
		stream->first++;
		next();
	}
}

static bool
random_bit()
{
	static thread_local unsigned int state = (unsigned int) time(NULL);

	return rand_r(&state) >> 8 & 1;
}

void
emulate_append(cudaStream_t stream, std::function<void()> work)
{
	if (emulate_call_fails())
		emulate_spoilt = true;
	if (emulate_spoilt)
		return;
	if (stream == NULL)
	{
		work();
		return;
	}
	stream->work.push_back(work);
	if (random_bit())
		run_until(stream, stream->first + stream->work.size());
}

cudaError_t
cudaStreamCreate(cudaStream_t *stream)
{
	return cudaStreamCreateWithFlags(stream, 0);
}

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int)
{
	if (emulate_plain_call() != cudaSuccess)
		return cudaErrorLaunchFailure;
	*stream = new EmulatedStream();
	streams.insert(*stream);
	return cudaSuccess;
}

cudaError_t
cudaStreamDestroy(cudaStream_t stream)
{
	streams.erase(stream);
	delete stream;
	return cudaSuccess;
}

cudaError_t
cudaStreamQuery(cudaStream_t)
{
	return emulate_spoilt ? cudaErrorLaunchFailure : cudaSuccess;
}

cudaError_t
cudaStreamSynchronize(cudaStream_t stream)
{
	if (stream == NULL)
		return emulate_plain_call();
	if (emulate_spoilt)
		stream->work.clear();
	run_until(stream, stream->first + stream->work.size());
	return emulate_plain_call();
}

cudaError_t
cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int)
{
	EmulatedEvent now = *event;

	emulate_append(stream, [now]()
				   { run_until(now.stream, now.end); });
	return emulate_plain_call();
}

cudaError_t
cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, 0);
}

cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int)
{
	if (emulate_plain_call() != cudaSuccess)
		return cudaErrorLaunchFailure;
	*event = new EmulatedEvent();
	return cudaSuccess;
}

cudaError_t
cudaEventDestroy(cudaEvent_t event)
{
	delete event;
	return cudaSuccess;
}

cudaError_t
cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	event->stream = stream;
	event->end = stream != NULL ? stream->first + stream->work.size() : 0;
	return emulate_plain_call();
}

/*
 * An event nobody sleeps for never happens by itself.  Not counted as a call: how often it is
 * made depends on the clock.
 */
cudaError_t
cudaEventQuery(cudaEvent_t event)
{
	if (emulate_spoilt)
		return cudaErrorLaunchFailure;
	return event->stream == NULL || event->stream->first >= event->end ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t
cudaEventSynchronize(cudaEvent_t event)
{
	if (emulate_plain_call() != cudaSuccess)
		return cudaErrorLaunchFailure;
	run_until(event->stream, event->end);
	return cudaSuccess;
}

cudaError_t
cudaEventElapsedTime(float *ms, cudaEvent_t begun, cudaEvent_t ended)
{
	if ((begun->stream != NULL && begun->stream->first < begun->end) ||
		(ended->stream != NULL && ended->stream->first < ended->end))
	{
		fprintf(stderr, "times of events that have not happened\n");
		abort();
	}
	*ms = 0;
	return emulate_plain_call();
}

cudaError_t
cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t stream)
{
	emulate_append(stream, [=]()
				   { memcpy(to, from, bytes); });
	return emulate_plain_call();
}

cudaError_t
cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
	emulate_append(stream, [=]()
				   { memset(to, value, bytes); });
	return emulate_plain_call();
}

cudaError_t
cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
	if (!emulate_spoilt)
		memcpy(to, from, bytes);
	return emulate_plain_call();
}

cudaError_t
cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t bytes, cudaStream_t stream)
{
	return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}

cudaError_t
cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
				  cudaMemcpyKind, cudaStream_t stream)
{
	emulate_append(stream, [=]()
				   {
		for (size_t i = 0; i < height; i++)
			memcpy((char *) to + i * to_pitch, (const char *) from + i * from_pitch, width); });
	return emulate_plain_call();
}

cudaError_t
cudaMemset(void *to, int value, size_t bytes)
{
	if (!emulate_spoilt)
		memset(to, value, bytes);
	return emulate_plain_call();
}

/* ---- devices and memory ---- */

static std::mutex memory_lock;
static std::map<void *, size_t> allocated;
static size_t allocated_bytes;

static thread_local int current_device;

static int
device_count()
{
	const char *count = getenv("GPUSORT_EMULATE_DEVICES");

	return count != NULL ? atoi(count) : 2;
}

cudaError_t
cudaGetDeviceCount(int *count)
{
	*count = device_count();
	return emulate_plain_call();
}

cudaError_t
cudaGetDeviceProperties(cudaDeviceProp *properties, int)
{
	strcpy(properties->name, "emulated device");
	properties->major = 0;
	properties->minor = 0;
	properties->ECCEnabled = getenv("GPUSORT_EMULATE_NO_ECC") == NULL;
	return emulate_plain_call();
}

cudaError_t
cudaDriverGetVersion(int *version)
{
	*version = 13000;
	return emulate_plain_call();
}

cudaError_t
cudaInitDevice(int, unsigned int, unsigned int)
{
	return emulate_plain_call();
}

cudaError_t
cudaSetDevice(int device)
{
	if (device < 0 || device >= device_count())
		return cudaErrorInvalidValue;
	current_device = device;
	return emulate_plain_call();
}

cudaError_t
cudaGetDevice(int *device)
{
	*device = current_device;
	return emulate_plain_call();
}

/* Runs what every stream of this thread has. */
cudaError_t
cudaDeviceSynchronize()
{
	for (EmulatedStream *stream : streams)
		run_until(stream, stream->first + stream->work.size());
	return emulate_plain_call();
}

cudaError_t
cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
	switch (attribute)
	{
		case cudaDevAttrMultiProcessorCount:
			*value = 2;
			break;
		case cudaDevAttrComputeCapabilityMajor:
			*value = 9;
			break;
		default:
			*value = (int) emulate_shared_most();
	}
	return emulate_plain_call();
}

/* GPUSORT_EMULATE_NO_PEERS in the environment: no device reaches another's memory. */
cudaError_t
cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	*can = device != peer && getenv("GPUSORT_EMULATE_NO_PEERS") == NULL;
	return emulate_plain_call();
}

cudaError_t
cudaDeviceEnablePeerAccess(int, unsigned int)
{
	return emulate_plain_call();
}

size_t
emulate_allocated()
{
	std::lock_guard<std::mutex> guard(memory_lock);

	return allocated_bytes;
}

cudaError_t
cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	std::lock_guard<std::mutex> guard(memory_lock);

	*free_bytes = DEVICE_BYTES - allocated_bytes;
	*total_bytes = DEVICE_BYTES;
	return emulate_plain_call();
}

cudaError_t
cudaMalloc(void **memory, size_t bytes)
{
	std::lock_guard<std::mutex> guard(memory_lock);

	if (emulate_spoilt)
		return cudaErrorLaunchFailure;
	if (emulate_call_fails() || allocated_bytes + bytes > DEVICE_BYTES ||
		(*memory = aligned_alloc(256, (bytes + 255) / 256 * 256)) == NULL)
		return cudaErrorMemoryAllocation;
	memset(*memory, 0xCD, bytes);
	allocated[*memory] = bytes;
	allocated_bytes += bytes;
	return cudaSuccess;
}

cudaError_t
cudaFree(void *memory)
{
	std::lock_guard<std::mutex> guard(memory_lock);

	if (memory == NULL)
		return emulate_plain_call();
	if (allocated.count(memory) == 0)
	{
		fprintf(stderr, "freed what was not allocated\n");
		abort();
	}
	allocated_bytes -= allocated[memory];
	allocated.erase(memory);
	free(memory);
	return emulate_plain_call();
}

cudaError_t
cudaMallocHost(void **memory, size_t bytes)
{
	if (emulate_spoilt)
		return cudaErrorLaunchFailure;
	if (emulate_call_fails())
		return cudaErrorMemoryAllocation;
	*memory = malloc(bytes);
	memset(*memory, 0xCD, bytes);
	return cudaSuccess;
}

cudaError_t
cudaHostAlloc(void **memory, size_t bytes, unsigned int)
{
	return cudaMallocHost(memory, bytes);
}

cudaError_t
cudaFreeHost(void *memory)
{
	free(memory);
	return emulate_plain_call();
}

cudaError_t
cudaHostRegister(void *, size_t, unsigned int)
{
	return emulate_plain_call();
}

cudaError_t
cudaHostUnregister(void *)
{
	return emulate_plain_call();
}
