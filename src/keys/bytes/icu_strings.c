/*-------------------------------------------------------------------------
 *
 * icu_strings.c
 *	  Strings under ICU collations as bytes that order like them.
 *
 * What the bytes are, and why they are right, is said in icu.c.
 *
 * ICU takes 25 ns a character.  Strings of ASCII need it less: most characters
 * have weights of their own whatever stands beside them, so that the first level
 * is these one after the other, and of the usual collations the other levels are
 * known too.  What the weights are icu.c has asked ICU.  Left to ICU are characters
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
#include "keys/encoders.h"

#ifdef USE_ICU

#include "keys/bytes/icu_state.h"
#include "utils/memutils.h"

/* ICU's bytes of runs of common weights, which are counted. */
#define SECONDARY_MIDDLE (GPUSORT_ICU_COMMON + 0x20)
#define SECONDARY_RUN    0x21
#define TERTIARY_MIDDLE  (GPUSORT_ICU_COMMON + 0x60)
#define TERTIARY_RUN     0x61

/*
 * What characters below GPUSORT_ICU_PAIR_CHARS add behind others: a hash table of
 * entries of the bytes, their number (0: not to be known) and the pair.
 */
#define PAIRS_MAX                      4096 /* later ones are not known */
#define PAIR_HASH(key)                 ((uint32) (key) *0x9E3779B1 >> (32 - 13))
#define PAIR_ENTRY(key, length, bytes) ((key) << 40 | (uint64) (length) << 32 | (bytes))
#define PAIR_ENTRY_KEY(entry)          ((entry) >> 40)
#define PAIR_ENTRY_LENGTH(entry)       ((entry) >> 32 & 0xFF)

/* Those that end contractions of the root collation: "l" with a dot behind it. */
#define MIDDLE_DOT       0xB7
#define GREEK_ANO_TELEIA 0x387

/* Raises an error if ICU has found one. */
void
gpusort_icu_check(UErrorCode error)
{
	if (U_FAILURE(error))
		ereport(ERROR,
				(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
				 errmsg("ICU could not make a sort key: error %d", error)));
}

/* Writes the first room bytes of a string's sort key, as ICU makes it; returns how many there are.  Errors: ICU's. */
pg_noinline int
gpusort_icu_ask(GpuSortIcu *state, const char *data, int length, char *bytes, int room)
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
		gpusort_icu_check(error);
		gpusort_icu.uiter_setString(&text, state->units, units);
	}
	count = gpusort_icu.ucol_nextSortKeyPart(state->keys, &text, part, (uint8_t *) bytes, room, &error);
	gpusort_icu_check(error);
	return count;
}

/* Adds the bytes of a run of count common weights that ends the level, up to one behind end. */
static inline char *
put_run(char *next, const char *end, int count, int middle, int longest)
{
	if (count == 0)
		return next;
	for (count--; count >= longest && next < end; count -= longest)
		*next++ = middle;
	*next++ = GPUSORT_ICU_COMMON + count;
	return next;
}

/*
 * The same as gpusort_icu_ask for strings of simple characters; -1 if it is none, as far
 * as needed.  It may write GPUSORT_ICU_SLACK bytes more than room.
 */
static pg_attribute_always_inline int
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
				(i + 1 < length && data[i + 1] < GPUSORT_ICU_ASCII_CHARS && state->pairs[data[i]][data[i + 1]]))
				return -1;
		}
		StaticAssertStmt(GPUSORT_ICU_SLACK >= sizeof(weight), "a weight is written as a whole");
		memcpy(next, &weight, sizeof(weight));
		next += GPUSORT_ICU_WEIGHT_LENGTH(weight);
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
		*next++ = GPUSORT_ICU_LEVEL_SEPARATOR;
		next = put_run(next, end, length, SECONDARY_MIDDLE, SECONDARY_RUN);
	}
	if (state->levels > 2)
	{
		*next++ = GPUSORT_ICU_LEVEL_SEPARATOR;
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
				*next++ = GPUSORT_ICU_TERTIARY_HIGH - run;
				run = 0;
			}
			*next++ = tertiary;
		}
		if (next < end)
			next = put_run(next, end, run, TERTIARY_MIDDLE, TERTIARY_RUN);
	}
	Assert(next <= end + GPUSORT_ICU_SLACK);
	return Min(next - bytes, room);
}

/* The first level of a string of one or two characters below GPUSORT_ICU_PAIR_CHARS; -1 if it is too long. */
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
	length = gpusort_icu_ask(state, text, length, bytes, room);
	separator = memchr(bytes, GPUSORT_ICU_LEVEL_SEPARATOR, length);
	if (separator != NULL)
		return separator - bytes;
	return length < room ? length : -1;
}

/* Makes the entry of the pair of before, 0 at a string's beginning, and c. */
static pg_noinline uint64
ask_pair(GpuSortIcu *state, uint32 before, uint32 c)
{
	uint64 key = GPUSORT_ICU_PAIR_KEY(before, c);
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
 * The same as gpusort_icu_ask for strings of characters below GPUSORT_ICU_PAIR_CHARS whose first level
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
		key = GPUSORT_ICU_PAIR_KEY(before, c);
		slot = PAIR_HASH(key);
		while (PAIR_ENTRY_KEY(state->entries[slot]) != key && state->entries[slot] != 0)
			slot = (slot + 1) % GPUSORT_ICU_PAIR_SLOTS;
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

/* put_simple, for checks of the collation. */
int
gpusort_icu_simple(const GpuSortIcu *state, const char *data, int length, char *bytes, int room)
{
	return put_simple(state, (const unsigned char *) data, length, bytes, room);
}

/* The first room bytes of a string's sort key, at bytes, by the shortest way; returns how many there are. */
static inline int
sort_key(GpuSortIcu *state, const char *data, int length, char *bytes, int room)
{
	int count = put_simple(state, (const unsigned char *) data, length, bytes, room);

	if (count < 0 && state->entries != NULL)
		count = put_pairs(state, (const unsigned char *) data, length, bytes, room);
	if (count < 0)
		return gpusort_icu_ask(state, data, length, bytes, room);
#ifdef USE_ASSERT_CHECKING
	{
		char *theirs = palloc(room);

		Assert(gpusort_icu_ask(state, data, length, theirs, room) == count);
		Assert(memcmp(bytes, theirs, count) == 0);
		pfree(theirs);
	}
#endif
	return count;
}

/*
 * Writes the first room bytes of what a string's order is, under the collation
 * of a GpuSortIcu, to bytes, which has room for GPUSORT_ICU_SLACK more.
 * Returns how many there are; *whole says whether that is all of them,
 * and equal ones mean equal strings.  Errors: ICU's.
 */
int
gpusort_icu_bytes(void *collator, const char *data, int length, char *bytes, int room, bool *whole)
{
	GpuSortIcu *state = collator;
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

#endif /* USE_ICU */
