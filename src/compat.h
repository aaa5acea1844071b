/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  What differs between the PostgreSQL versions that gpusort supports.
 *
 * The only file that tests PG_VERSION_NUM.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COMPAT_H
#define GPUSORT_COMPAT_H

#include "postgres.h"

#include "executor/instrument.h"

#if PG_VERSION_NUM >= 180000
#include "access/cmptype.h"
#include "commands/explain_format.h"
#else
#include "access/stratnum.h"
#endif

#if PG_VERSION_NUM >= 160000
/* VARDATA_ANY and its like, which postgres.h has before */
#include "varatt.h"
/* A Var is made NULL by the outer joins and grouping sets of another one. */
#define TAKE_NULLINGRELS(var, from)           ((var)->varnullingrels = bms_copy((from)->varnullingrels))
/* An expression above an outer join that makes these tables NULL */
#define WITH_NULLING_JOIN(expr, tables, join) add_nulling_relids(expr, tables, bms_make_singleton(join))
#else
#define TAKE_NULLINGRELS(var, from)           ((void) 0)
#define WITH_NULLING_JOIN(expr, tables, join) (expr)
#endif

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 210000
#error "gpusort supports PostgreSQL 15 to 19"
#elif PG_VERSION_NUM >= 200000
#pragma message("gpusort supports PostgreSQL 15 to 19: this one is not released, and gpusort was not tested with it")
#define pg_attribute_always_inline pg_always_inline
#endif

/* Whether values of a domain are checked; its user has included utils/typcache.h. */
#if PG_VERSION_NUM < 190000
#define DOMAIN_HAS_CONSTRAINTS(type) DomainHasConstraints(type)
#else
#define DOMAIN_HAS_CONSTRAINTS(type) DomainHasConstraints(type, NULL)
#endif

/* The number that this backend has for its transaction; its user has included storage/proc.h. */
#if PG_VERSION_NUM < 170000
#define MY_TRANSACTION (MyProc->lxid)
#else
#define MY_TRANSACTION (MyProc->vxid.lxid)
#endif

/* Builds with assertions check finished plans (plan/check_plan.c), and others do if they define this. */
#if defined(USE_ASSERT_CHECKING) && !defined(GPUSORT_CHECK_PLANS)
#define GPUSORT_CHECK_PLANS
#endif

/*
 * The kind of join that one becomes when its sides are exchanged,
 * where it keeps the rows of its inner side; else itself
 */
#if PG_VERSION_NUM < 160000
#define TURNED_JOIN(type) ((type) == JOIN_RIGHT ? JOIN_LEFT : (type))
#elif PG_VERSION_NUM < 180000
#define TURNED_JOIN(type) ((type) == JOIN_RIGHT ? JOIN_LEFT : (type) == JOIN_RIGHT_ANTI ? JOIN_ANTI \
																						: (type))
#else
#define TURNED_JOIN(type)                        \
	((type) == JOIN_RIGHT            ? JOIN_LEFT \
		 : (type) == JOIN_RIGHT_ANTI ? JOIN_ANTI \
		 : (type) == JOIN_RIGHT_SEMI ? JOIN_SEMI \
									 : (type))
#endif

/* The version that the module is built for, as packages name it. */
#define PG_MAJOR (PG_VERSION_NUM / 10000)

#if PG_VERSION_NUM < 160000
/* From 16 on there are the clauses without those that make no difference. */
#define PROCESSED_GROUP_CLAUSE(root)    ((root)->parse->groupClause)
#define PROCESSED_DISTINCT_CLAUSE(root) ((root)->parse->distinctClause)

/* The first of the aggregates that an AggInfo stands for, all alike */
#define AGG_INFO_AGGREF(info) (((const AggInfo *) (info))->representative_aggref)

/* From 16 on the planner sorts below an Agg for some aggregates, and tells them. */
#define AGGREF_IS_PRESORTED(aggref) (false)

/* From 16 on there are aggregates that combine states with values of any type, which may have no binary form. */
#define AGG_ARGUMENTS_TRAVEL(aggref) (true)
#else
#define AGG_ARGUMENTS_TRAVEL(aggref)    agg_args_support_sendreceive((Aggref *) (aggref))
#define AGG_INFO_AGGREF(info)           linitial_node(Aggref, ((const AggInfo *) (info))->aggrefs)
#define AGGREF_IS_PRESORTED(aggref)     ((aggref)->aggpresorted)
#define PROCESSED_GROUP_CLAUSE(root)    ((root)->processed_groupClause)
#define PROCESSED_DISTINCT_CLAUSE(root) ((root)->processed_distinctClause)
#endif

