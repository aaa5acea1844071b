/*-------------------------------------------------------------------------
 *
 * gpusort.c
 *	  Large sorts on the GPU, without a change to any query: the module's entry.
 *
 * The rooms, in the order of a row's path: plan/ puts a GpuSort node where a Sort
 * would be; node.h is what it tells exec/, which runs the node; sort/ brings its rows
 * into the staging pool's chunks and out of them, parallel/ those of several processes;
 * index/ builds btrees by such sorts;
 * keys/ makes words of sort keys; client/ talks to the service (service/), which sorts;
 * server/ keeps the service running, and has what processes share, and the views that show it.
 *
 * Loads by shared_preload_libraries (the service starts with the server), by
 * session_preload_libraries and by LOAD (it starts with the first large sort).
 *
 * A function of the extension that a user calls loads it, too, where LOAD would be
 * refused.  That is no decision to sort with gpusort: the session's plans stay as they
 * were, and it starts no service.  Its plans can be run in any case: parallel workers load
 * what their leader has loaded.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "cluster/cluster.h"
#include "exec/executor.h"
#include "fmgr.h"
#include "index/index.h"
#include "miscadmin.h"
#include "form/messages.h"
#include "plan/planner.h"
#include "server/availability.h"
#include "server/installation.h"
#include "server/shared.h"
#include "settings.h"
#include "views/environment.h"

PG_MODULE_MAGIC_EXT(.name = "gpusort", .version = GPUSORT_VERSION);

PGDLLEXPORT void _PG_init(void);

/*
 * Returns true if a user's call of a function is why the module is being loaded.  The libraries that
 * settings name are loaded before a session is in normal processing.  A user who is not allowed to
 * LOAD has no other way, but for what an administrator puts into $libdir/plugins.
 */
static bool
is_loaded_by_call(void)
{
	return IsNormalProcessingMode() && IsTransactionState() && !superuser();
}

/*
* Makes sessions keep the memory that a small statement frees.  The C library gives what is free at the heap's end back
 * to the system, and asks for it again, page by page, in the next statement, if it is more than 128 kB: so it is with
 * some statements on any server, with which ones depends on where the heap ends when a session starts, and preloading
 * a module moves that.  It is done no more once a piece of this size was freed, as a larger statement does; sessions
 * have that of the server that starts them.
 */
static void
keep_freed_memory(void)
{
	void *volatile piece = malloc(256 * 1024);

	free(piece);
}

void
_PG_init(void)
{
	gpusort_settings_init();
	gpusort_installation_init();
	gpusort_environment_init();
	if (process_shared_preload_libraries_in_progress)
	{
		keep_freed_memory();
		gpusort_shared_init();
		gpusort_availability_init();
		gpusort_messages_init();
	}
	gpusort_executor_init();
	if (IsParallelWorker())
		return; /* plans are the leader's */
	if (is_loaded_by_call())
		gpusort_availability_leave_alone();
	else
	{
		gpusort_planner_init();
		gpusort_index_init();
		gpusort_cluster_init();
	}
}
