/*-------------------------------------------------------------------------
 *
 * unicode/ucol.h
 *	  What gpusort needs of ICU's C interface, in place of ICU's own header.
 *
 * PostgreSQL's utils/pg_locale.h includes a header of this name for the type of a
 * collator.  ICU's own is found only where its development files are installed,
 * and would tie the module to one version of the library: it renames every
 * function.  icu.c and icu_strings.c call the library that the server has loaded, whichever
 * that is, through pointers.  All of this has been stable since ICU 2.
 *
 *-------------------------------------------------------------------------
 */
#ifndef UCOL_H
#define UCOL_H

#include <stdint.h>

typedef uint16_t UChar;			/* a UTF-16 code unit */
typedef int32_t UChar32;		/* a code point */
typedef struct UCollator UCollator;
typedef struct UConverter UConverter;
typedef struct USet USet;

/* What ICU makes of a string to read; only ICU looks inside.  Its own has 17 members. */
typedef struct UCharIterator
{
	void	   *members[32];
} UCharIterator;

typedef int UErrorCode;			/* below 0: warnings */

#define U_BUFFER_OVERFLOW_ERROR		15
#define U_FAILURE(error)			((error) > 0)

/* Attributes and their values */
#define UCOL_FRENCH_COLLATION		0
#define UCOL_ALTERNATE_HANDLING		1
#define UCOL_CASE_FIRST				2
#define UCOL_CASE_LEVEL				3
#define UCOL_NORMALIZATION_MODE		4
#define UCOL_STRENGTH				5

#define UCOL_PRIMARY				0
#define UCOL_SECONDARY				1
#define UCOL_TERTIARY				2
#define UCOL_QUATERNARY				3
#define UCOL_OFF					16
#define UCOL_NON_IGNORABLE			21

/* What is put into another place by reordering: scripts are below the first of these, but for one. */
#define UCOL_REORDER_CODE_FIRST		0x1000
#define USCRIPT_UNKNOWN				103	/* all others */

#endif							/* UCOL_H */
