/*-------------------------------------------------------------------------
 *
 * libc_walk.h
 *	  The first level of glibc's collation keys; needs nothing of PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LIBC_WALK_H
#define GPUSORT_LIBC_WALK_H

#include <locale.h>
#include <stdbool.h>

/* Bytes that gpusort_libc_walk may write beyond those asked for. */
#define GPUSORT_LIBC_SLACK 8

#ifdef __GLIBC__

typedef struct GpuSortLibcWalk GpuSortLibcWalk;

extern const char *gpusort_libc_unfit(locale_t locale, const char *codeset);
extern int gpusort_libc_ask(locale_t locale, const char *string, char *bytes, int room);
extern GpuSortLibcWalk *gpusort_libc_walk_create(locale_t locale, bool single);
extern const bool *gpusort_libc_walk_starts(const GpuSortLibcWalk *walk);
extern int gpusort_libc_walk(GpuSortLibcWalk *walk, const char *data, int length, bool goes_on, char *bytes, int room);

#endif /* __GLIBC__ */

#endif /* GPUSORT_LIBC_WALK_H */
