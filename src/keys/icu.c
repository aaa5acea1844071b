/*-------------------------------------------------------------------------
 *
 * keys_icu.c
 *	  Strings under ICU collations as bytes that order like them.
 *
 * The bytes are those of ICU's sort key, which compare like the strings do: a
 * level of weights for letters, one for accents, one for case, each after a byte
 * 1, none with a byte 0.  A deterministic collation puts strings that ICU finds
 * equal into the order of their own bytes, so these follow, after a byte 0.
 * Strings with equal bytes, if these are all of them, are then equal to
 * PostgreSQL, and different ones are different to it.
 *
 * Not all collations compare as their sort keys do.  With variable characters
 * shifted, accents compared backwards, normalization, a case level or the
 * identical level, ucol_strcoll, which is what PostgreSQL calls, gives other
 * answers for some strings with ignorable characters and unusual accents: it looks
 * at less of what the two have in common.  In the first level there is no such
 * difference.  So of these collations the first level alone is encoded, from a
 * collator with nothing else, and no string is ever encoded whole: the comparator
 * decides the rest.  Where digits, signs or "all others" are put into another
 * place among the scripts, even the first levels differ, as to digits; there is no
 * encoding then.  doc/types.md lists them all.
 *
 * ICU takes 25 ns a character.  Strings of ASCII need it less: most characters
 * have weights of their own whatever stands beside them, so that the first level
 * is these one after the other, and of the usual collations the other levels are
 * known too.  What the weights are is asked of ICU, character by character; that
 * this makes ICU's keys is checked for every pair of characters, when a collation
 * is used for the first time, or else it is not done.  Left to ICU are characters
 * without weights or with several (digits in numeric order, tailored ones),
 * beginnings of contractions ("ch" in Czech), and strings in which a character
 * without a known weight stands anywhere in or next to the part that is needed.
 *
 * Letters of other alphabets below U+0800 are asked for when they occur: what
 * bytes a character adds to the first level behind the one before it, which is all
 * that they can depend on but for contractions.  That is enough for strings whose
 * first level fills what is asked for.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/keys.h"

#ifdef USE_ICU

#include "catalog/pg_collation.h"
#include "keys/icu_library.h"
#include "mb/pg_wchar.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"

/* The range of characters that can have a weight here. */
#define FIRST_CHAR  ' '
#define LAST_CHAR   '~'
#define ASCII_CHARS 128

/* A character's first-level bytes, in memory order, with these above; 0: it is not simple. */
#define WEIGHT_BYTES     3
#define WEIGHT_LENGTH(w) ((w) >> 24 & 3)
#define WEIGHT_CONTRACTS ((uint32) 1 << 31) /* it begins a pair that is not simple */

/* ICU's bytes of levels beyond the first: runs of common weights are counted. */
#define LEVEL_SEPARATOR  1
#define COMMON           5
#define SECONDARY_MIDDLE (COMMON + 0x20)
#define SECONDARY_RUN    0x21
#define TERTIARY_MIDDLE  (COMMON + 0x60)
#define TERTIARY_HIGH    (COMMON + 0xC0)
#define TERTIARY_RUN     0x61

/* What is looked at to check a collator: texts of so many characters, sort keys of so many bytes. */
#define CHECK_CHARS 256
#define CHECK_BYTES ((WEIGHT_BYTES + 2) * CHECK_CHARS)

/*
 * What characters below PAIR_CHARS add behind others: a hash table of entries of
 * the bytes, their number (0: not to be known) and the pair.
 */
#define PAIR_CHARS                     0x800
#define PAIR_SLOTS                     8192 /* 2^13 */
#define PAIR_HASH(key)                 ((uint32) (key) *0x9E3779B1 >> (32 - 13))
#define PAIRS_MAX                      4096 /* later ones are not known */
#define PAIR_KEY(a, b)                 ((uint64) (a) << 11 | (b))
#define PAIR_ENTRY(key, length, bytes) ((key) << 40 | (uint64) (length) << 32 | (bytes))
#define PAIR_ENTRY_KEY(entry)          ((entry) >> 40)
#define PAIR_ENTRY_LENGTH(entry)       ((entry) >> 32 & 0xFF)

