/*-------------------------------------------------------------------------
 *
 * icu.c
 *	  ICU collations: which have keys, and what is known of their characters.
 *
 * The bytes of a string, which icu_strings.c makes, are those of ICU's sort key, which
 * compare like the strings do: a level of weights for letters, one for accents, one for
 * case, each after a byte 1, none with a byte 0.  A deterministic collation puts strings
 * that ICU finds equal into the order of their own bytes, so these follow, after a byte
 * 0.  Strings with equal bytes, if these are all of them, are then equal to PostgreSQL,
 * and different ones are different to it.
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
 * What the weights of characters are is asked of ICU, character by character, when a
 * collation is used for the first time; that they make ICU's keys is checked for every
 * pair of characters, or else they are not used.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/encoders.h"

#ifdef USE_ICU

#include "catalog/pg_collation.h"
#include "keys/bytes/icu_state.h"
#include "mb/pg_wchar.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"

/* The range of characters that can have a weight here. */
#define FIRST_CHAR ' '
#define LAST_CHAR  '~'

/* What is looked at to check a collator: texts of so many characters, sort keys of so many bytes. */
#define CHECK_CHARS 256
#define CHECK_BYTES ((GPUSORT_ICU_WEIGHT_BYTES + 2) * CHECK_CHARS)

/* The collators known to this backend. */
static GpuSortIcu *known = NULL;

/* Returns true if ICU is there for the strings of this database. */
static bool
is_available(void)
{
	static int loaded = -1;

	if (loaded < 0)
		loaded = gpusort_icu_load();
	return loaded && is_encoding_supported_by_icu(GetDatabaseEncoding());
}

/* Returns true if strings under this ICU collation can have keys. */
bool
gpusort_icu_has_keys(Oid collation)
{
	int32_t codes[256];
	UErrorCode error = 0;
	int count;

	if (!is_available())
		return false;
	count = gpusort_icu.ucol_getReorderCodes(ICU_COLLATOR(pg_newlocale_from_collation(collation)), codes,
											 lengthof(codes), &error);
	if (U_FAILURE(error))
		return false;
	for (int i = 0; i < count; i++)
	{
		if (codes[i] >= UCOL_REORDER_CODE_FIRST || codes[i] == USCRIPT_UNKNOWN)
			return false;
	}
	return true;
}

/* Returns true if gpusort_icu_simple makes what ICU does. */
static bool
is_right(GpuSortIcu *state, const char *data, int length)
{
	char ours[CHECK_BYTES + GPUSORT_ICU_SLACK];
	char theirs[CHECK_BYTES];
	int room = CHECK_BYTES;
	int count;

	count = gpusort_icu_ask(state, data, length, theirs, room);
	if (state->levels == 0)
	{
		/* up to where the second level begins */
		char *separator = memchr(theirs, GPUSORT_ICU_LEVEL_SEPARATOR, count);

		if (separator == NULL)
			return false;
		room = count = separator - theirs;
	}
	return gpusort_icu_simple(state, data, length, ours, room) == count &&
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
	int count = gpusort_icu_ask(state, text, 1, bytes, sizeof(bytes));
	char *separator = memchr(bytes, GPUSORT_ICU_LEVEL_SEPARATOR, count);
	int primary = separator == NULL ? count : separator - bytes;

	if (primary == 0 || primary > GPUSORT_ICU_WEIGHT_BYTES)
		return;
	/* Bytes that begin many weights are written once for a row of them; not so for the usual ones. */
	gpusort_icu_ask(state, text, 2, twice, sizeof(twice));
	if (memcmp(twice, bytes, primary) != 0 || memcmp(twice + primary, bytes, primary) != 0)
		return;
	if (state->levels > 1 && (count < primary + 2 || bytes[primary + 1] != GPUSORT_ICU_COMMON))
		return;
	if (state->levels > 2)
	{
		unsigned char tertiary;

		if (count != primary + 4 || bytes[primary + 2] != GPUSORT_ICU_LEVEL_SEPARATOR)
			return;
		tertiary = bytes[primary + 3];
		if (tertiary != GPUSORT_ICU_COMMON && tertiary <= GPUSORT_ICU_TERTIARY_HIGH)
			return;
		state->tertiary[c] = tertiary == GPUSORT_ICU_COMMON ? 0 : tertiary;
	}
	else if (state->levels == 2 && count != primary + 2)
		return;
	memcpy(&weight, bytes, primary);
	state->weights[c] = weight | (uint32) primary << 24;
}

