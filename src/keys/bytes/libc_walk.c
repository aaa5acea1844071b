/*-------------------------------------------------------------------------
 *
 * libc_walk.c
 *	  The first level of glibc's collation keys.
 *
 * A key of strxfrm_l is levels of weights, with a byte 1 between them; weights have no
 * bytes below 2.  A string is cut into elements: characters, and contractions of several
 * ("ch" in Czech).  Each has its weights for each level, none on a level where it is
 * ignored, and belongs to a section of the locale that says which way each level goes.
 * Where the first one goes forward in all sections, it is the elements' weights one
 * after the other.  So gpusort_libc_walk needs no more of a string than what fills the
 * bytes asked for, where strxfrm_l makes all levels of all of it.
 *
 * The weights of an element are asked of strxfrm_l, when it occurs for the first time.  What
 * the contractions are is read out of the locale's tables (libc_tables.c, libc_learn.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "keys/bytes/libc_state.h"

#ifdef __GLIBC__

#include <stdlib.h>
#include <string.h>

#define CHECK_ROOM (8 * GPUSORT_LIBC_CHECK_BYTES)

/* Returns true if a contraction may begin with a character that is followed by a byte. */
static bool
may_contract(const GpuSortLibcWalk *walk, uint32_t c, unsigned char next)
{
	uint32_t bit = GPUSORT_LIBC_PAIR_BIT(c, next);

	return walk->pairs[bit / 8] >> bit % 8 & 1;
}

/* The first contraction that begins with a character; the end of them if there is none. */
static GpuSortLibcContraction *
first_contraction(const GpuSortLibcWalk *walk, uint32_t c)
{
	int low = 0;
	int high = walk->ncontractions;

	while (low < high)
	{
		int middle = (low + high) / 2;

		if (walk->contractions[middle].first < c)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < walk->ncontractions && walk->contractions[low].first == c)
		return &walk->contractions[low];
	return walk->contractions + walk->ncontractions;
}

/* Asks for the weights of an element; false if there is no memory for them. */
static bool
ask_weight(const GpuSortLibcWalk *walk, const unsigned char *text, int length, GpuSortLibcWeight *weight)
{
	char string[GPUSORT_LIBC_ELEMENT_MAX + 1];
	char bytes[GPUSORT_LIBC_WEIGHT_BYTES + 1];
	int count;

	memcpy(string, text, length);
	string[length] = '\0';
	count = gpusort_libc_ask(walk->locale, string, bytes, sizeof(bytes));
	memcpy(weight->bytes, bytes, GPUSORT_LIBC_WEIGHT_BYTES);
	weight->info = count > GPUSORT_LIBC_WEIGHT_BYTES ? GPUSORT_LIBC_WEIGHT_LONG : count;
	return count >= 0;
}

/* Returns true if the walker makes of a text what strxfrm_l does. */
bool
gpusort_libc_walk_is_right(GpuSortLibcWalk *walk, const char *text)
{
	char ours[CHECK_ROOM + GPUSORT_LIBC_SLACK];
	char theirs[CHECK_ROOM];
	int count = gpusort_libc_ask(walk->locale, text, theirs, CHECK_ROOM);

	return count >= 0 && gpusort_libc_walk(walk, text, strlen(text), false, ours, CHECK_ROOM) == count &&
		memcmp(ours, theirs, count) == 0;
}

/* Asks for the weights of a character; false if there is no memory for them. */
bool
gpusort_libc_walk_ask_char(const GpuSortLibcWalk *walk, uint32_t c, const unsigned char *text, int length,
						   GpuSortLibcWeight *weight)
{
	if (!ask_weight(walk, text, length, weight))
	{
		weight->info = GPUSORT_LIBC_WEIGHT_UNKNOWN;
		return false;
	}
	if (first_contraction(walk, c) != walk->contractions + walk->ncontractions)
		weight->info |= GPUSORT_LIBC_WEIGHT_CONTRACTS;
	return true;
}