/* The characters below PAIR_CHARS that end contractions of the root collation: "l" with a dot behind it. */
#define MIDDLE_DOT       0xB7
#define GREEK_ANO_TELEIA 0x387

struct GpuSortIcu
{
	GpuSortIcu *next;
	const UCollator *collator; /* PostgreSQL's, which lives as long as the backend */
	UCollator *keys;           /* what makes sort keys: the same, or of the first level only */
	bool deterministic;
	bool decides;          /* sort keys that are equal mean strings that are */
	UConverter *converter; /* to UTF-16; NULL: strings are UTF-8 */
	UChar *units;          /* for its results */
	int capacity;          /* units */

	/* what is known of ASCII characters */
	int levels;                           /* of the sort keys, 1 to 3; 0: only the first is known */
	bool pairs[ASCII_CHARS][ASCII_CHARS]; /* where WEIGHT_CONTRACTS: which are not simple */
	uint32 weights[256];                  /* by byte */
	unsigned char tertiary[ASCII_CHARS];  /* 0: the common weight */

	/* and of pairs */
	uint64 *entries; /* 0: a free slot.  NULL: strings are not UTF-8, or ICU is strange */
	int nentries;
	uint32 *contractions; /* PAIR_KEYs of tailored ones, or parts of them */
	int ncontractions;
};

/* The collators known to this backend. */
static GpuSortIcu *known = NULL;

/* Is ICU there for the strings of this database? */
static bool
is_available(void)
{
	static int loaded = -1;

	if (loaded < 0)
		loaded = gpusort_icu_load();
	return loaded && is_encoding_supported_by_icu(GetDatabaseEncoding());
}

/* Can strings under this ICU collation have keys? */
bool
gpusort_icu_has_keys(Oid collation)
{
	int32_t codes[256];
	UErrorCode error = 0;
	int count;

	if (!is_available())
		return false;
	count = gpusort_icu.ucol_getReorderCodes(pg_newlocale_from_collation(collation)->info.icu.ucol, codes, lengthof(codes), &error);
	if (U_FAILURE(error))
		return false;
	for (int i = 0; i < count; i++)
	{
		if (codes[i] >= UCOL_REORDER_CODE_FIRST || codes[i] == USCRIPT_UNKNOWN)
			return false;
	}
	return true;
}

static void
check(UErrorCode error)
{
	if (U_FAILURE(error))
		ereport(ERROR,
				(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
				 errmsg("ICU could not make a sort key: error %d", error)));
}

/* The first room bytes of a string's sort key; returns how many there are. */
static pg_noinline int
ask_icu(GpuSortIcu *state, const char *data, int length, char *bytes, int room)
{
	UCharIterator text;
	uint32_t part[2] = {0, 0};
	UErrorCode error = 0;
	int count;

	if (state->converter == NULL)
		gpusort_icu.uiter_setUTF8(&text, data, length);
	else
	{
		int units;

		if (state->capacity <= length)
		{
			if (state->units != NULL)
				pfree(state->units);
			state->units = NULL;
			state->capacity = Max(2 * length, 256);
			state->units = MemoryContextAllocHuge(TopMemoryContext, (Size) state->capacity * sizeof(UChar));
		}
		units = gpusort_icu.ucnv_toUChars(state->converter, state->units, state->capacity, data, length, &error);
		check(error);
		gpusort_icu.uiter_setString(&text, state->units, units);
	}
	count = gpusort_icu.ucol_nextSortKeyPart(state->keys, &text, part, (uint8_t *) bytes, room, &error);
	check(error);
	return count;
}

/* Adds the bytes of a run of count common weights that ends the level. */
static inline char *
put_run(char *next, int count, int middle, int longest)
{
	if (count == 0)
		return next;
	for (count--; count >= longest; count -= longest)
		*next++ = middle;
	*next++ = COMMON + count;
	return next;
}

/*
 * The same as ask_icu for strings of simple characters; -1 if it is none, as far
 * as needed.  It may write GPUSORT_ICU_SLACK bytes more than room.
 */
