/*-------------------------------------------------------------------------
 *
 * space.c
 *	  The temporary file of a process for a sort larger than memory.
 *
 * The service writes it, by a descriptor of its own, and only where
 * this process has given it space.  That is one byte written at the end:
 * of a file with a hole in it no block is taken before the service needs it,
 * but all of it counts against temp_file_limit, and is reported
 * by log_temp_files and pg_stat_database like any other temporary file.
 * Whether the file system has the blocks shows when the service writes them.
 *
 * The file belongs to the resource owner that was current when the first space was asked
 * for, and to whoever calls gpusort_space_close.  That is for a regular end alone: after
 * an error the resource owner has closed the file, perhaps before anybody else is told.
 *
 *-------------------------------------------------------------------------
 */
#include "client/space.h"

#include "commands/tablespace.h"
#include "utils/wait_event.h"

/* Returns true if a file can have so many bytes more, whatever number that is. */
bool
gpusort_space_can_grow(const GpuSortSpace *space, uint64 bytes)
{
	return bytes > 0 && bytes <= PG_INT64_MAX - space->bytes;
}

/*
 * Gives the service so many bytes more, and returns where they begin in the file, which is made at the first.  Errors:
 * those of temporary files, that of temp_file_limit among them.
 */
uint64
gpusort_space_grow(GpuSortSpace *space, uint64 bytes)
{
	uint64 start = space->bytes;
	char last = 0;

	Assert(gpusort_space_can_grow(space, bytes));
	if (space->file == 0)
	{
		PrepareTempTablespaces();
		space->file = OpenTemporaryFile(false);
	}
	if (FileWrite(space->file, &last, 1, start + bytes - 1, WAIT_EVENT_BUFFILE_WRITE) != 1)
	{
		bool full = errno == ENOSPC;

		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not extend temporary file \"%s\": %m", FilePathName(space->file)),
				 full ? errhint("Check free disk space.") : 0));
	}
	space->bytes += bytes;
	return start;
}

/* Closes and deletes the file; the service may have it open still. */
void
gpusort_space_close(GpuSortSpace *space)
{
	if (space->file != 0)
		FileClose(space->file);
	*space = (GpuSortSpace){0};
}
