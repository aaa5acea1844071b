/*-------------------------------------------------------------------------
 *
 * libc.c
 *	  Collations of the C library: which have keys, and what is known of them.
 *
 * PostgreSQL compares by strcoll_l, and strings that are equal to it by their bytes.
 * It does not trust strxfrm_l, nor does this: under glibc's locales whole keys order some
 * strings otherwise ("11a" and "1 1a" under en_US).  That comes of levels that go
 * backward, which strcoll_l and strxfrm_l cut into pieces differently.  The first level goes
 * forward, and of it the two have the same view: the strings' weights, one after the other, up
 * to where they differ.  So the first level alone is in the key, up to its first bytes, and no
 * string is ever encoded whole: the comparator decides between strings of equal bytes.
 *
 * The guards: the database is UTF-8, or of an encoding whose characters are single bytes, and the locale is for that;
 * the library is glibc 2.28 or later, whose strcoll_l and data are known; the locale's tables say that the first level
 * goes forward in all sections (libc_tables.c).  What LC_COLLATE is counts, as for PostgreSQL; the locale is made by
 * the name that the catalogue has.
 *
 * The bytes come from libc_walk.c's walker, or, if a locale has none, from strxfrm_l.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/encoders.h"

#include "common/hashfn.h"
#include "keys/bytes/collations.h"
#include "keys/keys.h"
#include "keys/bytes/libc_less.h"
#include "keys/bytes/libc_walk.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#ifdef __GLIBC__

#include <gnu/libc-version.h>
#include <langinfo.h>

/* A locale that has been asked for; belongs to the backend. */
typedef struct GpuSortLibc
{
	struct GpuSortLibc *next;
	char *name;
	locale_t locale;
	const char *why_not;   /* it has no keys; NULL: it has */
	bool learned;          /* what follows is known */
	GpuSortLibcWalk *walk; /* NULL: strxfrm_l is asked */
	GpuSortLibcLess less;
	uint64 hash; /* over what it makes of some strings; 0: not known yet */
} GpuSortLibc;

static GpuSortLibc *known = NULL;

/* Strings whose keys tell versions of a locale from each other. */
static const char *const hashed[] = {
	"11a",
	"1 1a",
	"co-op",
	"Stra\u00dfe",
	"na\u00efve",
	"ch cz dz dzs ll ny sz",
	"\u00c5ngstr\u00f6m \u00e6 \u00f8",
	"\u0130I\u0131i",
	"\u0416\u0443\u0440\u043d\u0430\u043b \u0456 \u0439",
	"\u03b1\u0391\u03c9",
	"\u05d0\u05d1 \u0627\u0644",
	"\u0915\u094d\u0937 \u0e40\u0e01",
	"\u65e5\u672c\u8a9e \u3042\u30a2\uff71",
	"\ud55c\uae00 \u1112\u1161",
	"\u2460\u00bd\ufb01 e\u0301\u0327",
	"\U0001f600\u200d \U00020000",
};

/*
 * Returns true if this libc locale compares strings by their bytes; older libraries' C.UTF-8 are not to be relied on.
 */
bool
gpusort_libc_is_bytewise(const char *name)
{
	int major = 0;
	int minor = 0;

	if (strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0)
		return true;
	if (pg_strcasecmp(name, "C.UTF-8") != 0 && pg_strcasecmp(name, "C.UTF8") != 0)
		return false;
	if (GetDatabaseEncoding() != PG_UTF8)
		return false;
	sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor);
	return major > 2 || (major == 2 && minor >= 35);
}

/* Returns true if in this database each byte is a character. */
static bool
is_single(void)
{
	return pg_database_encoding_max_length() == 1 && GetDatabaseEncoding() != PG_SQL_ASCII;
}

/*
 * Returns why strings of this database have no order under a locale whose LC_COLLATE this is, as the rest of a
 * sentence that begins with the sort key; NULL if they have one.
 */
