/*-------------------------------------------------------------------------
 *
 * node.h
 *	  The plan nodes: what plan/ and exec/ agree on.
 *
 * A sort whose rows are read by one process:
 *
 *	  GpuSort					sorts and emits
 *	    Gather
 *	      GpuSortIngest			in each process: rows to the service
 *	        partial plan
 *
 * One whose rows are read by all processes, so that what is above it runs in all:
 *
 *	  GpuSortExchange			emits what the processes computed, range by range
 *	    Gather
 *	      GpuSortOutput			in each process: runs the plan below it once for each range that it claims
 *	        plan				a WindowAgg, say; or a MergeJoin of two sorts
 *	          GpuSort			parallel-aware: ingests this process's part, then emits the current range
 *	            partial plan
 *
 * The same where the rows are wanted in no order, anywhere below a Gather:
 *
 *	  Gather
 *	    plan					partial: joins, aggregates
 *	      GpuSortOutput			in each process: gives what it makes of its ranges to the node above
 *	        plan
 *	          GpuSort			parallel-aware
 *	            partial plan
 *
 * Neither of the two rooms includes a header of the other's.  The planner makes
 * CustomScans with these method tables, and packs into them what the executor unpacks
 * when it begins the node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NODE_H
#define GPUSORT_NODE_H

#include "compat.h"

#include "access/htup_details.h"
#include "keys/keys.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"

/* What EXPLAIN calls the nodes, and by what parallel workers find their methods. */
#define GPUSORT_NODE_NAME          "GpuSort"
#define GPUSORT_INGEST_NODE_NAME   "GpuSortIngest"
#define GPUSORT_EXCHANGE_NODE_NAME "GpuSortExchange"
#define GPUSORT_OUTPUT_NODE_NAME   "GpuSortOutput"

/* Defined by exec/executor.c, ingest.c, exchange.c and output.c. */
extern const CustomScanMethods gpusort_scan_methods;
extern const CustomScanMethods gpusort_ingest_scan_methods;
extern const CustomScanMethods gpusort_exchange_scan_methods;
extern const CustomScanMethods gpusort_output_scan_methods;

/* What the node right above a GpuSort makes of the order of its rows. */
typedef enum GpuSortUseKind
{
	GPUSORT_USE_UNKNOWN, /* no path says: only the finished plan shows the node */
	GPUSORT_USE_NONE,    /* no more than PostgreSQL's node does by itself */
	GPUSORT_USE_RUNNING, /* a WindowAgg keeps what the rows before come to (exec/running.c) */
	GPUSORT_USE_NEAR,    /* a WindowAgg reads each range with so many rows around it (exec/window_ranges.c) */
	GPUSORT_USE_NUMBERS, /* an Agg reads a few of the rows by their numbers (exec/percentiles.c) */
} GpuSortUseKind;

typedef struct GpuSortUse
{
	GpuSortUseKind kind;
	int before;  /* NEAR: rows before the current one that a window may need */
	int after;   /* NEAR: and after it */
	bool rows;   /* RUNNING: how many rows the partition has */
	bool totals; /* RUNNING: more of the rows before it than how many there are */
} GpuSortUse;

/* A BRIN index that tells which blocks of the child's table can have the first rows. */
typedef struct GpuSortBlockIndex
{
	Oid index;         /* InvalidOid: there is none */
	AttrNumber column; /* of the index, with the values of the first sort column */
} GpuSortBlockIndex;

/* More first rows than so many are not looked for in that way: each that comes has to find its place among them. */
#define GPUSORT_FIRST_KEYS_MAX 10000

/* What a finished plan of either node tells the executor, in custom_private. */
typedef struct GpuSortPlanInfo
{
	GpuSortColumn *columns;
	int ncolumns;
	bool rescannable;  /* the child gives the same rows when read again */
	int visible;       /* leading attributes of a row that the node above sees; the others are resjunk, for sorting */
	int range_columns; /* rows equal in so many leading columns are read by one process; 0: all rows are */
	GpuSortUse use;    /* what the node above does */
	GpuSortBlockIndex block_index;
	const char *why_alone; /* why one process runs what is above, though several take rows in; NULL: no path says */

	/* workers take rows in even where PostgreSQL runs the statement without: it has none elsewhere */
	bool starts_workers;
	uint64 estimated_rows;
	uint32 estimated_width; /* bytes of a row's data */
} GpuSortPlanInfo;

extern Oid gpusort_sort_value_type(const Sort *sort, int i);
extern List *gpusort_plan_pack(const Sort *sort);
extern void gpusort_plan_unpack(const CustomScan *plan, GpuSortPlanInfo *info);
extern void gpusort_plan_move_keys(CustomScan *plan, const AttrNumber *new_attnos);
extern void gpusort_plan_set_rescannable(CustomScan *plan, bool rescannable);
extern void gpusort_plan_set_visible(CustomScan *plan, int visible);
extern void gpusort_plan_set_why_alone(CustomScan *plan, const char *why_alone);
extern void gpusort_plan_set_use(CustomScan *plan, const GpuSortUse *use);
extern void gpusort_plan_set_block_index(CustomScan *plan, const GpuSortBlockIndex *index);
extern void gpusort_plan_set_starts_workers(CustomScan *plan);
extern void gpusort_plan_set_range_columns(CustomScan *plan, int range_columns, const Oid *key_types);

/* What a finished plan of a GpuSortOutput tells the executor. */
typedef struct GpuSortOutputInfo
{
	int rescan_param; /* the Gather's, by which the plan below starts over; -1 while it is not known */
	bool partial;     /* its rows go to the node above it, each process's own, in place of a queue */
	bool only_formed; /* workers run ranges only where rows leave the server or fill a table; else the leader runs all */

	/*
	 * Rows that are equal in so many leading columns of the sort are a partition of the WindowAgg right above it, which
	 * may go on from one range to the next; 0: all rows are one; -1: none goes on.
	 */
	int partition_columns;
} GpuSortOutputInfo;

extern List *gpusort_output_plan_pack(const GpuSortOutputInfo *info);
extern GpuSortOutputInfo gpusort_output_plan_unpack(const CustomScan *plan);

#endif /* GPUSORT_NODE_H */
