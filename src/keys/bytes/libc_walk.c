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
 * the contractions are is read out of the locale's tables, which nl_langinfo_l gives:
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
 * A locale whose tables look otherwise has no walker.  It is checked against strxfrm_l when it
 * is made, with every pair of printable ASCII characters and with others, and so is every other
 * character when it occurs for the first time; where it is wrong, it gives up.
 *
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "keys/bytes/libc_walk.h"

#ifdef __GLIBC__

#include <gnu/libc-version.h>
#include <langinfo.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL_SEPARATOR 1
#define FORWARD         1 /* a rule of a level */

/* glibc's first version whose strcoll_l and first levels are known to agree. */
#define GLIBC_MINOR_MIN 28 /* of 2 */

/* Characters of one and two bytes. */
#define LOW_CHARS 0x800

#define PAGE_CHARS 64
#define PAGES      (0x110000 / PAGE_CHARS)

/* Bytes of an element; of those that are known none has more than 9. */
#define ELEMENT_MAX 20

/* A set of characters with the bytes that follow them, as bits. */
#define PAIR_BITS         65536
#define PAIR_BIT(c, next) (((c) *0x9E3779B1u + (next) *0x85EBCA6Bu) >> 16)

/* Entries of a list; more than there are of characters and contractions together. */
#define ENTRIES_MAX 100000

/* Texts that are made for checks. */
#define CHECK_BYTES 512
#define CHECK_ROOM  (8 * CHECK_BYTES)
#define CHECK_TEXTS 8

/* The weights of an element. */
#define WEIGHT_BYTES     7
#define WEIGHT_LENGTH    7    /* the bits of info for it */
#define WEIGHT_CONTRACTS 0x08 /* contractions begin with the character */
#define WEIGHT_LONG      0x10 /* there are more bytes than fit: strxfrm_l is asked each time */
#define WEIGHT_ELSEWHERE 0x20 /* of the zero byte, which is no character */
#define WEIGHT_UNKNOWN   0x40 /* the element has not occurred yet */
#define WEIGHT_NONE      0x80 /* of a contraction that an entry before it hides */

typedef struct Weight
{
	char bytes[WEIGHT_BYTES];
	uint8_t info; /* how many these are, and what is special */
} Weight;

_Static_assert(sizeof(Weight) <= GPUSORT_LIBC_SLACK, "a weight is written as a whole");

typedef struct Contraction
{
	uint32_t first; /* the character that it begins with */
	int order;
	int length; /* bytes */
	unsigned char text[ELEMENT_MAX];
	Weight weight;
} Contraction;

/* Where a locale's elements are. */
typedef struct Tables
{
	uint32_t levels;
	const unsigned char *rules;
	const int32_t *table;
	const unsigned char *extra;
	const int32_t *indirect;
} Tables;

struct GpuSortLibcWalk
{
	locale_t locale;
	Tables tables;
	bool gave_up;
	int longest;               /* bytes of an element */
	Contraction *contractions; /* by first character, and then in the order of the locale's entries */
	int ncontractions;
	int capacity;
	uint8_t pairs[PAIR_BITS / 8]; /* the first bytes of contractions, and others */
	bool starts[256];             /* bytes that are in no contraction but as its first */
	Weight low[LOW_CHARS];
	Weight *pages[PAGES]; /* of the other characters; NULL: none of them has occurred */
};

/* What a list has of elements that begin with a byte. */
typedef struct Entry
{
	int32_t number;
	int length;                 /* of an element, without the first byte */
	const unsigned char *first; /* the others */
	const unsigned char *last;  /* of a range; else those of first */
	const unsigned char *next;  /* the entry behind it; NULL: there is none */
} Entry;

