/*-------------------------------------------------------------------------
 *
 * few_values.c
 *	  Which columns of strings have ranks in a sort's keys, and of which values.
 *
 * What ranks are is said in keys/encode.c.  With them the key goes on behind a string that it does not
 * hold whole, as it never does under the C library's collations.  They are worth it where nearly
 * all rows have one of few values; which these are is told by the column's statistics, most
 * common values and where there are few others the bounds of the histogram, and by first rows.
 *
 * What first rows say of others is estimated by Turing: the part of the rows whose value is in none of
 * them is about that of those in them whose value no other one has (I. J. Good, The Population
 * Frequencies of Species, Biometrika 40, 1953).
 *
 * Values that mislead cost time, never order: see encode.c.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/few_values.h"

#include "common/hashfn.h"
#include "facts/column_stats.h"

/* Strings of bytes that are no longer in the key than this have no ranks: they are exact, and as short. */
#define SHORT_BYTES 14

/* Of the hash table: a power of two, more than twice the strings. */
#define SLOTS 4096

/* A column's different strings, in a memory context of their own. */
typedef struct Strings
{
	const GpuSortKeys *keys;
	const GpuSortColumn *column;
	bool too_many; /* or one is too long: no ranks */
	int count;
	int rows; /* first rows that they are of */
	GpuSortKnownString strings[GPUSORT_KNOWN_MAX];
	uint32 seen[GPUSORT_KNOWN_MAX]; /* in how many of these */
	uint16 slots[SLOTS];            /* number + 1; 0: none */
	char bytes[GPUSORT_KNOWN_BYTES + GPUSORT_STRING_SLACK];
} Strings;

StaticAssertDecl(SLOTS > 2 * GPUSORT_KNOWN_MAX, "there are slots enough");

/* Adds a string if it is a new one; returns its number, or -1 if there are too many. */
static int
add_string(Strings *strings, const char *data, int length)
{
	uint32 slot = hash_bytes((const unsigned char *) data, length) % SLOTS;
	char *copy;

	for (; strings->slots[slot] != 0; slot = (slot + 1) % SLOTS)
	{
		int number = strings->slots[slot] - 1;

		if (strings->strings[number].length == length && memcmp(strings->strings[number].data, data, length) == 0)
			return number;
	}
	if (strings->count == GPUSORT_KNOWN_MAX)
	{
		strings->too_many = true;
		return -1;
	}
	copy = palloc(Max(length, 1));
	memcpy(copy, data, length);
	strings->strings[strings->count] = (GpuSortKnownString){.data = copy, .length = length};
	strings->seen[strings->count] = 0;
	strings->slots[slot] = ++strings->count;
	return strings->count - 1;
}

/* Adds the string of a value; returns its number, or -1 if it is too long, or there are too many. */
static int
add_own_string(Strings *strings, Datum value)
{
	int length = gpusort_keys_own_string(strings->keys, strings->column, value, strings->bytes, GPUSORT_KNOWN_BYTES);

	if (length < GPUSORT_KNOWN_BYTES)
		return add_string(strings, strings->bytes, length);
	strings->too_many = true;
	return -1;
}

/* A GpuSortValueCallback. */
static void
add_value(Datum value, int count, void *arg)
{
	(void) add_own_string(arg, value);
}

/* Adds values of the first rows, spread over them, but not evenly. */
static void
add_first_rows(Strings *strings, const GpuSortInput *input)
{
	const GpuSortFirstRows *first = &input->first;
	int stride = Max(first->count / GPUSORT_FEW_VALUES_ROWS, 1);

	for (int i = 0; i * stride < first->count && i < GPUSORT_FEW_VALUES_ROWS && !strings->too_many; i++)
	{
		int row = Min(i * stride + hash_bytes_uint32(i) % stride, first->count - 1);
		bool isnull;
		Datum value;
		int number;

		value = gpusort_rows_value(input->rows, first->rows[row], strings->column->attno, &isnull);
		if (isnull)
			continue;
		number = add_own_string(strings, value);
		if (number >= 0)
			strings->seen[number]++;
		strings->rows++;
	}
}

/* Returns which part of the rows is thought to have one of the values of the first ones, by these alone. */
static double
known_share(const Strings *strings)
{
	int single = 0;

	for (int i = 0; i < strings->count; i++)
		single += strings->seen[i] == 1;
	return strings->too_many || strings->rows == 0 ? 0 : 1 - (double) single / strings->rows;
}

