/*-------------------------------------------------------------------------
 *
 * storage.c
 *	  Tests of where runs are kept (src/service/external/storage/storage.h), in memory and
 *	  in files, and of what they are kept with: checksums, compression.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/external/storage/checksum.h"
#include "service/external/storage/file_space.h"
#include "service/external/storage/storage.h"
#include "testlib.h"

#define MIB         ((uint64_t) 1 << 20)
#define BLOCKS_MAX  4096
#define SPACE       (256 * MIB)
#define READERS     4
#define BUFFER_SIZE ((uint32_t) GPUSORT_CHUNK_BYTES)

/* What records are like. */
typedef enum Records
{
	RANDOM,     /* cannot be compressed */
	REPETITIVE, /* can */
	MIXED,      /* some blocks can */
} Records;

/* A storage and the runs that were written to it. */
typedef struct Case
{
	GpuSortStorage *storage;
	Records records;
	GpuSortRunBlock blocks[BLOCKS_MAX];
	uint32_t count;
	GpuSortRunPart parts[BLOCKS_MAX];
	uint32_t nparts;
	uint64_t bytes;
} Case;

static const int never = 0;
static GpuSortError error;

/* Word number i of all that is written. */
static uint64_t
word_at(Records records, uint64_t i)
{
	uint64_t mixed = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);

	if (records == REPETITIVE || (records == MIXED && (i >> 14) % 3 == 0))
		return i >> 6;
	return (mixed ^ mixed >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
}

/* A new file without a name. */
static int
make_file(const char *directory)
{
	char path[300];
	int descriptor;

	snprintf(path, sizeof(path), "%s/run.XXXXXX", directory);
	descriptor = mkostemp(path, O_CLOEXEC);
	if (descriptor < 0)
		bail("%s: %s", path, strerror(errno));
	unlink(path);
	return descriptor;
}

/* A storage with space in one file of directory, if that is not NULL. */
static Case *
begin(GpuSortHostMemory *memory, const int *cancelled, Records records, const char *directory)
{
	Case *begun = calloc(1, sizeof(Case));

	memset(&error, 0, sizeof(error));
	begun->records = records;
	begun->storage = gpusort_storage_create(memory, 2, cancelled, &error);
	if (begun->storage == NULL)
		bail("%s", error.text);
	if (directory != NULL &&
		gpusort_storage_add_space(begun->storage, 1, make_file(directory), 0, SPACE, &error) != 0)
		bail("%s", error.text);
	return begun;
}

static void
end(Case *ended)
{
	gpusort_storage_destroy(ended->storage);
	free(ended);
}

/* Hands over a buffer with so many blocks. */
static void
write_part(Case *run, char *buffer, GpuSortRunBlock *blocks, uint32_t count)
{
	GpuSortRunPart *part = &run->parts[run->nparts++];

	*part = (GpuSortRunPart){.blocks = blocks, .count = count};
	gpusort_storage_write(run->storage, buffer, part);
}

/* Writes a run of so many bytes in blocks of at most block_bytes, of changing size; 0 or -1 with error. */
static int
write_run(Case *run, uint64_t bytes, uint32_t block_bytes)
{
	uint64_t run_end = run->bytes + bytes;

	while (run->bytes < run_end)
	{
		char *buffer = gpusort_storage_buffer(run->storage, &error);
		uint32_t first = run->count;
		uint32_t filled = 0;

		if (buffer == NULL)
		{
			GpuSortError later;

			if (gpusort_storage_finish_run(run->storage, &later) == 0 && error.reason == GPUSORT_REASON_STORAGE)
				bail("an error is forgotten");
			return -1;
		}
		while (run->bytes < run_end && run->count < BLOCKS_MAX)
		{
			uint32_t size = block_bytes - 8 * (run->count % 5);

			if (size > run_end - run->bytes)
				size = (uint32_t) (run_end - run->bytes);
			if (size > BUFFER_SIZE - filled)
				break;
			for (uint32_t i = 0; i < size; i += 8)
			{
				uint64_t word = word_at(run->records, (run->bytes + i) / 8);

				memcpy(buffer + filled + i, &word, 8);
			}
			run->blocks[run->count++] = (GpuSortRunBlock){.bytes = size, .rows = run->count};
			filled += size;
			run->bytes += size;
		}
		if (run->count == first)
			bail("too many blocks");
		write_part(run, buffer, &run->blocks[first], run->count - first);
	}
	return gpusort_storage_finish_run(run->storage, &error);
}

