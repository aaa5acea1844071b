/*-------------------------------------------------------------------------
 *
 * libc_learn.c
 *	  Makes the walkers over the first level of glibc's collation keys, and checks them.
 *
 * A locale whose tables look otherwise has no walker.  It is checked against strxfrm_l when it
 * is made, with every pair of printable ASCII characters and with others, and so is every other
 * character when it occurs for the first time; where it is wrong, it gives up.
 *
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "keys/bytes/libc_state.h"

#ifdef __GLIBC__

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Texts that are made for checks. */
#define CHECK_TEXTS 8

static void
note_pair(GpuSortLibcWalk *walk, const GpuSortLibcContraction *contraction)
{
	int length = gpusort_libc_char_length(walk, contraction->text[0]);
	uint32_t bit = GPUSORT_LIBC_PAIR_BIT(contraction->first, contraction->text[length]);

	walk->pairs[bit / 8] |= 1 << bit % 8;
}

/* Tells the walker of a contraction; false if it cannot handle it. */
static bool
add_contraction(GpuSortLibcWalk *walk, unsigned char byte, const GpuSortLibcEntry *entry, int which)
{
	GpuSortLibcContraction *contraction;

	if (walk->ncontractions == walk->capacity)
	{
		int capacity = walk->capacity == 0 ? 64 : 2 * walk->capacity;
		GpuSortLibcContraction *more = realloc(walk->contractions, capacity * sizeof(GpuSortLibcContraction));

		if (more == NULL)
			return false;
		walk->contractions = more;
		walk->capacity = capacity;
	}
	contraction = &walk->contractions[walk->ncontractions];
	memset(contraction, 0, sizeof(*contraction));
	contraction->order = walk->ncontractions++;
	contraction->length = 1 + entry->length;
	contraction->text[0] = byte;
	memcpy(contraction->text + 1, entry->first, entry->length);
	contraction->text[entry->length] += which;
	contraction->first = gpusort_libc_read_char(contraction->text, gpusort_libc_char_length(walk, byte));
	contraction->weight.info = GPUSORT_LIBC_WEIGHT_UNKNOWN;
	if (contraction->length > walk->longest)
		walk->longest = contraction->length;
	note_pair(walk, contraction);
	return contraction->first != 0;
}

/* Finds the contractions that begin with a byte; false if elements are not made of characters. */
static bool
add_contractions(GpuSortLibcWalk *walk, int byte)
{
	const GpuSortLibcTables *tables = &walk->tables;
	int length = gpusort_libc_char_length(walk, byte);
	const unsigned char *at = tables->table[byte] >= 0 ? NULL : tables->extra - (ptrdiff_t) tables->table[byte];

	while (at != NULL)
	{
		GpuSortLibcEntry entry = gpusort_libc_read_entry(at);

		if (entry.length > 0 && (length == 0 || 1 + entry.length < length))
			return false;
		for (int i = 0; 1 + entry.length > length && entry.length > 0 && i < gpusort_libc_count_elements(&entry); i++)
		{
			if (!add_contraction(walk, byte, &entry, i))
				return false;
		}
		at = entry.next;
	}
	return true;
}

static int
compare_contractions(const void *a, const void *b)
{
	const GpuSortLibcContraction *left = a;
	const GpuSortLibcContraction *right = b;

	if (left->first != right->first)
		return left->first < right->first ? -1 : 1;
	return left->order - right->order;
}

/*
 * What texts are made of for a check, beside ASCII: accents,
 * composed and not, parts of contractions, other scripts, unassigned ones.
 */
static const char pieces[] =
	" "
	"\u00e9 \u00c9 \u00e8 \u00e4 \u00d6 \u00df \u00e6 \u00f8 \u00ad \u00a0 \u00bd \u00b7 \u0301 "
	"\u0308 \u0327 \u0345 \u034f \u0131 \u0130 \u010d \u0159 \u03b1 \u0391 \u0438 \u0418 \u0439 "
	"\u0306 \u0456 \u05d0 \u0627 \u0644 \u064b \u0915 \u093f \u0e01 \u0e40 \u0e41 \u0e48 \u0e80 "
	"\u0ec0 \u0f71 \u0f72 \u1100 \u1161 \u11a8 \u1e9e \u200b \u200d \u2019 \u2014 \u20ac \u2460 "
	"\u3000 \u3042 \u30a2 \u30fc \u3099 \u4e00 \u4e8c \u9fff \uac00 \ud7a3 \ue000 \ufb01 \ufdfa "
	"\ufe0f \uff11 \ufffd \U00010000 \U00010400 \U0001f1e6 \U0001f600 \U0001f468\u200d\U0001f469 "
	"\U00020000 \U000e0061 \U0010fffd ch Ch CH dzs ddz ssz lly aa nj lj ";