static inline int
put_simple(const GpuSortIcu *state, const unsigned char *data, int length, char *bytes, int room)
{
	char *next = bytes;
	char *end = bytes + room;
	int run = 0;

	for (int i = 0; i < length; i++)
	{
		uint32 weight = state->weights[data[i]];

		if (unlikely((int32) weight <= 0))
		{
			if (weight == 0 ||
				(i + 1 < length && data[i + 1] < ASCII_CHARS && state->pairs[data[i]][data[i + 1]]))
				return -1;
		}
		StaticAssertStmt(GPUSORT_ICU_SLACK >= sizeof(weight), "a weight is written as a whole");
		memcpy(next, &weight, sizeof(weight));
		next += WEIGHT_LENGTH(weight);
		if (next >= end)
		{
			/* The next character could change this one's weight; so it must be known, too. */
			if (i + 1 < length && state->weights[data[i + 1]] == 0)
				return -1;
			return room;
		}
	}

	if (state->levels == 0)
		return -1;
	if (state->levels > 1)
	{
		*next++ = LEVEL_SEPARATOR;
		next = put_run(next, length, SECONDARY_MIDDLE, SECONDARY_RUN);
	}
	if (state->levels > 2)
	{
		*next++ = LEVEL_SEPARATOR;
		for (int i = 0; i < length && next < end; i++)
		{
			unsigned char tertiary = state->tertiary[data[i]];

			if (tertiary == 0)
			{
				run++;
				continue;
			}
			if (run > 0)
			{
				/* A run before a greater weight is counted down. */
				for (run--; run >= TERTIARY_RUN && next < end; run -= TERTIARY_RUN)
					*next++ = TERTIARY_MIDDLE;
				*next++ = TERTIARY_HIGH - run;
				run = 0;
			}
			*next++ = tertiary;
		}
		if (next < end)
			next = put_run(next, run, TERTIARY_MIDDLE, TERTIARY_RUN);
	}
	return Min(next - bytes, room);
}

/* The first level of a string of one or two characters below PAIR_CHARS; -1 if it is too long. */
static int
ask_level(GpuSortIcu *state, const uint32 *chars, int count, char *bytes, int room)
{
	char text[4];
	int length = 0;
	char *separator;

	for (int i = 0; i < count; i++)
	{
		if (chars[i] >= 0x80)
		{
			text[length++] = 0xC0 | chars[i] >> 6;
			text[length++] = 0x80 | (chars[i] & 0x3F);
		}
		else
			text[length++] = chars[i];
	}
	length = ask_icu(state, text, length, bytes, room);
	separator = memchr(bytes, LEVEL_SEPARATOR, length);
	if (separator != NULL)
		return separator - bytes;
	return length < room ? length : -1;
}

/* Makes the entry of the pair of before, 0 at a string's beginning, and c. */
static pg_noinline uint64
ask_pair(GpuSortIcu *state, uint32 before, uint32 c)
{
	uint64 key = PAIR_KEY(before, c);
	uint64 unknown = PAIR_ENTRY(key, 0, 0);
	uint32 chars[2] = {before, c};
	char first[32];
	char both[32];
	int first_length = 0;
	int length;
	uint32 bytes = 0;

	if (c == MIDDLE_DOT || c == GREEK_ANO_TELEIA)
		return unknown;
	for (int i = 0; i < state->ncontractions; i++)
	{
		if (state->contractions[i] == key)
			return unknown;
	}
	if (before != 0)
		first_length = ask_level(state, chars, 1, first, sizeof(first));
	length = ask_level(state, chars + (before == 0), before == 0 ? 1 : 2, both, sizeof(both)) - first_length;
	if (first_length < 0 || length <= 0 || length > sizeof(bytes) || memcmp(both, first, first_length) != 0)
		return unknown;
	memcpy(&bytes, both + first_length, length);
	return PAIR_ENTRY(key, length, bytes);
}

/*
 * The same as ask_icu for strings of characters below PAIR_CHARS whose first level
 * has room bytes; else -1.  It may write GPUSORT_ICU_SLACK bytes more.
 */