/* Reads blocks from one number on and compares; NULL if it is well. */
static const char *
read_blocks(const Case *run, uint32_t first, uint32_t count, GpuSortError *failure)
{
	const char *wrong = NULL;
	uint64_t bytes = 0;
	uint64_t before = 0;
	char *to;

	for (uint32_t i = 0; i < first + count; i++)
		*(i < first ? &before : &bytes) += run->blocks[i].bytes;
	to = malloc(bytes + 1);
	to[bytes] = 77;
	if (gpusort_storage_read(run->storage, &run->blocks[first], count, to, failure) != 0)
		wrong = failure->text;
	for (uint64_t i = 0; wrong == NULL && i < bytes; i += 8)
	{
		uint64_t word = word_at(run->records, (before + i) / 8);

		if (memcmp(to + i, &word, 8) != 0)
			wrong = "other records were read";
	}
	if (wrong == NULL && to[bytes] != 77)
		wrong = "more was read";
	free(to);
	return wrong;
}

static const char *
read_all(const Case *run)
{
	return read_blocks(run, 0, run->count, &error);
}

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
			Case *run = begin(NULL, &never, records, directory);
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
					wrong = error.text;
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
			end(run);
		}
	}
}

static void
test_memory(const char *directory)
{
	GpuSortHostMemory *memory = gpusort_host_memory_create(64 * MIB);
	Case *run = begin(memory, &never, RANDOM, directory);
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
	   "the next one fits into memory: %s", error.text);
	gpusort_storage_finish(run->storage, &stored);
	ok(stored.memory == 40 * MIB + 8 && stored.disk == 50 * MIB, "what is kept is told");
	wrong = read_all(run);
	ok(wrong == NULL, "all is read: %s", told(wrong));
	end(run);
	ok(gpusort_host_memory_used(memory) == 0, "nothing stays charged");

	run = begin(memory, &never, RANDOM, NULL);
	ok(!gpusort_storage_reserve(run->storage, 80 * MIB, &lacking) && lacking >= 80 * MIB && lacking % MIB == 0,
	   "without a file space is asked for");
	ok(gpusort_storage_reserve(run->storage, 8, &lacking) && gpusort_storage_buffer(run->storage, &error) != NULL,
	   "a buffer is taken");
	end(run);
	ok(gpusort_host_memory_used(memory) == 0, "and not written: nothing stays charged");

	run = begin(memory, &never, RANDOM, NULL);
	ok(gpusort_storage_reserve(run->storage, 4 * MIB, &lacking) &&
		   write_run(run, 12 * MIB, GPUSORT_BLOCK_BYTES) != 0 && error.reason == GPUSORT_REASON_INTERNAL,
	   "more than was reserved: %s", error.text);
	end(run);
	gpusort_host_memory_destroy(memory);
}

static void
test_space(const char *directory)
{
	Case *run = begin(NULL, &never, RANDOM, NULL);
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
		if (gpusort_storage_add_space(run->storage, 100 + i, descriptor, ends[i], MIB, &error) != 0)
			bail("%s", error.text);
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
			if (gpusort_storage_add_space(run->storage, 100 + owner, -1, ends[owner] + gap, lacking, &error) != 0)
				bail("%s", error.text);
			ends[owner] += gap + lacking;
			if (!gpusort_storage_reserve(run->storage, bytes, &lacking))
				bail("what was asked for is not enough");
		}
		if (write_run(run, bytes, i % 4 == 3 ? 4 * MIB : GPUSORT_BLOCK_BYTES) != 0)
			bail("%s", error.text);
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
	end(run);
	for (int i = 0; i < 3; i++)
		close(copies[i]);
}

/* Adds space that is wrong; true if it is refused and the descriptor closed. */
static bool
refuses(Case *run, uint64_t owner, int descriptor, uint64_t start, uint64_t bytes)
{
	return gpusort_storage_add_space(run->storage, owner, descriptor, start, bytes, &error) != 0 &&
		error.reason == GPUSORT_REASON_INTERNAL && (descriptor < 0 || fcntl(descriptor, F_GETFD) < 0);
}

