/*-------------------------------------------------------------------------
 *
 * prefixes.c
 *	  What of its strings goes into a sort's keys: chosen from a sample.
 *
 * The sample of a column is what statistics keep of its values, which is random,
 * and the first rows, which need not be, but are of the rows that are sorted: an
 * eighth of the others, unless they are all there is.  It is put into order.  Then
 *
 *	  - the common prefix is what the most alike COMMON_SHARE of the strings begin with;
 *	  - a string needs, from where it differs from the common prefix, the bytes that tell it
 *		from its neighbours in the sample.  Among all rows it has closer neighbours:
 *		if every byte at which strings differ tells equally much, log(rows) / log(sample)
 *		times as many such bytes are needed.  Behind those that the sample needs, a
 *		byte in which a string differs from its neighbour is taken for such a one;
 *	  - a string that the sample has twice is thought to be frequent.  It needs to
 *		be in the key to its end, so that its rows are equal and need no tie-break.  Under
 *		libc collations they need one in any case;
 *	  - the prefix length is chosen by cost: a word of the key is paid for by all rows, a
 *		comparison by those whose key is truncated.
 *
 * A sample that misleads costs time, never order: see encode.c.
 * First rows alone often do, where rows lie in order;
 * then the prefix is up to three words longer than they say, which cost little.
 *
 * Of a column with few values these are known (few_values.c).  Of numerics, the digits in the key are chosen likewise,
 * by the bytes that they have as parts of others.
 *
 * Where the strings of a first column are under a libc collation, whose first level alone is
 * in the key, the sample also says whether that tells enough of them apart; and of values that
 * their operator class abbreviates, whether the class would go on with that.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/prefixes.h"

#include <limits.h>
#include <math.h>

#include "common/hashfn.h"
#include "facts/column_stats.h"
#include "keys/bytes/first_level.h"
#include "server/reasons.h"
#include "settings.h"
#include "sort/few_values.h"
#include "utils/memutils.h"

/* Of the strings, so many eighths have the common prefix. */
#define COMMON_SHARE 7

/* A shorter common prefix is not worth comparing with. */
#define COMMON_MIN 4

/* Where nothing is known. */
#define DEFAULT_LENGTH      14
#define DEFAULT_LENGTH_LONG 29 /* fills four words */
#define UNKNOWN_WORDS       3  /* more than first rows alone say, up to that */

/* Rows that a look at the statistics is worth, and values that are enough. */
#define STATISTICS_ROWS 20000
#define STRINGS_MAX     512

/* So many strings show how many bytes tell strings apart; and so many bytes more are safe. */
#define LOOKS        64
#define MARGIN_BYTES 1.5

/* A string is looked at as far as a key could hold it. */
#define LOOK_BYTES (GPUSORT_COMMON_PREFIX_MAX + GPUSORT_PREFIX_MAX + 1)

/* What a row costs, in ns: for each word of its key; if that does not decide, for each word and for comparing. */
#define WORD_COST           4.0
#define ICU_WORD_COST       30.0 /* most strings; those not of ASCII more */
#define TRUNCATED_WORD_COST 20.0
#define COMPARE_COST        500.0

/* Such a part of the comparisons may be left to the comparator. */
#define TIED_MAX 0.5

typedef struct SampleString
{
	const char *data;
	int length; /* LOOK_BYTES: it may go on */
	int needs;  /* bytes from where it differs from the common prefix; as many as it has: to be held whole */
	int common; /* bytes in common with the one before, in order */
	bool twice; /* another one in the sample is equal */
} SampleString;

typedef struct Sample
{
	const GpuSortKeys *keys;
	const GpuSortColumn *column;
	SampleString strings[STRINGS_MAX];
	int count;
	int limit;                  /* so many are enough */
	GpuSortFirstLevels *levels; /* of a first column that is partial; else NULL */
	char bytes[LOOK_BYTES + GPUSORT_STRING_SLACK];
} Sample;

static void
add_string(Sample *sample, Datum value)
{
	bool whole;
	int length = gpusort_keys_string(sample->keys, sample->column, value, sample->bytes, LOOK_BYTES, &whole);
	char *data = palloc(Max(length, 1));

	memcpy(data, sample->bytes, length);
	sample->strings[sample->count++] = (SampleString){.data = data, .length = length};
	if (sample->levels != NULL)
		gpusort_first_levels_add(sample->levels, value);
}

