/*-------------------------------------------------------------------------
 *
 * agreement.c
 *	  Whether the keys that gpusort makes of strings agree with the C library's order.
 *
 *	  agreement [SECONDS [LOCALE ...]]
 *
 * For each locale it makes all strings of up to three pieces of several alphabets
 * (four, if SECONDS is 60 or more) and compares one in 16 pairs of them (all, if
 * SECONDS is 1 or more); and for SECONDS (0.2) it makes random ones: short, long,
 * and nearly the same.  SEED repeats a run.  Three things are to hold:
 *
 *	- the bytes that gpusort_libc_walk makes of a string are the first level of what
 *	  strxfrm_l makes of it, or as many of its bytes as there was room for;
 *	- where two strings' first levels differ, strcoll_l orders them likewise;
 *	- where gpusort_libc_is_less says of two strings that the first is less, by looking at their ends,
 *	  strcoll_l says so of the whole; and it does say so of most for which it can.
 *
 * Prints TAP, three points for each locale, with the numbers of strings and pairs.
 * A locale that the C library lacks, or of which gpusort makes no keys, is skipped.
 *
 *-------------------------------------------------------------------------
 */
#include <langinfo.h>
#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "keys/bytes/libc_less.h"
#include "keys/bytes/libc_walk.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

#define PIECES_MAX   16   /* of an alphabet */
#define SHORT_LENGTH 64   /* bytes of a string of a few pieces */
#define LONG_LENGTH  8192 /* and of any */
#define SHOWN_MAX    10   /* failures that are printed, of a locale */

/* What is made of a string. */
typedef struct String
{
	char text[SHORT_LENGTH];
	unsigned char level[8 * SHORT_LENGTH]; /* the first one */
	int length;                            /* of the level */
} String;

static const char *const locales[] = {"en_US", "de_DE", "fr_FR", "fr_CA", "cs_CZ", "sv_SE", "ja_JP", "tr_TR", "hu_HU",
									  "de_DE.ISO-8859-1", "fr_FR.ISO-8859-15", "hu_HU.ISO-8859-2", "ru_RU.KOI8-R", "en_US.CP1252"};

/*
 * Pieces of strings; an alphabet ends with NULL.  "\u0301" and the like are UTF-8.
 */
static const char *const alphabets[][PIECES_MAX] = {
	/* digits, blanks and hyphens */
	{"a", "A", "b", "1", "2", "11", "0", " ", "-", "_", ".", "\u00e9"},
	/* accents, composed and on their own */
	{"a", "e", "E", "\u00e9", "\u00e8", "\u00c9", "\u00ea", "\u0301", "\u0300", "\u0323", "\u0302\u0323", "o", "\u00f6",
	 "-"},
	/* what contracts or expands somewhere */
	{"c", "h", "H", "C", "s", "z", "d", "y", "g", "n", "l", "\u00df", "\u00e6", "\u0133"},
	/* letters with places of their own in the north and in Turkey */
	{"a", "aa", "\u00e5", "A\u030a", "\u00e4", "o", "\u00f8", "\u00f6", "i", "I", "\u0131", "\u0130", "v", "w"},
	/* Chinese, Japanese, Korean */
	{"\u4e00", "\u4e8c", "\u3042", "\u30a2", "\u30fc", "\u3099", "\u304b", "\uff71", "\uac00", "\u1100\u1161", "a", "1",
	 "\u3000", "\u3005"},
	/* emoji, and what has no weight or no place in the locale */
	{"\U0001f600", "\U0001f1e6", "\U0001f1e7", "\u200d", "\u200b", "\u00ad", "\ufeff", "\ue000", "\U0010ffff", "\uffff",
	 "\u0378", "a", "B", "1"},
	/* punctuation, much of it alone */
	{" ", "-", ".", "!", "\"", "(", "_", "/", "~", "$", "\u00a0", "\u2019", "a", "1"},
	/* control characters */
	{"\x01", "\x02", "\x7f", "\t", "\n", "\r", "\xc2\x85", "\u2028", "a", "Z", "0", " ", "-"},
	/* other scripts */
	{"\u03b1", "\u0391", "\u03ac", "\u0430", "\u0439", "\u0410", "\u05d0", "\u0627", "\u0640", "\u0e01", "\u0e40",
	 "\u0e48", "\u0915", "\u093f"},
};

