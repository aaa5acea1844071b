/*-------------------------------------------------------------------------
 *
 * libc_less.c
 *	  Whether the C library's strcoll has one string before another, asked of their ends.
 *
 * strcoll looks at both strings from their beginnings, six nanoseconds a character and string.  Strings
 * that are neighbours in a sort begin alike, so most of that is spent on what they have in common.
 *
 * What strcoll says of whole strings a and b follows from what it says of their ends, because it compares the
 * first level of the strings' elements first, forward, and what decides there is decided
 * (libc_walk.c has what an element is; a locale whose first level does not go forward has no keys):
 *
 *	  - a = P x and b = Q y, the first levels of P and Q are the same, and an element begins where x and y do.
 *		Then the first level of a is that of P and that of x, weights one after the other, and b's that of Q and that
 *		of y: that of a is less than that of b if, and only if, that of x is less than that of y.  An element begins
 *		at a byte that is the first of a character, and that is in no contraction but as its beginning.  P and Q
 *		have the same bytes, but for letters of ASCII in different cases, and characters of ASCII that the first
 *		level ignores; which these are is asked of strcoll, too, and none counts that may be in a contraction with
 *		what follows;
 *	  - strcoll might have x before y by a later level, though, which need not be so for a and b.  So it is asked
 *		whether it has x 0 before y, where 0 is a digit.  If the first level of x and y is the same, or that of y
 *		is the beginning of that of x, then x 0 is behind y, by its weight.  So if x 0 is before y, then the first
 *		level of x is less, whichever decides: it differs from that of y and is less where it does, or it is the
 *		beginning of that of y.
 *
 * Where strcoll has x 0 behind y this does not tell, and it is to be asked of the whole.
 *
 * Of many strings that are compared with one, most differ from it in one of the first characters.  Where these are of
 * ASCII, and elements by themselves, their places in the first level tell, without strcoll.  A character has a place
 * if its weights are not the beginning of another's, or the same: then two that differ in them differ at a weight,
 * whatever follows.  strcoll has been asked whether it has them in this order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "keys/bytes/libc_less.h"

#ifdef __GLIBC__

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* What is known of a byte. */
#define STARTS  1 /* an element begins there, whatever stands before it */
#define IGNORED 2 /* a character without a weight in the first level, unless it is in a contraction */
#define FOLDS   4 /* a letter that in the first level is the same as that of the other case, likewise */

#define CASE_BIT 0x20 /* a letter of ASCII has it or not */

/* Compares one string and another behind it with two others. */
static int
compare(locale_t locale, const char *a, const char *a_last, const char *b, const char *b_last)
{
	char left[8];
	char right[8];

	strcat(strcpy(left, a), a_last);
	strcat(strcpy(right, b), b_last);
	return strcoll_l(left, right, locale);
}

/*
 * Returns true if two strings have the same first level, by strcoll alone.  Were these different,
 * they would decide, whatever digits follow.  Were one the beginning of the other,
 * then the digit behind it, a single weight, would be compared with a weight of the other,
 * and decide, or be that weight and end, whatever digit follows on the other side.
 */
static bool
are_alike(locale_t locale, const char *a, const char *b)
{
	return compare(locale, a, "1", b, "0") > 0 && compare(locale, a, "1", b, "2") < 0 &&
		compare(locale, b, "1", a, "0") > 0 && compare(locale, b, "1", a, "2") < 0;
}

/* Returns true if digits are what they are needed for: they have weights, and are parts of no contraction. */
static bool
has_digits(const GpuSortLibcLess *less, GpuSortLibcWalk *walk)
{
	for (const char *digit = "012"; *digit != '\0'; digit++)
	{
		char bytes[1 + GPUSORT_LIBC_SLACK];

		if (!(less->bytes[(unsigned char) *digit] & STARTS) || gpusort_libc_walk(walk, digit, 1, false, bytes, 1) <= 0)
			return false;
	}
	return true;
}

