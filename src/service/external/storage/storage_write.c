/*-------------------------------------------------------------------------
 *
 * storage_write.c
 *	  Writing runs: buffers that the sort fills, and the threads that write them.
 *
 * The threads take buffers in the order in which they were handed over, and cut them into
 * blocks where that is not done; a buffer's blocks are written together, next to each other.
 * Where they go is known when they are as they are written, compressed or not.  Without
 * threads, should the system have none left, the sort's own thread writes.
 *
 * After an error, and when the sort is cancelled, nothing more is written, but
 * buffers still come back.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>
#include <sys/mman.h>

#include "service/clock.h"
#include "service/external/storage/checksum.h"
#include "service/external/storage/storage_state.h"
#include "service/errors.h"

/* What a buffer becomes where it is kept. */
typedef struct Stored
{
	const char *from;
	uint32_t records; /* bytes of them */
	uint32_t bytes;
	bool compressed;
	uint32_t file; /* GPUSORT_BLOCK_IN_MEMORY, or the number of a file */
	int descriptor;
	uint64_t place;
} Stored;

/* Fresh pages by the call, not by a fault each: a third less time.  Known to Linux from 5.14 on; else it fails. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static char *
map_scratch(void)
{
	void *start = mmap(NULL, GPUSORT_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return start == MAP_FAILED ? NULL : start;
}

/* Takes a spare one off a list; NULL if there is none.  With the lock held. */
static char *
take_spare(GpuSortSpare **list)
{
	GpuSortSpare *spare = *list;

	if (spare != NULL)
		*list = spare->next;
	return (char *) spare;
}

static void
add_spare(GpuSortSpare **list, char *buffer)
{
	GpuSortSpare *spare = (GpuSortSpare *) buffer;

	spare->next = *list;
	*list = spare;
}

/* GPUSORT_CHUNK_BYTES for one thread's use, until they are put back; NULL if the system has none. */
char *
gpusort_storage_get_scratch(GpuSortStorage *storage)
{
	char *scratch;

	pthread_mutex_lock(&storage->lock);
	scratch = take_spare(&storage->scratch);
	pthread_mutex_unlock(&storage->lock);
	return scratch != NULL ? scratch : map_scratch();
}

void
gpusort_storage_put_scratch(GpuSortStorage *storage, char *scratch)
{
	pthread_mutex_lock(&storage->lock);
	add_spare(&storage->scratch, scratch);
	pthread_mutex_unlock(&storage->lock);
}

/* Notes an error, if it is the first.  With the lock held. */
static void
note_error(GpuSortStorage *storage, const GpuSortError *error)
{
	if (storage->failed)
		return;
	storage->failed = true;
	storage->error = *error;
}

/* Returns true if there is nothing to be written any more.  With the lock held. */
static bool
has_ended(GpuSortStorage *storage)
{
	GpuSortError error = {.system_error = 0};

	if (__atomic_load_n(storage->cancelled, __ATOMIC_RELAXED) != 0)
	{
		(void) gpusort_error_cancelled(&error);
		note_error(storage, &error);
	}
	return storage->failed || storage->closing;
}

/* Finds the place for a buffer's bytes.  With the lock held. */
static bool
find_place(GpuSortStorage *storage, Stored *stored)
{
	GpuSortError error = {.reason = GPUSORT_REASON_INTERNAL, .text = "a run is larger than was reserved"};

	if (storage->run_next != NULL && (uint64_t) (storage->run_end - storage->run_next) >= stored->bytes)
	{
		stored->file = GPUSORT_BLOCK_IN_MEMORY;
		stored->place = (uintptr_t) storage->run_next;
		storage->run_next += stored->bytes;
		return true;
	}
	if (storage->run_next == NULL &&
		gpusort_file_space_take(&storage->space, stored->bytes, &stored->file, &stored->place))
	{
		stored->descriptor = storage->space.files[stored->file].descriptor;
		return true;
	}
	note_error(storage, &error);
	return false;
}