/* Appends one of the pieces to a text; returns how many bytes it has. */
static int
append_piece(char *text, uint32_t random)
{
	const char *piece = pieces + 1 + random % (sizeof(pieces) - 2);
	int length;

	while (piece[-1] != ' ')
		piece--;
	length = strchr(piece, ' ') - piece;
	memcpy(text, piece, length);
	return length;
}

/* Checks texts with every pair of characters of one byte that are printed, and others at random. */
static bool
check_texts(GpuSortLibcWalk *walk)
{
	char text[GPUSORT_LIBC_CHECK_BYTES];
	const int end = walk->single ? GPUSORT_LIBC_SINGLE_END : 0x7F;
	uint32_t random = 1;
	int length;

	_Static_assert(2 * (GPUSORT_LIBC_SINGLE_END - ' ') < GPUSORT_LIBC_CHECK_BYTES, "pairs with one character fit a text");
	for (int a = ' '; a < end; a++)
	{
		length = 0;
		for (int b = a; b < end; b++)
		{
			text[length++] = a;
			text[length++] = b;
		}
		text[length] = '\0';
		if (!gpusort_libc_walk_is_right(walk, text))
			return false;
	}
	for (int i = 0; i < CHECK_TEXTS; i++)
	{
		for (length = 0; length < GPUSORT_LIBC_CHECK_BYTES / 2;)
		{
			random = random * 1103515245 + 12345;
			if (random >> 30 == 0)
				text[length++] = 1 + (random >> 16) % 0x7F;
			length += append_piece(text + length, random >> 16);
		}
		text[length] = '\0';
		if (!gpusort_libc_walk_is_right(walk, text))
			return false;
	}
	return true;
}

/* Finds the bytes at which an element begins. */
static void
find_starts(GpuSortLibcWalk *walk)
{
	for (int byte = 0; byte < 256; byte++)
		walk->starts[byte] = gpusort_libc_char_length(walk, byte) > 0;
	for (int i = 0; i < walk->ncontractions; i++)
	{
		const GpuSortLibcContraction *contraction = &walk->contractions[i];

		for (int j = 1; j < contraction->length; j++)
			walk->starts[contraction->text[j]] = false;
	}
}

/* Fills a walker for its locale; false if there cannot be one. */
static bool
learn(GpuSortLibcWalk *walk)
{
	for (int byte = 1; byte < 256; byte++)
	{
		if (!add_contractions(walk, byte))
			return false;
	}
	if (walk->ncontractions > 0)
		qsort(walk->contractions, walk->ncontractions, sizeof(GpuSortLibcContraction), compare_contractions);
	find_starts(walk);
	for (int c = 0; c < GPUSORT_LIBC_LOW_CHARS; c++)
		walk->low[c].info = GPUSORT_LIBC_WEIGHT_UNKNOWN;
	walk->low[0].info = GPUSORT_LIBC_WEIGHT_ELSEWHERE;
	for (int c = 1; c < walk->plain_end; c++)
	{
		const unsigned char byte = c;

		if (!gpusort_libc_walk_ask_char(walk, c, &byte, 1, &walk->low[c]))
			return false;
	}
	return check_texts(walk);
}

static void
destroy(GpuSortLibcWalk *walk)
{
	for (int i = 0; i < GPUSORT_LIBC_PAGES; i++)
		free(walk->pages[i]);
	free(walk->contractions);
	free(walk);
}

/*
 * Returns a walker of a locale that is fit, for as long as the process lives; NULL if
 * there is none, for lack of memory or because the locale is not as it is thought to be.  single: each
 * byte is a character; else the locale is for UTF-8.
 */
GpuSortLibcWalk *
gpusort_libc_walk_create(locale_t locale, bool single)
{
	GpuSortLibcWalk *walk = calloc(1, sizeof(GpuSortLibcWalk));

	if (walk == NULL)
		return NULL;
	walk->locale = locale;
	walk->single = single;
	walk->plain_end = single ? GPUSORT_LIBC_SINGLE_END : GPUSORT_LIBC_ASCII_END;
	walk->tables = gpusort_libc_find_tables(locale);
	walk->longest = 4;
	if (learn(walk))
		return walk;
	destroy(walk);
	return NULL;
}

#endif /* __GLIBC__ */