/*
 * What the planner asks extensions when it looks at a table, and the table if it may be one whose index is about to be
 * built, or one that is about to be clustered; else InvalidOid
 */
#if PG_VERSION_NUM < 190000
#define TableHook             get_relation_info_hook_type
#define TABLE_HOOK            get_relation_info_hook
#define TABLE_HOOK_PARAMETERS PlannerInfo *root, Oid relid, bool inh, RelOptInfo *rel
#define TABLE_HOOK_ARGUMENTS  root, relid, inh, rel
#define TABLE_HOOK_TABLE      ((inh) ? (relid) : InvalidOid)
#define TABLE_HOOK_CLUSTERED  ((inh) ? InvalidOid : (relid))

#define PAGE_SET_PRUNABLE(page, xid) ((void) 0)

/* How heap copies a table's rows for CLUSTER, and whether it is to copy those of a snapshot alone */
#define CLUSTER_COPY_PARAMETERS                                                                 \
	Relation table, Relation copy, Relation index, bool use_sort, TransactionId oldest_xmin,    \
		TransactionId *xid_cutoff, MultiXactId *multi_cutoff, double *tuples, double *vacuumed, \
		double *recently_dead
#define CLUSTER_COPY_ARGUMENTS \
	table, copy, index, use_sort, oldest_xmin, xid_cutoff, multi_cutoff, tuples, vacuumed, recently_dead
#define CLUSTER_COPY_IS_OF_SNAPSHOT (false)
#else
#define TableHook             build_simple_rel_hook_type
#define TABLE_HOOK            build_simple_rel_hook
#define TABLE_HOOK_PARAMETERS PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte
#define TABLE_HOOK_ARGUMENTS  root, rel, rte
#define TABLE_HOOK_TABLE      ((rte)->rtekind == RTE_RELATION && (rte)->inh ? (rte)->relid : InvalidOid)
#define TABLE_HOOK_CLUSTERED  ((rte)->rtekind == RTE_RELATION && !(rte)->inh ? (rte)->relid : InvalidOid)

/* The methods of an access method are not an index's own copy. */
#define INDEX_METHODS_ARE_CONSTANT

#define T_ClusterStmt T_RepackStmt

#define CLUSTER_COPY_PARAMETERS                                                                  \
	Relation table, Relation copy, Relation index, bool use_sort, TransactionId oldest_xmin,     \
		Snapshot snapshot, TransactionId *xid_cutoff, MultiXactId *multi_cutoff, double *tuples, \
		double *vacuumed, double *recently_dead
#define CLUSTER_COPY_ARGUMENTS \
	table, copy, index, use_sort, oldest_xmin, snapshot, xid_cutoff, multi_cutoff, tuples, vacuumed, recently_dead
#define CLUSTER_COPY_IS_OF_SNAPSHOT (snapshot != NULL)

#define PROGRESS_CLUSTER_PHASE                PROGRESS_REPACK_PHASE
#define PROGRESS_CLUSTER_PHASE_SEQ_SCAN_HEAP  PROGRESS_REPACK_PHASE_SEQ_SCAN_HEAP
#define PROGRESS_CLUSTER_PHASE_SORT_TUPLES    PROGRESS_REPACK_PHASE_SORT_TUPLES
#define PROGRESS_CLUSTER_PHASE_WRITE_NEW_HEAP PROGRESS_REPACK_PHASE_WRITE_NEW_HEAP
#define PROGRESS_CLUSTER_HEAP_TUPLES_SCANNED  PROGRESS_REPACK_HEAP_TUPLES_SCANNED
#define PROGRESS_CLUSTER_HEAP_TUPLES_WRITTEN  PROGRESS_REPACK_HEAP_TUPLES_INSERTED
#define PROGRESS_CLUSTER_TOTAL_HEAP_BLKS      PROGRESS_REPACK_TOTAL_HEAP_BLKS
#define PROGRESS_CLUSTER_HEAP_BLKS_SCANNED    PROGRESS_REPACK_HEAP_BLKS_SCANNED

#define PageSetChecksumInplace       PageSetChecksum