/* Of the locale at work */
static locale_t locale;
static GpuSortLibcWalk *walk;
static GpuSortLibcLess less;
static long nstrings;
static long ncut; /* of which the beginning was enough */
static long npairs;
static long nless; /* of which the first level of one string is less */
static long ntold; /* and of which that was told */
static long wrong_keys;
static long wrong_pairs;
static long wrong_ends;

/* The first level of strxfrm's key; its length.  room is enough for all of the key. */
static int
first_level(const char *text, unsigned char *level, size_t room)
{
	size_t length = strxfrm_l((char *) level, text, room, locale);
	unsigned char *end;

	if (length >= room)
	{
		printf("Bail out! a key of %zu bytes\n", length);
		exit(1);
	}
	end = memchr(level, 1, length);
	return end == NULL ? (int) length : (int) (end - level);
}

static void
show(const char *what, const char *text)
{
	printf("#   %s", what);
	for (const char *at = text; *at != '\0' && at < text + 60; at++)
		printf(" %02x", (unsigned char) *at);
	printf("\n");
}

/*
 * Checks that the walker makes the same bytes: with room for all of them, for some, and of
 * the beginning of the string alone, of which it may say that it is too short.
 */
static void
check_key(const char *text, const unsigned char *level, int length)
{
	static char bytes[16 * LONG_LENGTH + GPUSORT_LIBC_SLACK];
	int whole = strlen(text);
	int room = length == 0 ? 1 : 1 + rand() % length;
	int part = rand() % (whole + 1);
	int little = rand() % 8 + 1;
	int all = gpusort_libc_walk(walk, text, whole, false, bytes, length + 1);
	bool good = all == length && memcmp(bytes, level, length) == 0;
	int some = gpusort_libc_walk(walk, text, whole, false, bytes, room);
	int cut;

	good = good && some == (room < length ? room : length) && memcmp(bytes, level, some) == 0;
	cut = gpusort_libc_walk(walk, text, part, true, bytes, little);
	good = good && (cut == -1 || (cut == little && little <= length && memcmp(bytes, level, cut) == 0));
	nstrings++;
	ncut += cut >= 0;
	if (!good && wrong_keys++ < SHOWN_MAX)
	{
		show("other key:", text);
		printf("#   of a first level of %d bytes %d, with room for %d %d; of the first %d bytes, with room for %d %d\n",
			   length, all, room, some, part, little, cut);
	}
}

/*
 * Checks what is said by the ends of two strings, whose first levels are in that order;
 * they have GPUSORT_LIBC_BEHIND bytes more.
 */
static void
check_ends(char *a, char *b, int order)
{
	int whole = strcoll_l(a, b, locale);
	size_t a_length = strlen(a);
	size_t b_length = strlen(b);
	bool a_less = gpusort_libc_is_less(&less, a, a_length, b);
	bool b_less = gpusort_libc_is_less(&less, b, b_length, a);

	nless += order != 0;
	ntold += order < 0 ? a_less : order > 0 && b_less;
	if ((!a_less || whole < 0) && (!b_less || whole > 0) && strlen(a) == a_length && strlen(b) == b_length)
		return;
	if (wrong_ends++ < SHOWN_MAX)
	{
		show("first:", a);
		show("second:", b);
		printf("#   by their ends %s, strcoll %d\n", a_less ? "less" : b_less ? "greater"
																			  : "unknown",
			   whole);
	}
}

