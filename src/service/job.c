/*-------------------------------------------------------------------------
 *
 * job.c
 *	  A sort's engine calls, on a thread of their own.
 *
 * Engine calls block, and the main thread must not.  So each sort has a thread
 * that takes commands off the job's queue, makes the engine calls for them, in
 * order, and puts the commands, with what came of them, on the queue of done
 * ones, which all jobs share.  An eventfd wakes the main thread.
 *
 * Life of a job: start; commands, the first of which is BEGIN (and BEGIN again
 * while it comes back busy; what was given after it is skipped then); finish, which
 * may come at any time, makes a running engine call return soon, takes back
 * what has not started and has END done; when END is done, free.
 *
 * Only the job's thread touches the engine's sort.  All functions here are for
 * the main thread.  What a thread is at, and since when, can be asked while it is
 * at it: time is the number of ticks that the main thread has counted.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "service/chunk_rows.h"
#include "service/fault.h"
#include "service/job.h"

/* The host engine sorts with up to about 300 kB of stack. */
#define THREAD_STACK_BYTES ((size_t) 2 << 20)

typedef struct Queue
{
	GpuSortCommand *first;
	GpuSortCommand **end;
} Queue;

struct GpuSortJob
{
	GpuSortEngineHandle handle;
	GpuSortRequest request;
	const GpuSortPool *pool;
	void *owner;
	pthread_t thread;
	int cancelled;       /* atomic */
	uint32_t finished;   /* tick when it was told to end */
	GpuSortCommand *end; /* END, kept so that finish cannot fail */

	/* under the lock */
	pthread_mutex_t lock;
	pthread_cond_t arrived;
	Queue queue;

	/* the thread's, atomic: the engine call it is in, as 1 + its GpuSortCommandType, or 0; its tick; rows put */
	int call;
	uint32_t call_tick;
	uint64_t rows_put;

	/* the thread's own */
	GpuSort *sort;
	GpuSortChunkRows rows;
	bool failed;
	uint64_t sorted_rows;
};

static pthread_mutex_t done_lock = PTHREAD_MUTEX_INITIALIZER;
static Queue done_queue;
static int done_event = -1;
static uint32_t ticks; /* atomic */

static void
append(Queue *queue, GpuSortCommand *command)
{
	command->next = NULL;
	if (queue->first == NULL)
		queue->end = &queue->first;
	*queue->end = command;
	queue->end = &command->next;
}

/* Sets *descriptor to what becomes readable when there are done commands. */
bool
gpusort_jobs_open(int *descriptor)
{
	done_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*descriptor = done_event;
	return done_event >= 0;
}

/* No job may be left. */
void
gpusort_jobs_close(void)
{
	close(done_event);
	done_event = -1;
}

