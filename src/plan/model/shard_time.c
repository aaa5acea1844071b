/*-------------------------------------------------------------------------
 *
 * shard_time.c
 *	  How long it takes to get the rows of shards: foreign tables of several servers.
 *
 * The rows of shards can come in two ways.  An Append reads all of them at once, where the foreign data wrapper
 * can do so: they scan, and write their rows, while this process takes rows of others apart.  A Merge Append of
 * scans that each shard sorts reads one after the other: it waits until the first has sorted, then the second, and
 * then for each batch of rows.  PostgreSQL's costs know nothing of what happens at once, and before version 17
 * next to nothing of what a row takes on its way.  So the time is estimated here, in ns, and a
 * GpuSort over the Append competes by it.
 *
 * Only foreign scans that can be asynchronous count, and only if they are of two servers or more: those of one
 * server have one connection, on which one waits for the other.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/model/shard_time.h"

#include "foreign/fdwapi.h"
#include "optimizer/cost.h"
#include "plan/model/constants.h"

/* Returns the foreign scan that a path is but for its columns, if it can be asynchronous; else NULL. */
const Path *
gpusort_shard_path(const Path *path)
{
	const FdwRoutine *routine;

	if (IsA(path, ProjectionPath) && ((const ProjectionPath *) path)->dummypp)
		path = ((const ProjectionPath *) path)->subpath;
	if (!IsA(path, ForeignPath))
		return NULL;
	routine = path->parent->fdwroutine;
	return routine != NULL && routine->IsForeignPathAsyncCapable != NULL &&
			routine->IsForeignPathAsyncCapable((ForeignPath *) path)
		? path
		: NULL;
}

/* Returns true if two of the paths at least are foreign scans of different servers that may be asynchronous. */
bool
gpusort_paths_are_of_shards(const List *paths)
{
	Oid server = InvalidOid;
	ListCell *cell;

	if (!enable_async_append)
		return false;
	foreach(cell, paths)
	{
		const Path *shard = gpusort_shard_path(lfirst(cell));

		if (shard == NULL)
			continue;
		if (OidIsValid(server) && shard->parent->serverid != server)
			return true;
		server = shard->parent->serverid;
	}
	return false;
}

/* Returns true if path is an Append of shards that create_plan will have read at once. */
bool
gpusort_path_reads_shards_at_once(const Path *path)
{
	return IsA(path, AppendPath) && path->pathkeys == NIL && !path->parallel_safe &&
		gpusort_paths_are_of_shards(((const AppendPath *) path)->subpaths);
}

/* How long a process takes rows of so many bytes apart that shards send. */
double
gpusort_fetch_time(double rows, int width)
{
	return rows *
		(gpusort_constant(GPUSORT_TIME_FETCHED_ROW, false) + gpusort_constant(GPUSORT_TIME_FETCHED_BYTE, false) * width);
}

/* How long it takes to get a foreign scan's rows, beside those of others or after them. */
double
gpusort_shard_time(const Path *path, bool at_once)
{
	double sent = 0;

	if (!at_once)
		sent = gpusort_constant(GPUSORT_TIME_SENT_ROW, false) +
			(path->pathkeys != NIL ? gpusort_constant(GPUSORT_TIME_SENT_SORTED_ROW, false) : 0);
	return gpusort_fetch_time(path->rows, path->pathtarget->width) + path->rows * sent;
}