static Tables
find_tables(locale_t locale)
{
	Tables tables;

	tables.levels = (uint32_t) (uintptr_t) nl_langinfo_l(_NL_COLLATE_NRULES, locale);
	tables.rules = (const unsigned char *) nl_langinfo_l(_NL_COLLATE_RULESETS, locale);
	tables.table = (const int32_t *) nl_langinfo_l(_NL_COLLATE_TABLEMB, locale);
	tables.extra = (const unsigned char *) nl_langinfo_l(_NL_COLLATE_EXTRAMB, locale);
	tables.indirect = (const int32_t *) nl_langinfo_l(_NL_COLLATE_INDIRECTMB, locale);
	return tables;
}

static Entry
read_entry(const unsigned char *at)
{
	Entry entry;
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
is_understood(const Entry *entry)
{
	int before = entry->length - 1;

	return entry->length < ELEMENT_MAX &&
		(entry->length == 0 ||
		 (memcmp(entry->first, entry->last, before) == 0 && entry->first[before] <= entry->last[before]));
}

/* How many elements an entry has. */
static int
count_elements(const Entry *entry)
{
	return entry->length == 0 ? 1 : entry->last[entry->length - 1] - entry->first[entry->length - 1] + 1;
}

static bool
goes_forward(const Tables *tables, int32_t index)
{
	return tables->rules[((uint32_t) index >> 24) * tables->levels] == FORWARD;
}

/* Returns true if the first level of all elements that begin with a byte goes forward. */
static bool
all_go_forward(const Tables *tables, int byte)
{
	const unsigned char *at;

	if (tables->table[byte] >= 0)
		return goes_forward(tables, tables->table[byte]);
	at = tables->extra - (ptrdiff_t) tables->table[byte];
	for (int i = 0; at != NULL; i++)
	{
		Entry entry = read_entry(at);

		if (i == ENTRIES_MAX || !is_understood(&entry))
			return false;
		for (int j = 0; entry.number < 0 && j < count_elements(&entry); j++)
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
 * Returns NULL if strings whose first levels differ are ordered by these under the
 * locale; else why they need not be, as the rest of a sentence that begins with the sort key.
 */
const char *
gpusort_libc_unfit(locale_t locale)
{
	int major = 0;
	int minor = 0;
	Tables tables;

	if (sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) != 2 || major != 2 || minor < GLIBC_MINOR_MIN)
		return "has a libc collation, and the C library is not glibc 2.28 or later";
	tables = find_tables(locale);
	if (strcmp(nl_langinfo_l(_NL_COLLATE_CODESET, locale), "UTF-8") != 0)
		return "has a libc collation that is not for UTF-8";
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

/* The bytes of the character that begins with a byte; 0: none does. */
static int
char_length(unsigned char byte)
{
	if (byte < 0x80)
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
static uint32_t
read_char(const unsigned char *text, int length)
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

/* Returns true if a contraction may begin with a character that is followed by a byte. */
static bool
may_contract(const GpuSortLibcWalk *walk, uint32_t c, unsigned char next)
{
	uint32_t bit = PAIR_BIT(c, next);

	return walk->pairs[bit / 8] >> bit % 8 & 1;
}

static void
note_pair(GpuSortLibcWalk *walk, const Contraction *contraction)
{
	uint32_t bit = PAIR_BIT(contraction->first, contraction->text[char_length(contraction->text[0])]);

	walk->pairs[bit / 8] |= 1 << bit % 8;
}

/* Has the walker know a contraction; false if it cannot. */
static bool
add_contraction(GpuSortLibcWalk *walk, unsigned char byte, const Entry *entry, int which)
{
	Contraction *contraction;

	if (walk->ncontractions == walk->capacity)
	{
		int capacity = walk->capacity == 0 ? 64 : 2 * walk->capacity;
		Contraction *more = realloc(walk->contractions, capacity * sizeof(Contraction));

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
	contraction->first = read_char(contraction->text, char_length(byte));
	contraction->weight.info = WEIGHT_UNKNOWN;
	if (contraction->length > walk->longest)
		walk->longest = contraction->length;
	note_pair(walk, contraction);
	return contraction->first != 0;
}

/* Finds the contractions that begin with a byte; false if elements are not made of characters. */
static bool
add_contractions(GpuSortLibcWalk *walk, int byte)
{
	const Tables *tables = &walk->tables;
	int length = char_length(byte);
	const unsigned char *at = tables->table[byte] >= 0 ? NULL : tables->extra - (ptrdiff_t) tables->table[byte];

	while (at != NULL)
	{
		Entry entry = read_entry(at);

		if (entry.length > 0 && (length == 0 || 1 + entry.length < length))
			return false;
		for (int i = 0; 1 + entry.length > length && entry.length > 0 && i < count_elements(&entry); i++)
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
	const Contraction *left = a;
	const Contraction *right = b;

	if (left->first != right->first)
		return left->first < right->first ? -1 : 1;
	return left->order - right->order;
}

/* The first contraction that begins with a character; the end of them if there is none. */
static Contraction *
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

/* How many bytes the element has that begins with those of a text, which has an entry. */
static int
element_length(const Tables *tables, const unsigned char *text, int length)
{
	const unsigned char *at = tables->extra - (ptrdiff_t) tables->table[text[0]];

	for (;;)
	{
		Entry entry = read_entry(at);
		int last = entry.length;

		if (entry.length == 0)
			return 1;
		if (entry.length < length && memcmp(entry.first, text + 1, last - 1) == 0 &&
			text[last] >= entry.first[last - 1] && text[last] <= entry.last[last - 1])
			return 1 + entry.length;
		at = entry.next;
	}
}

/* Asks for the weights of an element; false if there is no memory for them. */
static bool
ask_weight(const GpuSortLibcWalk *walk, const unsigned char *text, int length, Weight *weight)
{
	char string[ELEMENT_MAX + 1];
	char bytes[WEIGHT_BYTES + 1];
	int count;

	memcpy(string, text, length);
	string[length] = '\0';
	count = gpusort_libc_ask(walk->locale, string, bytes, sizeof(bytes));
	memcpy(weight->bytes, bytes, WEIGHT_BYTES);
	weight->info = count > WEIGHT_BYTES ? WEIGHT_LONG : count;
	return count >= 0;
}

/* Returns true if the walker makes of a text what strxfrm_l does. */
static bool
is_right(GpuSortLibcWalk *walk, const char *text)
{
	char ours[CHECK_ROOM + GPUSORT_LIBC_SLACK];
	char theirs[CHECK_ROOM];
	int count = gpusort_libc_ask(walk->locale, text, theirs, CHECK_ROOM);

	return count >= 0 && gpusort_libc_walk(walk, text, strlen(text), false, ours, CHECK_ROOM) == count &&
		memcmp(ours, theirs, count) == 0;
}

/* Asks for the weights of a character; false if there is no memory for them. */
static bool
ask_char(const GpuSortLibcWalk *walk, uint32_t c, const unsigned char *text, int length, Weight *weight)
{
	if (!ask_weight(walk, text, length, weight))
	{
		weight->info = WEIGHT_UNKNOWN;
		return false;
	}
	if (first_contraction(walk, c) != walk->contractions + walk->ncontractions)
		weight->info |= WEIGHT_CONTRACTS;
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
	return is_right(walk, text);
}

/* Where the weights of a character are kept, known or not; NULL if there is no memory for them. */
static Weight *
find_place(GpuSortLibcWalk *walk, uint32_t c)
{
	Weight **page = &walk->pages[c / PAGE_CHARS];

	if (c < LOW_CHARS)
		return &walk->low[c];
	if (*page == NULL)
	{
		*page = malloc(PAGE_CHARS * sizeof(Weight));
		if (*page == NULL)
			return NULL;
		for (int i = 0; i < PAGE_CHARS; i++)
			(*page)[i].info = WEIGHT_UNKNOWN;
	}
	return &(*page)[c % PAGE_CHARS];
}

/* The weights of a character beyond ASCII; NULL if they are not to be had. */
static const Weight *
find_char(GpuSortLibcWalk *walk, uint32_t c, const unsigned char *text, int length)
{
	Weight *weight = find_place(walk, c);

	if (weight != NULL && weight->info == WEIGHT_UNKNOWN)
	{
		if (!ask_char(walk, c, text, length, weight))
			return NULL;
		if (!check_char(walk, text, length))
			walk->gave_up = true;
		if (walk->gave_up)
			return NULL;
	}
	return weight;
}

/* The weights of the contraction of a character that a text begins with, and its length; NULL if there is none. */
static const Weight *
find_contraction(GpuSortLibcWalk *walk, uint32_t c, const unsigned char *text, const unsigned char *end, int *length)
{
	Contraction *last = walk->contractions + walk->ncontractions;

	for (Contraction *contraction = first_contraction(walk, c); contraction < last && contraction->first == c; contraction++)
	{
		if (contraction->length > end - text || memcmp(contraction->text, text, contraction->length) != 0)
			continue;
		if (contraction->weight.info == WEIGHT_UNKNOWN)
		{
			if (element_length(&walk->tables, text, contraction->length) != contraction->length)
				contraction->weight.info = WEIGHT_NONE;
			else if (!ask_weight(walk, text, contraction->length, &contraction->weight))
				contraction->weight.info = WEIGHT_UNKNOWN;
		}
		if (contraction->weight.info == WEIGHT_NONE)
			continue;
		*length = contraction->length;
		return &contraction->weight;
	}
	return NULL;
}

/* The weights of the element that a text begins with, if it is not a plain one, and its length; NULL if it is unknown. */
static const Weight *
find_other(GpuSortLibcWalk *walk, const unsigned char *text, const unsigned char *end, int *length)
{
	const Weight *weight;
	const Weight *contraction;
	uint32_t c;

	*length = char_length(*text);
	if (*length == 0 || *length > end - text)
		return NULL;
	c = read_char(text, *length);
	if (c == 0)
		return NULL;
	weight = *length > 1 ? find_char(walk, c, text, *length) : &walk->low[c];
	if (weight == NULL)
		return NULL;
	if ((weight->info & WEIGHT_CONTRACTS) && *length < end - text && may_contract(walk, c, text[*length]))
	{
		contraction = find_contraction(walk, c, text, end, length);
		if (contraction != NULL)
			return contraction->info == WEIGHT_UNKNOWN ? NULL : contraction;
	}
	return weight;
}

/*
 * Writes the weights of the element that text begins with, which is not a plain one, room bytes at
 * most of what does not fit a Weight; *length is the element's.  Returns how many bytes, or -1.
 */
static __attribute__((noinline)) int
put_other(GpuSortLibcWalk *walk, const unsigned char *text, const unsigned char *end, char *bytes, int room, int *length)
{
	const Weight *weight = find_other(walk, text, end, length);
	char string[ELEMENT_MAX + 1];

	if (weight == NULL)
		return -1;
	if (!(weight->info & WEIGHT_LONG))
	{
		memcpy(bytes, weight, sizeof(Weight));
		return weight->info & WEIGHT_LENGTH;
	}
	memcpy(string, text, *length);
	string[*length] = '\0';
	return gpusort_libc_ask(walk->locale, string, bytes, room);
}

/*
 * The weights of the element that text begins with, and its length, if it is a character of one or two bytes and there
 * is nothing special; else NULL.
 */
static inline const Weight *
find_plain(const GpuSortLibcWalk *walk, const unsigned char *text, const unsigned char *end, int *length)
{
	uint32_t c = *text;
	const Weight *weight;

	*length = 1;
	if (c >= 0x80)
	{
		if (c < 0xC2 || c >= 0xE0 || end - text < 2 || (text[1] & 0xC0) != 0x80)
			return NULL;
		c = (c & 0x1F) << 6 | (text[1] & 0x3F);
		*length = 2;
	}
	weight = &walk->low[c];
	if (__builtin_expect(weight->info <= WEIGHT_LENGTH, 1))
		return weight;
	if ((weight->info & ~WEIGHT_LENGTH) == WEIGHT_CONTRACTS && (end - text == *length || walk->starts[text[*length]]))
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

	if (walk->gave_up)
		return -1;
	while (text < stop)
	{
		const Weight *weight = &walk->low[*text];
		int info = weight->info;
		int element;

		if (*text < 0x80 && __builtin_expect(info <= WEIGHT_LENGTH, 1))
		{
			memcpy(next, weight, sizeof(Weight));
			next += info;
			text++;
		}
		else if ((weight = find_plain(walk, text, end, &element)) != NULL)
		{
			memcpy(next, weight, sizeof(Weight));
			next += weight->info & WEIGHT_LENGTH;
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
 * For each of the 256 bytes, whether an element begins at it in any string, whatever stands before it: it is the first of
 * a character, and no contraction has it but in its own first place.  At the zero byte that ends a string, too.
 */
const bool *
gpusort_libc_walk_starts(const GpuSortLibcWalk *walk)
{
	return walk->starts;
}

/* What texts are made of for a check, beside ASCII: accents, composed and not, parts of contractions, other scripts, unassigned ones. */
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

/* Checks texts with every pair of printable ASCII characters, and others at random. */
static bool
check_texts(GpuSortLibcWalk *walk)
{
	char text[CHECK_BYTES];
	uint32_t random = 1;
	int length;

	for (int a = ' '; a < 0x7F; a++)
	{
		length = 0;
		for (int b = a; b < 0x7F; b++)
		{
			text[length++] = a;
			text[length++] = b;
		}
		text[length] = '\0';
		if (!is_right(walk, text))
			return false;
	}
	for (int i = 0; i < CHECK_TEXTS; i++)
	{
		for (length = 0; length < CHECK_BYTES / 2;)
		{
			random = random * 1103515245 + 12345;
			if (random >> 30 == 0)
				text[length++] = 1 + (random >> 16) % 0x7F;
			length += append_piece(text + length, random >> 16);
		}
		text[length] = '\0';
		if (!is_right(walk, text))
			return false;
	}
	return true;
}

/* Finds the bytes at which an element begins. */
static void
find_starts(GpuSortLibcWalk *walk)
{
	for (int byte = 0; byte < 256; byte++)
		walk->starts[byte] = char_length(byte) > 0;
	for (int i = 0; i < walk->ncontractions; i++)
	{
		const Contraction *contraction = &walk->contractions[i];

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
		qsort(walk->contractions, walk->ncontractions, sizeof(Contraction), compare_contractions);
	find_starts(walk);
	for (int c = 0; c < LOW_CHARS; c++)
		walk->low[c].info = WEIGHT_UNKNOWN;
	walk->low[0].info = WEIGHT_ELSEWHERE;
	for (unsigned char c = 1; c < 0x80; c++)
	{
		if (!ask_char(walk, c, &c, 1, &walk->low[c]))
			return false;
	}
	return check_texts(walk);
}

static void
destroy(GpuSortLibcWalk *walk)
{
	for (int i = 0; i < PAGES; i++)
		free(walk->pages[i]);
	free(walk->contractions);
	free(walk);
}

/*
 * Returns a walker of a locale that is fit, for as long as the process lives; NULL if
 * there is none, for lack of memory or because the locale is not as it is thought to be.
 */
GpuSortLibcWalk *
gpusort_libc_walk_create(locale_t locale)
{
	GpuSortLibcWalk *walk = calloc(1, sizeof(GpuSortLibcWalk));

	if (walk == NULL)
		return NULL;
	walk->locale = locale;
	walk->tables = find_tables(locale);
	walk->longest = 4;
	if (learn(walk))
		return walk;
	destroy(walk);
	return NULL;
}

#endif /* __GLIBC__ */
