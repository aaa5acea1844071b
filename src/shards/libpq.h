/*-------------------------------------------------------------------------
 *
 * libpq.h
 *	  PostgreSQL's client library, where postgres_fdw or Citus has loaded it.
 *
 * gpusort is not linked with it: most servers that preload gpusort have no shards, and would load it and all that it
 * needs for nothing.  Who plans a statement over shards has loaded postgres_fdw or Citus, and workers load what their
 * leader has.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LIBPQ_H
#define GPUSORT_LIBPQ_H

#include "compat.h"

#include "libpq-fe.h"

/* clang-format off */
#define GPUSORT_LIBPQ_FUNCTIONS(function) \
	function(PQclear) \
	function(PQconnectPoll) \
	function(PQconnectStartParams) \
	function(PQconndefaults) \
	function(PQconnectionUsedPassword) \
	function(PQconninfoFree) \
	function(PQconninfoParse) \
	function(PQconsumeInput) \
	function(PQerrorMessage) \
	function(PQfinish) \
	function(PQfreemem) \
	function(PQgetCopyData) \
	function(PQgetResult) \
	function(PQgetvalue) \
	function(PQisBusy) \
	function(PQnfields) \
	function(PQntuples) \
	function(PQresultErrorField) \
	function(PQresultStatus) \
	function(PQsendQuery) \
	function(PQserverVersion) \
	function(PQsocket) \
	function(PQstatus)
/* clang-format on */

#define GPUSORT_LIBPQ_MEMBER(name) __typeof__(&name) name;

/* Its functions, by their names */
typedef struct GpuSortLibpq
{
	GPUSORT_LIBPQ_FUNCTIONS(GPUSORT_LIBPQ_MEMBER)
} GpuSortLibpq;

extern const GpuSortLibpq *gpusort_libpq(void);

#endif /* GPUSORT_LIBPQ_H */
