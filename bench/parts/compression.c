/*
 * compression.c - writes a run to a file and reads it, as the service does, for bench/io:
 *	  compression DIRECTORY RECORDS MODE READERS MEGABYTES
 *
 * RECORDS: narrow (a key, an id and two random numbers), text (a key, an id and words), random.  MODE: auto,
 * never, always.  Prints lines "what milliseconds": write, written (and on the disk), read (from the disk),
 * cached (read from the page cache), and "stored BYTES".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/clock.h"
#include "service/external/storage/storage.h"

#define READERS_MAX  64
#define BUFFER_BYTES ((uint32_t) GPUSORT_CHUNK_BYTES)
#define BUFFER_COUNT (BUFFER_BYTES / GPUSORT_BLOCK_BYTES)

static GpuSortStorage *storage;
static GpuSortRunBlock *blocks;
static uint32_t count;
static uint32_t next_read;

static void
fail(const char *what)
{
	fprintf(stderr, "compression: %s\n", what);
	exit(1);
}

static uint64_t
random64(void)
{
	static uint64_t state = 1;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * UINT64_C(0x2545F4914F6CDD1D);
}

/* Fills a buffer with records of 64 bytes, of which the first word is the key, in order. */
static void
fill(char *buffer, const char *records, uint64_t number)
{
	static const char *const words[] = {"sort", "merge", "run", "disk", "memory", "key", "row", "block"};

	for (uint32_t at = 0; at < BUFFER_BYTES; at += 64, number++)
	{
		uint64_t *word = (uint64_t *) (buffer + at);

		for (int i = 0; i < 8; i++)
			word[i] = random64();
		if (strcmp(records, "random") == 0)
			continue;
		word[0] = number << 20 | word[0] >> 44;
		word[1] = UINT64_C(0x0000090200000040);
		word[2] = word[2] >> 36;
		word[5] = word[6] = 0;
		word[7] = word[0];
		if (strcmp(records, "text") == 0)
			snprintf((char *) &word[3], 40, "%s %s %s %s", words[word[3] % 8], words[word[3] / 8 % 8],
					 words[word[4] % 8], words[word[4] / 8 % 8]);
	}
}

static void *
reader_main(void *arg)
{
	char *to = malloc(BUFFER_BYTES);
	GpuSortError error;
	uint32_t first;

	(void) arg;
	while ((first = __atomic_fetch_add(&next_read, BUFFER_COUNT, __ATOMIC_RELAXED)) < count)
	{
		if (gpusort_storage_read(storage, &blocks[first], BUFFER_COUNT, to, &error) != 0)
			fail(error.text);
	}
	free(to);
	return NULL;
}

static double
read_all(int readers)
{
	pthread_t threads[READERS_MAX];
	double began = gpusort_clock_ms();

	next_read = 0;
	for (int i = 0; i < readers; i++)
	{
		if (pthread_create(&threads[i], NULL, reader_main, NULL) != 0)
			fail("pthread_create");
	}
	for (int i = 0; i < readers; i++)
		pthread_join(threads[i], NULL);
	return gpusort_clock_ms() - began;
}

static GpuSortCompressionMode
mode_of(const char *name)
{
	if (strcmp(name, "auto") == 0)
		return GPUSORT_COMPRESSION_AUTO;
	return strcmp(name, "never") == 0 ? GPUSORT_COMPRESSION_NEVER : GPUSORT_COMPRESSION_ALWAYS;
}

int
main(int argc, char **argv)
{
	static const int never = 0;
	char path[4096];
	GpuSortError error;
	GpuSortStored stored;
	uint64_t bytes;
	uint64_t lacking;
	GpuSortRunPart *parts; /* the storage reads them until the run is finished */
	char *records;
	double began;
	int file;
	int copy;
	int readers;

	if (argc != 6 || atoi(argv[4]) < 1 || atoi(argv[4]) > READERS_MAX || atoi(argv[5]) < 4)
	{
		fprintf(stderr, "usage: compression DIRECTORY RECORDS MODE READERS MEGABYTES\n");
		return 2;
	}
	readers = atoi(argv[4]);
	bytes = ((uint64_t) atoi(argv[5]) << 20) / BUFFER_BYTES * BUFFER_BYTES;
	snprintf(path, sizeof(path), "%s/compression.XXXXXX", argv[1]);
	file = mkostemp(path, 0);
	if (file < 0)
		fail(path);
	unlink(path);
	copy = dup(file);
	storage = gpusort_storage_create(NULL, (int) sysconf(_SC_NPROCESSORS_ONLN), &never, &error);
	if (storage == NULL || gpusort_storage_add_space(storage, 1, file, 0, 2 * bytes, &error) != 0 ||
		!gpusort_storage_reserve(storage, bytes, &lacking))
		fail("no space");
	gpusort_storage_set_compression(storage, mode_of(argv[3]));
	parts = calloc(bytes / BUFFER_BYTES, sizeof(*parts));
	blocks = calloc(bytes / GPUSORT_BLOCK_BYTES, sizeof(*blocks));
	records = malloc(BUFFER_BYTES);
	fill(records, argv[2], 0);

	began = gpusort_clock_ms();
	for (uint64_t done = 0; done < bytes; done += BUFFER_BYTES)
	{
		char *buffer = gpusort_storage_buffer(storage, &error);

		if (buffer == NULL)
			fail(error.text);
		memcpy(buffer, records, BUFFER_BYTES);
		for (uint32_t i = 0; i < BUFFER_COUNT; i++)
			blocks[count + i].bytes = GPUSORT_BLOCK_BYTES;
		parts[count / BUFFER_COUNT] = (GpuSortRunPart){.blocks = &blocks[count], .count = BUFFER_COUNT};
		gpusort_storage_write(storage, buffer, &parts[count / BUFFER_COUNT]);
		count += BUFFER_COUNT;
	}
	if (gpusort_storage_finish_run(storage, &error) != 0)
		fail(error.text);
	printf("write %.1f\n", gpusort_clock_ms() - began);
	gpusort_storage_finish(storage, &stored);
	if (fsync(copy) != 0)
		fail("fsync");
	printf("written %.1f\n", gpusort_clock_ms() - began);
	if (posix_fadvise(copy, 0, 0, POSIX_FADV_DONTNEED) != 0)
		fail("posix_fadvise");
	printf("read %.1f\n", read_all(readers));
	printf("cached %.1f\n", read_all(readers));
	printf("stored %llu\n", (unsigned long long) stored.disk);
	gpusort_storage_destroy(storage);
	free(parts);
	free(blocks);
	free(records);
	return 0;
}
