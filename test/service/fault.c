/*-------------------------------------------------------------------------
 *
 * fault.c
 *	  What the fault points of src/service/fault.h do: part of a service that is
 *	  built with them, and of no other.
 *
 * Messages and rows are spoilt by the main thread, where they are sent, in the ways of
 * fault_spoil.c; an engine call is kept from returning by its job's thread.
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

#include "fault_spoil.h"
#include "service/service_log.h"

#define FAULT_FILE "gpusort.fault"

/* Every message has this "type". */
#define GPUSORT_MSG_ANY (-1)

typedef enum PointKind
{
	POINT_SENT,
	POINT_STOP,
	POINT_HANG,
	POINT_READ,
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
#define READ(name, text)        {#name, POINT_READ, 0, text, NULL},
#define START(name, text)       {#name, POINT_START, 0, text, NULL},

static const Point points[] = {
	GPUSORT_FAULTS_SENT(SENT) GPUSORT_FAULTS_STOP(STOP) GPUSORT_FAULTS_HANG(HANG) GPUSORT_FAULTS_READ(READ)
		GPUSORT_FAULTS_START(START)};

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

void
gpusort_fault_read(void)
{
	const Point *point = pass(POINT_READ, 0);

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