/* A GpuSortValueCallback: a value, and how many times the sample has it. */
static void
add_value(Datum value, int count, void *arg)
{
	Sample *sample = arg;

	for (int i = 0; i < count && sample->count < sample->limit; i++)
		add_string(sample, value);
}

/* Adds values of the first rows, spread over them, but not evenly: their values may come round and round. */
static void
add_first_rows(Sample *sample, const GpuSortInput *input, int count)
{
	const GpuSortFirstRows *first = &input->first;
	int stride = Max(first->count / Max(count, 1), 1);

	for (int i = 0; i * stride < first->count; i++)
	{
		int row = Min(i * stride + hash_bytes_uint32(i) % stride, first->count - 1);
		bool isnull;
		Datum value;

		if (i >= count)
			break;
		value = gpusort_rows_value(input->rows, first->rows[row], sample->column->attno, &isnull);
		if (!isnull)
			add_string(sample, value);
	}
}

static int
compare_strings(const void *a, const void *b)
{
	const SampleString *left = a;
	const SampleString *right = b;
	int order = memcmp(left->data, right->data, Min(left->length, right->length));

	return order != 0 ? order : left->length - right->length;
}

/* Adds values that statistics keep of the column; false if they do not stand for all of them. */
static bool
add_statistics(Sample *sample, GpuSortSource *source)
{
	GpuSortTableColumn column;
	Oid type;

	return source->methods->table_column(source, sample->column->attno, &column, &type) &&
		gpusort_column_values(&column, type, add_value, sample);
}

/* How many bytes two strings begin with in common. */
static int
common_bytes(const SampleString *a, const char *data, int length)
{
	int most = Min(a->length, length);
	const int block = 32;
	int i = 0;

	while (i + block <= most && memcmp(a->data + i, data + i, block) == 0)
		i += block;
	while (i < most && a->data[i] == data[i])
		i++;
	return i;
}

/* Chooses the common prefix, of a sample in order. */
static void
choose_common(const Sample *sample, GpuSortPrefix *prefix)
{
	int window = sample->count - sample->count * (8 - COMMON_SHARE) / 8;

	prefix->common_length = 0;
	for (int i = 0; i + window <= sample->count; i++)
	{
		const SampleString *last = &sample->strings[i + window - 1];
		int common = Min(common_bytes(&sample->strings[i], last->data, last->length), GPUSORT_COMMON_PREFIX_MAX);

		if (common > prefix->common_length)
		{
			prefix->common_length = common;
			memcpy(prefix->common, last->data, common);
		}
	}
	if (prefix->common_length < COMMON_MIN || sample->column->type->string == GPUSORT_STRING_BITS ||
		!gpusort_column_is_string(sample->column))
		prefix->common_length = 0;
}

/* Drops strings that have the same bytes as others, of a sample in order: where they tie in any case. */
static void
drop_equal(Sample *sample)
{
	int count = 1;

	for (int i = 1; i < sample->count; i++)
	{
		if (compare_strings(&sample->strings[i], &sample->strings[count - 1]) != 0)
			sample->strings[count++] = sample->strings[i];
	}
	sample->count = count;
}

/* How many bytes string i has in common with the one before; 0 for the first. */
static int
common_before(const Sample *sample, int i)
{
	return i <= 0 || i >= sample->count ? 0 : sample->strings[i].common;
}

/*
 * How many bytes of string i, behind the common prefix, tell it from others in the sample:
 * those at which the sample's strings differ that begin like it up to there.  Bytes
 * that follow from those before them are not among them.
 */
static int
telling_bytes(const Sample *sample, int i)
{
	int before = common_before(sample, i);
	int after = common_before(sample, i + 1);
	int count = 0;

	/* Outwards, always to the side that has more in common. */
	for (int left = i, right = i + 1; left > 0 || right < sample->count;)
	{
		int common = Max(left > 0 ? before : -1, right < sample->count ? after : -1);

		count++;
		while (left > 0 && before >= common)
			before = Min(common_before(sample, --left), before);
		while (right < sample->count && after >= common)
			after = Min(common_before(sample, ++right), after);
	}
	return count;
}