/* Compresses a buffer's blocks, each by itself, into scratch. */
static void
compress_blocks(const GpuSortWrite *write, Stored *stored, char *scratch)
{
	const char *from = write->buffer;
	char *to = scratch;

	for (uint32_t i = 0; i < write->part->count; i++)
	{
		GpuSortRunBlock *block = &write->part->blocks[i];

		block->stored = gpusort_compress(from, block->bytes, to);
		if (block->stored == 0)
		{
			memcpy(to, from, block->bytes);
			block->stored = block->bytes;
		}
		from += block->bytes;
		to += block->stored;
	}
	stored->from = scratch;
	stored->bytes = (uint32_t) (to - scratch);
}

/* Copies a buffer to memory of a run, which is whole pages. */
static void
copy_to_run(char *to, const Stored *stored)
{
	char *first_page = (char *) ((uintptr_t) to / GPUSORT_HOST_PAGE_BYTES * GPUSORT_HOST_PAGE_BYTES);

	(void) madvise(first_page, (size_t) (to - first_page) + stored->bytes, MADV_POPULATE_WRITE);
	memcpy(to, stored->from, stored->bytes);
}

/* Fills what the storage has to say of a buffer's blocks, and writes them; returns 0 or the errno. */
static int
write_blocks(const GpuSortWrite *write, const Stored *stored)
{
	bool in_memory = stored->file == GPUSORT_BLOCK_IN_MEMORY;
	const char *from = stored->from;

	for (uint32_t i = 0; i < write->part->count; i++)
	{
		GpuSortRunBlock *block = &write->part->blocks[i];

		if (!stored->compressed)
			block->stored = block->bytes;
		block->checksum = in_memory ? 0 : gpusort_checksum(from, block->stored);
		block->file = stored->file;
		block->place = stored->place + (uint64_t) (from - stored->from);
		from += block->stored;
	}
	if (in_memory)
	{
		copy_to_run((char *) (uintptr_t) stored->place, stored);
		return 0;
	}
	return gpusort_file_write(stored->descriptor, stored->from, stored->bytes, stored->place);
}

/*
* Prepares a buffer's blocks for writing, compressed or not; *scratch is the memory taken for that, or NULL.
 * Returns false if there is nothing to be written.  With the lock held, which it gives up in between.
 */
static bool
prepare_blocks(GpuSortStorage *storage, const GpuSortWrite *write, Stored *stored, char **scratch)
{
	GpuSortRunPart *part = write->part;
	bool compress;
	bool good = true;

	*scratch = NULL;
	if (has_ended(storage))
		return false;
	compress = storage->run_next == NULL && gpusort_compression_pays(&storage->compression);
	if (part->cut != NULL || compress)
	{
		GpuSortError error = {.system_error = 0};

		pthread_mutex_unlock(&storage->lock);
		good = part->cut == NULL || part->cut(part, write->buffer, &error) == 0;
		if (good && compress)
			*scratch = gpusort_storage_get_scratch(storage);
		if (*scratch != NULL)
			compress_blocks(write, stored, *scratch);
		pthread_mutex_lock(&storage->lock);
		if (!good)
			note_error(storage, &error);
	}
	for (uint32_t i = 0; good && i < part->count; i++)
		stored->records += part->blocks[i].bytes;
	stored->compressed = *scratch != NULL;
	if (!stored->compressed)
		stored->bytes = stored->records;
	return good;
}

/* Takes the next buffer of the queue and writes it.  With the lock held, which it gives up in between. */
static void
write_next(GpuSortStorage *storage)
{
	GpuSortWrite write = storage->queue[storage->first];
	Stored stored = {.from = write.buffer};
	char *scratch;
	GpuSortError error;
	double began = gpusort_clock_ms();

	storage->first = (storage->first + 1) % GPUSORT_WRITE_BUFFERS_MAX;
	storage->waiting--;
	storage->writing++;
	if (prepare_blocks(storage, &write, &stored, &scratch) && find_place(storage, &stored))
	{
		int system_error;

		pthread_mutex_unlock(&storage->lock);
		system_error = write_blocks(&write, &stored);
		pthread_mutex_lock(&storage->lock);
		if (system_error != 0)
		{
			(void) gpusort_file_error(&error, system_error, "could not write a run to a temporary file");
			note_error(storage, &error);
		}
		else if (stored.file == GPUSORT_BLOCK_IN_MEMORY)
			storage->stored.memory += stored.bytes;
		else
		{
			storage->stored.disk += stored.bytes;
			gpusort_compression_measured(&storage->compression, stored.compressed, stored.records,
										 gpusort_clock_ms() - began);
		}
	}
	if (scratch != NULL)
		add_spare(&storage->scratch, scratch);
	add_spare(&storage->buffers, write.buffer);
	storage->writing--;
	pthread_cond_signal(&storage->written);
}