/* A page may be pruned once a tuple's insertion is known to have ended. */
#define PAGE_SET_PRUNABLE(page, xid) PageSetPrunable(page, xid)
#endif

#if PG_VERSION_NUM < 160000
#define RELATION_LOCATOR(relation)    ((relation)->rd_node)
#define FIRST_LOCATOR_SUBID(relation) ((relation)->rd_firstRelfilenodeSubid)
#define NEW_LOCATOR_SUBID(relation)   ((relation)->rd_newRelfilenodeSubid)
#define TABLE_SCANS_COUNTED(relation) ((relation)->pgstat_info->t_counts.t_numscans)
#else
#define RELATION_LOCATOR(relation)    ((relation)->rd_locator)
#define FIRST_LOCATOR_SUBID(relation) ((relation)->rd_firstRelfilelocatorSubid)
#define NEW_LOCATOR_SUBID(relation)   ((relation)->rd_newRelfilelocatorSubid)
#define TABLE_SCANS_COUNTED(relation) ((relation)->pgstat_info->counts.numscans)
#endif

/* What the state of a COPY TO begins with (exec/copy_file.c) */
#if PG_VERSION_NUM < 180000
#define COPY_TO_STATE_BEGIN
#else
#define COPY_TO_STATE_BEGIN const struct CopyToRoutine *routine;
#endif

/* Tells that COPY is about to write. */
#if PG_VERSION_NUM < 190000
#define REPORT_COPY_WRITE() ((void) 0)
#else
#define REPORT_COPY_WRITE() pgstat_report_wait_start(WAIT_EVENT_COPY_TO_WRITE)
#endif

/* What reads a BRIN index's summaries */
#if PG_VERSION_NUM < 170000
#define BRIN_REVMAP_INITIALIZE(index, blocks) brinRevmapInitialize(index, blocks, NULL)
#define BRIN_GET_TUPLE(map, block, buffer, line, bytes) \
	brinGetTupleForHeapBlock(map, block, buffer, line, bytes, BUFFER_LOCK_SHARE, NULL)
#else
#define BRIN_REVMAP_INITIALIZE(index, blocks) brinRevmapInitialize(index, blocks)
#define BRIN_GET_TUPLE(map, block, buffer, line, bytes) \
	brinGetTupleForHeapBlock(map, block, buffer, line, bytes, BUFFER_LOCK_SHARE)
#endif

/*
 * Updates of columns that BRIN indexes alone have are HOT: a range that is summarised afterwards lacks the values of
 * rows that were updated so, which an older snapshot sees.
 */
#if PG_VERSION_NUM < 160000
#define SUMMARIES_LACK_OLD_ROWS false
#else
#define SUMMARIES_LACK_OLD_ROWS true
#endif

/* Begins a COPY of a query to the client */
#if PG_VERSION_NUM < 160000
#define BEGIN_COPY_TO(pstate, query, options) BeginCopyTo(pstate, NULL, query, InvalidOid, NULL, false, NIL, options)
#else
#define BEGIN_COPY_TO(pstate, query, options) \
	BeginCopyTo(pstate, NULL, query, InvalidOid, NULL, false, NULL, NIL, options)
#endif

/* The longest tuple of a btree; and a comparator of one of its columns */
#if PG_VERSION_NUM < 180000
#define BT_MAX_ITEM_SIZE(page) BTMaxItemSize(page)
#define PREPARE_INDEX_SORT_SUPPORT(index, descending, support) \
	PrepareSortSupportFromIndexRel(index, (descending) ? BTGreaterStrategyNumber : BTLessStrategyNumber, support)
#else
#define BT_MAX_ITEM_SIZE(page) BTMaxItemSize
#define PREPARE_INDEX_SORT_SUPPORT(index, descending, support) \
	PrepareSortSupportFromIndexRel(index, descending, support)
#endif

/* The next value of a sort of single datums, a copy of its own */
#if PG_VERSION_NUM < 160000
#define TUPLESORT_GETDATUM(sort, forward, value, isnull) tuplesort_getdatum(sort, forward, value, isnull, NULL)
#else
#define TUPLESORT_GETDATUM(sort, forward, value, isnull) tuplesort_getdatum(sort, forward, true, value, isnull, NULL)
#endif

/*
 * Errors: the user may not do what a plan does; and whether one may do now what a plan does that runs.  A query says
 * that a table of its is to be read, and as whom: 0 is who asks.
 */