static void
check_pair(char *a, const unsigned char *a_level, int a_length, char *b, const unsigned char *b_level, int b_length)
{
	int order = memcmp(a_level, b_level, a_length < b_length ? a_length : b_length);

	npairs++;
	if (order == 0)
		order = a_length - b_length;
	check_ends(a, b, order);
	if (order == 0 || (order < 0) == (strcoll_l(a, b, locale) < 0))
		return;
	if (wrong_pairs++ < SHOWN_MAX)
	{
		show("first:", a);
		show("second:", b);
		printf("#   first levels say %d, strcoll %d\n", order, strcoll_l(a, b, locale));
	}
}

/* All strings of up to so many pieces of an alphabet, and one in so many pairs of them. */
static void
check_alphabet(const char *const *alphabet, int pieces, int share)
{
	int count = 1;
	int begin = 0;
	int end = 1;
	int n = 0;
	int room = 1;
	String *strings;

	while (n < PIECES_MAX && alphabet[n] != NULL)
		n++;
	for (int i = 0, power = n; i < pieces; i++, power *= n)
		room += power;
	strings = calloc(room, sizeof(String));
	if (strings == NULL)
		abort();
	for (int i = 0; i < pieces; i++)
	{
		for (int j = begin; j < end; j++)
			for (int k = 0; k < n; k++)
				sprintf(strings[count++].text, "%s%s", strings[j].text, alphabet[k]);
		begin = end;
		end = count;
	}
	for (int i = 0; i < count; i++)
	{
		strings[i].length = first_level(strings[i].text, strings[i].level, sizeof(strings[i].level));
		check_key(strings[i].text, strings[i].level, strings[i].length);
		for (int j = i % share; j < i; j += share)
			check_pair(strings[i].text, strings[i].level, strings[i].length, strings[j].text, strings[j].level,
					   strings[j].length);
	}
	free(strings);
}

/* Appends a character, any that UTF-8 can have but NUL; returns where it ends. */
static char *
put_random_char(char *at)
{
	static const uint32_t limits[] = {0x80, 0x800, 0x3000, 0xa000, 0x10000, 0x20000, 0x110000};
	uint32_t c = 1 + rand() % (limits[rand() % COUNT(limits)] - 1);

	if (c >= 0xd800 && c < 0xe000)
		c = 0xfffd;
	if (c < 0x80)
		*at++ = c;
	else if (c < 0x800)
	{
		*at++ = 0xc0 | c >> 6;
		*at++ = 0x80 | (c & 0x3f);
	}
	else if (c < 0x10000)
	{
		*at++ = 0xe0 | c >> 12;
		*at++ = 0x80 | (c >> 6 & 0x3f);
		*at++ = 0x80 | (c & 0x3f);
	}
	else
	{
		*at++ = 0xf0 | c >> 18;
		*at++ = 0x80 | (c >> 12 & 0x3f);
		*at++ = 0x80 | (c >> 6 & 0x3f);
		*at++ = 0x80 | (c & 0x3f);
	}
	*at = '\0';
	return at;
}

/* Appends a piece of one of the alphabets, or any character. */
static char *
put_random(char *at)
{
	const char *piece = alphabets[rand() % COUNT(alphabets)][rand() % PIECES_MAX];

	if (piece == NULL || rand() % 8 == 0)
		return put_random_char(at);
	return stpcpy(at, piece);
}

/* A string of up to so many pieces that begins with the first bytes of another, if there is one. */
static void
make_random(char *text, int pieces, const char *other)
{
	char *at = text;

	*at = '\0';
	if (other != NULL && *other != '\0')
	{
		size_t same = rand() % strlen(other);

		/* not within a character */
		while (same > 0 && ((unsigned char) other[same] & 0xc0) == 0x80)
			same--;
		memcpy(text, other, same);
		at = text + same;
		*at = '\0';
		other += same;
		/* and, mostly, goes on like it behind another piece */
		if (rand() % 4 != 0)
		{
			at = put_random(at);
			if (rand() % 2 != 0)
				for (other++; ((unsigned char) *other & 0xc0) == 0x80; other++)
					;
			if (at + strlen(other) < text + LONG_LENGTH)
				strcpy(at, other);
			return;
		}
	}
	for (int i = rand() % (pieces + 1); i > 0 && at < text + LONG_LENGTH - 16; i--)
		at = put_random(at);
}

