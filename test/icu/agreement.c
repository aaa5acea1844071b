/*-------------------------------------------------------------------------
 *
 * agreement.c
 *	  Counts, by collation, where ICU compares strings otherwise than their sort keys do.
 *
 *	  gcc -O2 -o agreement test/icu/agreement.c -licui18n -licuuc
 *	  ./agreement SECONDS [LOCALE ...]
 *
 * For each locale (all that ICU has and some with attributes, if none is named)
 * it makes pairs of strings for so many seconds, compares each by ucol_strcollUTF8,
 * ucol_strcoll and sort keys from ucol_nextSortKeyPart, and prints how often these
 * differ, in all levels and in the first; and whether keys that are cut off, and
 * those of ucol_getSortKey, are the same.  src/keys/bytes/icu.c draws on the answers.
 *
 * Not part of the tests: it needs ICU's development files, and finds what only a
 * new version of ICU can change.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unicode/ucol.h>
#include <unicode/uiter.h>
#include <unicode/ustring.h>

#define LENGTH_MAX   64   /* characters of a string */
#define KEY_MAX      8192 /* bytes of a sort key */
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

typedef struct String
{
	int count;
	UChar32 chars[LENGTH_MAX];
	int length;
	char text[4 * LENGTH_MAX];
	int units;
	UChar wide[2 * LENGTH_MAX];
} String;

static const char *const attributes[] = {
	"und-u-ks-level1", "und-u-ks-level2", "und-u-ks-level3", "und-u-ks-level4", "und-u-ks-identic", "und-u-ka-shifted",
	"und-u-ka-shifted-ks-level1", "und-u-ka-shifted-ks-level2", "und-u-ka-shifted-ks-level4",
	"und-u-ka-shifted-ks-identic",
	"und-u-ka-shifted-kv-symbol", "und-u-kn-true", "und-u-kn-true-ka-shifted-ks-level4", "und-u-kf-upper",
	"und-u-kf-lower",
	"und-u-kc-true", "und-u-ks-level1-kc-true", "und-u-ks-level2-kc-true-kf-upper", "und-u-kb-true", "und-u-kk-true",
	"und-u-kk-true-ks-identic-ka-shifted-kb-true", "und-u-kr-grek-latn", "und-u-kr-digit-latn", "und-u-kr-latn-digit",
	"de-u-co-phonebk", "es-u-co-trad", "und-u-co-emoji", "und-u-co-search", "ja-u-ks-level4"};

/*
 * Letters, parts of contractions, signs, digits; composed and combining accents of
 * all classes, characters without weight; other scripts, the first and last of all.
 */
static const UChar32 pieces[] = {
	'a', 'a', 'a', 'A', 'b', 'B', 'c', 'C', 'h', 'H', 'l', 'L', 'z', 'Z', 'e', 'E', 'o', 's', 'S', 'i', 'I', ' ', ' ',
	'-', '_', '.', ',', '$',
	'0', '0', '1', '2', '9', 0x1, 0x7f, 9, 0xe9, 0xc9, 0xe8, 0xe5, 0xe4, 0xf6, 0xf8, 0xdf, 0xe6, 0xc6, 0xb7, 0x140, 0x300,
	0x301, 0x301, 0x308,
	0x30a, 0x323, 0x327, 0x328, 0x345, 0x34f, 0xad, 0x200b, 0x200d, 0xfeff, 0x3b1, 0x391, 0x3b2, 0x430, 0x410, 0x439,
	0x4e00, 0x4e8c, 0x3042,
	0x30a2, 0xff71, 0x3099, 0x30fc, 0xac00, 0x1100, 0x1161, 0x11a8, 0xe01, 0xe40, 0xe41, 0xe48, 0xd7ff, 0xe000, 0xfffd,
	0xfffe, 0xffff, 0x10000,
	0x1f600, 0x1f1e6, 0x10ffff, 0x212a, 0x212b, 0x37e, 0x660, 0x966, 0xff11, 0x2460, 0x2075, 0xfb01, 0xfdfa, 0x5d0, 0x627,
	0xf71, 0xf72, 0xf80,
	0x1d165, 0x2f800, 0x3131};

static UChar32
piece(void)
{
	return pieces[rand() % COUNT(pieces)];
}