static int
put_pairs(GpuSortIcu *state, const unsigned char *data, int length, char *bytes, int room)
{
	const unsigned char *data_end = data + length;
	char *next = bytes;
	char *end = bytes + room;
	uint32 before = 0;

	while (data < data_end)
	{
		uint32 c = *data++;
		uint64 key;
		uint64 entry;
		uint32 slot;

		if (c >= 0x80)
		{
			if (c >= 0xE0)
				return -1;
			c = (c & 0x1F) << 6 | (*data++ & 0x3F);
		}
		key = PAIR_KEY(before, c);
		slot = PAIR_HASH(key);
		while (PAIR_ENTRY_KEY(state->entries[slot]) != key && state->entries[slot] != 0)
			slot = (slot + 1) % PAIR_SLOTS;
		if (unlikely(state->entries[slot] == 0))
		{
			if (state->nentries == PAIRS_MAX)
				return -1;
			state->entries[slot] = ask_pair(state, before, c);
			state->nentries++;
		}
		entry = state->entries[slot];
		if (PAIR_ENTRY_LENGTH(entry) == 0)
			return -1;
		/* A character next to the last that is needed must be known, too. */
		if (next >= end)
			return room;
		StaticAssertStmt(GPUSORT_ICU_SLACK >= sizeof(uint32), "an entry's bytes are written as a whole");
		memcpy(next, &(uint32){entry}, sizeof(uint32));
		next += PAIR_ENTRY_LENGTH(entry);
		before = c;
	}
	return next >= end ? room : -1;
}

/* Does put_simple make what ICU does? */
static bool
is_right(GpuSortIcu *state, const char *data, int length)
{
	char ours[CHECK_BYTES + GPUSORT_ICU_SLACK];
	char theirs[CHECK_BYTES];
	int room = CHECK_BYTES;
	int count;

	count = ask_icu(state, data, length, theirs, room);
	if (state->levels == 0)
	{
		/* up to where the second level begins */
		char *separator = memchr(theirs, LEVEL_SEPARATOR, count);

		if (separator == NULL)
			return false;
		room = count = separator - theirs;
	}
	return put_simple(state, (const unsigned char *) data, length, ours, room) == count &&
		memcmp(ours, theirs, count) == 0;
}

/* Asks for the weights of a character, which is simple if they look like all others'. */
static void
learn_char(GpuSortIcu *state, unsigned char c)
{
	char bytes[64];
	char twice[64];
	char text[2] = {c, c};
	uint32 weight = 0;
	int count = ask_icu(state, text, 1, bytes, sizeof(bytes));
	char *separator = memchr(bytes, LEVEL_SEPARATOR, count);
	int primary = separator == NULL ? count : separator - bytes;

	if (primary == 0 || primary > WEIGHT_BYTES)
		return;
	/* Bytes that begin many weights are written once for a row of them; not so for the usual ones. */
	ask_icu(state, text, 2, twice, sizeof(twice));
	if (memcmp(twice, bytes, primary) != 0 || memcmp(twice + primary, bytes, primary) != 0)
		return;
	if (state->levels > 1 && (count < primary + 2 || bytes[primary + 1] != COMMON))
		return;
	if (state->levels > 2)
	{
		unsigned char tertiary;

		if (count != primary + 4 || bytes[primary + 2] != LEVEL_SEPARATOR)
			return;
		tertiary = bytes[primary + 3];
		if (tertiary != COMMON && tertiary <= TERTIARY_HIGH)
			return;
		state->tertiary[c] = tertiary == COMMON ? 0 : tertiary;
	}
	else if (state->levels == 2 && count != primary + 2)
		return;
	memcpy(&weight, bytes, primary);
	state->weights[c] = weight | (uint32) primary << 24;
}

/*
 * Finds the contractions that are tailored, with what stands before and after;
 * the root collation has none in ASCII.  false: what they are is not known.
 */