/* The weights of a character of ASCII in the first level. */
typedef struct Weights
{
	int count; /* of bytes; 0: they are not known, or there are none */
	char bytes[8 + GPUSORT_LIBC_SLACK];
} Weights;

/* Compares weights byte by byte; *is_beginning: the one has all bytes of the other, and more. */
static int
compare_weights(const Weights *a, const Weights *b, bool *is_beginning)
{
	const int count = a->count < b->count ? a->count : b->count;
	int order = memcmp(a->bytes, b->bytes, count);

	*is_beginning = order == 0 && a->count != b->count;
	return order;
}

/* Returns true if strcoll has all characters that have a place in the order of their places. */
static bool
are_places_right(const GpuSortLibcLess *less)
{
	for (int a = 1; a < 0x80; a++)
	{
		for (int b = 1; b < 0x80; b++)
		{
			const char left[] = {a, '\0'};
			const char right[] = {b, '\0'};

			if (less->places[a] != 0 && less->places[a] + 1 == less->places[b] &&
				compare(less->locale, left, "0", right, "") >= 0)
				return false;
		}
	}
	return true;
}

/* Gives characters of ASCII their places. */
static void
find_places(GpuSortLibcLess *less, GpuSortLibcWalk *walk)
{
	Weights weights[0x80] = {{0}};

	for (int c = 1; c < 0x80; c++)
	{
		const char character = c;
		int count = 0;

		if ((less->bytes[c] & (STARTS | IGNORED)) == STARTS)
			count = gpusort_libc_walk(walk, &character, 1, false, weights[c].bytes, 8);
		weights[c].count = count > 0 && count < 8 ? count : 0;
	}
	for (int c = 1; c < 0x80; c++)
	{
		bool before[0x80] = {false};
		bool has_place = weights[c].count > 0;
		int place = 1;

		for (int other = 1; has_place && other < 0x80; other++)
		{
			bool is_beginning = false;

			if (weights[other].count == 0)
				continue;
			before[other] = compare_weights(&weights[other], &weights[c], &is_beginning) < 0;
			has_place = !is_beginning;
			/* of characters that are the same the first counts */
			for (int same = 1; before[other] && same < other; same++)
			{
				bool ignored;

				if (weights[same].count > 0 && weights[same].count == weights[other].count &&
					compare_weights(&weights[same], &weights[other], &ignored) == 0)
					before[other] = false;
			}
			place += before[other];
		}
		less->places[c] = has_place ? place : 0;
	}
	if (!are_places_right(less))
		memset(less->places, 0, sizeof(less->places));
}

/* Fills in what is needed for a locale that has keys; walk may be NULL, and then nothing is ever told. */
void
gpusort_libc_less_init(GpuSortLibcLess *less, locale_t locale, GpuSortLibcWalk *walk)
{
	memset(less, 0, sizeof(*less));
	less->locale = locale;
	if (walk == NULL)
		return;
	for (int byte = 0; byte < 256; byte++)
		less->bytes[byte] = gpusort_libc_walk_starts(walk)[byte] ? STARTS : 0;
	less->tells = has_digits(less, walk);
	for (unsigned char c = 1; less->tells && c < 0x80; c++)
	{
		const char alone[] = {c, '\0'};
		const char other[] = {c ^ CASE_BIT, '\0'};

		if (are_alike(locale, alone, ""))
			less->bytes[c] |= IGNORED;
		else if ((c | CASE_BIT) >= 'a' && (c | CASE_BIT) <= 'z' && are_alike(locale, alone, other))
			less->bytes[c] |= FOLDS;
	}
	if (less->tells)
		find_places(less, walk);
}

static inline bool
is(const GpuSortLibcLess *less, const char *at, int what)
{
	return (less->bytes[(unsigned char) *at] & what) == what;
}