static const char *
find_unfit(const char *name, locale_t locale)
{
	locale_t characters;
	const char *why_not;

	if (GetDatabaseEncoding() == PG_UTF8)
		return gpusort_libc_unfit(locale, "UTF-8");
	if (pg_get_encoding_from_locale(name, false) != GetDatabaseEncoding())
		return "has a libc collation that is not for the encoding of the database";
	/* The codeset by the name that the library has for it. */
	characters = newlocale(LC_CTYPE_MASK, name, (locale_t) 0);
	if (characters == (locale_t) 0)
		return "has a libc collation that the C library cannot load";
	why_not = gpusort_libc_unfit(locale, nl_langinfo_l(CODESET, characters));
	freelocale(characters);
	return why_not;
}

/* What is known of a locale. */
static GpuSortLibc *
find_locale(const char *name)
{
	GpuSortLibc *state;

	for (state = known; state != NULL; state = state->next)
	{
		if (strcmp(state->name, name) == 0)
			return state;
	}
	state = MemoryContextAllocZero(TopMemoryContext, sizeof(GpuSortLibc));
	state->name = MemoryContextStrdup(TopMemoryContext, name);
	state->locale = newlocale(LC_COLLATE_MASK, name, (locale_t) 0);
	if (state->locale == (locale_t) 0)
		state->why_not = "has a libc collation that the C library cannot load";
	else
		state->why_not = find_unfit(name, state->locale);
	state->next = known;
	known = state;
	return state;
}

/*
 * Returns true if strings under this locale can have keys; else *why_not says why not, as
 * the rest of a sentence that begins with the sort key.
 */
bool
gpusort_libc_has_keys(const char *locale, const char **why_not)
{
	const GpuSortLibc *state;

	if (GetDatabaseEncoding() != PG_UTF8 && !is_single())
	{
		*why_not = "has a libc collation in a database of an encoding that is neither UTF-8 nor of single bytes";
		return false;
	}
	state = find_locale(locale);
	if (state->why_not != NULL)
		*why_not = state->why_not;
	return state->why_not == NULL;
}

/* Returns the GpuSortLibc of a collation that has keys.  It belongs to the backend and is made once. */
void *
gpusort_libc_create(const GpuSortOrder *order)
{
	char *name;
	GpuSortLibc *state;

	gpusort_collation_provider(order->collation, &name);
	state = find_locale(name);
	pfree(name);
	if (!state->learned)
	{
		state->walk = gpusort_libc_walk_create(state->locale, is_single());
		gpusort_libc_less_init(&state->less, state->locale, state->walk);
	}
	state->learned = true;
	return state;
}

/* The first bytes of the first level as strxfrm_l makes it.  Errors: out of memory. */
static pg_noinline int
ask(const GpuSortLibc *state, const char *data, int length, char *bytes, int room)
{
	char *string = MemoryContextAllocHuge(CurrentMemoryContext, (Size) length + 1);
	int count;

	memcpy(string, data, length);
	string[length] = '\0';
	count = gpusort_libc_ask(state->locale, string, bytes, room);
	pfree(string);
	if (count < 0)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("The C library's sort key of a string of %d bytes does not fit.", length)));
	return count;
}

/*
 * Writes the first room bytes of what a string's order is,
 * as far as it is in a key, under the collation of a GpuSortLibc to bytes,
 * which has room for GPUSORT_LIBC_SLACK more. Returns how many there are;
 * -1 if the string goes on behind these length bytes, and they do not tell. Errors: out of memory.
 */
int
gpusort_libc_bytes(void *collation, const char *data, int length, bool goes_on, char *bytes, int room)
{
	GpuSortLibc *state = collation;
	int count = -1;

	if (state->walk != NULL)
		count = gpusort_libc_walk(state->walk, data, length, goes_on, bytes, room);
	if (count < 0 && !goes_on)
		count = ask(state, data, length, bytes, room);
#ifdef USE_ASSERT_CHECKING
	if (count >= 0 && !goes_on)
	{
		char *theirs = palloc(room);

		Assert(ask(state, data, length, theirs, room) == count);
		Assert(memcmp(bytes, theirs, count) == 0);
		pfree(theirs);
	}
#endif
	return count;
}

