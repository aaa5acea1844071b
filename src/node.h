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
 * A foreign table of postgres_fdw whose rows all processes read, each over a connection of its own:
 *
 *	  GpuSortShardScan			partial: a scan, as PostgreSQL's
 *	    Foreign Scan			what reads them in the leader alone, where connections of its own may not be used
 *
 * What Citus asks of its nodes, likewise:
 *
 *	  GpuSortTaskScan			partial: a scan of the rows of all tasks
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
#define GPUSORT_SHARD_NODE_NAME    "GpuSortShardScan"
#define GPUSORT_TASK_NODE_NAME     "GpuSortTaskScan"

/* Defined by exec/executor.c, ingest.c, exchange.c and output.c, and by shards/scan.c and tasks.c. */
extern const CustomScanMethods gpusort_scan_methods;
extern const CustomScanMethods gpusort_ingest_scan_methods;
extern const CustomScanMethods gpusort_exchange_scan_methods;
extern const CustomScanMethods gpusort_output_scan_methods;
extern const CustomScanMethods gpusort_shard_scan_methods;
extern const CustomScanMethods gpusort_task_scan_methods;

/* How the node right above a GpuSort uses the order of its rows. */
typedef enum GpuSortUseKind
{
	GPUSORT_USE_UNKNOWN, /* unknown until the plan is finished, because no path shows the node */
	GPUSORT_USE_NONE,    /* as PostgreSQL's node does by itself */
	GPUSORT_USE_RUNNING, /* a WindowAgg keeps only a state of the rows before (exec/running.c) */
	GPUSORT_USE_NEAR,    /* a WindowAgg reads each range with some rows around it (exec/window_ranges.c) */
	GPUSORT_USE_NUMBERS, /* an Agg reads a few rows by their numbers (exec/percentiles.c) */
} GpuSortUseKind;

typedef struct GpuSortUse
{
	GpuSortUseKind kind;
	int before;  /* NEAR: how many rows before the current one a window may need */
	int after;   /* NEAR: and how many after it */
	bool rows;   /* RUNNING: needs the number of rows of the partition */
	bool totals; /* RUNNING: needs more of the earlier rows than their number */
} GpuSortUse;

/* Of each group of rows, which are equal in the first sort columns, the nodes above look at no more than first rows. */
typedef struct GpuSortKeptRows
{
	int columns;   /* first sort columns that tell groups apart; 0: all rows are looked at */
	Node *bound;   /* how many rows of each: a Const or an external Param, of type int2, int4 or int8 */
	bool less;     /* one row less than that */
	bool peers;    /* and those that are equal to the last of them in all sort columns */
	bool only_one; /* if it is one row; of more nothing is known */
} GpuSortKeptRows;

/* A BRIN index that tells which blocks of the child's table can have the first rows. */
typedef struct GpuSortBlockIndex
{
	Oid index;         /* InvalidOid: there is none */
	AttrNumber column; /* of the index, with the values of the first sort column */
} GpuSortBlockIndex;

/* What a finished plan of either node tells the executor, in custom_private. */
typedef struct GpuSortPlanInfo
{
	GpuSortColumn *columns;
	int ncolumns;
	bool rescannable;  /* the child gives the same rows when read again */
	int visible;       /* number of leading attributes that the node above sees; the others are resjunk, for sorting */
	List *counted;     /* as in gpusort_plan_set_counted */
	int range_columns; /* one process reads all rows that are equal in this many leading columns; 0: all rows */
	GpuSortUse use;    /* by the node above */
	GpuSortKeptRows kept;
	GpuSortBlockIndex block_index;
	const char *why_alone; /* why only one process works above the sort, or NULL */

	/* starts workers for its input, in a statement that PostgreSQL runs without workers */
	bool starts_workers;
	uint64 estimated_rows;
	uint32 estimated_width; /* bytes of a row's data */
} GpuSortPlanInfo;

extern bool gpusort_node_is_ours(const Plan *plan);
extern bool gpusort_node_is_shard_scan(const Plan *plan);
extern bool gpusort_node_is_task_scan(const Plan *plan);
extern Oid gpusort_sort_value_type(const Sort *sort, int i);
extern List *gpusort_plan_pack(const Sort *sort);
extern void gpusort_plan_unpack(const CustomScan *plan, GpuSortPlanInfo *info);
extern void gpusort_plan_move_keys(CustomScan *plan, const AttrNumber *new_attnos);
extern void gpusort_plan_set_rescannable(CustomScan *plan, bool rescannable);
extern void gpusort_plan_set_visible(CustomScan *plan, int visible);
extern void gpusort_plan_set_counted(CustomScan *plan, List *counted);
extern List *gpusort_plan_counted(const CustomScan *plan);
extern void gpusort_plan_set_why_alone(CustomScan *plan, const char *why_alone);
extern void gpusort_plan_set_use(CustomScan *plan, const GpuSortUse *use);
extern void gpusort_plan_set_kept_rows(CustomScan *plan, const GpuSortKeptRows *kept);
extern void gpusort_plan_set_block_index(CustomScan *plan, const GpuSortBlockIndex *index);
extern void gpusort_plan_set_starts_workers(CustomScan *plan);
extern void gpusort_plan_set_range_columns(CustomScan *plan, int range_columns, const Oid *key_types);

/* What a finished plan of a GpuSortOutput tells the executor. */
typedef struct GpuSortOutputInfo
{
	int rescan_param;  /* the Gather's parameter that restarts the plan below; -1 while it is not known */
	bool partial;      /* each process passes its rows to the node above, not to a queue */
	bool only_formed;  /* workers run ranges only if rows leave the server or fill a table; else the leader runs all */
	bool reads_tables; /* a function of the statement may read tables that it does not name */

	/* the GpuSortExchange starts workers, in a statement that PostgreSQL runs without, and stores what they compute */
	bool starts_workers;

	/*
	 * Rows that are equal in so many leading columns of the sort are a partition of the WindowAgg right above it, which
	 * may go on from one range to the next; 0: all rows are one; -1: none goes on.
	 */
	int partition_columns;
} GpuSortOutputInfo;

/* What a finished plan of a GpuSortShardScan tells the executor. */
typedef struct GpuSortShardScanInfo
{
	const char *sql;      /* the query of the whole table, as postgres_fdw writes it */
	const char *part_sql; /* the same for the rows between two row numbers of the shard's; empty: there is none */
	const char *from;     /* what stands in it for the first one, once */
	const char *to;       /* and for the first one behind */
	const char *schema;   /* of the table in the shard */
	const char *table;
	List *columns; /* of the foreign table, in the order of what the query gives */
} GpuSortShardScanInfo;

/* What Citus asks of a node, for rows of one of its shards */
typedef struct GpuSortCitusTask
{
	const char *host;
	int port;
	const char *sql;
} GpuSortCitusTask;

extern List *gpusort_task_plan_pack(const List *tasks, Plan *citus);
extern List *gpusort_task_plan_unpack(const CustomScan *plan, Plan **citus);
extern void gpusort_task_plans_init(void);
extern List *gpusort_shard_plan_pack(const GpuSortShardScanInfo *info);
extern GpuSortShardScanInfo gpusort_shard_plan_unpack(const CustomScan *plan);
extern List *gpusort_output_plan_pack(const GpuSortOutputInfo *info);
extern GpuSortOutputInfo gpusort_output_plan_unpack(const CustomScan *plan);

#endif /* GPUSORT_NODE_H */