static void *
writer_main(void *arg)
{
	GpuSortStorage *storage = arg;

	pthread_mutex_lock(&storage->lock);
	for (;;)
	{
		if (storage->waiting > 0)
			write_next(storage);
		else if (storage->closing)
			break;
		else
			pthread_cond_wait(&storage->arrived, &storage->lock);
	}
	pthread_mutex_unlock(&storage->lock);
	return NULL;
}

/* Starts the threads: one of two CPUs, for the sort uses them too.  Fewer than wanted are no error. */
static void
start_writers(GpuSortStorage *storage)
{
	uint32_t most = storage->memory != NULL ? GPUSORT_WRITERS_MAX : GPUSORT_FILE_WRITERS_MAX;
	uint32_t wanted = (uint32_t) storage->cpus / 2;

	if (wanted < 1)
		wanted = 1;
	if (wanted > most)
		wanted = most;
	storage->started = true;
	while (storage->nwriters < wanted &&
		   pthread_create(&storage->writers[storage->nwriters], NULL, writer_main, storage) == 0)
		storage->nwriters++;
}

/* Ends the threads, which first finish the buffer that they are at, and gives the buffers back. */
void
gpusort_storage_stop_writers(GpuSortStorage *storage)
{
	pthread_mutex_lock(&storage->lock);
	storage->closing = true;
	pthread_cond_broadcast(&storage->arrived);
	pthread_mutex_unlock(&storage->lock);
	while (storage->nwriters > 0)
		pthread_join(storage->writers[--storage->nwriters], NULL);
	storage->buffers = NULL;
	while (storage->nbuffers > 0)
		gpusort_chunk_buffer_put(storage->handle, &storage->all_buffers[--storage->nbuffers]);
}

/*
 * A buffer of GPUSORT_CHUNK_BYTES for records, to be handed over by write before the
 * next is asked for; waits for one.  NULL with *error filled when the system has no
 * memory for the first, or an error is known that finish_run would fail with.
 */
char *
gpusort_storage_buffer(GpuSortStorage *storage, GpuSortError *error)
{
	char *buffer;

	if (!storage->started)
		start_writers(storage);
	pthread_mutex_lock(&storage->lock);
	buffer = take_spare(&storage->buffers);
	if (buffer == NULL && storage->nbuffers < storage->nwriters + 2)
	{
		/* what others do under the lock does not wait for it */
		pthread_mutex_unlock(&storage->lock);
		storage->all_buffers[storage->nbuffers] = gpusort_chunk_buffer_get(storage->handle);
		buffer = storage->all_buffers[storage->nbuffers].start;
		if (buffer != NULL)
			storage->nbuffers++;
		pthread_mutex_lock(&storage->lock);
		if (buffer == NULL)
			buffer = take_spare(&storage->buffers);
	}
	while (buffer == NULL && storage->nbuffers > 0)
	{
		pthread_cond_wait(&storage->written, &storage->lock);
		buffer = take_spare(&storage->buffers);
	}
	if (buffer == NULL)
	{
		error->system_error = 0;
		(void) gpusort_error_memory(error);
	}
	else if (has_ended(storage))
	{
		*error = storage->error;
		add_spare(&storage->buffers, buffer);
		buffer = NULL;
	}
	pthread_mutex_unlock(&storage->lock);
	return buffer;
}

/* Hands over the buffer that was asked for last, and what it has, which may be nothing. */
void
gpusort_storage_write(GpuSortStorage *storage, char *buffer, GpuSortRunPart *part)
{
	pthread_mutex_lock(&storage->lock);
	storage->queue[(storage->first + storage->waiting++) % GPUSORT_WRITE_BUFFERS_MAX] =
		(GpuSortWrite){.buffer = buffer, .part = part};
	if (storage->nwriters > 0)
		pthread_cond_signal(&storage->arrived);
	else
		write_next(storage);
	pthread_mutex_unlock(&storage->lock);
}