/* Checks a character that has occurred for the first time, alone and beside others. */
static bool
check_char(GpuSortLibcWalk *walk, const unsigned char *c, int length)
{
	char text[3 * 4 + 2];

	memcpy(text, c, length);
	memcpy(text + length, c, length);
	text[2 * length] = 'e';
	memcpy(text + 2 * length + 1, c, length);
	text[3 * length + 1] = '\0';
	return gpusort_libc_walk_is_right(walk, text);
}

/* Where the weights of a character are kept, known or not; NULL if there is no memory for them. */
static GpuSortLibcWeight *
find_place(GpuSortLibcWalk *walk, uint32_t c)
{
	GpuSortLibcWeight **page = &walk->pages[c / GPUSORT_LIBC_PAGE_CHARS];

	if (c < GPUSORT_LIBC_LOW_CHARS)
		return &walk->low[c];
	if (*page == NULL)
	{
		*page = malloc(GPUSORT_LIBC_PAGE_CHARS * sizeof(GpuSortLibcWeight));
		if (*page == NULL)
			return NULL;
		for (int i = 0; i < GPUSORT_LIBC_PAGE_CHARS; i++)
			(*page)[i].info = GPUSORT_LIBC_WEIGHT_UNKNOWN;
	}
	return &(*page)[c % GPUSORT_LIBC_PAGE_CHARS];
}

/* The weights of a character beyond ASCII; NULL if they are not to be had. */
static const GpuSortLibcWeight *
find_char(GpuSortLibcWalk *walk, uint32_t c, const unsigned char *text, int length)
{
	GpuSortLibcWeight *weight = find_place(walk, c);

	if (weight != NULL && weight->info == GPUSORT_LIBC_WEIGHT_UNKNOWN)
	{
		if (!gpusort_libc_walk_ask_char(walk, c, text, length, weight))
			return NULL;
		if (!check_char(walk, text, length))
			walk->gave_up = true;
		if (walk->gave_up)
			return NULL;
	}
	return weight;
}

/* The weights of the contraction of a character that a text begins with, and its length; NULL if there is none. */
static const GpuSortLibcWeight *
find_contraction(GpuSortLibcWalk *walk, uint32_t c, const unsigned char *text, const unsigned char *end, int *length)
{
	GpuSortLibcContraction *last = walk->contractions + walk->ncontractions;

	for (GpuSortLibcContraction *contraction = first_contraction(walk, c);
		 contraction < last && contraction->first == c; contraction++)
	{
		if (contraction->length > end - text || memcmp(contraction->text, text, contraction->length) != 0)
			continue;
		if (contraction->weight.info == GPUSORT_LIBC_WEIGHT_UNKNOWN)
		{
			if (gpusort_libc_element_length(&walk->tables, text, contraction->length) != contraction->length)
				contraction->weight.info = GPUSORT_LIBC_WEIGHT_NONE;
			else if (!ask_weight(walk, text, contraction->length, &contraction->weight))
				contraction->weight.info = GPUSORT_LIBC_WEIGHT_UNKNOWN;
		}
		if (contraction->weight.info == GPUSORT_LIBC_WEIGHT_NONE)
			continue;
		*length = contraction->length;
		return &contraction->weight;
	}
	return NULL;
}

/*
 * The weights of the element that a text begins with, if it is not a plain one, and its length; NULL if it is unknown.
 */
static const GpuSortLibcWeight *
find_other(GpuSortLibcWalk *walk, const unsigned char *text, const unsigned char *end, int *length)
{
	const GpuSortLibcWeight *weight;
	const GpuSortLibcWeight *contraction;
	uint32_t c;

	*length = gpusort_libc_char_length(walk, *text);
	if (*length == 0 || *length > end - text)
		return NULL;
	c = gpusort_libc_read_char(text, *length);
	if (c == 0)
		return NULL;
	weight = *length > 1 ? find_char(walk, c, text, *length) : &walk->low[c];
	if (weight == NULL)
		return NULL;
	if ((weight->info & GPUSORT_LIBC_WEIGHT_CONTRACTS) && *length < end - text && may_contract(walk, c, text[*length]))
	{
		contraction = find_contraction(walk, c, text, end, length);
		if (contraction != NULL)
			return contraction->info == GPUSORT_LIBC_WEIGHT_UNKNOWN ? NULL : contraction;
	}
	return weight;
}