/*
 * Where string has so many more bytes, from byte at on, that differ from those of
 * other, which it resembles; its end at most.
 */
static int
go_on(const SampleString *string, const SampleString *other, int at, int telling)
{
	for (; at < string->length && telling > 0; at++)
		telling -= at >= other->length || string->data[at] != other->data[at];
	return at;
}

/* Finds out what each string needs, of a sample in order that stands for so many rows. */
static void
find_needs(Sample *sample, const GpuSortPrefix *prefix, double rows)
{
	SampleString *strings = sample->strings;
	int count = sample->count;
	int different = 0;
	double telling = 0;
	int looked_at = 0;
	int more;

	for (int i = 0; i < count; i++)
	{
		strings[i].common = i == 0 ? 0 : common_bytes(&strings[i], strings[i - 1].data, strings[i - 1].length);
		strings[i].twice = i > 0 && strings[i].common == strings[i].length && strings[i].length == strings[i - 1].length;
		if (strings[i].twice)
			strings[i - 1].twice = true;
		else
			different++;
	}
	for (int i = 0; i < count; i += 1 + count / LOOKS)
	{
		telling += telling_bytes(sample, i);
		looked_at++;
	}
	more = ceil(telling / looked_at * log(Max(rows / count, 1)) / log(Max(different, 4)) + MARGIN_BYTES);

	for (int i = 0; i < count; i++)
	{
		SampleString *string = &strings[i];
		int differs_at = common_bytes(string, prefix->common, prefix->common_length);
		int at = Max(common_before(sample, i), common_before(sample, i + 1)) + 1;
		int end = at;

		if (string->twice)
		{
			string->needs = string->length == LOOK_BYTES ? INT_MAX : string->length - differs_at;
			continue;
		}
		if (i > 0)
			end = go_on(string, string - 1, at, more);
		if (i + 1 < count)
			end = Max(end, go_on(string, string + 1, at, more));
		string->needs = Max(Min(end, string->length) - differs_at, 0);
	}
}

/* Chooses the prefix length: words of eight bytes, and what the word of the length has room for. */
static void
choose_length(const Sample *sample, GpuSortPrefix *prefix, bool statistics)
{
	double word_cost = sample->column->type->source == GPUSORT_SOURCE_ICU ? ICU_WORD_COST : WORD_COST;
	double best = INFINITY;
	double truncated_words = 0;
	int longest = 0;
	int best_length = DEFAULT_LENGTH;

	for (int i = 0; i < sample->count; i++)
		longest = Max(longest, sample->strings[i].length);
	for (int length = 6; length <= GPUSORT_PREFIX_MAX; length += 8)
	{
		int truncated = 0;
		double cost;

		for (int i = 0; i < sample->count; i++)
			truncated += sample->strings[i].needs > length;
		truncated_words += (double) truncated / sample->count;
		cost = word_cost * length / 8 + TRUNCATED_WORD_COST * truncated_words + COMPARE_COST * truncated / sample->count;
		if (cost < best)
		{
			best = cost;
			best_length = length;
		}
		if (truncated == 0)
			break;
	}
	if (!statistics)
	{
		/* Rows to come may differ from the common prefix anywhere. */
		for (int words = 0; words < UNKNOWN_WORDS && best_length < Min(longest, DEFAULT_LENGTH_LONG); words++)
			best_length += 8;
	}
	prefix->length = best_length;
}

/*
 * Chooses how many digits of numerics are in the key: so many that few are truncated
 * that resemble others.  Bits that are the same in all rows cost nothing.
 */
static void
choose_digits(const Sample *sample, GpuSortPrefix *prefix)
{
	double best = INFINITY;

	for (int digits = GPUSORT_NUMERIC_DIGITS; digits <= GPUSORT_NUMERIC_DIGITS_MAX; digits++)
	{
		int truncated = 0;
		double cost;

		for (int i = 0; i < sample->count; i++)
			truncated += sample->strings[i].needs > GPUSORT_NUMERIC_BYTES(digits);
		cost = WORD_COST * GPUSORT_NUMERIC_BITS(digits) / 64 + COMPARE_COST * truncated / sample->count;
		if (cost < best)
		{
			best = cost;
			prefix->length = digits;
		}
	}
}