/*
 * Finds the contractions that are tailored, with what stands before and after;
 * the root collation has none in ASCII.  Returns false if what they are is not known.
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

			if (a < GPUSORT_ICU_ASCII_CHARS && b < GPUSORT_ICU_ASCII_CHARS && state->weights[a] != 0)
			{
				state->weights[a] |= GPUSORT_ICU_WEIGHT_CONTRACTS;
				state->pairs[a][b] = true;
			}
			if (a >= GPUSORT_ICU_PAIR_CHARS || b >= GPUSORT_ICU_PAIR_CHARS)
				continue;
			if (state->ncontractions == capacity)
			{
				capacity = Max(2 * capacity, 64);
				if (state->contractions == NULL)
					state->contractions = MemoryContextAlloc(TopMemoryContext, capacity * sizeof(uint32));
				else
					state->contractions = repalloc(state->contractions, capacity * sizeof(uint32));
			}
			state->contractions[state->ncontractions++] = GPUSORT_ICU_PAIR_KEY(a, b);
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

/* Asks ICU what gpusort_icu_simple needs; where that is not as it should be, no character is simple. */
static void
learn(GpuSortIcu *state)
{
	for (int c = FIRST_CHAR; c <= LAST_CHAR; c++)
		learn_char(state, c);
	if (!learn_contractions(state) || !check_texts(state))
		memset(state->weights, 0, sizeof(state->weights));
	else if (state->converter == NULL)
		state->entries = MemoryContextAllocZero(TopMemoryContext, GPUSORT_ICU_PAIR_SLOTS * sizeof(uint64));
}

static int
attribute(const UCollator *collator, int which)
{
	UErrorCode error = 0;
	int value = gpusort_icu.ucol_getAttribute(collator, which, &error);

	gpusort_icu_check(error);
	return value;
}

static void
set_attribute(UCollator *collator, int which, int value)
{
	UErrorCode error = 0;

	gpusort_icu.ucol_setAttribute(collator, which, value, &error);
	gpusort_icu_check(error);
}

/*
 * Returns the GpuSortIcu of a collation that has keys.  It belongs to the backend, like
 * the collator, and is made once.  Errors: those of ICU.
 */
void *
gpusort_icu_create(const GpuSortOrder *order)
{
	pg_locale_t locale = pg_newlocale_from_collation(order->collation);
	UCollator *collator = ICU_COLLATOR(locale);
	GpuSortIcu *state;
	UErrorCode error = 0;
	int strength;

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
		gpusort_icu_check(error);
		set_attribute(state->keys, UCOL_STRENGTH, strength);
		set_attribute(state->keys, UCOL_CASE_LEVEL, UCOL_OFF);
	}
	if (strength <= UCOL_TERTIARY && attribute(collator, UCOL_CASE_FIRST) == UCOL_OFF)
		state->levels = strength - UCOL_PRIMARY + 1;
	if (GetDatabaseEncoding() != PG_UTF8)
	{
		state->converter = gpusort_icu.ucnv_open(get_encoding_name_for_icu(GetDatabaseEncoding()), &error);
		gpusort_icu_check(error);
	}
	learn(state);
	state->next = known;
	known = state;
	return state;
}

/*
 * Returns true if the collation of a GpuSortIcu has an order of all strings, in which those that differ are not equal.
 */
bool
gpusort_icu_is_total(const void *collator)
{
	const GpuSortIcu *state = collator;

	return state->decides && state->deterministic;
}

#else /* no USE_ICU: the server has no such collations */

bool
gpusort_icu_has_keys(Oid collation)
{
	return false;
}

void *
gpusort_icu_create(const GpuSortOrder *order)
{
	elog(ERROR, "collation %u is not ICU's", order->collation);
}

bool
gpusort_icu_is_total(const void *collator)
{
	return false;
}

int
gpusort_icu_bytes(void *collator, const char *data, int length, char *bytes, int room, bool *whole)
{
	pg_unreachable();
}

#endif /* USE_ICU */
