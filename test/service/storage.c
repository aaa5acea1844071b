/*-------------------------------------------------------------------------
 *
 * storage.c
 *	  Tests of where runs are kept (src/service/external/storage/storage.h), in memory and
 *	  in files, and of what they are kept with: checksums, compression.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/external/storage/checksum.h"
#include "storage_case.h"

#define READERS 4

static void
test_checksums(void)
{
	char bytes[500];
	bool same = true;

	ok(gpusort_checksum("123456789", 9) == 0xE3069283u && gpusort_checksum_by_table("123456789", 9) == 0xE3069283u,
	   "the checksum is CRC-32C");
	for (size_t i = 0; i < sizeof(bytes); i++)
	{
		bytes[i] = (char) random64();
		same = same && gpusort_checksum(bytes + i / 2, i - i / 2) == gpusort_checksum_by_table(bytes + i / 2, i - i / 2);
	}
	ok(same, "the same by instruction and by table, of any length and from any place on");
}

static void
test_round_trips(const char *directory)
{
	static const char *const names[] = {"random", "repetitive", "mixed"};
	static const char *const modes[] = {"as it is faster", "never", "always"};

	for (int mode = 0; mode < 3; mode++)
	{
		for (Records records = RANDOM; records <= MIXED; records++)
		{
			Case *run = storage_begin(NULL, &never, records, directory);
			GpuSortStored stored;
			uint64_t lacking;
			const char *wrong = NULL;
			bool smaller;

			gpusort_storage_set_compression(run->storage, mode);
			for (int i = 0; i < 3 && wrong == NULL; i++)
			{
				if (!gpusort_storage_reserve(run->storage, 20 * MIB + 8, &lacking))
					wrong = "there is too little space";
				else if (write_run(run, 20 * MIB + 8, i == 1 ? 3 * MIB : GPUSORT_BLOCK_BYTES) != 0)
					wrong = last_error.text;
			}
			if (wrong == NULL)
				wrong = read_all(run);
			gpusort_storage_finish(run->storage, &stored);
			if (wrong == NULL)
				wrong = read_all(run);
			smaller = gpusort_compression_exists() && mode == GPUSORT_COMPRESSION_ALWAYS && records != RANDOM;
			ok(wrong == NULL, "%s records in a file, compressed %s: %s", names[records], modes[mode], told(wrong));
			ok(stored.memory == 0 && (mode == GPUSORT_COMPRESSION_AUTO || smaller == (stored.disk < run->bytes)),
			   "%llu of %llu bytes", (unsigned long long) stored.disk, (unsigned long long) run->bytes);
			storage_end(run);
		}
	}
}

static void
test_memory(const char *directory)
{
	GpuSortHostMemory *memory = gpusort_host_memory_create(64 * MIB);
	Case *run = storage_begin(memory, &never, RANDOM, directory);
	GpuSortStored stored;
	uint64_t lacking;
	const char *wrong;

	ok(gpusort_storage_reserve(run->storage, 30 * MIB, &lacking) && gpusort_host_memory_used(memory) == 30 * MIB,
	   "a run is charged to memory");
	ok(gpusort_storage_reserve(run->storage, 40 * MIB, &lacking) && gpusort_host_memory_used(memory) == 40 * MIB,
	   "and only once, if it is reserved again");
	ok(write_run(run, 30 * MIB + 8, GPUSORT_BLOCK_BYTES) == 0 && gpusort_host_memory_used(memory) == 30 * MIB + 4096 &&
		   run->blocks[0].file == GPUSORT_BLOCK_IN_MEMORY,
	   "what it did not need is given back");
	ok(gpusort_storage_reserve(run->storage, 50 * MIB, &lacking) &&
		   gpusort_host_memory_used(memory) == 30 * MIB + 4096,
	   "a run that does not fit into memory is for the file");
	ok(write_run(run, 50 * MIB, GPUSORT_BLOCK_BYTES) == 0 && run->blocks[run->count - 1].file == 0, "and goes there");
	ok(gpusort_storage_reserve(run->storage, 10 * MIB, &lacking) && write_run(run, 10 * MIB, 5000) == 0 &&
		   run->blocks[run->count - 1].file == GPUSORT_BLOCK_IN_MEMORY,
	   "the next one fits into memory: %s", last_error.text);
	gpusort_storage_finish(run->storage, &stored);
	ok(stored.memory == 40 * MIB + 8 && stored.disk == 50 * MIB, "what is kept is told");
	wrong = read_all(run);
	ok(wrong == NULL, "all is read: %s", told(wrong));
	storage_end(run);
	ok(gpusort_host_memory_used(memory) == 0, "nothing stays charged");

	run = storage_begin(memory, &never, RANDOM, NULL);
	ok(!gpusort_storage_reserve(run->storage, 80 * MIB, &lacking) && lacking >= 80 * MIB && lacking % MIB == 0,
	   "without a file space is asked for");
	ok(gpusort_storage_reserve(run->storage, 8, &lacking) && gpusort_storage_buffer(run->storage, &last_error) != NULL,
	   "a buffer is taken");
	storage_end(run);
	ok(gpusort_host_memory_used(memory) == 0, "and not written: nothing stays charged");

	run = storage_begin(memory, &never, RANDOM, NULL);
	ok(gpusort_storage_reserve(run->storage, 4 * MIB, &lacking) &&
		   write_run(run, 12 * MIB, GPUSORT_BLOCK_BYTES) != 0 && last_error.reason == GPUSORT_REASON_INTERNAL,
	   "more than was reserved: %s", last_error.text);
	storage_end(run);
	gpusort_host_memory_destroy(memory);
}

static void
test_space(const char *directory)
{
	Case *run = storage_begin(NULL, &never, RANDOM, NULL);
	uint64_t ends[3] = {0, 8192, 0};
	int copies[3];
	GpuSortStored stored;
	struct stat status;
	const char *wrong;
	bool trimmed = true;
	uint32_t used[3] = {0, 0, 0};
	int asked = 0;

	for (int i = 0; i < 3; i++)
	{
		int descriptor = make_file(directory);

		copies[i] = dup(descriptor);
		if (gpusort_storage_add_space(run->storage, 100 + i, descriptor, ends[i], MIB, &last_error) != 0)
			bail("%s", last_error.text);
		ends[i] += MIB;
	}
	for (int i = 0; i < 12; i++)
	{
		uint64_t lacking;
		uint64_t bytes = 1 + random64() % (12 * MIB);

		bytes = GPUSORT_ALIGN8(bytes);
		if (!gpusort_storage_reserve(run->storage, bytes, &lacking))
		{
			uint64_t gap = random64() % 2 * 4096;
			int owner = i % 3;

			asked++;
			if (gpusort_storage_add_space(run->storage, 100 + owner, -1, ends[owner] + gap, lacking, &last_error) != 0)
				bail("%s", last_error.text);
			ends[owner] += gap + lacking;
			if (!gpusort_storage_reserve(run->storage, bytes, &lacking))
				bail("what was asked for is not enough");
		}
		if (write_run(run, bytes, i % 4 == 3 ? 4 * MIB : GPUSORT_BLOCK_BYTES) != 0)
			bail("%s", last_error.text);
	}
	ok(true, "what is asked for is enough, %d times", asked);
	wrong = read_all(run);
	ok(wrong == NULL, "runs in files of several owners, given bit by bit: %s", told(wrong));
	for (int i = 0; i < 3; i++)
	{
		if (ftruncate(copies[i], (off_t) ends[i]) != 0)
			bail("ftruncate");
	}
	gpusort_storage_finish(run->storage, &stored);
	for (uint32_t i = 0; i < run->count; i++)
	{
		const GpuSortRunBlock *block = &run->blocks[i];

		if (used[block->file] < block->place + block->stored)
			used[block->file] = (uint32_t) (block->place + block->stored);
	}
	for (int i = 0; i < 3; i++)
		trimmed = trimmed && fstat(copies[i], &status) == 0 && (uint64_t) status.st_size == used[i];
	ok(trimmed && used[0] > 0 && used[1] > 0 && used[2] > 0, "each is as long as what was written to it");
	wrong = read_all(run);
	ok(stored.disk == run->bytes && wrong == NULL, "and all is there: %s", told(wrong));
	storage_end(run);
	for (int i = 0; i < 3; i++)
		close(copies[i]);
}

typedef struct Reader
{
	const Case *run;
	uint64_t seed;
	const char *wrong;
	GpuSortError error;
} Reader;

static void *
reader_main(void *arg)
{
	Reader *reader = arg;
	uint64_t state = reader->seed;

	for (int i = 0; i < 30 && reader->wrong == NULL; i++)
	{
		uint32_t first;
		uint32_t count;

		state = state * UINT64_C(6364136223846793005) + 1;
		first = (uint32_t) (state >> 33) % reader->run->count;
		count = 1 + (uint32_t) (state >> 40) % 20;
		if (count > reader->run->count - first)
			count = reader->run->count - first;
		reader->wrong = read_blocks(reader->run, first, count, &reader->error);
	}
	return NULL;
}

static void
test_readers(const char *directory)
{
	GpuSortHostMemory *memory = gpusort_host_memory_create(16 * MIB);
	Case *run = storage_begin(memory, &never, MIXED, directory);
	Reader readers[READERS];
	pthread_t threads[READERS];
	const char *wrong = NULL;
	GpuSortStored stored;
	uint64_t lacking;

	gpusort_storage_set_compression(run->storage, GPUSORT_COMPRESSION_ALWAYS);
	for (int i = 1; i < 4; i++)
	{
		if (!gpusort_storage_reserve(run->storage, i * 8 * MIB, &lacking) ||
			write_run(run, i * 8 * MIB, GPUSORT_BLOCK_BYTES) != 0)
			bail("%s", last_error.text);
	}
	gpusort_storage_finish(run->storage, &stored);
	for (int i = 0; i < READERS; i++)
	{
		readers[i] = (Reader){.run = run, .seed = random64()};
		pthread_create(&threads[i], NULL, reader_main, &readers[i]);
	}
	for (int i = 0; i < READERS; i++)
	{
		pthread_join(threads[i], NULL);
		if (readers[i].wrong != NULL)
			wrong = readers[i].wrong;
	}
	ok(wrong == NULL && stored.memory > 0 && stored.disk > 0, "several threads read at once, from memory and a file: %s",
	   told(wrong));
	storage_end(run);
	gpusort_host_memory_destroy(memory);
}

/* Cuts a buffer into blocks of a megabyte, but for one that was filled with 0xEE. */
static int
cut_megabytes(GpuSortRunPart *part, const char *buffer, GpuSortError *cut_error)
{
	if ((unsigned char) buffer[0] == 0xEE)
	{
		*cut_error = (GpuSortError){.reason = GPUSORT_REASON_STORAGE, .text = "cannot be cut"};
		return -1;
	}
	while (part->count < BUFFER_SIZE / MIB)
		part->blocks[part->count++] = (GpuSortRunBlock){.bytes = MIB, .rows = 1};
	return 0;
}