/* The commands done since the last call, oldest first; the caller frees them. */
GpuSortCommand *
gpusort_jobs_done(void)
{
	GpuSortCommand *first;
	uint64_t count;

	if (read(done_event, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return NULL;
	pthread_mutex_lock(&done_lock);
	first = done_queue.first;
	done_queue.first = NULL;
	pthread_mutex_unlock(&done_lock);
	return first;
}

static void
report_done(GpuSortCommand *command)
{
	const uint64_t one = 1;
	bool was_empty;

	pthread_mutex_lock(&done_lock);
	was_empty = done_queue.first == NULL;
	append(&done_queue, command);
	pthread_mutex_unlock(&done_lock);

	/* Fails only when the counter is full, and then it is readable anyway. */
	if (was_empty && write(done_event, &one, sizeof(one)) < 0)
		return;
}

/* Has the engine make room for another chunk; the command is to say for how many rows, or why not. */
static void
reserve_chunk(GpuSortJob *job, GpuSortCommand *command)
{
	command->rows_max = gpusort_chunk_rows_choose(&job->rows);
	command->reserved = job->handle.ops->reserve(job->sort, command->rows_max, &command->error) == 0;
}

/* Fills the command's chunk with the next rows of its interval, if there are any. */
static int
emit_rows(GpuSortJob *job, GpuSortCommand *command)
{
	GpuSortInterval *interval = command->interval;
	uint64_t end = interval->end < job->sorted_rows ? interval->end : job->sorted_rows;
	int rc;

	command->first = interval->next;
	command->skipped = interval->next >= end;
	if (command->skipped)
		return 0;
	rc = job->handle.ops->emit(job->sort, interval->next, end, gpusort_pool_chunk(job->pool, command->chunk),
							   &command->u.emitted, &command->error);
	if (rc == 0)
		interval->next += command->u.emitted.rows;
	return rc;
}

/* Cuts the rows, and tells where in the command's chunk. */
static int
cut_rows(GpuSortJob *job, GpuSortCommand *command)
{
	GpuSortSorted sorted = {job->handle.ops, job->sort, job->request.key_words, job->sorted_rows};
	/* not in the chunk itself, which all clients have mapped, before it is final */
	uint64_t *first_rows = malloc(GPUSORT_RANGES_MAX * sizeof(uint64_t));
	int rc;

	if (first_rows == NULL)
	{
		command->error = (GpuSortError){GPUSORT_REASON_NO_MEMORY, "the sort service has no memory left"};
		return -1;
	}
	if (command->borders != NULL)
		rc = gpusort_ranges_cut_like(&sorted, command->borders, first_rows, &command->error);
	else
		rc = gpusort_ranges_cut(&sorted, command->bits, command->most, first_rows, &command->borders, &command->error);
	if (rc == 0)
		memcpy(gpusort_pool_chunk(job->pool, command->chunk), first_rows, command->borders->ranges * sizeof(uint64_t));
	free(first_rows);
	return rc;
}

/* Lets others see which engine call the thread is in; none when it is back. */
static void
enter_call(GpuSortJob *job, GpuSortCommandType type)
{
	__atomic_store_n(&job->call_tick, __atomic_load_n(&ticks, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	__atomic_store_n(&job->call, type + 1, __ATOMIC_RELEASE);
	GPUSORT_FAULT_CALL(type);
}

static void
leave_call(GpuSortJob *job)
{
	__atomic_store_n(&job->call, 0, __ATOMIC_RELEASE);
}

/* Makes the engine calls for a command. */
static void
run_command(GpuSortJob *job, GpuSortCommand *command)
{
	const GpuSortEngineOps *ops = job->handle.ops;
	GpuSortError *error = &command->error;
	int rc = 0;

	if (job->failed || __atomic_load_n(&job->cancelled, __ATOMIC_RELAXED) ||
		(job->sort == NULL && command->type != GPUSORT_COMMAND_BEGIN))
	{
		command->skipped = true;
		return;
	}
	enter_call(job, command->type);
	switch (command->type)
	{
		case GPUSORT_COMMAND_BEGIN:
			rc = ops->begin(job->handle.engine, &job->request, &job->cancelled, &job->sort,
							&command->u.place, error);
			if (rc != 0)
				job->sort = NULL;
			command->busy = rc != 0 && error->reason == GPUSORT_REASON_MEMORY_BUSY;
			if (command->busy)
				rc = 0;
			break;
		case GPUSORT_COMMAND_RESERVE:
			reserve_chunk(job, command);
			break;
		case GPUSORT_COMMAND_PUT:
			rc = ops->put(job->sort, gpusort_pool_chunk(job->pool, command->chunk),
						  command->rows, command->bytes, command->rows_max, error);
			__atomic_fetch_add(&job->rows_put, command->rows, __ATOMIC_RELAXED);
			gpusort_chunk_rows_note(&job->rows, command->rows, command->bytes);
			if (rc == 0 && !command->final)
				reserve_chunk(job, command);
			break;
		case GPUSORT_COMMAND_SORT:
			rc = ops->sort(job->sort, &command->u.outcome, error);
			if (rc == 0)
				job->sorted_rows = command->u.outcome.rows;
			break;
		case GPUSORT_COMMAND_EMIT:
			rc = emit_rows(job, command);
			break;
		case GPUSORT_COMMAND_CUT:
			rc = cut_rows(job, command);
			break;
		case GPUSORT_COMMAND_END:
			break;
	}
	leave_call(job);
	if (rc != 0)
		job->failed = command->failed = true;
}

static void *
job_main(void *arg)
{
	GpuSortJob *job = arg;

	for (;;)
	{
		GpuSortCommand *command;

		pthread_mutex_lock(&job->lock);
		while (job->queue.first == NULL)
			pthread_cond_wait(&job->arrived, &job->lock);
		command = job->queue.first;
		job->queue.first = command->next;
		pthread_mutex_unlock(&job->lock);

		if (command->type == GPUSORT_COMMAND_END)
		{
			if (job->sort != NULL)
			{
				enter_call(job, GPUSORT_COMMAND_END);
				job->handle.ops->end(job->sort);
				leave_call(job);
			}
			report_done(command);
			return NULL;
		}
		run_command(job, command);
		report_done(command);
	}
}

/*
 * Starts a job's thread, which waits for commands; NULL if the system does not
 * let us.
 */
GpuSortJob *
gpusort_job_start(const GpuSortEngineHandle *handle, const GpuSortRequest *request,
				  const GpuSortPool *pool, void *owner)
{
	GpuSortJob *job = calloc(1, sizeof(GpuSortJob));
	pthread_attr_t attributes;
	int rc;

	if (job == NULL)
		return NULL;
	job->handle = *handle;
	job->request = *request;
	job->pool = pool;
	job->owner = owner;
	gpusort_chunk_rows_init(&job->rows, request);
	job->end = calloc(1, sizeof(GpuSortCommand));
	if (job->end == NULL)
	{
		free(job);
		return NULL;
	}
	job->end->type = GPUSORT_COMMAND_END;
	job->end->job = job;
	job->end->asker = owner;
	pthread_mutex_init(&job->lock, NULL);
	pthread_cond_init(&job->arrived, NULL);

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
	rc = pthread_create(&job->thread, &attributes, job_main, job);
	pthread_attr_destroy(&attributes);
	if (rc != 0)
	{
		pthread_cond_destroy(&job->arrived);
		pthread_mutex_destroy(&job->lock);
		free(job->end);
		free(job);
		return NULL;
	}
	return job;
}

/* Whoever started the job. */
void *
gpusort_job_owner(const GpuSortJob *job)
{
	return job->owner;
}

static void
enqueue(GpuSortJob *job, GpuSortCommand *command)
{
	pthread_mutex_lock(&job->lock);
	append(&job->queue, command);
	pthread_cond_signal(&job->arrived);
	pthread_mutex_unlock(&job->lock);
}

/* Has a copy of command done, made in spare, a done one, if there is one; false if there is no memory. */
bool
gpusort_job_command(GpuSortJob *job, const GpuSortCommand *command, GpuSortCommand *spare)
{
	GpuSortCommand *copy = spare != NULL ? spare : malloc(sizeof(GpuSortCommand));

	if (copy == NULL)
		return false;
	*copy = *command;
	copy->job = job;
	enqueue(job, copy);
	return true;
}

/* Takes EMITs of an asker that have not started, of intervals up to a number, out of the queue; the caller frees them. */
GpuSortCommand *
gpusort_job_take_back(GpuSortJob *job, const void *asker, uint32_t number)
{
	Queue kept = {NULL, NULL};
	Queue taken = {NULL, NULL};
	GpuSortCommand *next;

	pthread_mutex_lock(&job->lock);
	for (GpuSortCommand *command = job->queue.first; command != NULL; command = next)
	{
		next = command->next;
		if (command->type == GPUSORT_COMMAND_EMIT && command->asker == asker && command->interval->number <= number)
			append(&taken, command);
		else
			append(&kept, command);
	}
	job->queue = kept;
	pthread_mutex_unlock(&job->lock);
	return taken.first;
}

/* Counts a second while engine calls run, unless the service was stopped; see watchdog.c. */
void
gpusort_jobs_tick(void)
{
	__atomic_fetch_add(&ticks, 1, __ATOMIC_RELAXED);
}

/* Fills *call if the job's thread is in an engine call. */
bool
gpusort_job_call(const GpuSortJob *job, GpuSortCall *call)
{
	int type = __atomic_load_n(&job->call, __ATOMIC_ACQUIRE);
	uint32_t since_finish = ticks - job->finished;

	if (type == 0)
		return false;
	call->type = type - 1;
	call->rows = __atomic_load_n(&job->rows_put, __ATOMIC_RELAXED);
	call->seconds = ticks - __atomic_load_n(&job->call_tick, __ATOMIC_RELAXED);

	/* END is no call that is to return early. */
	call->cancelled_seconds = 0;
	if (call->type != GPUSORT_COMMAND_END && __atomic_load_n(&job->cancelled, __ATOMIC_RELAXED))
		call->cancelled_seconds = since_finish < call->seconds ? since_finish : call->seconds;
	return true;
}

/*
 * Ends a job.  Returns the commands that have not started, which the caller
 * frees; one that is running is still reported as done, and so is END.
 */
GpuSortCommand *
gpusort_job_finish(GpuSortJob *job)
{
	GpuSortCommand *left;

	job->finished = ticks;
	__atomic_store_n(&job->cancelled, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&job->lock);
	left = job->queue.first;
	job->queue.first = NULL;
	append(&job->queue, job->end);
	pthread_cond_signal(&job->arrived);
	pthread_mutex_unlock(&job->lock);
	return left;
}

/* Frees a job whose END, which the caller frees too, was reported as done. */
void
gpusort_job_free(GpuSortJob *job)
{
	pthread_join(job->thread, NULL);
	pthread_cond_destroy(&job->arrived);
	pthread_mutex_destroy(&job->lock);
	free(job);
}
