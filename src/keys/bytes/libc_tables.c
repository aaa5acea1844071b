/*-------------------------------------------------------------------------
 *
 * libc_tables.c
 *	  The tables of a glibc locale that say what its collation's elements are.
 *
 * nl_langinfo_l gives them:
 *
 *	  - _NL_COLLATE_TABLEMB has an int32 for each byte with which an element can begin.  If
 *		it is not negative, that byte is the element, and this its index;
 *	  - else it is minus the place of a list of entries in _NL_COLLATE_EXTRAMB: an
 *		int32, a byte that says how many bytes n of the element follow the first, and these;
 *		padded to a multiple of four.  The first entry that the string agrees with has the
 *		element; that without bytes, of any, is the last;
 *	  - an entry whose number is not negative has the element's index there.  Else it is of a
 *		range of elements: n bytes of the first are followed by those of the last, and
 *		minus the number is the place of the first's index in _NL_COLLATE_INDIRECTMB, followed
 *		by those of the others;
 *	  - an index has the element's section in its upper eight bits; row by row,
 *		_NL_COLLATE_RULESETS has a byte for each level of a section.
 *
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "keys/bytes/libc_state.h"

#ifdef __GLIBC__

#include <gnu/libc-version.h>
#include <langinfo.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL_SEPARATOR 1
#define FORWARD         1 /* a rule of a level */

/* glibc's first version whose strcoll_l and first levels are known to agree. */
#define GLIBC_MINOR_MIN 28 /* of 2 */

/* Entries of a list; more than there are of characters and contractions together. */
#define ENTRIES_MAX 100000

/* Finds the tables of a locale, which belong to it. */
GpuSortLibcTables
gpusort_libc_find_tables(locale_t locale)
{
	GpuSortLibcTables tables;

	tables.levels = (uint32_t) (uintptr_t) nl_langinfo_l(_NL_COLLATE_NRULES, locale);
	tables.rules = (const unsigned char *) nl_langinfo_l(_NL_COLLATE_RULESETS, locale);
	tables.table = (const int32_t *) nl_langinfo_l(_NL_COLLATE_TABLEMB, locale);
	tables.extra = (const unsigned char *) nl_langinfo_l(_NL_COLLATE_EXTRAMB, locale);
	tables.indirect = (const int32_t *) nl_langinfo_l(_NL_COLLATE_INDIRECTMB, locale);
	return tables;
}

/* Reads the entry of a list that begins there. */
GpuSortLibcEntry
gpusort_libc_read_entry(const unsigned char *at)
{
	GpuSortLibcEntry entry;
	size_t size;

	memcpy(&entry.number, at, sizeof(entry.number));
	entry.length = at[sizeof(entry.number)];
	entry.first = at + sizeof(entry.number) + 1;
	entry.last = entry.number < 0 ? entry.first + entry.length : entry.first;
	size = entry.last + entry.length - at;
	entry.next = entry.length == 0 ? NULL : at + (size + 3) / 4 * 4;
	return entry;
}

/* Returns true if the elements of an entry differ in the last byte alone, as far as they do. */
static bool
is_understood(const GpuSortLibcEntry *entry)
{
	int before = entry->length - 1;

	return entry->length < GPUSORT_LIBC_ELEMENT_MAX &&
		(entry->length == 0 ||
		 (memcmp(entry->first, entry->last, before) == 0 && entry->first[before] <= entry->last[before]));
}

/* How many elements an entry has. */
int
gpusort_libc_count_elements(const GpuSortLibcEntry *entry)
{
	return entry->length == 0 ? 1 : entry->last[entry->length - 1] - entry->first[entry->length - 1] + 1;
}

static bool
goes_forward(const GpuSortLibcTables *tables, int32_t index)
{
	return tables->rules[((uint32_t) index >> 24) * tables->levels] == FORWARD;
}

/* Returns true if the first level of all elements that begin with a byte goes forward. */
static bool
all_go_forward(const GpuSortLibcTables *tables, int byte)
{
	const unsigned char *at;

	if (tables->table[byte] >= 0)
		return goes_forward(tables, tables->table[byte]);
	at = tables->extra - (ptrdiff_t) tables->table[byte];
	for (int i = 0; at != NULL; i++)
	{
		GpuSortLibcEntry entry = gpusort_libc_read_entry(at);

		if (i == ENTRIES_MAX || !is_understood(&entry))
			return false;
		for (int j = 0; entry.number < 0 && j < gpusort_libc_count_elements(&entry); j++)
		{
			if (!goes_forward(tables, tables->indirect[-(ptrdiff_t) entry.number + j]))
				return false;
		}
		if (entry.number >= 0 && !goes_forward(tables, entry.number))
			return false;
		at = entry.next;
	}
	return true;
}

/*
 * Returns NULL if strings of a codeset whose first levels differ are ordered by these under the
 * locale; else why they need not be, as the rest of a sentence that begins with the sort key.
 */
const char *
gpusort_libc_unfit(locale_t locale, const char *codeset)
{
	int major = 0;
	int minor = 0;
	GpuSortLibcTables tables;

	if (sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) != 2 || major != 2 || minor < GLIBC_MINOR_MIN)
		return "has a libc collation, and the C library is not glibc 2.28 or later";
	tables = gpusort_libc_find_tables(locale);
	if (strcmp(nl_langinfo_l(_NL_COLLATE_CODESET, locale), codeset) != 0)
		return "has a libc collation that is not for the encoding of the database";
	if (tables.levels == 0)
		return "has a libc collation without levels";
	for (int byte = 1; byte < 256; byte++)
	{
		if (!all_go_forward(&tables, byte))
			return "has a libc collation whose first level does not go forward";
	}
	return NULL;
}

/*
 * Writes the first room bytes of the first level of a string's key to bytes, as strxfrm_l
 * makes it; returns how many there are, or -1 if there is no memory for it.
 */
int
gpusort_libc_ask(locale_t locale, const char *string, char *bytes, int room)
{
	char some[2048];
	char *key = some;
	size_t length = strxfrm_l(some, string, sizeof(some), locale);
	const char *separator;
	int count;

	if (length >= sizeof(some))
	{
		key = malloc(length + 1);
		if (key == NULL)
			return -1;
		strxfrm_l(key, string, length + 1, locale);
	}
	separator = memchr(key, LEVEL_SEPARATOR, length);
	if (separator != NULL)
		length = separator - key;
	count = length < (size_t) room ? (int) length : room;
	memcpy(bytes, key, count);
	if (key != some)
		free(key);
	return count;
}

/* How many bytes the element has that begins with those of a text, which has an entry. */
int
gpusort_libc_element_length(const GpuSortLibcTables *tables, const unsigned char *text, int length)
{
	const unsigned char *at = tables->extra - (ptrdiff_t) tables->table[text[0]];

	for (;;)
	{
		GpuSortLibcEntry entry = gpusort_libc_read_entry(at);
		int last = entry.length;

		if (entry.length == 0)
			return 1;
		if (entry.length < length && memcmp(entry.first, text + 1, last - 1) == 0 &&
			text[last] >= entry.first[last - 1] && text[last] <= entry.last[last - 1])
			return 1 + entry.length;
		at = entry.next;
	}
}

#endif /* __GLIBC__ */
