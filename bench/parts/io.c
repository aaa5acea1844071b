/*
 * io.c - writes a file and reads it, for bench/io:
 *	  io DIRECTORY METHOD THREADS MEGABYTES UNIT_KB
 *
 * METHOD: buffered (pwrite and pread through the page cache), direct (the same with O_DIRECT), uring
 * (io_uring with O_DIRECT, 16 under way for each thread).  The threads share one file and take its units
 * in turn.  Prints lines "what milliseconds": write, written (and on the disk), read (from the disk), and
 * for buffered cached (read from the page cache).  Exits with 1 and a message if anything fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DEPTH       16
#define THREADS_MAX 64

typedef struct Ring
{
	int descriptor;
	char *rings;
	struct io_uring_sqe *entries;
	struct io_uring_params params;
} Ring;

static int file;
static bool uring;
static bool writes;
static uint64_t units;
static size_t unit_bytes;
static uint64_t next_unit;

static void
fail(const char *what)
{
	fprintf(stderr, "io: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void
open_ring(Ring *ring)
{
	size_t bytes;

	memset(ring, 0, sizeof(*ring));
	ring->descriptor = (int) syscall(__NR_io_uring_setup, DEPTH, &ring->params);
	if (ring->descriptor < 0)
		fail("io_uring_setup");
	if (!(ring->params.features & IORING_FEAT_SINGLE_MMAP))
		fail("io_uring of an old kernel");
	bytes = ring->params.cq_off.cqes + ring->params.cq_entries * sizeof(struct io_uring_cqe);
	if (bytes < ring->params.sq_off.array + ring->params.sq_entries * sizeof(uint32_t))
		bytes = ring->params.sq_off.array + ring->params.sq_entries * sizeof(uint32_t);
	ring->rings = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->descriptor,
					   IORING_OFF_SQ_RING);
	ring->entries = mmap(NULL, ring->params.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
						 MAP_SHARED | MAP_POPULATE, ring->descriptor, IORING_OFF_SQES);
	if (ring->rings == MAP_FAILED || ring->entries == MAP_FAILED)
		fail("mmap");
}

static uint32_t *
ring_word(Ring *ring, uint32_t offset)
{
	return (uint32_t *) (ring->rings + offset);
}

/* Puts a unit into the ring, from or to a slot's part of the buffer. */
static void
ring_add(Ring *ring, char *buffer, uint32_t slot, uint64_t unit)
{
	uint32_t *tail = ring_word(ring, ring->params.sq_off.tail);
	uint32_t index = *tail & *ring_word(ring, ring->params.sq_off.ring_mask);

	ring->entries[index] = (struct io_uring_sqe){
		.opcode = writes ? IORING_OP_WRITE : IORING_OP_READ,
		.fd = file,
		.addr = (uintptr_t) (buffer + slot * unit_bytes),
		.len = (uint32_t) unit_bytes,
		.off = unit * unit_bytes,
		.user_data = slot,
	};
	ring_word(ring, ring->params.sq_off.array)[index] = index;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
}

/* Does units by io_uring until there are none. */
static void
run_ring(char *buffer)
{
	uint32_t under_way = 0;
	uint32_t added = 0;
	Ring ring;
	uint64_t unit;

	open_ring(&ring);
	for (uint32_t slot = 0; slot < DEPTH; slot++)
	{
		unit = __atomic_fetch_add(&next_unit, 1, __ATOMIC_RELAXED);
		if (unit < units)
		{
			ring_add(&ring, buffer, slot, unit);
			added++;
		}
	}
	while (under_way + added > 0)
	{
		uint32_t *head = ring_word(&ring, ring.params.cq_off.head);

		if (syscall(__NR_io_uring_enter, ring.descriptor, added, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
			fail("io_uring_enter");
		under_way += added;
		added = 0;
		while (*head != __atomic_load_n(ring_word(&ring, ring.params.cq_off.tail), __ATOMIC_ACQUIRE))
		{
			struct io_uring_cqe *done = (struct io_uring_cqe *) (ring.rings + ring.params.cq_off.cqes) +
				(*head & *ring_word(&ring, ring.params.cq_off.ring_mask));
			uint32_t slot = (uint32_t) done->user_data;

			if (done->res != (int) unit_bytes)
			{
				errno = done->res < 0 ? -done->res : EIO;
				fail("io_uring");
			}
			__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
			under_way--;
			unit = __atomic_fetch_add(&next_unit, 1, __ATOMIC_RELAXED);
			if (unit < units)
			{
				ring_add(&ring, buffer, slot, unit);
				added++;
			}
		}
	}
	close(ring.descriptor);
}

static void *
thread_main(void *arg)
{
	size_t bytes = unit_bytes * (uring ? DEPTH : 1);
	char *buffer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint64_t unit;

	if (buffer == MAP_FAILED)
		fail("mmap");
	memset(buffer, (int) (uintptr_t) arg + 1, bytes);
	if (uring)
		run_ring(buffer);
	else
	{
		while ((unit = __atomic_fetch_add(&next_unit, 1, __ATOMIC_RELAXED)) < units)
		{
			ssize_t done = writes ? pwrite(file, buffer, unit_bytes, (off_t) (unit * unit_bytes))
								  : pread(file, buffer, unit_bytes, (off_t) (unit * unit_bytes));

			if (done != (ssize_t) unit_bytes)
				fail(writes ? "pwrite" : "pread");
		}
	}
	munmap(buffer, bytes);
	return NULL;
}

/* Writes or reads the file; returns milliseconds. */
static double
run(int threads, bool write)
{
	pthread_t ids[THREADS_MAX];
	double began = now_ms();

	writes = write;
	next_unit = 0;
	for (int i = 0; i < threads; i++)
	{
		errno = pthread_create(&ids[i], NULL, thread_main, (void *) (uintptr_t) i);
		if (errno != 0)
			fail("pthread_create");
	}
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return now_ms() - began;
}

int
main(int argc, char **argv)
{
	char path[4096];
	bool buffered;
	int threads;
	double ms;
	double began;

	if (argc != 6 || atoi(argv[3]) < 1 || atoi(argv[3]) > THREADS_MAX || atoi(argv[4]) < 1 || atoi(argv[5]) < 4)
	{
		fprintf(stderr, "usage: io DIRECTORY METHOD THREADS MEGABYTES UNIT_KB\n");
		return 2;
	}
	buffered = strcmp(argv[2], "buffered") == 0;
	uring = strcmp(argv[2], "uring") == 0;
	threads = atoi(argv[3]);
	unit_bytes = (size_t) atoi(argv[5]) << 10;
	units = ((uint64_t) atoi(argv[4]) << 20) / unit_bytes;
	snprintf(path, sizeof(path), "%s/io.XXXXXX", argv[1]);
	file = mkostemp(path, buffered ? 0 : O_DIRECT);
	if (file < 0)
		fail(path);
	unlink(path);

	began = now_ms();
	ms = run(threads, true);
	printf("write %.1f\n", ms);
	if (fsync(file) != 0)
		fail("fsync");
	printf("written %.1f\n", now_ms() - began);
	if (posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0)
		fail("posix_fadvise");
	printf("read %.1f\n", run(threads, false));
	if (buffered)
		printf("cached %.1f\n", run(threads, false));
	return 0;
}