/*
 * Writes the weights of the element that text begins with, which is not a plain one, room bytes at
 * most of what does not fit a GpuSortLibcWeight; *length is the element's.  Returns how many bytes, or -1.
 */
static __attribute__((noinline)) int
put_other(GpuSortLibcWalk *walk, const unsigned char *text, const unsigned char *end, char *bytes, int room,
		  int *length)
{
	const GpuSortLibcWeight *weight = find_other(walk, text, end, length);
	char string[GPUSORT_LIBC_ELEMENT_MAX + 1];

	if (weight == NULL)
		return -1;
	if (!(weight->info & GPUSORT_LIBC_WEIGHT_LONG))
	{
		memcpy(bytes, weight, sizeof(GpuSortLibcWeight));
		return weight->info & GPUSORT_LIBC_WEIGHT_LENGTH;
	}
	memcpy(string, text, *length);
	string[*length] = '\0';
	return gpusort_libc_ask(walk->locale, string, bytes, room);
}

/*
 * The weights of the element that text begins with, and its length, if it is a character of one or two bytes and there
 * is nothing special; else NULL.
 */
static inline const GpuSortLibcWeight *
find_plain(const GpuSortLibcWalk *walk, const unsigned char *text, const unsigned char *end, int *length)
{
	uint32_t c = *text;
	const GpuSortLibcWeight *weight;

	*length = 1;
	if (c >= (uint32_t) walk->plain_end)
	{
		if (c < 0xC2 || c >= 0xE0 || end - text < 2 || (text[1] & 0xC0) != 0x80)
			return NULL;
		c = (c & 0x1F) << 6 | (text[1] & 0x3F);
		*length = 2;
	}
	weight = &walk->low[c];
	if (__builtin_expect(weight->info <= GPUSORT_LIBC_WEIGHT_LENGTH, 1))
		return weight;
	if ((weight->info & ~GPUSORT_LIBC_WEIGHT_LENGTH) == GPUSORT_LIBC_WEIGHT_CONTRACTS &&
		(end - text == *length || walk->starts[text[*length]]))
		return weight;
	return NULL;
}

/*
 * The same as gpusort_libc_ask, for a string of length bytes, or the beginning of one that goes
 * on; -1 if the walker cannot tell, as where the beginning is too short, or where bytes are
 * no characters.  It may write GPUSORT_LIBC_SLACK bytes more than room, which is 1 at least.
 */
int
gpusort_libc_walk(GpuSortLibcWalk *walk, const char *data, int length, bool goes_on, char *bytes, int room)
{
	const unsigned char *text = (const unsigned char *) data;
	const unsigned char *end = text + length;
	const unsigned char *stop = goes_on ? end - walk->longest : end;
	char *next = bytes;
	char *full = bytes + room;
	const int plain_end = walk->plain_end;

	if (walk->gave_up)
		return -1;
	while (text < stop)
	{
		const GpuSortLibcWeight *weight = &walk->low[*text];
		int info = weight->info;
		int element;

		if (*text < plain_end && __builtin_expect(info <= GPUSORT_LIBC_WEIGHT_LENGTH, 1))
		{
			memcpy(next, weight, sizeof(GpuSortLibcWeight));
			next += info;
			text++;
		}
		else if ((weight = find_plain(walk, text, end, &element)) != NULL)
		{
			memcpy(next, weight, sizeof(GpuSortLibcWeight));
			next += weight->info & GPUSORT_LIBC_WEIGHT_LENGTH;
			text += element;
		}
		else
		{
			int count = put_other(walk, text, end, next, full - next, &element);

			if (count < 0)
				return -1;
			next += count;
			text += element;
		}
		if (next >= full)
			return room;
	}
	return goes_on ? -1 : next - bytes;
}

/*
 * For each of the 256 bytes, whether an element begins at it in any string,
 * whatever stands before it: it is the first of a character, and no contraction
 * has it but in its own first place.  At the zero byte that ends a string, too.
 */
const bool *
gpusort_libc_walk_starts(const GpuSortLibcWalk *walk)
{
	return walk->starts;
}

#endif /* __GLIBC__ */
