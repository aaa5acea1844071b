/*-------------------------------------------------------------------------
 *
 * emulate_threads.cc
 *	  The threads of a block, each a coroutine: barriers, and what the lanes of a warp tell
 *	  each other.
 *
 *-------------------------------------------------------------------------
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <map>
#include <memory>
#include <mutex>

#include "emulate.h"

#define STACK_BYTES ((size_t) 64 << 10)
#define BLOCK_MAX   1024 /* threads */
#define MASKS_MAX   8    /* different masks that a warp's threads wait with at a time */

__thread dim3 threadIdx;
__thread dim3 blockIdx;
__thread dim3 blockDim;
__thread dim3 gridDim;

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

/* This thread's, from its first grid on; belongs to owner. */
static __thread Block *block;
static thread_local std::unique_ptr<Block> owner;

/* Lets the other threads of the block run, until *turn has changed. */
static void
await_turn(const uint32_t *turn, uint32_t last_turn)
{
	Coroutine *thread = &block->threads[block->current];
	dim3 index = threadIdx;

	if (*turn != last_turn)
		return;
	thread->turn = turn;
	thread->last_turn = last_turn;
	if (_setjmp(thread->place) == 0)
		_longjmp(block->scheduler, 1);
	threadIdx = index;
}

/* Lets all go on if all that are left wait at the barrier. */
static void
look_at_barrier()
{
	if (block->at_barrier == block->live)
	{
		block->at_barrier = 0;
		block->barrier_turn++;
	}
}

void
__syncthreads()
{
	const uint32_t turn = block->barrier_turn;

	block->at_barrier++;
	look_at_barrier();
	await_turn(&block->barrier_turn, turn);
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
	Meeting *meeting = find_meeting(&block->warps[threadIdx.x / 32], mask);
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
	return block->shared.get();
}

static void
run_thread()
{
	for (;;)
	{
		(*block->kernel)();
		block->threads[block->current].done = true;
		block->live--;
		look_at_barrier();
		if (_setjmp(block->threads[block->current].place) == 0)
			_longjmp(block->scheduler, 1);
	}
}

/* Runs the current thread until it pauses or ends. */
static __attribute__((noinline)) void
resume_thread(Coroutine *thread)
{
	if (_setjmp(block->scheduler) != 0)
		return;
	threadIdx = dim3(block->current);
	if (thread->started)
		_longjmp(thread->place, 1);
	thread->started = true;
	getcontext(&thread->start);
	thread->start.uc_stack.ss_sp = &block->stacks[block->current * STACK_BYTES];
	thread->start.uc_stack.ss_size = STACK_BYTES;
	thread->start.uc_link = NULL;
	makecontext(&thread->start, run_thread, 0);
	setcontext(&thread->start);
}

static void
run_block()
{
	block->live = blockDim.x;
	block->at_barrier = 0;
	memset(block->warps, 0, sizeof(block->warps));
	for (unsigned int i = 0; i < blockDim.x; i++)
	{
		block->threads[i].done = false;
		block->threads[i].turn = NULL;
	}
	while (block->live > 0)
	{
		bool resumed = false;

		for (block->current = 0; block->current < blockDim.x; block->current++)
		{
			Coroutine *thread = &block->threads[block->current];

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
	if (block == NULL)
	{
		owner.reset(new Block());
		block = owner.get();
		block->stacks.reset(new char[BLOCK_MAX * STACK_BYTES]);
	}

	/* as large as asked for, so that the address sanitizer sees what goes beyond */
	block->shared.reset(new uint64_t[shared_bytes / 8 + 1]);
	block->kernel = &kernel;
	gridDim = grid;
	blockDim = block_size;
	for (unsigned int y = 0; y < grid.y; y++)
	{
		for (unsigned int x = 0; x < grid.x; x++)
		{
			blockIdx = dim3(x, y);
			memset(block->shared.get(), 0xCD, shared_bytes);
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
