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

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 160000
#error "gpusort supports PostgreSQL 15"
#endif

/* The module is built with hidden symbols, as PostgreSQL 16 does by itself. */
#undef PGDLLEXPORT
#define PGDLLEXPORT		__attribute__((visibility("default")))

#endif							/* GPUSORT_COMPAT_H */
