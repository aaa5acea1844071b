/*-------------------------------------------------------------------------
 *
 * pivots.c
 *	  The high keys of the leaf pages that several processes make, in temporary files.
 *
 * The leader makes the levels above the leaves of them, when all leaf pages have their places.  How many bytes
 * they are depends on the keys, a third of the index at most: too many to be kept in shared memory.
 *
 * Each process has a file of its own, in a set that all share, and adds the keys of the ranges that it claims, in
 * rising order: create, add for each page, close.  Then the leader opens each, and reads as many keys as there are
 * pages.  Files go with the set.  Errors of temporary files are raised.  All belongs to the memory context that was
 * current at create, or open.
 *
 *-------------------------------------------------------------------------
 */
#include "index/pivots.h"

#include "access/nbtree.h"
#include "storage/buffile.h"

struct GpuSortPivots
{
	BufFile *file;
	char next[BLCKSZ]; /* the tuple that was read last */
};

/* Writes the name of a process's file to name, of MAXPGPATH bytes. */
static void
file_name(int process, char *name)
{
	snprintf(name, MAXPGPATH, "gpusort_pivots.%d", process);
}

/* Makes the file of a process. */
GpuSortPivots *
gpusort_pivots_create(SharedFileSet *files, int process)
{
	GpuSortPivots *pivots = palloc0(sizeof(GpuSortPivots));
	char name[MAXPGPATH];

	file_name(process, name);
	pivots->file = BufFileCreateFileSet(&files->fs, name);
	return pivots;
}

/* Adds the high key of the next page. */
void
gpusort_pivots_add(GpuSortPivots *pivots, IndexTuple pivot)
{
	BufFileWrite(pivots->file, (void *) pivot, IndexTupleSize(pivot));
}

/* Opens the file that a process has closed. */
GpuSortPivots *
gpusort_pivots_open(SharedFileSet *files, int process)
{
	GpuSortPivots *pivots = palloc0(sizeof(GpuSortPivots));
	char name[MAXPGPATH];

	file_name(process, name);
	pivots->file = BufFileOpenFileSet(&files->fs, name, O_RDONLY, false);
	return pivots;
}

static void
read_bytes(GpuSortPivots *pivots, char *to, Size bytes)
{
	if (BufFileRead(pivots->file, to, bytes) != bytes)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read the high keys of pages back from gpusort's temporary file: %m")));
}

/* Returns the next key, valid until the next call; it is an error if there is none. */
IndexTuple
gpusort_pivots_next(GpuSortPivots *pivots)
{
	IndexTuple pivot = (IndexTuple) pivots->next;
	Size bytes;

	read_bytes(pivots, pivots->next, sizeof(IndexTupleData));
	bytes = IndexTupleSize(pivot);
	if (bytes < sizeof(IndexTupleData) || bytes > BLCKSZ)
		elog(ERROR, "a high key of %zu bytes in gpusort's temporary file", bytes);
	read_bytes(pivots, pivots->next + sizeof(IndexTupleData), bytes - sizeof(IndexTupleData));
	return pivot;
}

/* Closes the file: no more is added, or read. */
void
gpusort_pivots_close(GpuSortPivots *pivots)
{
	BufFileClose(pivots->file);
	pfree(pivots);
}
