/*-------------------------------------------------------------------------
 *
 * encoders.h
 *	  What encodes the values of single types; for this folder alone.
 *
 * Each is a GpuSortEncoder with the number of its bits, or a GpuSortBytesEncoder, with what makes its
 * state (if it has one); types.c has them in its table.  Shorter ones are in inline_encoders.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENCODERS_H
#define GPUSORT_ENCODERS_H

#include "compat.h"

#include "keys/bit_writer.h"
#include "keys/types.h"

/* numeric_parts.c */
extern int gpusort_numeric_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room,
								 bool *whole);

/* network.c */
#define GPUSORT_INET_BITS 137
extern bool gpusort_inet_encode(void *state, Datum value, GpuSortBits *bits);

/* enum.c */
#define GPUSORT_ENUM_BITS 32
extern void *gpusort_enum_create(const GpuSortOrder *order);
extern bool gpusort_enum_encode(void *state, Datum value, GpuSortBits *bits);

/* string_keys.c */
extern int gpusort_own_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room, bool *whole);
extern int gpusort_icu_string_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room,
									bool *whole);
extern int gpusort_libc_string_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room,
									 bool *whole);

/* icu.c; the bytes of its strings are made by icu_strings.c */
#define GPUSORT_ICU_SLACK 8 /* bytes that may be written beyond those asked for */
extern bool gpusort_icu_has_keys(Oid collation);
extern void *gpusort_icu_create(const GpuSortOrder *order);
extern bool gpusort_icu_is_total(const void *collator);
extern int gpusort_icu_bytes(void *collator, const char *data, int length, char *bytes, int room, bool *whole);

/* libc.c; the bytes of its strings are made by libc_walk.c */
extern bool gpusort_libc_is_bytewise(const char *name);
extern bool gpusort_libc_has_keys(const char *locale, const char **why_not);
extern void *gpusort_libc_create(const GpuSortOrder *order);
extern int gpusort_libc_bytes(void *collation, const char *data, int length, bool goes_on, char *bytes, int room);

/* array.c */
extern List *gpusort_array_parts(Oid type, Oid collation);
extern void *gpusort_array_create(const GpuSortOrder *order);
extern int gpusort_array_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room,
							   bool *whole);

/* range.c */
extern List *gpusort_range_parts(Oid type, Oid collation);
extern void *gpusort_range_create(const GpuSortOrder *order);
extern int gpusort_range_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room,
							   bool *whole);
extern List *gpusort_multirange_parts(Oid type, Oid collation);
extern void *gpusort_multirange_create(const GpuSortOrder *order);
extern int gpusort_multirange_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room,
									bool *whole);

/* record.c */
extern List *gpusort_record_parts(Oid type, Oid collation);
extern void *gpusort_record_create(const GpuSortOrder *order);
extern int gpusort_record_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room,
								bool *whole);

/* jsonb.c */
extern List *gpusort_jsonb_parts(Oid type, Oid collation);
extern void *gpusort_jsonb_create(const GpuSortOrder *order);
extern int gpusort_jsonb_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room,
							   bool *whole);

/* tsvector.c */
extern int gpusort_tsvector_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room,
								  bool *whole);

/* tsquery.c */
extern int gpusort_tsquery_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room,
								 bool *whole);

/* abbreviation.c */
extern bool gpusort_abbreviation_exists(const GpuSortOrder *order);
extern void *gpusort_abbreviation_create(const GpuSortOrder *order);
extern int gpusort_abbreviation_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room,
									  bool *whole);

#endif /* GPUSORT_ENCODERS_H */
