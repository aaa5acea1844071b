/*-------------------------------------------------------------------------
 *
 * storage_write.c
 *	  Writing runs: buffers that the sort fills, and the threads that write them.
 *
 * The threads take buffers in the order in which they were handed over; a buffer's
 * blocks are written together, next to each other.  Where they go is known at once
 * if they are written as they are, and after compression else.  Without threads,
 * should the system have none left, the sort's own thread writes.
 *
 * After an error, and when the sort is cancelled, nothing more is written, but
 * buffers still come back.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>
#include <sys/mman.h>

#include "service/clock.h"
#include "service/external/checksum.h"
#include "service/external/storage_state.h"
#include "service/host/errors.h"
#include "service/host/machine.h"

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

static char *
map_buffer(void)
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
	return scratch != NULL ? scratch : map_buffer();
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
		(void) gpusort_host_error_cancelled(&error);
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

	for (uint32_t i = 0; i < write->count; i++)
	{
		GpuSortRunBlock *block = &write->blocks[i];

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

/* Fills what the storage has to say of a buffer's blocks, and writes them; returns 0 or the errno. */
static int
write_blocks(const GpuSortWrite *write, const Stored *stored)
{
	bool in_memory = stored->file == GPUSORT_BLOCK_IN_MEMORY;
	const char *from = stored->from;

	for (uint32_t i = 0; i < write->count; i++)
	{
		GpuSortRunBlock *block = &write->blocks[i];

		if (!stored->compressed)
			block->stored = block->bytes;
		block->checksum = in_memory ? 0 : gpusort_checksum(from, block->stored);
		block->file = stored->file;
		block->place = stored->place + (uint64_t) (from - stored->from);
		from += block->stored;
	}
	if (in_memory)
	{
		memcpy((char *) (uintptr_t) stored->place, stored->from, stored->bytes);
		return 0;
	}
	return gpusort_file_write(stored->descriptor, stored->from, stored->bytes, stored->place);
}

/* Takes the next buffer of the queue and writes it.  With the lock held, which it gives up in between. */
static void
write_next(GpuSortStorage *storage)
{
	GpuSortWrite write = storage->queue[storage->first];
	Stored stored = {.from = write.buffer};
	char *scratch = NULL;
	GpuSortError error;
	double began = gpusort_clock_ms();
	bool good;

	storage->first = (storage->first + 1) % GPUSORT_WRITE_BUFFERS_MAX;
	storage->waiting--;
	storage->writing++;
	for (uint32_t i = 0; i < write.count; i++)
		stored.records += write.blocks[i].bytes;
	stored.bytes = stored.records;

	good = !has_ended(storage);
	if (good && storage->run_next == NULL && gpusort_compression_pays(&storage->compression))
	{
		pthread_mutex_unlock(&storage->lock);
		scratch = gpusort_storage_get_scratch(storage);
		if (scratch != NULL)
		{
			compress_blocks(&write, &stored, scratch);
			stored.compressed = true;
		}
		pthread_mutex_lock(&storage->lock);
	}
	if (good && find_place(storage, &stored))
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
	uint32_t wanted = (uint32_t) gpusort_machine_read("").cpus / 2;

	if (wanted < 1)
		wanted = 1;
	if (wanted > GPUSORT_WRITERS_MAX)
		wanted = GPUSORT_WRITERS_MAX;
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
	while (storage->buffers != NULL)
		munmap(take_spare(&storage->buffers), GPUSORT_CHUNK_BYTES);
	if (storage->filling != NULL)
		munmap(storage->filling, GPUSORT_CHUNK_BYTES);
	storage->filling = NULL;
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
		buffer = map_buffer();
		if (buffer != NULL)
			storage->nbuffers++;
	}
	while (buffer == NULL && storage->nbuffers > 0)
	{
		pthread_cond_wait(&storage->written, &storage->lock);
		buffer = take_spare(&storage->buffers);
	}
	if (buffer == NULL)
	{
		error->system_error = 0;
		(void) gpusort_host_error_memory(error);
	}
	else if (has_ended(storage))
	{
		*error = storage->error;
		add_spare(&storage->buffers, buffer);
		buffer = NULL;
	}
	storage->filling = buffer;
	pthread_mutex_unlock(&storage->lock);
	return buffer;
}

/*
 * Hands over the buffer that was asked for last: count blocks, of which bytes and rows
 * are set, lie in it back to back.  The rest of each is filled by and by: they stay
 * where they are until finish_run has returned.
 */
void
gpusort_storage_write(GpuSortStorage *storage, char *buffer, GpuSortRunBlock *blocks, uint32_t count)
{
	pthread_mutex_lock(&storage->lock);
	storage->filling = NULL;
	storage->queue[(storage->first + storage->waiting++) % GPUSORT_WRITE_BUFFERS_MAX] =
		(GpuSortWrite){.buffer = buffer, .blocks = blocks, .count = count};
	if (storage->nwriters > 0)
		pthread_cond_signal(&storage->arrived);
	else
		write_next(storage);
	pthread_mutex_unlock(&storage->lock);
}
