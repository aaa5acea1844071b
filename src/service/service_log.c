/*-------------------------------------------------------------------------
 *
 * service_log.c
 *	  Lines for the server's log, and other messages to the supervisor.
 *
 * With a supervisor on the control socket a line goes there as a message, and
 * the supervisor writes it to the server's log.  Without one, or when it does
 * not take the message at once, the line goes to stderr.
 *
 * Main thread only.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "service/service_log.h"

/* Of what peers do wrong, so many lines are logged in so many seconds. */
#define PEER_LINES   10
#define PEER_SECONDS 10

static int control_socket = -1; /* -1: lines go to stderr */

/* Lines about peers in the period that began at start. */
static struct
{
	time_t start; /* seconds of CLOCK_MONOTONIC */
	unsigned lines;
} peer_period;

/* Says where lines go: to the supervisor if control is a socket, else to stderr. */
void
gpusort_log_open(int control)
{
	struct stat status;

	if (fstat(control, &status) == 0 && S_ISSOCK(status.st_mode))
		control_socket = control;
}

/* Returns true if there is a supervisor on the control socket. */
bool
gpusort_log_has_supervisor(void)
{
	return control_socket >= 0;
}

static bool
send_to_supervisor(GpuSortMessage *message)
{
	message->magic = GPUSORT_PROTOCOL_MAGIC;
	message->version = GPUSORT_PROTOCOL_VERSION;
	return control_socket >= 0 &&
		send(control_socket, message, sizeof(*message), MSG_DONTWAIT | MSG_NOSIGNAL) ==
		sizeof(*message);
}

/* Tells the supervisor that clients may connect; false if there is none or it cannot be told. */
bool
gpusort_log_ready(const GpuSortMessage *ready)
{
	GpuSortMessage message = *ready;

	message.type = GPUSORT_MSG_READY;
	return send_to_supervisor(&message);
}

/* Answers the supervisor's PING. */
void
gpusort_log_pong(const GpuSortMessage *ping)
{
	GpuSortMessage message = *ping;

	message.type = GPUSORT_MSG_PONG;
	(void) send_to_supervisor(&message);
}

static void
log_line(bool warning, const char *format, va_list args)
{
	GpuSortMessage message = {.type = GPUSORT_MSG_LOG};

	message.u.log.warning = warning;
	vsnprintf(message.u.log.text, sizeof(message.u.log.text), format, args);
	if (!send_to_supervisor(&message))
		fprintf(stderr, "gpusortd: %s\n", message.u.log.text);
}

/* Logs a line, with "warning" as a WARNING, else as LOG. */
void
gpusort_log(bool warning, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_line(warning, format, args);
	va_end(args);
}

/*
 * Logs what a peer did wrong.  A peer can do so as fast as it likes, so there
 * is a limit to these lines.
 */
void
gpusort_log_peer(const char *format, ...)
{
	struct timespec now;
	va_list args;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec - peer_period.start >= PEER_SECONDS)
	{
		if (peer_period.lines > PEER_LINES)
			gpusort_log(true, "%u more lines like the last ones were not logged", peer_period.lines - PEER_LINES);
		peer_period.start = now.tv_sec;
		peer_period.lines = 0;
	}
	if (peer_period.lines++ >= PEER_LINES)
		return;
	va_start(args, format);
	log_line(true, format, args);
	va_end(args);
}
