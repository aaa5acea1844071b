/*-------------------------------------------------------------------------
 *
 * encoders.h
 *	  What encodes the values of single types; for this folder alone.
 *
 * Each is a GpuSortEncoder, with what makes its state (if it has one), and the number
 * of its bits; types.c has them in its table.  Shorter ones are in inline_encoders.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENCODERS_H
#define GPUSORT_ENCODERS_H

#include "compat.h"

#include "keys/bit_writer.h"

/* numeric.c */
#define GPUSORT_NUMERIC_BITS 90
extern bool gpusort_numeric_encode(void *state, Datum value, GpuSortBits *bits);

/* network.c */
#define GPUSORT_INET_BITS 137
extern bool gpusort_inet_encode(void *state, Datum value, GpuSortBits *bits);

/* enum.c */
#define GPUSORT_ENUM_BITS 32
extern void *gpusort_enum_create(Oid collation);
extern bool gpusort_enum_encode(void *state, Datum value, GpuSortBits *bits);

/* icu.c; the bytes of its strings are made by icu_strings.c */
#define GPUSORT_ICU_SLACK 8 /* bytes that may be written beyond those asked for */
extern bool gpusort_icu_has_keys(Oid collation);
extern void *gpusort_icu_create(Oid collation);
extern int gpusort_icu_bytes(void *collator, const char *data, int length, char *bytes, int room, bool *whole);

#endif /* GPUSORT_ENCODERS_H */
