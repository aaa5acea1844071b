/*-------------------------------------------------------------------------
 *
 * storage_faults.c
 *	  Storage of runs that fails: space that is wrong, files that are damaged or cannot be
 *	  written; and its end at any time.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage_case.h"

/* Adds space that is wrong; true if it is refused and the descriptor closed. */
static bool
refuses(Case *run, uint64_t owner, int descriptor, uint64_t start, uint64_t bytes)
{
	return gpusort_storage_add_space(run->storage, owner, descriptor, start, bytes, &last_error) != 0 &&
		last_error.reason == GPUSORT_REASON_INTERNAL && (descriptor < 0 || fcntl(descriptor, F_GETFD) < 0);
}

void
test_wrong_space(const char *directory)
{
	Case *run = storage_begin(NULL, &never, RANDOM, directory);
	int appends = make_file(directory);
	int ends[2];

	if (pipe(ends) != 0 || fcntl(appends, F_SETFL, O_APPEND) != 0)
		bail("pipe: %s", strerror(errno));
	ok(refuses(run, 1, -1, SPACE - 1, MIB), "refused: %s", last_error.text);
	ok(refuses(run, 1, -1, SPACE, 0), "refused: %s", last_error.text);
	ok(refuses(run, 1, -1, SPACE, UINT64_MAX), "refused: %s", last_error.text);
	ok(refuses(run, 1, -1, UINT64_MAX - 5, MIB), "refused: %s", last_error.text);
	ok(refuses(run, 1, make_file(directory), SPACE, MIB), "refused: %s", last_error.text);
	ok(refuses(run, 2, -1, 0, MIB), "refused: %s", last_error.text);
	ok(refuses(run, 2, ends[0], 0, MIB), "refused: %s", last_error.text);
	ok(refuses(run, 2, appends, 0, MIB), "refused: %s", last_error.text);
	ok(gpusort_storage_add_space(run->storage, 1, -1, SPACE, MIB, &last_error) == 0, "what is right is taken after it");
	storage_end(run);
	close(ends[1]);
}

void
test_damage(const char *directory, GpuSortCompressionMode mode)
{
	Case *run = storage_begin(NULL, &never, REPETITIVE, NULL);
	int descriptor = make_file(directory);
	int copy = dup(descriptor);
	int other;
	uint64_t lacking;
	GpuSortRunBlock *block;
	char byte;

	gpusort_storage_set_compression(run->storage, mode);
	if (gpusort_storage_add_space(run->storage, 1, descriptor, 0, SPACE, &last_error) != 0 ||
		!gpusort_storage_reserve(run->storage, 20 * MIB, &lacking) ||
		write_run(run, 20 * MIB, GPUSORT_BLOCK_BYTES) != 0)
		bail("%s", last_error.text);
	block = &run->blocks[40];
	if (pread(copy, &byte, 1, (off_t) block->place + 100) != 1)
		bail("pread");
	byte ^= 4;
	if (pwrite(copy, &byte, 1, (off_t) block->place + 100) != 1)
		bail("pwrite");
	ok(read_all(run) != NULL && last_error.reason == GPUSORT_REASON_STORAGE && last_error.system_error == 0,
	   "a bit has changed: %s", last_error.text);
	ok(read_blocks(run, 41, 10, &last_error) == NULL, "blocks behind it are read");
	byte ^= 4;
	if (pwrite(copy, &byte, 1, (off_t) block->place + 100) != 1)
		bail("pwrite");
	ok(read_all(run) == NULL, "the bit is as it was");

	if (ftruncate(copy, (off_t) block->place + 10) != 0)
		bail("ftruncate");
	ok(read_all(run) != NULL && last_error.reason == GPUSORT_REASON_STORAGE && last_error.system_error == 0,
	   "the file is too short: %s", last_error.text);

	other = open("/", O_RDONLY | O_CLOEXEC);
	if (dup2(other, descriptor) < 0)
		bail("dup2");
	ok(read_all(run) != NULL && last_error.reason == GPUSORT_REASON_STORAGE && last_error.system_error == EISDIR,
	   "it cannot be read: %s", last_error.text);
	storage_end(run);
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
	ok(write_run(run, 60 * MIB, GPUSORT_BLOCK_BYTES) != 0 && last_error.reason == GPUSORT_REASON_STORAGE &&
		   last_error.system_error == system_error,
	   "%s: %s", what, last_error.text);
	ok(gpusort_storage_finish_run(run->storage, &again) != 0 && again.system_error == system_error,
	   "and that is not forgotten");
	gpusort_storage_finish(run->storage, &stored);
	storage_end(run);
}