static Strings *
create_strings(const GpuSortKeys *keys, const GpuSortColumn *column)
{
	Strings *strings = palloc(sizeof(Strings));

	strings->keys = keys;
	strings->column = column;
	strings->count = 0;
	strings->rows = 0;
	strings->too_many = false;
	memset(strings->slots, 0, sizeof(strings->slots));
	return strings;
}

/* Makes known the values of strings, which are reordered; returns false if these are too many. */
static bool
set_known(Strings *strings, GpuSortKnownValues *known)
{
	return !strings->too_many && strings->count > 0 &&
		gpusort_keys_set_known(strings->column, strings->strings, strings->count, known);
}

/* Adds what statistics know of the column; returns as gpusort_column_known_values does. */
static double
add_statistics(Strings *strings, GpuSortSource *source, double *different)
{
	GpuSortTableColumn column;
	Oid type;

	if (!source->methods->table_column(source, strings->column->attno, &column, &type))
		return -1;
	return gpusort_column_known_values(&column, type, add_value, strings, different);
}

/* Chooses by statistics, which know the values of this share of the rows. */
static void
choose_by_statistics(Strings *strings, const GpuSortInput *first, double share, double different, bool behind,
					 GpuSortKnownValues *known)
{
	bool enough = share >= GPUSORT_KNOWN_SHARE;

	if (!enough && (different > GPUSORT_FEW_VALUES || !behind))
		return;
	if (first != NULL)
	{
		add_first_rows(strings, first);
		enough |= known_share(strings) >= GPUSORT_KNOWN_SHARE;
	}
	known->ranked = set_known(strings, known);
	known->complete = known->ranked && enough;
}

/* Chooses by first rows alone. */
static void
choose_by_first_rows(Strings *strings, const GpuSortInput *first, GpuSortKnownValues *known)
{
	add_first_rows(strings, first);
	known->ranked = known_share(strings) >= GPUSORT_KNOWN_SHARE && set_known(strings, known);
	known->complete = known->ranked;
}

/*
 * Returns how many first rows are worth looking at: 0 if no column of the keys could have ranks with others behind it.
 */
int
gpusort_few_values_rows(const GpuSortKeys *keys)
{
	for (int i = 0; i + 1 < keys->encodable; i++)
	{
		if (gpusort_keys_may_rank(&keys->columns[i]) && keys->columns[i].type->source != GPUSORT_SOURCE_STRING)
			return GPUSORT_FEW_VALUES_ROWS;
	}
	return 0;
}

/*
 * Chooses the known values of column i, a string's, whose other choices have been made; first as for
 * gpusort_prefixes_choose; statistics: they are worth a look.  What it takes is in the current memory context.
 */
void
gpusort_few_values_choose(const GpuSortKeys *keys, int i, const GpuSortInput *input, bool first, bool statistics,
						  GpuSortPrefix *prefix)
{
	const GpuSortColumn *column = &keys->columns[i];
	bool by_bytes = column->type->source == GPUSORT_SOURCE_STRING;
	bool behind = i + 1 < keys->encodable;
	Strings *strings;
	double share = -1;
	double different;

	if (!gpusort_keys_may_rank(column) || (by_bytes && prefix->length <= SHORT_BYTES))
		return;
	strings = create_strings(keys, column);
	if (statistics)
		share = add_statistics(strings, input->source, &different);
	if (share >= 0)
		choose_by_statistics(strings, first ? input : NULL, share, different, behind, &prefix->known);
	else if (first)
		choose_by_first_rows(strings, input, &prefix->known);
	else
		prefix->known.ranked = behind && !by_bytes;
}

/*
 * Adds values of the first rows of a process to those that are known, of columns with ranks of which too few are
 * known.  What it takes is in the current memory context.
 */
void
gpusort_few_values_add(const GpuSortKeys *keys, const GpuSortInput *input, GpuSortPrefix *prefixes)
{
	for (int i = 0; i < keys->encodable; i++)
	{
		const GpuSortColumn *column = &keys->columns[i];
		GpuSortKnownValues *known;
		Strings *strings;

		if (!gpusort_column_is_sized(column))
			continue;
		known = &prefixes++->known;
		if (!known->ranked || known->complete)
			continue;
		strings = create_strings(keys, column);
		add_first_rows(strings, input);
		if (known->count == 0 && known_share(strings) < GPUSORT_KNOWN_SHARE)
			continue;
		for (int v = 0; v < known->count; v++)
		{
			int length;
			const char *data = gpusort_known_value(known, v, &length);

			(void) add_string(strings, data, length);
		}
		(void) set_known(strings, known);
	}
}