/* An engine with two buffers. */
static char engines_buffers[2][GPUSORT_CHUNK_BYTES];
static int engines_buffers_used;

static void *
get_buffer(GpuSortEngine *engine)
{
	(void) engine;
	return engines_buffers_used < 2 ? engines_buffers[engines_buffers_used++] : NULL;
}

static void
put_buffer(GpuSortEngine *engine, void *buffer)
{
	(void) engine;
	if (buffer != engines_buffers[0] && buffer != engines_buffers[1])
		bail("an engine got a buffer that is not its own");
	engines_buffers_used--;
}

/* Writes runs of buffers that are cut by who writes them, of which the last one cannot be. */
static void
test_cutting(const char *directory)
{
	static const GpuSortEngineOps ops = {.get_buffer = get_buffer, .put_buffer = put_buffer};
	const GpuSortEngineHandle handle = {.ops = &ops};
	GpuSortHostMemory *memory = gpusort_host_memory_create(40 * MIB);
	Case *run = storage_begin(memory, &never, RANDOM, directory);
	const char *wrong = NULL;
	GpuSortError ignored;
	uint64_t lacking;
	int used;

	gpusort_storage_set_engine(run->storage, &handle);
	for (int r = 0; r < 3; r++)
	{
		bool fails = r == 2;

		if (!gpusort_storage_reserve(run->storage, 40 * MIB, &lacking))
			bail("no space");
		run->nparts = 0;
		for (uint32_t i = 0; i < 10; i++)
		{
			char *buffer = gpusort_storage_buffer(run->storage, &last_error);

			if (buffer == NULL && fails)
				break;
			if (buffer == NULL)
				bail("%s", last_error.text);
			memset(buffer, fails && i == 3 ? 0xEE : 16 * r + i, BUFFER_SIZE);
			run->parts[i] = (GpuSortRunPart){.blocks = &run->blocks[i * (BUFFER_SIZE / MIB)], .cut = cut_megabytes};
			gpusort_storage_write(run->storage, buffer, &run->parts[i]);
		}
		if (gpusort_storage_finish_run(run->storage, &last_error) != (fails ? -1 : 0))
			bail("run %d: %s", r, last_error.text);
		for (uint32_t i = 0; i < 10 && !fails; i++)
		{
			static char read[BUFFER_SIZE];

			if (gpusort_storage_read(run->storage, run->parts[i].blocks, run->parts[i].count, read, &ignored) != 0 ||
				read[0] != (char) (16 * r + i) || memcmp(read, read + 1, BUFFER_SIZE - 1) != 0)
				wrong = "a part is not what was written";
		}
	}
	ok(wrong == NULL && strcmp(last_error.text, "cannot be cut") == 0, "buffers are cut when they are written: %s",
	   told(wrong));
	used = engines_buffers_used;
	storage_end(run);
	ok(used == 2 && engines_buffers_used == 0, "an engine's buffers are used, and given back");
	gpusort_host_memory_destroy(memory);
}

int
main(void)
{
	const char *directory = test_directory();

	random_seed(16);
	test_checksums();
	test_round_trips(directory);
	test_memory(directory);
	test_space(directory);
	test_wrong_space(directory);
	test_damage(directory, GPUSORT_COMPRESSION_NEVER);
	test_damage(directory, GPUSORT_COMPRESSION_ALWAYS);
	test_write_errors(directory);
	test_readers(directory);
	test_ends(directory);
	test_cutting(directory);
	return done_testing();
}