#if PG_VERSION_NUM < 160000
#define ASK_FOR_SELECT(query, rte)  ((rte)->requiredPerms = ACL_SELECT)
#define CHECKED_AS_USER(query, rte) ((rte)->checkAsUser)
#define CHECK_PERMISSIONS(stmt)     ((void) ExecCheckRTPerms((stmt)->rtable, true))
#define HAS_PERMISSIONS(estate)     ExecCheckRTPerms((estate)->es_range_table, false)
#else
#define ASK_FOR_SELECT(query, rte)  (addRTEPermissionInfo(&(query)->rteperminfos, rte)->requiredPerms = ACL_SELECT)
#define CHECKED_AS_USER(query, rte) (getRTEPermissionInfo((query)->rteperminfos, rte)->checkAsUser)
#define CHECK_PERMISSIONS(stmt)     ((void) ExecCheckPermissions((stmt)->rtable, (stmt)->permInfos, true))
#define HAS_PERMISSIONS(estate)     ExecCheckPermissions((estate)->es_range_table, (estate)->es_rteperminfos, false)
#endif

#if PG_VERSION_NUM < 160000
/* The module is built with hidden symbols, as PostgreSQL 16 does by itself. */
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#endif

#if PG_VERSION_NUM >= 170000
/* Extensions can name wait events. */
#define HAVE_WAIT_EVENT_NAMES

/* The storage manager writes successive pages by one call. */
#define HAVE_SMGRWRITEV

/* What rows a window may stop at */
#define WINDOW_PATH_RUN_CONDITION(path) ((path)->runCondition)
#else
#define WINDOW_PATH_RUN_CONDITION(path) ((path)->winclause->runCondition)
#endif

/* The families of btree in which an operator compares */
#if PG_VERSION_NUM < 180000
#define GET_BTREE_INTERPRETATION(operator) get_op_btree_interpretation(operator)
#else
#define GET_BTREE_INTERPRETATION(operator) get_op_index_interpretation(operator)
#endif

#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()

/* The parameters of ExecutorRun */
#define EXECUTOR_RUN_PARAMETERS QueryDesc *query, ScanDirection direction, uint64 count, bool execute_once
#define EXECUTOR_RUN_ARGUMENTS  query, direction, count, execute_once

/* Whether a table has columns that are computed of others, as its TupleConstr says */
#define HAS_GENERATED(constr) ((constr)->has_generated_stored)

/* Whether some of them are computed when they are read */
#define HAS_VIRTUAL_COLUMNS(constr) ((void) (constr), false)

/* Whether a clause sorts by a "greater than" operator; from 18 on it says so. */
#define SET_REVERSE_SORT(clause) ((void) 0)

/* A module says nothing about itself but what it was built for. */
#define PG_MODULE_MAGIC_EXT(...) PG_MODULE_MAGIC

/* Which way an order goes was told by btree's strategy numbers; those of CompareType are the same. */
typedef int16 CompareType;
#define COMPARE_GT BTGreaterStrategyNumber
#define pk_cmptype pk_strategy

/* Whether an Append leaves out partitions when it runs */
#define APPEND_PRUNES(append) ((append)->part_prune_info != NULL)

/* From 18 on a query refers to what it groups by through a range table entry; not before it is planned. */
#define WITHOUT_GROUP_RTE(query, node) (node)
#define FORGET_GROUP_RTE(query)        ((void) 0)

/* From 18 on columns of grouping sets are marked as what can be NULL where a set has them not. */
#define WITHOUT_GROUPING_NULLS(root, expr) ((Node *) (expr))

/*
 * What settings like enable_seqscan disable is in the costs; from 18 on it is
 * counted, for paths and for plans, and the counts are compared before the costs.
 */
#define MORE_DISABLED_NODES(path, other) \
	((int) ((path)->total_cost / disable_cost) - (int) ((other)->total_cost / disable_cost))
#define INHERIT_DISABLED_NODES(node, from)           ((void) 0)
#define EXCHANGE_DISABLED_NODES(path, before, after) ((void) 0)
#define DISABLE_PATH(path) \
	((path)->startup_cost += disable_cost, (path)->total_cost += disable_cost)

/* cost_sort for the first rows of a path, -1 for all, in work_mem */
#define COST_SORT(cost, root, pathkeys, input, first)                                                            \
	cost_sort(cost, root, pathkeys, (input)->total_cost, (input)->rows, (input)->pathtarget->width, 0, work_mem, \
			  first)