/* A sample of strings of the first column. */
static GpuSortFirstLevels *
create_levels(const GpuSortKeys *keys)
{
	GpuSortFirstLevels *levels = palloc(sizeof(GpuSortFirstLevels));

	levels->keys = keys;
	levels->column = &keys->columns[0];
	levels->count = 0;
	return levels;
}

/*
 * Chooses the prefixes of keys' strings, for about so many rows of the input, of which, if first says so, the first
 * have been kept back: an entry for each sized
 * column.  Returns false if so little is known of some that their common prefixes and known values should be
 * chosen again when some have been: then of no rows, for common prefixes alone.
 */
bool
gpusort_prefixes_choose(const GpuSortKeys *keys, const GpuSortInput *input, bool first, double rows,
						GpuSortPrefix *prefixes)
{
	MemoryContext context;
	MemoryContext caller;
	Sample *sample;
	const bool look = rows >= STATISTICS_ROWS || !first; /* at statistics */
	bool enough = true;

	if (keys->sized == 0)
		return true;
	context = AllocSetContextCreate(CurrentMemoryContext, "gpusort sample", ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(context);
	sample = palloc(sizeof(Sample));
	sample->keys = keys;
	for (int i = 0; i < keys->encodable; i++)
	{
		bool statistics = false;
		int known;

		sample->column = &keys->columns[i];
		if (!gpusort_column_is_sized(sample->column))
			continue;
		sample->count = 0;
		sample->levels = i == 0 && sample->column->partial ? create_levels(keys) : NULL;
		sample->limit = STRINGS_MAX - GPUSORT_SAMPLE_ROWS;
		if (look)
			statistics = add_statistics(sample, input->source);
		known = sample->count;
		if (first)
		{
			int count = Min(Max(input->first.count / 16, 64), GPUSORT_SAMPLE_ROWS);

			add_first_rows(sample, input, statistics ? Max(known / 8, 1) : count);
		}
		if (gpusort_column_is_string(sample->column))
			prefixes->length = first ? DEFAULT_LENGTH : DEFAULT_LENGTH_LONG;
		else
			prefixes->length = GPUSORT_NUMERIC_DIGITS;
		prefixes->common_length = 0;
		prefixes->known.ranked = prefixes->known.complete = false;
		prefixes->known.count = 0;
		prefixes->tied = sample->levels != NULL ? gpusort_first_levels_tied(sample->levels, rows) : 0;
		if (sample->levels != NULL && gpusort_keys_abbreviation_aborts(sample->column))
			prefixes->tied = 1;
		if (sample->count >= 2 && (first || statistics))
		{
			qsort(sample->strings, sample->count, sizeof(SampleString), compare_strings);
			choose_common(sample, prefixes);
			if (sample->column->partial)
				drop_equal(sample);
			find_needs(sample, prefixes, rows);
			if (gpusort_column_is_string(sample->column))
				choose_length(sample, prefixes, statistics);
			else
				choose_digits(sample, prefixes);
		}
		if (OidIsValid(sample->column->abbreviated_by))
			prefixes->length = Min(prefixes->length, GPUSORT_WORD_BYTES);
		if (rows > 0)
			gpusort_few_values_choose(keys, i, input, first, look, prefixes);
		if (prefixes->known.complete)
			prefixes->tied = 0;
		prefixes->settled = first || !gpusort_column_is_string(sample->column) ||
			(statistics && prefixes->known.ranked == prefixes->known.complete);
		enough &= prefixes->settled;
		prefixes++;
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return enough;
}

/*
 * Returns true, with a failure that says so, if keys with these prefixes tell so few of the strings apart that
 * PostgreSQL had better sort.  gpusort.force overrules it.
 */
bool
gpusort_prefixes_too_many_ties(const GpuSortKeys *keys, const GpuSortPrefix *prefixes, GpuSortFailure *failure)
{
	if (gpusort_force || keys->sized == 0 || prefixes[0].tied <= TIED_MAX)
		return false;
	return !gpusort_failure_set(failure, GPUSORT_REASON_TIES,
								OidIsValid(keys->columns[0].abbreviated_by)
									? "too many values have equal abbreviated keys"
									: "too many strings are equal but for case, accents and punctuation");
}
