/*-------------------------------------------------------------------------
 *
 * failing_calls.c
 *	  System calls of the service that fail when they are told to, for a test.
 *
 * It is linked into a service of its own (gpusortd-failing), with --wrap of the
 * linker for each function of CALLS.  The environment tells what to do:
 *
 *	GPUSORT_FAIL="sendmsg 17 104"	the 17th sendmsg fails with errno 104
 *	GPUSORT_FAIL_COUNTS=FILE		writes how often each was called, when the
 *									service exits in order
 *
 * Calls are counted from the start of the service, over all of its threads.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* CALL(type, name, parameters, arguments, value of a failure) */
#define CALLS(CALL)                                                                                                  \
	CALL(void *, malloc, (size_t n), (n), NULL)                                                                      \
	CALL(void *, calloc, (size_t n, size_t m), (n, m), NULL)                                                         \
	CALL(void *, realloc, (void *p, size_t n), (p, n), NULL)                                                         \
	CALL(void *, mmap, (void *p, size_t n, int prot, int flags, int fd, off_t at),                                   \
		 (p, n, prot, flags, fd, at), MAP_FAILED)                                                                    \
	CALL(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1)                                   \
	CALL(int, ftruncate, (int fd, off_t n), (fd, n), -1)                                                             \
	CALL(int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n), -1)                               \
	CALL(int, epoll_create1, (int flags), (flags), -1)                                                               \
	CALL(int, epoll_ctl, (int e, int op, int fd, struct epoll_event *event), (e, op, fd, event), -1)                 \
	CALL(int, eventfd, (unsigned n, int flags), (n, flags), -1)                                                      \
	CALL(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1)                            \
	CALL(int, bind, (int fd, const struct sockaddr *address, socklen_t n), (fd, address, n), -1)                     \
	CALL(int, listen, (int fd, int backlog), (fd, backlog), -1)                                                      \
	CALL(int, accept4, (int fd, struct sockaddr *address, socklen_t *n, int flags), (fd, address, n, flags), -1)     \
	CALL(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *n), (fd, level, name, value, n), -1) \
	CALL(ssize_t, recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags), -1)                               \
	CALL(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags), -1)                    \
	CALL(ssize_t, send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags), -1)                         \
	CALL(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), -1)              \
	CALL(ssize_t, pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at), -1)                                  \
	CALL(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at), -1)                           \
	CALL(int, pthread_create,                                                                                        \
		 (pthread_t * thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg),                  \
		 (thread, attributes, start, arg), errno)

#define AS_INDEX(type, name, parameters, arguments, failure) CALL_##name,
#define AS_NAME(type, name, parameters, arguments, failure)  #name,

enum
{
	CALLS(AS_INDEX)
		NCALLS
};

static const char *const names[] = {CALLS(AS_NAME)};
static uint64_t counts[NCALLS];
static int failing = -1; /* which call */
static uint64_t failing_at;
static int failing_errno;

static void __attribute__((constructor))
read_environment(void)
{
	const char *what = getenv("GPUSORT_FAIL");
	char name[32];
	unsigned long long number;

	if (what == NULL || sscanf(what, "%31s %llu %d", name, &number, &failing_errno) != 3)
		return;
	for (int i = 0; i < NCALLS; i++)
	{
		if (strcmp(names[i], name) == 0)
			failing = i;
	}
	failing_at = number;
}

static void __attribute__((destructor))
write_counts(void)
{
	const char *name = getenv("GPUSORT_FAIL_COUNTS");
	FILE *file = name ? fopen(name, "w") : NULL;

	if (file == NULL)
		return;
	for (int i = 0; i < NCALLS; i++)
		fprintf(file, "%s %llu\n", names[i], (unsigned long long) counts[i]);
	fclose(file);
}

/* Counts a call; true, with errno set, if it is the one that fails. */
static int
fails(int call)
{
	uint64_t number = __atomic_add_fetch(&counts[call], 1, __ATOMIC_RELAXED);

	if (call != failing || number != failing_at)
		return 0;
	errno = failing_errno;
	return 1;
}

#define WRAP(type, name, parameters, arguments, failure)               \
	extern type __real_##name parameters;                              \
	extern type __wrap_##name parameters;                              \
	type __wrap_##name parameters                                      \
	{                                                                  \
		return fails(CALL_##name) ? failure : __real_##name arguments; \
	}

CALLS(WRAP)