/* True if the join sorts its outer side incrementally. */
#define MERGE_PATH_IS_INCREMENTAL(join) (false)

/* A merge join of two paths that are in order */
#define INITIAL_COST_MERGEJOIN(root, workspace, type, clauses, outer, inner, extra) \
	initial_cost_mergejoin(root, workspace, type, clauses, outer, inner, NIL, NIL, extra)
#define CREATE_MERGEJOIN_PATH(root, rel, type, workspace, extra, outer, inner, restrictions, pathkeys, clauses)   \
	create_mergejoin_path(root, rel, type, workspace, extra, outer, inner, restrictions, pathkeys, NULL, clauses, \
						  NIL, NIL)

/* A SetOp has one input, with the rows of both sides; from 18 on it has two. */
#define SET_OPERATIONS_READ_APPEND
#define SETOP_COLUMNS(setop)    ((setop)->dupColIdx)
#define SETOP_OPERATORS(setop)  ((setop)->dupOperators)
#define SETOP_COLLATIONS(setop) ((setop)->dupCollations)
#else
#define EXECUTOR_RUN_PARAMETERS     QueryDesc *query, ScanDirection direction, uint64 count
#define EXECUTOR_RUN_ARGUMENTS      query, direction, count
#define HAS_GENERATED(constr)       ((constr)->has_generated_stored || (constr)->has_generated_virtual)
#define HAS_VIRTUAL_COLUMNS(constr) ((constr) != NULL && (constr)->has_generated_virtual)
#define WITHOUT_GROUPING_NULLS(root, expr)                                                         \
	((root)->group_rtindex > 0                                                                     \
		 ? remove_nulling_relids((Node *) (expr), bms_make_singleton((root)->group_rtindex), NULL) \
		 : (Node *) (expr))
#define APPEND_PRUNES(append) ((append)->part_prune_index >= 0)
#define WITHOUT_GROUP_RTE(query, node) \
	((query)->hasGroupRTE ? flatten_group_exprs(NULL, query, node) : (node))
#define FORGET_GROUP_RTE(query)            ((query)->hasGroupRTE = false)
#define SET_REVERSE_SORT(clause)           ((clause)->reverse_sort = true)
#define MORE_DISABLED_NODES(path, other)   ((path)->disabled_nodes - (other)->disabled_nodes)
#define INHERIT_DISABLED_NODES(node, from) ((node)->disabled_nodes = (from)->disabled_nodes)
#define EXCHANGE_DISABLED_NODES(path, before, after) \
	((path)->disabled_nodes += (after)->disabled_nodes - (before)->disabled_nodes)
#define DISABLE_PATH(path) ((path)->disabled_nodes++)
#define COST_SORT(cost, root, pathkeys, input, first)                                            \
	cost_sort(cost, root, pathkeys, (input)->disabled_nodes, (input)->total_cost, (input)->rows, \
			  (input)->pathtarget->width, 0, work_mem, first)
#define MERGE_PATH_IS_INCREMENTAL(join) ((join)->outer_presorted_keys > 0)
#define INITIAL_COST_MERGEJOIN(root, workspace, type, clauses, outer, inner, extra) \
	initial_cost_mergejoin(root, workspace, type, clauses, outer, inner, NIL, NIL, 0, extra)
#define CREATE_MERGEJOIN_PATH(root, rel, type, workspace, extra, outer, inner, restrictions, pathkeys, clauses)   \
	create_mergejoin_path(root, rel, type, workspace, extra, outer, inner, restrictions, pathkeys, NULL, clauses, \
						  NIL, NIL, 0)
#define SETOP_COLUMNS(setop)    ((setop)->cmpColIdx)
#define SETOP_OPERATORS(setop)  ((setop)->cmpOperators)
#define SETOP_COLLATIONS(setop) ((setop)->cmpCollations)
#endif

/*
 * What a sort of PostgreSQL's own takes of the time that it took in the version to which costs were fitted:
 * from 19 on it sorts by radix.  bench/versions measures it.
 */
#if PG_VERSION_NUM < 190000
#define NATIVE_SORT_TIME 1.0
#else
#define NATIVE_SORT_TIME 0.75
#endif