/* A pair: mostly, the second is the first with one or two characters changed. */
static void
make_pair(String *a, String *b)
{
	UErrorCode error = U_ZERO_ERROR;

	a->count = rand() % 3 ? rand() % 12 : rand() % (LENGTH_MAX - 4);
	for (int i = 0; i < a->count; i++)
		a->chars[i] = piece();
	*b = *a;
	for (int changes = 1 + rand() % 2; changes > 0 && b->count > 0; changes--)
	{
		int place = rand() % b->count;
		int rest = b->count - place;

		switch (rand() % 3)
		{
			case 0:
				b->chars[place] = piece();
				break;
			case 1:
				memmove(b->chars + place + 1, b->chars + place, rest * sizeof(UChar32));
				b->chars[place] = piece();
				b->count++;
				break;
			default:
				memmove(b->chars + place, b->chars + place + 1, (rest - 1) * sizeof(UChar32));
				b->count--;
		}
	}
	for (String *s = a; s != NULL; s = s == a ? b : NULL)
	{
		u_strFromUTF32(s->wide, COUNT(s->wide), &s->units, s->chars, s->count, &error);
		u_strToUTF8(s->text, sizeof(s->text), &s->length, s->wide, s->units, &error);
	}
	if (U_FAILURE(error))
		abort();
}

static int
make_key(const UCollator *collator, const String *s, uint8_t *key, int room)
{
	UCharIterator text;
	uint32_t part[2] = {0, 0};
	UErrorCode error = U_ZERO_ERROR;
	int count;

	uiter_setUTF8(&text, s->text, s->length);
	count = ucol_nextSortKeyPart(collator, &text, part, key, room, &error);
	if (U_FAILURE(error))
		abort();
	return count;
}

static int
compare_keys(const uint8_t *a, int a_length, const uint8_t *b, int b_length)
{
	int order = memcmp(a, b, a_length < b_length ? a_length : b_length);

	if (order == 0)
		order = a_length - b_length;
	return (order > 0) - (order < 0);
}

static void
test(const char *locale, double seconds)
{
	UErrorCode error = U_ZERO_ERROR;
	UCollator *collator = ucol_open(locale, &error);
	UCollator *first = ucol_clone(collator, &error);
	long pairs = 0;
	long wrong = 0;
	long wrong_wide = 0;
	long wrong_first = 0;
	long other_keys = 0;
	clock_t start = clock();

	ucol_setAttribute(first, UCOL_STRENGTH, UCOL_PRIMARY, &error);
	ucol_setAttribute(first, UCOL_CASE_LEVEL, UCOL_OFF, &error);
	if (U_FAILURE(error))
	{
		printf("%s: %s\n", locale, u_errorName(error));
		exit(1);
	}
	for (; (double) (clock() - start) / CLOCKS_PER_SEC < seconds; pairs++)
	{
		static String s[2];
		static uint8_t keys[2][KEY_MAX];
		static uint8_t firsts[2][KEY_MAX];
		int lengths[2];
		int first_lengths[2];
		int order;
		int by_first;

		make_pair(&s[0], &s[1]);
		for (int i = 0; i < 2; i++)
		{
			uint8_t other[KEY_MAX];
			int room = 1 + rand() % 40;

			lengths[i] = make_key(collator, &s[i], keys[i], KEY_MAX);
			first_lengths[i] = make_key(first, &s[i], firsts[i], KEY_MAX);
			if (ucol_getSortKey(collator, s[i].wide, s[i].units, other, KEY_MAX) != lengths[i] + 1 ||
				memcmp(other, keys[i], lengths[i]) != 0)
				other_keys++;
			room = make_key(collator, &s[i], other, room);
			if (memcmp(other, keys[i], room) != 0)
				other_keys++;
		}
		order = ucol_strcollUTF8(collator, s[0].text, s[0].length, s[1].text, s[1].length, &error);
		wrong += order != compare_keys(keys[0], lengths[0], keys[1], lengths[1]);
		wrong_wide += order != (int) ucol_strcoll(collator, s[0].wide, s[0].units, s[1].wide, s[1].units);
		by_first = compare_keys(firsts[0], first_lengths[0], firsts[1], first_lengths[1]);
		wrong_first += by_first != 0 && by_first != order;
	}
	printf("%-44s pairs %8ld  key differs %6ld  first level %6ld  strcoll %4ld  other key %ld\n", locale, pairs, wrong,
		   wrong_first, wrong_wide, other_keys);
	ucol_close(first);
	ucol_close(collator);
}

int
main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;

	srand(time(NULL));
	for (int i = 2; i < argc; i++)
		test(argv[i], seconds);
	for (int i = 0; argc <= 2 && i < ucol_countAvailable(); i++)
		test(ucol_getAvailable(i), seconds);
	for (int i = 0; argc <= 2 && i < (int) COUNT(attributes); i++)
		test(attributes[i], seconds);
	return 0;
}