static bool
learn_contractions(GpuSortIcu *state)
{
	UErrorCode error = 0;
	USet *tailored = gpusort_icu.ucol_getTailoredSet(state->keys, &error);
	int count;
	int capacity = 0;

	if (U_FAILURE(error))
		return false;
	count = gpusort_icu.uset_getItemCount(tailored);
	for (int i = 0; i < count && !U_FAILURE(error); i++)
	{
		UChar text[256];
		UChar32 first;
		UChar32 last;
		int length = gpusort_icu.uset_getItem(tailored, i, &first, &last, text, lengthof(text), &error);

		for (int j = 0; j + 1 < length && !U_FAILURE(error); j++)
		{
			uint32 a = text[j];
			uint32 b = text[j + 1];

			if (a < ASCII_CHARS && b < ASCII_CHARS && state->weights[a] != 0)
			{
				state->weights[a] |= WEIGHT_CONTRACTS;
				state->pairs[a][b] = true;
			}
			if (a >= PAIR_CHARS || b >= PAIR_CHARS)
				continue;
			if (state->ncontractions == capacity)
			{
				capacity = Max(2 * capacity, 64);
				state->contractions = state->contractions == NULL ? MemoryContextAlloc(TopMemoryContext, capacity * sizeof(uint32)) : repalloc(state->contractions, capacity * sizeof(uint32));
			}
			state->contractions[state->ncontractions++] = PAIR_KEY(a, b);
		}
	}
	gpusort_icu.uset_close(tailored);
	return !U_FAILURE(error);
}

/* Adds the character to a text that is made for a check, if it does not begin a contraction with the last. */
static bool
append_char(const GpuSortIcu *state, char *text, int *length, unsigned char c)
{
	if (state->weights[c] == 0 ||
		(*length > 0 && state->pairs[(unsigned char) text[*length - 1]][c]))
		return false;
	text[(*length)++] = c;
	return true;
}

/*
 * Checks texts that have every pair of simple characters but those around
 * contractions, and texts that have runs of all lengths.
 */
static bool
check_texts(GpuSortIcu *state)
{
	char text[CHECK_CHARS];
	int length;
	uint32 random = 1;

	for (int a = FIRST_CHAR; a <= LAST_CHAR; a++)
	{
		StaticAssertStmt(CHECK_CHARS > 2 * (LAST_CHAR - FIRST_CHAR + 1), "pairs with one character fit a text");
		length = 0;
		for (int b = a; b <= LAST_CHAR; b++)
		{
			(void) append_char(state, text, &length, a);
			(void) append_char(state, text, &length, b);
		}
		if (length > 0 && !is_right(state, text, length))
			return false;
	}
	for (int longest = 1; longest <= CHECK_CHARS; longest *= 2)
	{
		length = 0;
		for (int tries = 0; tries < CHECK_CHARS && length < CHECK_CHARS; tries++)
		{
			unsigned char c;
			int run;

			random = random * 1103515245 + 12345;
			c = FIRST_CHAR + (random >> 16) % (LAST_CHAR - FIRST_CHAR + 1);
			random = random * 1103515245 + 12345;
			run = 1 + (random >> 16) % longest;
			while (run-- > 0 && length < CHECK_CHARS && append_char(state, text, &length, c))
				;
		}
		if (length > 0 && !is_right(state, text, length))
			return false;
	}
	return true;
}

/* Asks ICU what put_simple needs; where that is not as it should be, no character is simple. */
static void
learn(GpuSortIcu *state)
{
	for (int c = FIRST_CHAR; c <= LAST_CHAR; c++)
		learn_char(state, c);
	if (!learn_contractions(state) || !check_texts(state))
		memset(state->weights, 0, sizeof(state->weights));
	else if (state->converter == NULL)
		state->entries = MemoryContextAllocZero(TopMemoryContext, PAIR_SLOTS * sizeof(uint64));
}

static int
attribute(const UCollator *collator, int which)
{
	UErrorCode error = 0;
	int value = gpusort_icu.ucol_getAttribute(collator, which, &error);

	check(error);
	return value;
}

static void
set_attribute(UCollator *collator, int which, int value)
{
	UErrorCode error = 0;

	gpusort_icu.ucol_setAttribute(collator, which, value, &error);
	check(error);
}