static void
test_wrong_space(const char *directory)
{
	Case *run = begin(NULL, &never, RANDOM, directory);
	int appends = make_file(directory);
	int ends[2];

	if (pipe(ends) != 0 || fcntl(appends, F_SETFL, O_APPEND) != 0)
		bail("pipe: %s", strerror(errno));
	ok(refuses(run, 1, -1, SPACE - 1, MIB), "refused: %s", error.text);
	ok(refuses(run, 1, -1, SPACE, 0), "refused: %s", error.text);
	ok(refuses(run, 1, -1, SPACE, UINT64_MAX), "refused: %s", error.text);
	ok(refuses(run, 1, -1, UINT64_MAX - 5, MIB), "refused: %s", error.text);
	ok(refuses(run, 1, make_file(directory), SPACE, MIB), "refused: %s", error.text);
	ok(refuses(run, 2, -1, 0, MIB), "refused: %s", error.text);
	ok(refuses(run, 2, ends[0], 0, MIB), "refused: %s", error.text);
	ok(refuses(run, 2, appends, 0, MIB), "refused: %s", error.text);
	ok(gpusort_storage_add_space(run->storage, 1, -1, SPACE, MIB, &error) == 0, "what is right is taken after it");
	end(run);
	close(ends[1]);
}

static void
test_damage(const char *directory, GpuSortCompressionMode mode)
{
	Case *run = begin(NULL, &never, REPETITIVE, NULL);
	int descriptor = make_file(directory);
	int copy = dup(descriptor);
	int other;
	uint64_t lacking;
	GpuSortRunBlock *block;
	char byte;

	gpusort_storage_set_compression(run->storage, mode);
	if (gpusort_storage_add_space(run->storage, 1, descriptor, 0, SPACE, &error) != 0 ||
		!gpusort_storage_reserve(run->storage, 20 * MIB, &lacking) ||
		write_run(run, 20 * MIB, GPUSORT_BLOCK_BYTES) != 0)
		bail("%s", error.text);
	block = &run->blocks[40];
	if (pread(copy, &byte, 1, (off_t) block->place + 100) != 1)
		bail("pread");
	byte ^= 4;
	if (pwrite(copy, &byte, 1, (off_t) block->place + 100) != 1)
		bail("pwrite");
	ok(read_all(run) != NULL && error.reason == GPUSORT_REASON_STORAGE && error.system_error == 0,
	   "a bit has changed: %s", error.text);
	ok(read_blocks(run, 41, 10, &error) == NULL, "blocks behind it are read");
	byte ^= 4;
	if (pwrite(copy, &byte, 1, (off_t) block->place + 100) != 1)
		bail("pwrite");
	ok(read_all(run) == NULL, "the bit is as it was");

	if (ftruncate(copy, (off_t) block->place + 10) != 0)
		bail("ftruncate");
	ok(read_all(run) != NULL && error.reason == GPUSORT_REASON_STORAGE && error.system_error == 0,
	   "the file is too short: %s", error.text);

	other = open("/", O_RDONLY | O_CLOEXEC);
	if (dup2(other, descriptor) < 0)
		bail("dup2");
	ok(read_all(run) != NULL && error.reason == GPUSORT_REASON_STORAGE && error.system_error == EISDIR,
	   "it cannot be read: %s", error.text);
	end(run);
	close(copy);
	close(other);
}

/* Writes until it fails, as it should with one of these. */
static void
expect_failure(Case *run, int system_error, const char *what)
{
	uint64_t lacking;
	GpuSortError again;
	GpuSortStored stored;

	if (!gpusort_storage_reserve(run->storage, 60 * MIB, &lacking))
		bail("no space");
	ok(write_run(run, 60 * MIB, GPUSORT_BLOCK_BYTES) != 0 && error.reason == GPUSORT_REASON_STORAGE &&
		   error.system_error == system_error,
	   "%s: %s", what, error.text);
	ok(gpusort_storage_finish_run(run->storage, &again) != 0 && again.system_error == system_error,
	   "and that is not forgotten");
	gpusort_storage_finish(run->storage, &stored);
	end(run);
}

