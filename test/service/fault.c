/*-------------------------------------------------------------------------
 *
 * fault.c
 *	  What the fault points of src/service/fault.h do: part of a service that is
 *	  built with them, and of no other.
 *
 * Messages and rows are spoilt by the main thread, where they are sent; an engine
 * call is kept from returning by its job's thread.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include "service/fault.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/service_log.h"
#include "service/session/session_state.h"

#define FAULT_FILE "gpusort.fault"

/* Every message has this "type". */
#define GPUSORT_MSG_ANY (-1)

/* A message on its way to a client, to be spoilt. */
typedef struct Answer
{
	GpuSortSession *session;
	GpuSortMessage message;
	size_t bytes;          /* of it, that are sent */
	int times;             /* it is sent */
	unsigned seed;         /* decides where there is a choice */
	uint32_t chunk_before; /* of the DATA that was sent last */
} Answer;

/* Spoils an answer; false if this one does not lend itself to it. */
typedef bool (*Spoil)(Answer *answer);

#define DECLARE(name, where, text) static bool name(Answer *answer);
GPUSORT_FAULTS_SENT(DECLARE)

typedef enum PointKind
{
	POINT_SENT,
	POINT_STOP,
	POINT_HANG,
	POINT_START,
} PointKind;

typedef struct Point
{
	const char *name;
	PointKind kind;
	int where; /* GpuSortMessageType or GpuSortCommandType */
	const char *text;
	Spoil spoil;
} Point;

#define SENT(name, where, text) {#name, POINT_SENT, GPUSORT_MSG_##where, text, name},
#define STOP(name, where, text) {#name, POINT_STOP, GPUSORT_MSG_##where, text, NULL},
#define HANG(name, where, text) {#name, POINT_HANG, GPUSORT_COMMAND_##where, text, NULL},
#define START(name, text)       {#name, POINT_START, 0, text, NULL},

static const Point points[] = {
	GPUSORT_FAULTS_SENT(SENT) GPUSORT_FAULTS_STOP(STOP) GPUSORT_FAULTS_HANG(HANG) GPUSORT_FAULTS_START(START)};

/* The fault that was chosen; under the lock, for jobs' threads look at it too. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct
{
	const Point *point; /* NULL: none */
	unsigned at;        /* the passing at which it happens; 0: each */
	unsigned passed;
	unsigned seed;
	ino_t file;
	struct timespec written;
} chosen;

/* The chunk of the DATA that was sent last. */
static uint32_t chunk_before = GPUSORT_NO_CHUNK;

/*
 * The choice
 */

/* Reads the file, if there is one that was not read before. */
static void
choose(void)
{
	char name[64];
	unsigned at = 1;
	unsigned seed = 0;
	struct stat status;
	FILE *file;

	pthread_mutex_lock(&lock);
	file = fopen(FAULT_FILE, "re");
	if (file == NULL || fstat(fileno(file), &status) != 0)
		chosen.point = NULL;
	else if (chosen.point == NULL || status.st_ino != chosen.file ||
			 memcmp(&status.st_mtim, &chosen.written, sizeof(chosen.written)) != 0)
	{
		chosen.point = NULL;
		if (fscanf(file, "%63s %u %u", name, &at, &seed) >= 1)
		{
			for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
			{
				if (strcmp(points[i].name, name) == 0)
					chosen.point = &points[i];
			}
			if (chosen.point == NULL)
				gpusort_log(true, "there is no fault point \"%s\"", name);
		}
		chosen.at = at;
		chosen.passed = 0;
		chosen.seed = seed;
		chosen.file = status.st_ino;
		chosen.written = status.st_mtim;
	}
	if (file != NULL)
		fclose(file);
	pthread_mutex_unlock(&lock);
}

/* The chosen point if it is passed here and now is the time for it, else NULL. */
static const Point *
pass(PointKind kind, int where)
{
	const Point *point;

	pthread_mutex_lock(&lock);
	point = chosen.point;
	if (point != NULL && (point->kind != kind || (point->where != where && point->where != GPUSORT_MSG_ANY)))
		point = NULL;
	if (point != NULL && ++chosen.passed < chosen.at)
		point = NULL;
	pthread_mutex_unlock(&lock);
	return point;
}

/* The fault happens: to be called before it does, as it may be the last that this process does. */
static void
happens(const Point *point)
{
	pthread_mutex_lock(&lock);
	if (chosen.at != 0)
	{
		chosen.point = NULL;
		unlink(FAULT_FILE);
	}
	pthread_mutex_unlock(&lock);
	gpusort_log(false, "fault point %s: %s", point->name, point->text);
}

void
gpusort_fault_start(void)
{
	const Point *point;

	choose();
	point = pass(POINT_START, 0);
	if (point == NULL)
		return;
	happens(point);
	for (;;)
		pause();
}

