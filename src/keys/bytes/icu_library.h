/*-------------------------------------------------------------------------
 *
 * icu_library.h
 *	  ICU's functions, from the library that the server uses.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ICU_LIBRARY_H
#define GPUSORT_ICU_LIBRARY_H

#include "compat.h"

#include <unicode/ucol.h>

/* As ICU's headers have them. */
typedef struct GpuSortIcuFunctions
{
	int32_t (*ucol_nextSortKeyPart)(const UCollator *, UCharIterator *, uint32_t *, uint8_t *, int32_t, UErrorCode *);
	UCollator *(*ucol_safeClone)(const UCollator *, void *, int32_t *, UErrorCode *);
	int (*ucol_getAttribute)(const UCollator *, int, UErrorCode *);
	void (*ucol_setAttribute)(UCollator *, int, int, UErrorCode *);
	int32_t (*ucol_getReorderCodes)(const UCollator *, int32_t *, int32_t, UErrorCode *);
	USet *(*ucol_getTailoredSet)(const UCollator *, UErrorCode *);
	void (*uiter_setUTF8)(UCharIterator *, const char *, int32_t);
	void (*uiter_setString)(UCharIterator *, const UChar *, int32_t);
	int32_t (*uset_getItemCount)(const USet *);
	int32_t (*uset_getItem)(const USet *, int32_t, UChar32 *, UChar32 *, UChar *, int32_t, UErrorCode *);
	void (*uset_close)(USet *);
	UConverter *(*ucnv_open)(const char *, UErrorCode *);
	int32_t (*ucnv_toUChars)(UConverter *, UChar *, int32_t, const char *, int32_t, UErrorCode *);
} GpuSortIcuFunctions;

extern GpuSortIcuFunctions gpusort_icu;
extern bool gpusort_icu_load(void);

#endif /* GPUSORT_ICU_LIBRARY_H */