static void
test_write_errors(const char *directory)
{
	struct rlimit limit;
	struct rlimit small;
	char path[200];
	int descriptor;
	Case *run;

	run = begin(NULL, &never, RANDOM, NULL);
	snprintf(path, sizeof(path), "%s/readonly", directory);
	descriptor = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	unlink(path);
	if (gpusort_storage_add_space(run->storage, 1, descriptor, 0, SPACE, &error) != 0)
		bail("%s", error.text);
	expect_failure(run, EBADF, "a file that is for reading only");

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	small = limit;
	small.rlim_cur = 30 * MIB + 100;
	setrlimit(RLIMIT_FSIZE, &small);
	run = begin(NULL, &never, RANDOM, directory);
	expect_failure(run, EFBIG, "a file that may not be so large");
	setrlimit(RLIMIT_FSIZE, &limit);

	snprintf(path, sizeof(path), "%s/small", directory);
	if (mkdir(path, 0700) == 0 && mount("tmpfs", path, "tmpfs", 0, "size=20m") == 0)
	{
		run = begin(NULL, &never, RANDOM, path);
		umount2(path, MNT_DETACH);
		expect_failure(run, ENOSPC, "a file system that is full");
	}
	else
		diag("no file system can be mounted here: ENOSPC is not tried");
	rmdir(path);
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
	Case *run = begin(memory, &never, MIXED, directory);
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
			bail("%s", error.text);
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
	end(run);
	gpusort_host_memory_destroy(memory);
}

static void
test_ends(const char *directory)
{
	int cancelled = 0;
	Case *run;
	uint64_t lacking;
	GpuSortStored stored;

	for (int buffers = 0; buffers < 6; buffers++)
	{
		run = begin(NULL, &never, RANDOM, directory);
		if (!gpusort_storage_reserve(run->storage, 60 * MIB, &lacking))
			bail("no space");
		for (int i = 0; i < buffers; i++)
		{
			char *buffer = gpusort_storage_buffer(run->storage, &error);

			memset(buffer, i, BUFFER_SIZE);
			run->blocks[i] = (GpuSortRunBlock){.bytes = BUFFER_SIZE, .rows = 1};
			if (i < 5)
				write_part(run, buffer, &run->blocks[i], 1);
		}
		end(run);
	}
	ok(true, "a storage ends while it is being written to");

	run = begin(NULL, &cancelled, RANDOM, directory);
	if (!gpusort_storage_reserve(run->storage, 20 * MIB, &lacking) || write_run(run, 20 * MIB, 100000) != 0)
		bail("%s", error.text);
	__atomic_store_n(&cancelled, 1, __ATOMIC_RELAXED);
	ok(read_all(run) != NULL && error.reason == GPUSORT_REASON_INTERNAL, "reading is cancelled: %s", error.text);
	ok(gpusort_storage_reserve(run->storage, 20 * MIB, &lacking) && write_run(run, 20 * MIB, 100000) != 0 &&
		   error.reason == GPUSORT_REASON_INTERNAL,
	   "writing is cancelled: %s", error.text);
	gpusort_storage_finish(run->storage, &stored);
	end(run);

	run = begin(NULL, &never, RANDOM, NULL);
	gpusort_storage_finish(run->storage, &stored);
	ok(stored.memory == 0 && stored.disk == 0, "a storage that nothing was written to");
	end(run);
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
	Case *run = begin(memory, &never, RANDOM, directory);
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
			char *buffer = gpusort_storage_buffer(run->storage, &error);

			if (buffer == NULL && fails)
				break;
			if (buffer == NULL)
				bail("%s", error.text);
			memset(buffer, fails && i == 3 ? 0xEE : 16 * r + i, BUFFER_SIZE);
			run->parts[i] = (GpuSortRunPart){.blocks = &run->blocks[i * (BUFFER_SIZE / MIB)], .cut = cut_megabytes};
			gpusort_storage_write(run->storage, buffer, &run->parts[i]);
		}
		if (gpusort_storage_finish_run(run->storage, &error) != (fails ? -1 : 0))
			bail("run %d: %s", r, error.text);
		for (uint32_t i = 0; i < 10 && !fails; i++)
		{
			static char read[BUFFER_SIZE];

			if (gpusort_storage_read(run->storage, run->parts[i].blocks, run->parts[i].count, read, &ignored) != 0 ||
				read[0] != (char) (16 * r + i) || memcmp(read, read + 1, BUFFER_SIZE - 1) != 0)
				wrong = "a part is not what was written";
		}
	}
	ok(wrong == NULL && strcmp(error.text, "cannot be cut") == 0, "buffers are cut when they are written: %s",
	   told(wrong));
	used = engines_buffers_used;
	end(run);
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