/* Returns true if strings under a libc collation are in the key, or in a value that is. */
bool
gpusort_keys_by_libc(const GpuSortKeys *keys)
{
	for (int i = 0; i < keys->encoded; i++)
	{
		if (keys->columns[i].libc_collations != NIL)
			return true;
	}
	return false;
}

/*
 * Compares strings of a column under a libc collation as PostgreSQL does, but for those that are equal to the library.
 */
int
gpusort_keys_compare_libc(const GpuSortColumn *column, const char *a, const char *b)
{
	const GpuSortLibc *state = column->state;

	return strcoll_l(a, b, state->locale);
}

/*
 * Returns true if strcoll has string a, of length bytes, before b; false if it has not, or if only
 * gpusort_keys_compare_libc can tell.  Both end with a zero byte and have GPUSORT_LIBC_BEHIND bytes from there on,
 * of which those of a are used.
 */
bool
gpusort_keys_is_less_libc(const GpuSortColumn *column, char *a, uint32 length, const char *b)
{
	const GpuSortLibc *state = column->state;
	bool is_less = gpusort_libc_is_less(&state->less, a, length, b);

	Assert(!is_less || strcoll_l(a, b, state->locale) < 0);
	return is_less;
}

/*
 * Compares the beginnings of two strings of a column: not 0 if these decide, so that the strings compare likewise.
 * Both are characters of the database.
 */
int
gpusort_keys_order_first_libc(const GpuSortColumn *column, const char *a, uint32 a_length, const char *b,
							  uint32 b_length)
{
	const GpuSortLibc *state = column->state;

	return gpusort_libc_order_first(&state->less, a, a_length, b, b_length);
}

/* A hash over the whole keys of some strings, and the library's version. */
static uint64
hash_locale(const GpuSortLibc *state)
{
	const char *version = gnu_get_libc_version();
	uint64 hash = hash_bytes_extended((const unsigned char *) version, strlen(version), 0);

	for (int i = 0; i < lengthof(hashed); i++)
	{
		char key[1024];
		size_t length = strxfrm_l(key, hashed[i], sizeof(key), state->locale);

		hash = hash_bytes_extended((const unsigned char *) key, Min(length, sizeof(key) - 1), hash);
	}
	return hash == 0 ? 1 : hash;
}

/*
 * Returns a number that is another one where a process has another library, or other data of
 * the locales of the strings in the key; 0 if there are no such strings.
 */
uint64
gpusort_keys_libc_hash(const GpuSortKeys *keys)
{
	uint64 hash = 0;

	for (int i = 0; i < keys->encoded; i++)
	{
		ListCell *cell;

		foreach(cell, keys->columns[i].libc_collations)
		{
			GpuSortLibc *state = gpusort_libc_create(&(GpuSortOrder){.collation = lfirst_oid(cell)});

			if (state->hash == 0)
				state->hash = hash_locale(state);
			hash = hash_combine64(hash, state->hash);
		}
	}
	return hash;
}

#else /* another library: nothing is known of what its locales order by */

bool
gpusort_libc_is_bytewise(const char *name)
{
	return strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0;
}

bool
gpusort_libc_has_keys(const char *locale, const char **why_not)
{
	*why_not = "has a libc collation, and the C library is not glibc";
	return false;
}

void *
gpusort_libc_create(const GpuSortOrder *order)
{
	elog(ERROR, "collation %u has no keys", order->collation);
}

int
gpusort_libc_bytes(void *collation, const char *data, int length, bool goes_on, char *bytes, int room)
{
	pg_unreachable();
}

bool
gpusort_keys_by_libc(const GpuSortKeys *keys)
{
	return false;
}

int
gpusort_keys_compare_libc(const GpuSortColumn *column, const char *a, const char *b)
{
	pg_unreachable();
}

bool
gpusort_keys_is_less_libc(const GpuSortColumn *column, char *a, uint32 length, const char *b)
{
	pg_unreachable();
}

int
gpusort_keys_order_first_libc(const GpuSortColumn *column, const char *a, uint32 a_length, const char *b,
							  uint32 b_length)
{
	pg_unreachable();
}

uint64
gpusort_keys_libc_hash(const GpuSortKeys *keys)
{
	return 0;
}

#endif /* __GLIBC__ */
