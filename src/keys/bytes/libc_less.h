/*-------------------------------------------------------------------------
 *
 * libc_less.h
 *	  Whether the C library's strcoll has one string before another; needs nothing of PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LIBC_LESS_H
#define GPUSORT_LIBC_LESS_H

#include "keys/bytes/libc_walk.h"

#include <stddef.h>

/* Bytes behind a string for gpusort_libc_is_less to use, the first of which is its zero byte. */
#define GPUSORT_LIBC_BEHIND 8

#ifdef __GLIBC__

/* A locale, and the places where strings under it may be cut. */
typedef struct GpuSortLibcLess
{
	locale_t locale;
	bool tells;               /* it knows of any place */
	unsigned char bytes[256]; /* facts about each byte */

	/* of a character of ASCII its place among these in the first level, those that are the same there alike; 0: none */
	unsigned char places[256];
} GpuSortLibcLess;

extern void gpusort_libc_less_init(GpuSortLibcLess *less, locale_t locale, GpuSortLibcWalk *walk);
extern bool gpusort_libc_is_less(const GpuSortLibcLess *less, char *a, size_t length, const char *b);
extern int gpusort_libc_order_first(const GpuSortLibcLess *less, const char *a, size_t a_length, const char *b,
									size_t b_length);

#endif /* __GLIBC__ */

#endif /* GPUSORT_LIBC_LESS_H */
