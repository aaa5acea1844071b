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

#include "service/job/chunk_rows.h"
#include "service/external/external_sort.h"
#include "service/external/run_rows.h"
#include "service/fault.h"
#include "service/job/job.h"

/* The host engine sorts with up to about 300 kB of stack. */
#define THREAD_STACK_BYTES ((size_t) 2 << 20)

typedef struct Queue
{
	GpuSortCommand *first;
	GpuSortCommand **end;
} Queue;

struct GpuSortJob
{
	GpuSortJobMeans means;
	GpuSortRequest request;
	void *owner;
	pthread_t thread;
	int cancelled;       /* atomic */
	uint32_t finished;   /* tick when it was told to end */
	GpuSortCommand *end; /* END, kept so that finish cannot fail */

	/* under the lock */
	pthread_mutex_t lock;
	pthread_cond_t arrived;
	Queue queue;

	GpuSortCallWatch watch;                               /* the thread's */
	GpuSortCallWatch loader_watches[GPUSORT_JOB_LOADERS]; /* of threads that the sort may have besides */
	uint64_t rows_put;                                    /* atomic, the thread's */
	uint32_t steps;                                       /* atomic: see call_watch.h */
	uint32_t steps_seen;                                  /* the main thread's: when it looked last */

	/* the thread's own */
	GpuSortExternal *sort; /* NULL before BEGIN */
	GpuSortChunkRows rows;
	bool failed;
	uint64_t sorted_rows;
	Queue waiting; /* for space in files: commands that are done when there is enough, in order */
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

/* Reserves room in the engine for another chunk; the command then says for how many rows, or why not. */
static void
reserve_chunk(GpuSortJob *job, GpuSortCommand *command)
{
	uint64_t most = job->request.spill ? gpusort_run_rows_most(job->rows_put) : UINT64_MAX;

	command->rows_max = gpusort_chunk_rows_choose(&job->rows);
	if (command->rows_max > most)
		command->rows_max = most;
	command->reserved = gpusort_external_reserve(job->sort, command->rows_max, &command->error) == 0;
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
	rc = gpusort_external_emit(job->sort, interval->next, end, gpusort_pool_chunk(job->means.pool, command->chunk),
							   &command->u.emitted, &command->error);
	if (rc == 0)
		interval->next += command->u.emitted.rows;
	return rc;
}

/* Cuts the rows, and tells where in the command's chunk. */
static int
cut_rows(GpuSortJob *job, GpuSortCommand *command)
{
	/* not in the chunk itself, which all clients have mapped, before it is final */
	uint64_t *first_rows = malloc(GPUSORT_RANGES_MAX * sizeof(uint64_t));
	int rc;

	if (first_rows == NULL)
	{
		command->error = (GpuSortError){.reason = GPUSORT_REASON_NO_MEMORY, .text = "the sort service has no memory left"};
		return -1;
	}
	rc = gpusort_external_cut(job->sort, command->bits, command->most, first_rows, &command->borders, &command->error);
	if (rc == 0)
		memcpy(gpusort_pool_chunk(job->means.pool, command->chunk), first_rows, command->borders->ranges * sizeof(uint64_t));
	free(first_rows);
	return rc;
}

/* Begins the sort; busy is no failure, and is tried again. */
static int
begin_sort(GpuSortJob *job, GpuSortCommand *command)
{
	int rc;

	if (job->sort == NULL)
	{
		const GpuSortExternalMeans means = {.handle = job->means.handle,
											.run_memory = job->means.run_memory,
											.cpus = job->means.cpus,
											.cancelled = &job->cancelled,
											.watch = &job->watch,
											.loader_watches = job->loader_watches,
											.steps = &job->steps};

		job->sort = gpusort_external_create(&means, &job->request);
	}
	if (job->sort == NULL)
	{
		command->error = (GpuSortError){.reason = GPUSORT_REASON_NO_MEMORY, .text = "the sort service has no memory left"};
		return -1;
	}
	gpusort_watch_enter(&job->watch, GPUSORT_CALL_BEGIN);
	rc = gpusort_external_begin(job->sort, &command->u.place, &command->error);
	gpusort_watch_leave(&job->watch);
	command->busy = rc != 0 && command->error.reason == GPUSORT_REASON_MEMORY_BUSY;
	return command->busy ? 0 : rc;
}

/* Puts the command's chunk. */
static GpuSortProgress
put_rows(GpuSortJob *job, GpuSortCommand *command)
{
	uint32_t runs = gpusort_external_runs(job->sort);
	GpuSortProgress progress =
		gpusort_external_put(job->sort, gpusort_pool_chunk(job->means.pool, command->chunk), command->rows, command->bytes,
							 command->rows_max, &command->space, &command->error);

	command->released = gpusort_external_runs(job->sort) != runs;
	if (progress != GPUSORT_PROGRESS_DONE)
		return progress;
	__atomic_fetch_add(&job->rows_put, command->rows, __ATOMIC_RELAXED);
	gpusort_chunk_rows_note(&job->rows, command->rows, command->bytes);
	if (!command->final)
		reserve_chunk(job, command);
	return progress;
}

/* Returns true if a command can be done only when the sort was begun, and that it was. */
static bool
can_run(const GpuSortJob *job, const GpuSortCommand *command)
{
	return !job->failed && !__atomic_load_n(&job->cancelled, __ATOMIC_RELAXED) &&
		(command->type == GPUSORT_COMMAND_BEGIN || (job->sort != NULL && gpusort_external_has_begun(job->sort)));
}

/* Makes the engine calls for a command.  LACKS_SPACE: run it again when there is more space. */
static GpuSortProgress
run_command(GpuSortJob *job, GpuSortCommand *command)
{
	GpuSortError *error = &command->error;
	GpuSortProgress progress = GPUSORT_PROGRESS_DONE;

	if (!can_run(job, command))
	{
		command->skipped = true;
		return progress;
	}
	gpusort_watch_enter(&job->watch, (GpuSortCallType) command->type);
	GPUSORT_FAULT_CALL(command->type);
	gpusort_watch_leave(&job->watch);
	switch (command->type)
	{
		case GPUSORT_COMMAND_BEGIN:
			progress = begin_sort(job, command);
			break;
		case GPUSORT_COMMAND_RESERVE:
			gpusort_watch_enter(&job->watch, (GpuSortCallType) command->type);
			reserve_chunk(job, command);
			gpusort_watch_leave(&job->watch);
			break;
		case GPUSORT_COMMAND_PUT:
			progress = put_rows(job, command);
			break;
		case GPUSORT_COMMAND_SORT:
			progress = gpusort_external_sort(job->sort, &command->u.outcome, &command->space, error);
			if (progress == GPUSORT_PROGRESS_DONE)
				job->sorted_rows = command->u.outcome.rows;
			break;
		case GPUSORT_COMMAND_EMIT:
			progress = emit_rows(job, command);
			break;
		case GPUSORT_COMMAND_CUT:
			progress = cut_rows(job, command);
			break;
		case GPUSORT_COMMAND_SPACE:
			progress = gpusort_external_add_space(job->sort, command->owner, command->descriptor, command->start,
												  command->space, error);
			command->descriptor = -1;
			break;
		case GPUSORT_COMMAND_LACK:
		case GPUSORT_COMMAND_END:
			break;
	}
	if (progress == GPUSORT_PROGRESS_FAILED)
		job->failed = command->failed = true;
	return progress;
}

/* Tells the asker of a command that it waits for space in files. */
static void
report_lack(GpuSortJob *job, const GpuSortCommand *command)
{
	GpuSortCommand *lack = calloc(1, sizeof(GpuSortCommand));

	/* Without memory for that nobody hears of it, unless another one's waits too; cancels still do. */
	if (lack == NULL)
		return;
	*lack = (GpuSortCommand){
		.type = GPUSORT_COMMAND_LACK, .job = job, .asker = command->asker, .descriptor = -1, .space = command->space};
	report_done(lack);
}

/* Returns true if a command is one that space is asked of its process for. */
static bool
may_lack(const GpuSortCommand *command)
{
	return command->type == GPUSORT_COMMAND_PUT || command->type == GPUSORT_COMMAND_SORT;
}

/* Returns true if a command must wait for those before it. */
static bool
is_in_order(const GpuSortCommand *command)
{
	return may_lack(command) || command->type == GPUSORT_COMMAND_EMIT || command->type == GPUSORT_COMMAND_CUT;
}

/*
 * Does a command, and tells what came of it; one that lacks space, or comes behind such a one, waits.  Whoever
 * waits for it is asked for space, for not all of them may be listening.
 */
static void
do_command(GpuSortJob *job, GpuSortCommand *command)
{
	bool waits = job->waiting.first != NULL && is_in_order(command) && can_run(job, command);

	if (waits)
		command->space = job->waiting.first->space;
	else if (run_command(job, command) != GPUSORT_PROGRESS_LACKS_SPACE)
	{
		report_done(command);
		return;
	}
	append(&job->waiting, command);
	if (may_lack(command))
		report_lack(job, command);
}

/* Goes on with what waits for space, for there is more now, or it will not be done any more. */
static void
go_on(GpuSortJob *job)
{
	while (job->waiting.first != NULL)
	{
		GpuSortCommand *command = job->waiting.first;

		if (run_command(job, command) == GPUSORT_PROGRESS_LACKS_SPACE)
		{
			for (GpuSortCommand *other = command; other != NULL; other = other->next)
			{
				other->space = command->space;
				if (may_lack(other))
					report_lack(job, other);
			}
			return;
		}
		job->waiting.first = command->next;
		report_done(command);
	}
}

static void *
job_main(void *arg)
{
	GpuSortJob *job = arg;

	for (;;)
	{
		GpuSortCommand *command;
		bool has_room;

		pthread_mutex_lock(&job->lock);
		while (job->queue.first == NULL)
			pthread_cond_wait(&job->arrived, &job->lock);
		command = job->queue.first;
		job->queue.first = command->next;
		pthread_mutex_unlock(&job->lock);

		if (command->type == GPUSORT_COMMAND_END)
		{
			go_on(job);
			gpusort_watch_enter(&job->watch, GPUSORT_CALL_END);
			GPUSORT_FAULT_CALL(GPUSORT_COMMAND_END);
			gpusort_external_end(job->sort);
			gpusort_watch_leave(&job->watch);
			report_done(command);
			return NULL;
		}
		has_room = command->type == GPUSORT_COMMAND_SPACE;
		do_command(job, command);
		if (has_room || job->failed)
			go_on(job);
	}
}

/*
 * Starts a job's thread, which waits for commands;
 * NULL if the system does not let us.
 */
GpuSortJob *
gpusort_job_start(const GpuSortJobMeans *means, const GpuSortRequest *request, void *owner)
{
	GpuSortJob *job = calloc(1, sizeof(GpuSortJob));
	pthread_attr_t attributes;
	int rc;

	if (job == NULL)
		return NULL;
	job->means = *means;
	job->request = *request;
	job->owner = owner;
	gpusort_watch_init(&job->watch, &ticks, &job->steps);
	for (int i = 0; i < GPUSORT_JOB_LOADERS; i++)
		gpusort_watch_init(&job->loader_watches[i], &ticks, &job->steps);
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

/* Gives the job a copy of command, made in spare, a finished one, if there is one; false if there is no memory. */
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

/*
 * Takes EMITs of an asker that have not started, of intervals up to a number, out of the queue; the caller frees them.
 */
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

/* Fills *call if a thread is in an engine call. */
static bool
watched_call(const GpuSortJob *job, const GpuSortCallWatch *watch, GpuSortCall *call)
{
	int type = __atomic_load_n(&watch->call, __ATOMIC_ACQUIRE);
	uint32_t since_finish = ticks - job->finished;

	if (type == 0)
		return false;
	call->type = (GpuSortCallType) (type - 1);
	call->rows = __atomic_load_n(&job->rows_put, __ATOMIC_RELAXED);
	call->seconds = ticks - __atomic_load_n(&watch->since, __ATOMIC_RELAXED);

	/* END is no call that is to return early. */
	call->cancelled_seconds = 0;
	if (call->type != GPUSORT_CALL_END && __atomic_load_n(&job->cancelled, __ATOMIC_RELAXED))
		call->cancelled_seconds = since_finish < call->seconds ? since_finish : call->seconds;
	return true;
}

/* Fills *call if a thread of the job is in an engine call: of several with that which takes longest. */
bool
gpusort_job_call(const GpuSortJob *job, GpuSortCall *call)
{
	bool any = watched_call(job, &job->watch, call);

	for (int i = 0; i < GPUSORT_JOB_LOADERS; i++)
	{
		GpuSortCall other;

		if (watched_call(job, &job->loader_watches[i], &other) && (!any || other.seconds > call->seconds))
		{
			*call = other;
			any = true;
		}
	}
	return any;
}

/*
 * Returns true if the job gets on: since this was asked last it has begun an engine call or read a part of a run, or a
 * thread of it sorts, which the watchdog has an eye on.
 */
bool
gpusort_job_gets_on(GpuSortJob *job)
{
	const uint32_t steps = __atomic_load_n(&job->steps, __ATOMIC_RELAXED);
	const bool moved = steps != job->steps_seen;
	GpuSortCall call;

	job->steps_seen = steps;
	if (moved || (watched_call(job, &job->watch, &call) && call.type == GPUSORT_CALL_SORT))
		return true;
	for (int i = 0; i < GPUSORT_JOB_LOADERS; i++)
	{
		if (watched_call(job, &job->loader_watches[i], &call) && call.type == GPUSORT_CALL_SORT)
			return true;
	}
	return false;
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
