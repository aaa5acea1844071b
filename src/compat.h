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

#if PG_VERSION_NUM >= 180000
#include "access/cmptype.h"
#include "commands/explain_format.h"
#else
#include "access/stratnum.h"
#endif

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 190000
#error "gpusort supports PostgreSQL 15 to 18"
#endif

#if PG_VERSION_NUM < 160000
/* The module is built with hidden symbols, as PostgreSQL 16 does by itself. */
#undef PGDLLEXPORT
#define PGDLLEXPORT		__attribute__((visibility("default")))
#endif

#if PG_VERSION_NUM < 180000
#define pg_noreturn		pg_attribute_noreturn()

/* Which way an order goes was told by btree's strategy numbers; those of CompareType are the same. */
typedef int16 CompareType;
#define COMPARE_GT		BTGreaterStrategyNumber
#define pk_cmptype		pk_strategy

/* What is disabled by settings like enable_seqscan is counted here from 18 on, and is in the costs before. */
#define INHERIT_DISABLED_NODES(path, input)		((void) 0)
#else
#define INHERIT_DISABLED_NODES(path, input)		((path)->disabled_nodes = (input)->disabled_nodes)
#endif

#endif							/* GPUSORT_COMPAT_H */