/* Returns true if two strings, of which bytes before are the same, begin with the same letter in different cases. */
static inline bool
are_folded(const GpuSortLibcLess *less, const char *a, const char *b)
{
	return (*a ^ *b) == CASE_BIT && is(less, a, FOLDS | STARTS) && is(less, b, STARTS) && is(less, a + 1, STARTS) &&
		is(less, b + 1, STARTS);
}

/* Returns true if a string begins with a character that is ignored. */
static inline bool
is_ignored(const GpuSortLibcLess *less, const char *at)
{
	return is(less, at, IGNORED) && is(less, at + 1, STARTS);
}

/* Loads eight bytes, the first of which is the lowest. */
static inline uint64_t
load(const char *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return le64toh(word);
}

/* How many bytes two strings have in common but for cases, of length, those of a. */
static inline size_t
common_bytes(const GpuSortLibcLess *less, const char *a, const char *b, size_t length)
{
	for (size_t at = 0; at < length; at += sizeof(uint64_t))
	{
		uint64_t different = load(a + at) ^ load(b + at);

		/* in folded letters a single bit is */
		for (; different != 0; different &= different - 1)
		{
			size_t i = at + __builtin_ctzll(different) / 8;

			if (i >= length)
				return length;
			if (!are_folded(less, a + i, b + i))
				return i;
		}
	}
	return length;
}

/*
 * Returns true if strcoll has string a, of length bytes, before b because of their first levels; false if it has not,
 * or if that takes a comparison of the whole strings to tell.  Both end with a zero byte and have GPUSORT_LIBC_BEHIND
 * bytes that may be read from there on.  Changes these of a, and restores the zero byte.
 */
bool
gpusort_libc_is_less(const GpuSortLibcLess *less, char *a, size_t length, const char *b)
{
	char *end = a + length;
	bool is_less;

	if (!less->tells)
		return false;
	for (;;)
	{
		size_t common = common_bytes(less, a, b, end - a);

		while (common > 0 && !(is(less, a + common, STARTS) && is(less, b + common, STARTS)))
			common--;
		a += common;
		b += common;
		if (is_ignored(less, a))
			a++;
		else if (is_ignored(less, b))
			b++;
		else
			break;
	}
	end[0] = '0';
	end[1] = '\0';
	is_less = strcoll_l(a, b, less->locale) < 0;
	end[0] = '\0';
	return is_less;
}

/* Returns where in a string of length bytes the first element at or behind this byte is that has weights. */
static inline size_t
skip_ignored(const GpuSortLibcLess *less, const char *bytes, size_t length, size_t at)
{
	while (at < length && is(less, bytes + at, IGNORED) && (at + 1 == length || is(less, bytes + at + 1, STARTS)))
		at++;
	return at;
}

/* Returns the place of the character at this byte of a string of length bytes; 0 if it has none there. */
static inline int
place_at(const GpuSortLibcLess *less, const char *bytes, size_t length, size_t at)
{
	if (at >= length || (at + 1 < length && !is(less, bytes + at + 1, STARTS)))
		return 0;
	return less->places[(unsigned char) bytes[at]];
}

/*
 * Compares the beginnings of two strings of these lengths: less than 0 or greater than 0 if their first levels differ
 * so, which decides for strcoll; 0 if that takes a comparison of the whole strings to tell.
 */
int
gpusort_libc_order_first(const GpuSortLibcLess *less, const char *a, size_t a_length, const char *b, size_t b_length)
{
	size_t a_at = 0;
	size_t b_at = 0;

	for (;;)
	{
		int a_place;
		int b_place;

		a_at = skip_ignored(less, a, a_length, a_at);
		b_at = skip_ignored(less, b, b_length, b_at);
		a_place = place_at(less, a, a_length, a_at++);
		b_place = place_at(less, b, b_length, b_at++);
		if (a_place == 0 || b_place == 0)
			return 0;
		if (a_place != b_place)
			return a_place - b_place;
	}
}

#endif /* __GLIBC__ */