/* Starts a plan for EXPLAIN whose parameters have no values; before 16 one that prunes by them fails. */
#if PG_VERSION_NUM < 160000
#define EXPLAIN_WITHOUT_PARAMETERS 0
#else
#define EXPLAIN_WITHOUT_PARAMETERS EXEC_FLAG_EXPLAIN_GENERIC
#endif

#if PG_VERSION_NUM >= 180000
/* Extensions can have options of EXPLAIN, and say more of plans and of their nodes. */
#define HAVE_EXPLAIN_OPTIONS
#endif

#if PG_VERSION_NUM < 190000
/* The parameters of a planner, and those that it got as the arguments of another */
#define PLANNER_PARAMETERS Query *parse, const char *query_string, int cursor_options, ParamListInfo params
#define PLANNER_ARGUMENTS  parse, query_string, cursor_options, params

/*
 * Whether merge joins and Gathers are wanted, as settings say; from 19 on modules can say it of single rels and
 * joins, and pg_plan_advice fails at a join over a CustomScan
 */
#define MAY_MERGE_JOIN_REL(rel)         (enable_mergejoin)
#define MAY_GATHER(rel)                 (true)
#define TAKE_JOIN_STRATEGIES(join, rel) ((void) 0)
#define JOINS_ARE_ADVISED               false

#define PG_PLAN_QUERY(query, text, options) pg_plan_query(query, text, options, NULL)

#ifdef HAVE_EXPLAIN_OPTIONS
#define REGISTER_EXPLAIN_OPTION(name, handler) RegisterExtensionExplainOption(name, handler)
#endif

/* What made a collator of an ICU collation */
#define ICU_COLLATOR(locale) ((locale)->info.icu.ucol)

/* A tranche's name is each process's own to tell; from 19 on it is in shared memory, for 256 tranches. */
#define LW_LOCK_NEW_TRANCHE(name) LWLockNewTrancheId()

/* From 19 on a descriptor that was filled in column by column is not ready before. */
#define TupleDescFinalize(desc) ((void) 0)

/* What EXPLAIN ANALYZE counts for a node had no type of its own. */
typedef Instrumentation NodeInstrumentation;

/* Window functions had no IGNORE NULLS. */
#define WINDOW_FUNC_TREATS_NULLS(function) (false)

/* An Append of paths that each process runs as a whole, or of partial ones */
#define CREATE_APPEND_PATH(root, rel, paths, partial_paths, workers, parallel_aware) \
	create_append_path(root, rel, paths, partial_paths, NIL, NULL, workers, parallel_aware, -1)
#else
#define PLANNER_PARAMETERS \
	Query *parse, const char *query_string, int cursor_options, ParamListInfo params, ExplainState *explain
#define PLANNER_ARGUMENTS                   parse, query_string, cursor_options, params, explain
#define MAY_MERGE_JOIN_REL(rel)             (((rel)->pgs_mask & PGS_MERGEJOIN_PLAIN) != 0)
#define MAY_GATHER(rel)                     (((rel)->pgs_mask & PGS_GATHER) != 0)
#define TAKE_JOIN_STRATEGIES(join, rel)     ((join)->pgs_mask = (rel)->pgs_mask)
#define JOINS_ARE_ADVISED                   (join_path_setup_hook != NULL)
#define PG_PLAN_QUERY(query, text, options) pg_plan_query(query, text, options, NULL, NULL)
#define REGISTER_EXPLAIN_OPTION(name, handler) \
	RegisterExtensionExplainOption(name, handler, GUCCheckBooleanExplainOption)
#define ICU_COLLATOR(locale)                 ((locale)->icu.ucol)
#define LW_LOCK_NEW_TRANCHE(name)            LWLockNewTrancheId(name)
#define LWLockRegisterTranche(tranche, name) ((void) 0)
#define WINDOW_FUNC_TREATS_NULLS(function)   ((function)->ignore_nulls != NO_NULLTREATMENT)

/* Since there is no other UniquePath any more, the path of a Unique has its name. */
#define T_UpperUniquePath                    T_UniquePath
#define UpperUniquePath                      UniquePath
#define create_upper_unique_path             create_unique_path
#define CREATE_APPEND_PATH(root, rel, paths, part_paths, workers, parallel_aware)                                \
	create_append_path(root, rel, (AppendPathInput){.subpaths = (paths), .partial_subpaths = (part_paths)}, NIL, \
					   NULL, workers, parallel_aware, -1)
#endif

#endif /* GPUSORT_COMPAT_H */