void
test_write_errors(const char *directory)
{
	struct rlimit limit;
	struct rlimit small;
	char path[200];
	int descriptor;
	Case *run;

	run = storage_begin(NULL, &never, RANDOM, NULL);
	snprintf(path, sizeof(path), "%s/readonly", directory);
	descriptor = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	unlink(path);
	if (gpusort_storage_add_space(run->storage, 1, descriptor, 0, SPACE, &last_error) != 0)
		bail("%s", last_error.text);
	expect_failure(run, EBADF, "a file that is for reading only");

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	small = limit;
	small.rlim_cur = 30 * MIB + 100;
	setrlimit(RLIMIT_FSIZE, &small);
	run = storage_begin(NULL, &never, RANDOM, directory);
	expect_failure(run, EFBIG, "a file that may not be so large");
	setrlimit(RLIMIT_FSIZE, &limit);

	snprintf(path, sizeof(path), "%s/small", directory);
	if (mkdir(path, 0700) == 0 && mount("tmpfs", path, "tmpfs", 0, "size=20m") == 0)
	{
		run = storage_begin(NULL, &never, RANDOM, path);
		umount2(path, MNT_DETACH);
		expect_failure(run, ENOSPC, "a file system that is full");
	}
	else
		diag("no file system can be mounted here: ENOSPC is not tried");
	rmdir(path);
}

void
test_ends(const char *directory)
{
	int cancelled = 0;
	Case *run;
	uint64_t lacking;
	GpuSortStored stored;

	for (int buffers = 0; buffers < 6; buffers++)
	{
		run = storage_begin(NULL, &never, RANDOM, directory);
		if (!gpusort_storage_reserve(run->storage, 60 * MIB, &lacking))
			bail("no space");
		for (int i = 0; i < buffers; i++)
		{
			char *buffer = gpusort_storage_buffer(run->storage, &last_error);

			memset(buffer, i, BUFFER_SIZE);
			run->blocks[i] = (GpuSortRunBlock){.bytes = BUFFER_SIZE, .rows = 1};
			if (i < 5)
				write_part(run, buffer, &run->blocks[i], 1);
		}
		storage_end(run);
	}
	ok(true, "a storage ends while it is being written to");

	run = storage_begin(NULL, &cancelled, RANDOM, directory);
	if (!gpusort_storage_reserve(run->storage, 20 * MIB, &lacking) || write_run(run, 20 * MIB, 100000) != 0)
		bail("%s", last_error.text);
	__atomic_store_n(&cancelled, 1, __ATOMIC_RELAXED);
	ok(read_all(run) != NULL && last_error.reason == GPUSORT_REASON_INTERNAL, "reading is cancelled: %s", last_error.text);
	ok(gpusort_storage_reserve(run->storage, 20 * MIB, &lacking) && write_run(run, 20 * MIB, 100000) != 0 &&
		   last_error.reason == GPUSORT_REASON_INTERNAL,
	   "writing is cancelled: %s", last_error.text);
	gpusort_storage_finish(run->storage, &stored);
	storage_end(run);

	run = storage_begin(NULL, &never, RANDOM, NULL);
	gpusort_storage_finish(run->storage, &stored);
	ok(stored.memory == 0 && stored.disk == 0, "a storage that nothing was written to");
	storage_end(run);
}