void
gpusort_fault_received(const GpuSortMessage *message)
{
	const Point *point;

	if (message->type == GPUSORT_MSG_HELLO)
		choose();
	point = pass(POINT_STOP, message->type);
	if (point == NULL)
		return;
	happens(point);
	(void) raise(SIGSTOP);
}

void
gpusort_fault_call(int command)
{
	const Point *point = pass(POINT_HANG, command);

	if (point == NULL)
		return;
	happens(point);
	for (;;)
		pause();
}

bool
gpusort_fault_sent(struct GpuSortSession *session, const GpuSortMessage *message, GpuSortMessageType type)
{
	static bool sending = false; /* a message that was spoilt here */
	const Point *point = sending ? NULL : pass(POINT_SENT, type);
	Answer answer = {.session = session,
					 .message = *message,
					 .bytes = sizeof(*message),
					 .times = 1,
					 .seed = chosen.seed,
					 .chunk_before = chunk_before};

	if (point == NULL)
	{
		if (type == GPUSORT_MSG_DATA)
			chunk_before = message->u.data.chunk;
		return false;
	}
	answer.message.magic = GPUSORT_PROTOCOL_MAGIC;
	answer.message.version = GPUSORT_PROTOCOL_VERSION;
	answer.message.type = type;
	if (!point->spoil(&answer))
		return false; /* the next one may do */
	happens(point);
	if (point->spoil == exit_service)
		_exit(EXIT_FAILURE);
	sending = true;
	for (int i = 0; i < answer.times; i++)
	{
		if (answer.bytes == sizeof(*message) && answer.message.version == GPUSORT_PROTOCOL_VERSION)
			gpusort_session_send(session, &answer.message, answer.message.type);
		else
		{
			GpuSortMessage wire[2] = {answer.message};

			(void) send(session->socket, wire, answer.bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
		}
	}
	sending = false;
	return true;
}

/*
 * Rows of a chunk
 */

static char *
chunk_of(const Answer *answer)
{
	return gpusort_pool_chunk(answer->session->sessions->pool, answer->message.u.data.chunk);
}

static GpuSortEmitted *
emitted_of(Answer *answer)
{
	return &answer->message.u.data.emitted;
}

/* Bytes of a row, padded. */
static uint32_t
room_of(const char *row)
{
	return GPUSORT_ALIGN8(*(const uint32_t *) row);
}

/* Row i of the chunk. */
static char *
row_at(Answer *answer, uint32_t i)
{
	char *row = chunk_of(answer);

	while (i-- > 0)
		row += room_of(row);
	return row;
}

/* A number below n, by the seed; the same for the same k. */
static uint32_t
some(const Answer *answer, uint32_t n, uint32_t k)
{
	uint64_t x = (answer->seed + UINT64_C(1)) * UINT64_C(0x9E3779B97F4A7C15) + k * UINT64_C(0xD1B54A32D192ED03);

	x ^= x >> 31;
	x *= UINT64_C(0x94D049BB133111EB);
	x ^= x >> 29;
	return (x >> 16) % n;
}

/* A row of the chunk; NULL if it has none. */
static char *
some_row(Answer *answer)
{
	uint32_t rows = emitted_of(answer)->rows;

	return rows > 0 ? row_at(answer, some(answer, rows, 0)) : NULL;
}

static uint32_t
pool_chunks(const Answer *answer)
{
	return gpusort_pool_chunks(answer->session->sessions->pool);
}

static bool
set_length(Answer *answer, uint32_t length)
{
	char *row = some_row(answer);

	if (row == NULL)
		return false;
	*(uint32_t *) row = length;
	return true;
}

/* Sets flags of some row that has none of them. */
static bool
set_flags(Answer *answer, uint8_t flags)
{
	char *row = some_row(answer);

	if (row == NULL || (row[GPUSORT_ROW_FLAGS_OFFSET] & flags) != 0)
		return false;
	row[GPUSORT_ROW_FLAGS_OFFSET] |= flags;
	return true;
}

/* Turns one of the bytes' bits over. */
static bool
flip(const Answer *answer, char *bytes, uint32_t count)
{
	uint32_t bit = some(answer, count * 8, 1);

	bytes[bit / 8] ^= 1 << bit % 8;
	return true;
}

/*
 * What is wrong with DATA
 */

static bool
drop_row(Answer *answer)
{
	emitted_of(answer)->rows--;
	return true;
}

static bool
drop_row_and_bytes(Answer *answer)
{
	GpuSortEmitted *emitted = emitted_of(answer);

	if (emitted->rows < 2)
		return false;
	emitted->rows--;
	emitted->bytes -= room_of(row_at(answer, emitted->rows));
	return true;
}

static bool
last_early(Answer *answer)
{
	GpuSortEmitted *emitted = emitted_of(answer);

	if (emitted->last)
		return false;
	emitted->last = 1;
	return true;
}

static bool
last_missing(Answer *answer)
{
	GpuSortEmitted *emitted = emitted_of(answer);

	if (!emitted->last)
		return false;
	emitted->last = 0;
	return true;
}

static bool
skip_chunk(Answer *answer)
{
	answer->times = 0;
	return true;
}

static bool
no_rows(Answer *answer)
{
	emitted_of(answer)->rows = emitted_of(answer)->bytes = 0;
	emitted_of(answer)->last = 0;
	return true;
}

static bool
send_twice(Answer *answer)
{
	answer->times = 2;
	return true;
}

static bool
more_rows(Answer *answer)
{
	emitted_of(answer)->rows++;
	return true;
}

static bool
more_bytes(Answer *answer)
{
	emitted_of(answer)->bytes += 8;
	return true;
}

static bool
huge_bytes(Answer *answer)
{
	emitted_of(answer)->bytes = GPUSORT_CHUNK_BYTES + 8;
	return true;
}

static bool
other_epoch(Answer *answer)
{
	answer->message.u.data.epoch++;
	return true;
}

static bool
chunk_range(Answer *answer)
{
	answer->message.u.data.chunk = pool_chunks(answer) + some(answer, 1000, 0);
	return true;
}

static bool
chunk_again(Answer *answer)
{
	if (answer->chunk_before == GPUSORT_NO_CHUNK || answer->chunk_before == answer->message.u.data.chunk)
		return false;
	answer->message.u.data.chunk = answer->chunk_before;
	return true;
}

static bool
other_chunk(Answer *answer)
{
	uint32_t chunks = pool_chunks(answer);

	answer->message.u.data.chunk = (answer->message.u.data.chunk + 1 + some(answer, chunks - 1, 0)) % chunks;
	return true;
}

static bool
zero_length(Answer *answer)
{
	return set_length(answer, 0);
}

static bool
short_length(Answer *answer)
{
	return set_length(answer, 8);
}

static bool
huge_length(Answer *answer)
{
	return set_length(answer, 0xFFFFFFF0u - some(answer, 1000, 1));
}

static bool
long_length(Answer *answer)
{
	const char *row = some_row(answer);

	return row != NULL && set_length(answer, chunk_of(answer) + emitted_of(answer)->bytes - row + 8);
}

static bool
false_overflow(Answer *answer)
{
	return set_flags(answer, GPUSORT_ROW_OVERFLOW);
}

static bool
false_flags(Answer *answer)
{
	return set_flags(answer, 0x7C);
}

static bool
false_tie(Answer *answer)
{
	return set_flags(answer, GPUSORT_ROW_TIE_NEXT);
}

static bool
tie_at_end(Answer *answer)
{
	GpuSortEmitted *emitted = emitted_of(answer);

	if (!emitted->last || emitted->rows == 0)
		return false;
	row_at(answer, emitted->rows - 1)[GPUSORT_ROW_FLAGS_OFFSET] |= GPUSORT_ROW_TIE_NEXT;
	return true;
}

static bool
lost_tie(Answer *answer)
{
	uint32_t rows = emitted_of(answer)->rows;
	uint32_t first = rows > 0 ? some(answer, rows, 0) : 0;
	char *row = chunk_of(answer);

	for (uint32_t i = 0; i < rows; i++, row += room_of(row))
	{
		if (i >= first && (row[GPUSORT_ROW_FLAGS_OFFSET] & GPUSORT_ROW_TIE_NEXT) != 0)
		{
			row[GPUSORT_ROW_FLAGS_OFFSET] &= ~GPUSORT_ROW_TIE_NEXT;
			return true;
		}
	}
	return false;
}

static bool
insert_row(Answer *answer)
{
	GpuSortEmitted *emitted = emitted_of(answer);
	char *end = chunk_of(answer) + emitted->bytes;
	const char *row = some_row(answer);

	if (row == NULL || emitted->bytes + room_of(row) > GPUSORT_CHUNK_BYTES)
		return false;
	memcpy(end, row, room_of(row));
	emitted->rows++;
	emitted->bytes += room_of(row);
	return true;
}

static bool
duplicate_row(Answer *answer)
{
	const char *row = some_row(answer);
	char *other = chunk_of(answer);

	for (uint32_t i = 0; row != NULL && i < emitted_of(answer)->rows; i++, other += room_of(other))
	{
		if (room_of(other) == room_of(row) && memcmp(other, row, room_of(row)) != 0)
		{
			memcpy(other, row, room_of(row));
			return true;
		}
	}
	return false;
}

/* The first row of the chunk and some other one change places, of whatever lengths they are. */
static bool
swap_rows(Answer *answer)
{
	uint32_t rows = emitted_of(answer)->rows;
	char *first = chunk_of(answer);
	char *other;
	char *copy;
	uint32_t span;
	uint32_t between;

	if (rows < 2)
		return false;
	other = row_at(answer, 1 + some(answer, rows - 1, 0));
	span = other + room_of(other) - first;
	between = other - first - room_of(first);
	copy = malloc(span);
	if (copy == NULL)
		return false;
	memcpy(copy, other, room_of(other));
	memcpy(copy + room_of(other), first + room_of(first), between);
	memcpy(copy + room_of(other) + between, first, room_of(first));
	memcpy(first, copy, span);
	free(copy);
	return true;
}

static bool
flip_bit(Answer *answer)
{
	return emitted_of(answer)->bytes > 0 && flip(answer, chunk_of(answer), emitted_of(answer)->bytes);
}

static bool
flip_header(Answer *answer)
{
	char *row = some_row(answer);

	return row != NULL && flip(answer, row, 16);
}

static bool
flip_end(Answer *answer)
{
	char *row = some_row(answer);

	return row != NULL && flip(answer, row + *(uint32_t *) row - 16, 16);
}

/*
 * What is wrong with other messages
 */

static bool
sorted_more_rows(Answer *answer)
{
	answer->message.u.sorted.rows++;
	return true;
}

static bool
sorted_fewer_rows(Answer *answer)
{
	answer->message.u.sorted.rows--;
	return true;
}

static bool
sorted_rows_in(Answer *answer)
{
	answer->message.u.sorted.rows_in--;
	return true;
}

static bool
sorted_bytes(Answer *answer)
{
	answer->message.u.sorted.bytes -= 8;
	return true;
}

/*
 * What is wrong with RANGES
 */

/* The numbers of the ranges' first rows. */
static uint64_t *
borders_of(Answer *answer)
{
	return (uint64_t *) gpusort_pool_chunk(answer->session->sessions->pool, answer->message.u.ranges.chunk);
}

static bool
ranges_range(Answer *answer)
{
	if (answer->message.u.ranges.ranges == 0)
		return false;
	answer->message.u.ranges.chunk = pool_chunks(answer) + some(answer, 1000, 0);
	return true;
}

static bool
ranges_more(Answer *answer)
{
	answer->message.u.ranges.ranges = GPUSORT_RANGES_MAX + 1;
	return true;
}

static bool
ranges_first(Answer *answer)
{
	if (answer->message.u.ranges.ranges == 0)
		return false;
	borders_of(answer)[0]++;
	return true;
}

static bool
ranges_swapped(Answer *answer)
{
	uint32_t ranges = answer->message.u.ranges.ranges;
	uint64_t *borders;
	uint64_t border;

	if (ranges < 3)
		return false;
	borders = borders_of(answer);
	border = borders[1];
	borders[1] = borders[2];
	borders[2] = border;
	return true;
}

static bool
ranges_beyond(Answer *answer)
{
	uint32_t ranges = answer->message.u.ranges.ranges;

	if (ranges == 0)
		return false;
	borders_of(answer)[ranges - 1] += UINT64_C(1) << 40;
	return true;
}

static bool
grant_range(Answer *answer)
{
	answer->message.u.chunk.chunk = pool_chunks(answer) + some(answer, 1000, 0);
	return true;
}

static bool
grant_twice(Answer *answer)
{
	answer->times = 2;
	return true;
}

static bool
grant_missing(Answer *answer)
{
	answer->times = 0;
	return true;
}

static bool
job_token(Answer *answer)
{
	answer->message.u.job.token++;
	return true;
}

static bool
job_engine(Answer *answer)
{
	answer->message.u.job.engine = 77;
	return true;
}

static bool
welcome_bytes(Answer *answer)
{
	answer->message.u.welcome.pool_bytes *= 2;
	return true;
}

static bool
welcome_chunks(Answer *answer)
{
	answer->message.u.welcome.pool_chunks *= 2;
	return true;
}

static bool
welcome_id(Answer *answer)
{
	answer->message.u.welcome.pool_id = 0;
	return true;
}

static bool
welcome_other_id(Answer *answer)
{
	answer->message.u.welcome.pool_id++;
	answer->session->outbox.descriptor = -1;
	return true;
}

static bool
message_short(Answer *answer)
{
	answer->bytes /= 2;
	return true;
}

static bool
message_long(Answer *answer)
{
	answer->bytes += 8;
	return true;
}

static bool
message_version(Answer *answer)
{
	answer->message.version++;
	return true;
}

static bool
message_type(Answer *answer)
{
	answer->message.type = 999;
	return true;
}

static bool
message_late(Answer *answer)
{
	answer->message.type = answer->message.type == GPUSORT_MSG_WELCOME ? GPUSORT_MSG_LEFT : GPUSORT_MSG_WELCOME;
	return true;
}

static bool
exit_service(Answer *answer)
{
	return answer->bytes > 0;
}