/*
 * What makes the bytes of strings under an ICU collation.  It belongs to the
 * backend, like the collator, and is made once.
 */
GpuSortIcu *
gpusort_icu_create(Oid collation)
{
	pg_locale_t locale = pg_newlocale_from_collation(collation);
	UCollator *collator = locale->info.icu.ucol;
	GpuSortIcu *state;
	UErrorCode error = 0;
	int strength;

	Assert(locale->provider == COLLPROVIDER_ICU);
	for (state = known; state != NULL; state = state->next)
	{
		if (state->collator == collator)
			return state;
	}

	state = MemoryContextAllocZero(TopMemoryContext, sizeof(GpuSortIcu));
	state->collator = collator;
	state->keys = collator;
	state->deterministic = locale->deterministic;
	strength = attribute(collator, UCOL_STRENGTH);
	state->decides = strength <= UCOL_QUATERNARY && attribute(collator, UCOL_CASE_LEVEL) == UCOL_OFF &&
		attribute(collator, UCOL_FRENCH_COLLATION) == UCOL_OFF &&
		attribute(collator, UCOL_NORMALIZATION_MODE) == UCOL_OFF &&
		attribute(collator, UCOL_ALTERNATE_HANDLING) == UCOL_NON_IGNORABLE;
	if (!state->decides)
	{
		strength = UCOL_PRIMARY;
		state->keys = gpusort_icu.ucol_safeClone(collator, NULL, NULL, &error);
		check(error);
		set_attribute(state->keys, UCOL_STRENGTH, strength);
		set_attribute(state->keys, UCOL_CASE_LEVEL, UCOL_OFF);
	}
	if (strength <= UCOL_TERTIARY && attribute(collator, UCOL_CASE_FIRST) == UCOL_OFF)
		state->levels = strength - UCOL_PRIMARY + 1;
	if (GetDatabaseEncoding() != PG_UTF8)
	{
		state->converter = gpusort_icu.ucnv_open(get_encoding_name_for_icu(GetDatabaseEncoding()), &error);
		check(error);
	}
	learn(state);
	state->next = known;
	known = state;
	return state;
}

/* The first room bytes of a string's sort key, at bytes, by the shortest way; returns how many there are. */
static inline int
sort_key(GpuSortIcu *state, const char *data, int length, char *bytes, int room)
{
	int count = put_simple(state, (const unsigned char *) data, length, bytes, room);

	if (count < 0 && state->entries != NULL)
		count = put_pairs(state, (const unsigned char *) data, length, bytes, room);
	if (count < 0)
		return ask_icu(state, data, length, bytes, room);
#ifdef USE_ASSERT_CHECKING
	{
		char *theirs = palloc(room);

		Assert(ask_icu(state, data, length, theirs, room) == count);
		Assert(memcmp(bytes, theirs, count) == 0);
		pfree(theirs);
	}
#endif
	return count;
}

/*
 * The first room bytes of what a string's order is, at bytes, which has room for
 * GPUSORT_ICU_SLACK more.  Returns how many there are; *whole says whether that is
 * all of them, and decides.
 */
int
gpusort_icu_bytes(GpuSortIcu *state, const char *data, int length, char *bytes, int room, bool *whole)
{
	int count = sort_key(state, data, length, bytes, room + 1);

	*whole = count <= room && state->decides;
	if (*whole && state->deterministic)
	{
		*whole = length < room - count;
		if (count < room)
			bytes[count++] = 0;
		length = Min(length, room - count);
		memcpy(bytes + count, data, length);
		count += length;
	}
	return Min(count, room);
}

#else /* no USE_ICU: the server has no such collations */

bool
gpusort_icu_has_keys(Oid collation)
{
	return false;
}

GpuSortIcu *
gpusort_icu_create(Oid collation)
{
	elog(ERROR, "collation %u is not ICU's", collation);
}

int
gpusort_icu_bytes(GpuSortIcu *state, const char *data, int length, char *bytes, int room, bool *whole)
{
	pg_unreachable();
}

#endif /* USE_ICU */
