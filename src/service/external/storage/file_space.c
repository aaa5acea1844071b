/*-------------------------------------------------------------------------
 *
 * file_space.c
 *	  Space in temporary files: what was given, and what of it is used; writing and reading them.
 *
 * Each owner gives space in one file, always behind what it gave before.  Space
 * that joins what is still free there makes one piece with it, so there are about
 * as many pieces as files.  They are taken from in turn: the kernel writes to a
 * file for one thread at a time.
 *
 * What is taken is not cut.  A piece may therefore be left with less than what is
 * wanted, and left counts of each piece only what GPUSORT_FILE_SLACK leaves: as
 * long as no more is taken than it counted, and nothing larger than the slack at
 * once, there is a piece that has it.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/external/storage/file_space.h"
#include "service/errors.h"

/* Finds an owner's file; nfiles if it has none yet. */
static uint32_t
find_file(const GpuSortFileSpace *space, uint64_t owner)
{
	uint32_t file = 0;

	while (file < space->nfiles && space->files[file].owner != owner)
		file++;
	return file;
}

/* Says why space in a file cannot be used; NULL: it can. */
static const char *
refuse(const GpuSortFileSpace *space, uint32_t file, int descriptor, uint64_t start, uint64_t bytes)
{
	struct stat status;
	int flags;

	if (bytes == 0 || start > INT64_MAX || bytes > INT64_MAX - start)
		return "is more than a file can have";
	if (file < space->nfiles)
	{
		if (descriptor >= 0)
			return "came with a second file";
		return start < space->files[file].end ? "was given before" : NULL;
	}
	if (descriptor < 0)
		return "came without a file";
	flags = fcntl(descriptor, F_GETFL);
	if (flags < 0 || fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
		return "is not in a regular file";
	/* pwrite would not write where it is told to */
	return flags & O_APPEND ? "is in a file that is only added to" : NULL;
}

/* Makes room for one more file and one more piece. */
static bool
make_room(GpuSortFileSpace *space)
{
	GpuSortSpaceFile *files = realloc(space->files, (space->nfiles + 1) * sizeof(GpuSortSpaceFile));
	GpuSortFreeSpace *pieces;

	if (files == NULL)
		return false;
	space->files = files;
	pieces = realloc(space->free, (space->nfree + 1) * sizeof(GpuSortFreeSpace));
	if (pieces == NULL)
		return false;
	space->free = pieces;
	return true;
}

/*
 * Adds space in a file of an owner.  The first call for an owner passes the descriptor, which
 * belongs to the space from then on, even if this fails; later calls pass -1.
 */
int
gpusort_file_space_add(GpuSortFileSpace *space, uint64_t owner, int descriptor, uint64_t start, uint64_t bytes,
					   GpuSortError *error)
{
	uint32_t file = find_file(space, owner);
	const char *refused = refuse(space, file, descriptor, start, bytes);
	GpuSortFreeSpace *piece = NULL;

	error->system_error = 0;
	if (refused != NULL || !make_room(space))
	{
		if (descriptor >= 0)
			close(descriptor);
		if (refused == NULL)
			return gpusort_error_memory(error);
		error->reason = GPUSORT_REASON_INTERNAL;
		snprintf(error->text, sizeof(error->text), "space for a run, %llu bytes from %llu on, %s",
				 (unsigned long long) bytes, (unsigned long long) start, refused);
		return -1;
	}
	if (file == space->nfiles)
		space->files[space->nfiles++] =
			(GpuSortSpaceFile){.owner = owner, .descriptor = descriptor, .end = start, .used_end = start};
	for (uint32_t i = 0; i < space->nfree; i++)
	{
		if (space->free[i].file == file && space->free[i].end == start)
			piece = &space->free[i];
	}
	if (piece == NULL)
	{
		piece = &space->free[space->nfree++];
		*piece = (GpuSortFreeSpace){.file = file, .start = start};
	}
	piece->end = start + bytes;
	space->files[file].end = start + bytes;
	return 0;
}

/* Bytes that can be taken for sure; see file header. */
uint64_t
gpusort_file_space_left(const GpuSortFileSpace *space)
{
	uint64_t left = 0;

	for (uint32_t i = 0; i < space->nfree; i++)
	{
		uint64_t bytes = space->free[i].end - space->free[i].start;

		left += bytes > GPUSORT_FILE_SLACK ? bytes - GPUSORT_FILE_SLACK : 0;
	}
	return left;
}

/* Takes so many bytes in one piece; false if no piece has them. */
bool
gpusort_file_space_take(GpuSortFileSpace *space, uint64_t bytes, uint32_t *file, uint64_t *place)
{
	for (uint32_t i = 0; i < space->nfree; i++)
	{
		GpuSortFreeSpace *piece = &space->free[space->turn++ % space->nfree];

		if (piece->end - piece->start >= bytes)
		{
			*file = piece->file;
			*place = piece->start;
			piece->start += bytes;
			if (space->files[*file].used_end < piece->start)
				space->files[*file].used_end = piece->start;
			return true;
		}
	}
	return false;
}

/* Gives back to the file system what was given at the files' ends and not taken.  Nothing can be taken after it. */
void
gpusort_file_space_trim(GpuSortFileSpace *space)
{
	struct stat status;

	for (uint32_t i = 0; i < space->nfiles; i++)
	{
		const GpuSortSpaceFile *file = &space->files[i];

		/* What goes wrong here costs space and nothing else. */
		if (fstat(file->descriptor, &status) == 0 && (uint64_t) status.st_size > file->used_end &&
			(uint64_t) status.st_size <= file->end && ftruncate(file->descriptor, (off_t) file->used_end) != 0)
			continue;
	}
	free(space->free);
	space->free = NULL;
	space->nfree = 0;
}

/* Closes the files and frees what the space has; it is as in the beginning. */
void
gpusort_file_space_close(GpuSortFileSpace *space)
{
	for (uint32_t i = 0; i < space->nfiles; i++)
		close(space->files[i].descriptor);
	free(space->files);
	free(space->free);
	*space = (GpuSortFileSpace){.files = NULL};
}

/* Fills *error for a call of the system that failed, or with 0 for what is not what was written.  Returns -1. */
int
gpusort_file_error(GpuSortError *error, int system_error, const char *what)
{
	char reason[64];

	error->reason = GPUSORT_REASON_STORAGE;
	error->system_error = system_error;
	if (system_error == 0)
		snprintf(error->text, sizeof(error->text), "%s", what);
	else
		snprintf(error->text, sizeof(error->text), "%s: %s", what, strerror_r(system_error, reason, sizeof(reason)));
	return -1;
}

/* Writes so many bytes at a place of a file; returns 0 or the errno. */
int
gpusort_file_write(int descriptor, const char *from, size_t bytes, uint64_t place)
{
	while (bytes > 0)
	{
		ssize_t written = pwrite(descriptor, from, bytes, (off_t) place);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written < 0 ? errno : EIO;
		from += written;
		place += (uint64_t) written;
		bytes -= (size_t) written;
	}
	return 0;
}

/* Reads so many bytes from a place of a file; returns 0 or the errno.  *short_read: the file ends before. */
int
gpusort_file_read(int descriptor, char *to, size_t bytes, uint64_t place, bool *short_read)
{
	*short_read = false;
	while (bytes > 0)
	{
		ssize_t got = pread(descriptor, to, bytes, (off_t) place);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno;
		if (got == 0)
		{
			*short_read = true;
			return 0;
		}
		to += got;
		place += (uint64_t) got;
		bytes -= (size_t) got;
	}
	return 0;
}