static void
check_random(double seconds)
{
	static char text[2][LONG_LENGTH + 16];
	static unsigned char level[2][16 * LONG_LENGTH];
	int length[2];
	clock_t start = clock();

	while ((double) (clock() - start) / CLOCKS_PER_SEC < seconds)
	{
		int pieces = rand() % 16 ? rand() % 16 : rand() % 64 ? rand() % 64
															 : 2500;

		make_random(text[0], pieces, NULL);
		make_random(text[1], pieces, rand() % 4 ? text[0] : NULL);
		for (int i = 0; i < 2; i++)
		{
			length[i] = first_level(text[i], level[i], sizeof(level[i]));
			check_key(text[i], level[i], length[i]);
		}
		check_pair(text[0], level[0], length[0], text[1], level[1], length[1]);
	}
}

/* The two points of a locale; false if one of them failed. */
static bool
check_locale(const char *name, int point, double seconds)
{
	char full[64];
	const char *why_not;
	const char *codeset;

	snprintf(full, sizeof(full), "%s%s", name, strchr(name, '.') == NULL ? ".UTF-8" : "");
	locale = newlocale(LC_ALL_MASK, full, (locale_t) 0);
	codeset = locale == (locale_t) 0 ? "" : nl_langinfo_l(CODESET, locale);
	why_not = locale == (locale_t) 0 ? "is not there" : gpusort_libc_unfit(locale, codeset);
	walk = why_not == NULL ? gpusort_libc_walk_create(locale, strcmp(codeset, "UTF-8") != 0) : NULL;
	if (walk == NULL)
	{
		/* without a walker keys come from strxfrm_l, which is not what is tested here */
		for (int i = 0; i < 3; i++)
		{
			if (why_not == NULL)
				printf("not ok %d - %s: no walker\n", point + i, name);
			else
				printf("ok %d - %s # SKIP it %s\n", point + i, name, why_not);
		}
		return why_not != NULL;
	}
	gpusort_libc_less_init(&less, locale, walk);
	nstrings = ncut = npairs = nless = ntold = wrong_keys = wrong_pairs = wrong_ends = 0;
	for (size_t i = 0; i < COUNT(alphabets); i++)
		check_alphabet(alphabets[i], seconds >= 60 ? 4 : 3, seconds >= 1 ? 1 : 16);
	check_random(seconds);
	printf("%sok %d - %s: the bytes of %ld strings are the first level of strxfrm\n", wrong_keys ? "not " : "", point,
		   name, nstrings);
	printf("# of %ld of them, the beginning was enough\n", ncut);
	printf("%sok %d - %s: the first levels of %ld pairs are in the order of strcoll\n", wrong_pairs ? "not " : "",
		   point + 1, name, npairs);
	printf("%sok %d - %s: of %ld pairs with other first levels the ends tell %ld, as strcoll of the whole\n",
		   wrong_ends > 0 || ntold <= nless / 2 ? "not " : "", point + 2, name, nless, ntold);
	if (wrong_keys + wrong_pairs + wrong_ends > 0)
		printf("# %s: %ld strings with another key, %ld pairs in another order, %ld by their ends\n", name, wrong_keys,
			   wrong_pairs, wrong_ends);
	fflush(stdout);
	freelocale(locale);
	return wrong_keys + wrong_pairs + wrong_ends == 0 && ntold > nless / 2;
}

int
main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0.2;
	int count = argc > 2 ? argc - 2 : (int) COUNT(locales);
	unsigned seed = getenv("SEED") != NULL ? atoi(getenv("SEED")) : time(NULL);
	bool good = true;

	srand(seed);
	printf("1..%d\n# seed %u\n", 3 * count, seed);
	for (int i = 0; i < count; i++)
		good = check_locale(argc > 2 ? argv[i + 2] : locales[i], 1 + 3 * i, seconds) && good;
	return good ? 0 : 1;
}
