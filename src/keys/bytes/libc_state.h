/*-------------------------------------------------------------------------
 *
 * libc_state.h
 *	  A walker over the first level of a locale's keys; for libc_*.c alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LIBC_STATE_H
#define GPUSORT_LIBC_STATE_H

#include "keys/bytes/libc_walk.h"

#ifdef __GLIBC__

#include <stdint.h>

/* Characters of one and two bytes of UTF-8. */
#define GPUSORT_LIBC_LOW_CHARS 0x800

/* Characters of one byte, of UTF-8; where a byte is a character, all of them are. */
#define GPUSORT_LIBC_ASCII_END  0x80
#define GPUSORT_LIBC_SINGLE_END 0x100

#define GPUSORT_LIBC_PAGE_CHARS 64
#define GPUSORT_LIBC_PAGES      (0x110000 / GPUSORT_LIBC_PAGE_CHARS)

/* Bytes of an element; of those that are known none has more than 9. */
#define GPUSORT_LIBC_ELEMENT_MAX 20

/* Of texts that are made for checks */
#define GPUSORT_LIBC_CHECK_BYTES 512

/* A set of characters with the bytes that follow them, as bits. */
#define GPUSORT_LIBC_PAIR_BITS         65536
#define GPUSORT_LIBC_PAIR_BIT(c, next) (((c) *0x9E3779B1u + (next) *0x85EBCA6Bu) >> 16)

/* The weights of an element. */
#define GPUSORT_LIBC_WEIGHT_BYTES     7
#define GPUSORT_LIBC_WEIGHT_LENGTH    7    /* the bits of info for it */
#define GPUSORT_LIBC_WEIGHT_CONTRACTS 0x08 /* contractions begin with the character */
#define GPUSORT_LIBC_WEIGHT_LONG      0x10 /* there are more bytes than fit: strxfrm_l is asked each time */
#define GPUSORT_LIBC_WEIGHT_ELSEWHERE 0x20 /* of the zero byte, which is no character */
#define GPUSORT_LIBC_WEIGHT_UNKNOWN   0x40 /* the element has not occurred yet */
#define GPUSORT_LIBC_WEIGHT_NONE      0x80 /* of a contraction that an entry before it hides */

typedef struct GpuSortLibcWeight
{
	char bytes[GPUSORT_LIBC_WEIGHT_BYTES];
	uint8_t info; /* how many these are, and what is special */
} GpuSortLibcWeight;

_Static_assert(sizeof(GpuSortLibcWeight) <= GPUSORT_LIBC_SLACK, "a weight is written as a whole");

typedef struct GpuSortLibcContraction
{
	uint32_t first; /* the character that it begins with */
	int order;
	int length; /* bytes */
	unsigned char text[GPUSORT_LIBC_ELEMENT_MAX];
	GpuSortLibcWeight weight;
} GpuSortLibcContraction;

/* Where a locale's elements are. */
typedef struct GpuSortLibcTables
{
	uint32_t levels;
	const unsigned char *rules;
	const int32_t *table;
	const unsigned char *extra;
	const int32_t *indirect;
} GpuSortLibcTables;

struct GpuSortLibcWalk
{
	locale_t locale;
	bool single;   /* each byte is a character; else they are UTF-8 */
	int plain_end; /* bytes below are characters, whatever follows */
	GpuSortLibcTables tables;
	bool gave_up;
	int longest;                          /* bytes of an element */
	GpuSortLibcContraction *contractions; /* by first character, and then in the order of the locale's entries */
	int ncontractions;
	int capacity;
	uint8_t pairs[GPUSORT_LIBC_PAIR_BITS / 8]; /* the first bytes of contractions, and others */
	bool starts[256];                          /* bytes that are in no contraction but as its first */
	GpuSortLibcWeight low[GPUSORT_LIBC_LOW_CHARS];
	GpuSortLibcWeight *pages[GPUSORT_LIBC_PAGES]; /* of the other characters; NULL if none of a page has occurred */
};

/* What a list has of elements that begin with a byte. */
typedef struct GpuSortLibcEntry
{
	int32_t number;
	int length;                 /* of an element, without the first byte */
	const unsigned char *first; /* the others */
	const unsigned char *last;  /* of a range; else those of first */
	const unsigned char *next;  /* the entry behind it; NULL: there is none */
} GpuSortLibcEntry;

/* The bytes of the character that begins with a byte; 0: none does. */
static inline int
gpusort_libc_char_length(const GpuSortLibcWalk *walk, unsigned char byte)
{
	if (byte < 0x80 || walk->single)
		return 1;
	if (byte < 0xC2)
		return 0;
	if (byte < 0xE0)
		return 2;
	if (byte < 0xF0)
		return 3;
	return byte < 0xF5 ? 4 : 0;
}

/* Reads the character of length bytes that begins at text; returns 0 if there is none. */
static inline uint32_t
gpusort_libc_read_char(const unsigned char *text, int length)
{
	uint32_t c = length == 1 ? *text : *text & (0x7F >> length);

	for (int i = 1; i < length; i++)
	{
		if ((text[i] & 0xC0) != 0x80)
			return 0;
		c = c << 6 | (text[i] & 0x3F);
	}
	return c < 0x110000 ? c : 0;
}

/* libc_tables.c */
extern GpuSortLibcTables gpusort_libc_find_tables(locale_t locale);
extern GpuSortLibcEntry gpusort_libc_read_entry(const unsigned char *at);
extern int gpusort_libc_count_elements(const GpuSortLibcEntry *entry);
extern int gpusort_libc_element_length(const GpuSortLibcTables *tables, const unsigned char *text, int length);

/* libc_walk.c */
extern bool gpusort_libc_walk_ask_char(const GpuSortLibcWalk *walk, uint32_t c, const unsigned char *text, int length,
									   GpuSortLibcWeight *weight);
extern bool gpusort_libc_walk_is_right(GpuSortLibcWalk *walk, const char *text);

#endif /* __GLIBC__ */

#endif /* GPUSORT_LIBC_STATE_H */
