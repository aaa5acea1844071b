/*-------------------------------------------------------------------------
 *
 * known_values.c
 *	  Ranks of a column's strings among values that are known.
 *
 * What ranks are for is said in encode.c.  Known values are ordered by what PostgreSQL compares
 * such strings by, and so is where another one lies among them: nothing of the collation need be
 * known but that it is an order in which strings of different bytes are never equal.
 *
 * A string is looked up by a hash of its bytes.  One that is not known is searched for by comparing,
 * a few microseconds, and its rank remembered if it is short and there is room: what is not
 * known is often frequent, too.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/known_values.h"

#include "common/hashfn.h"
#include "keys/encoders.h"
#include "keys/bytes/string_keys.h"
#include "utils/memutils.h"
#include "utils/varlena.h"

/* Strings without a rank of their own that are remembered, and bytes of each. */
#define REMEMBERED_MAX       512
#define REMEMBERED_BYTES_MAX 128

/* Of the hash table; a power of two that is more than twice the entries. */
#define SLOT_BITS 12
#define SLOTS     (1 << SLOT_BITS)

/* Strings up to here are told apart by their first and last words. */
#define SHORT_BYTES 16

/* A string as it is compared. */
typedef struct LookedUp
{
	uint64 first; /* its first eight bytes */
	uint64 last;  /* and its last, if it has more */
	const char *data;
	uint32 length;
} LookedUp;

typedef struct RankedString
{
	LookedUp string;
	uint32 rank;
} RankedString;

struct GpuSortKnownTable
{
	MemoryContext context;
	int known;           /* the first entries, in order */
	int entries;         /* with those remembered */
	uint16 slots[SLOTS]; /* entry + 1; 0: none */
	RankedString entry[GPUSORT_KNOWN_MAX + REMEMBERED_MAX];
};

/* Returns true if strings of a column can have ranks: under its collation those of different bytes are never equal. */
bool
gpusort_keys_may_rank(const GpuSortColumn *column)
{
	if (!gpusort_column_is_string(column))
		return false;
	switch (column->type->source)
	{
		case GPUSORT_SOURCE_ICU:
			return gpusort_icu_is_total(column->state);
		case GPUSORT_SOURCE_LIBC:
			return true;
		default:
			return column->type->under_icu != GPUSORT_ENCODE_NONE;
	}
}

/* Compares two strings as PostgreSQL does in this column, but for its direction. */
static int
compare(const GpuSortColumn *column, const char *a, int a_length, const char *b, int b_length)
{
	int order;

	if (column->type->source != GPUSORT_SOURCE_STRING)
		return varstr_cmp(a, a_length, b, b_length, column->collation);
	order = memcmp(a, b, Min(a_length, b_length));
	return order != 0 ? order : a_length - b_length;
}

/* A qsort_arg comparator. */
static int
compare_known(const void *a, const void *b, void *arg)
{
	const GpuSortKnownString *left = a;
	const GpuSortKnownString *right = b;

	return compare(arg, left->data, left->length, right->data, right->length);
}

/*
* Sets known to these strings, which are different and are reordered, of a column that may rank.  Returns false, and
 * changes nothing, if there are more than it has room for.
 */
bool
gpusort_keys_set_known(const GpuSortColumn *column, GpuSortKnownString *strings, int count, GpuSortKnownValues *known)
{
	int bytes = 0;

	for (int i = 0; i < count; i++)
		bytes += strings[i].length;
	if (count > GPUSORT_KNOWN_MAX || bytes > GPUSORT_KNOWN_BYTES)
		return false;
	qsort_arg(strings, count, sizeof(GpuSortKnownString), compare_known, unconstify(GpuSortColumn *, column));
	bytes = 0;
	for (int i = 0; i < count; i++)
	{
		memcpy(known->bytes + bytes, strings[i].data, strings[i].length);
		bytes += strings[i].length;
		known->ends[i] = bytes;
	}
	known->count = count;
	return true;
}

/* Sets string to these bytes.  Returns its hash; use its highest bits, which are the best mixed. */
static pg_attribute_always_inline uint64
look_at(LookedUp *string, const char *data, uint32 length)
{
	string->data = data;
	string->length = length;
	string->first = gpusort_load_bytes(data, Min(length, 8));
	string->last = length > 8 ? gpusort_load_bytes(data + length - 8, 8) : 0;
	if (unlikely(length > SHORT_BYTES))
		return hash_bytes_extended((const unsigned char *) data, length, 0);
	return ((string->first * UINT64CONST(0x9E3779B97F4A7C15)) ^ (string->last + length)) * UINT64CONST(0xD6E8FEB86659FD93);
}

static pg_attribute_always_inline bool
is_same(const LookedUp *a, const LookedUp *b)
{
	return a->first == b->first && a->last == b->last && a->length == b->length &&
		(likely(a->length <= SHORT_BYTES) || memcmp(a->data, b->data, a->length) == 0);
}

/* Returns the slot that has a string of this hash, or that it would be put into. */
static pg_attribute_always_inline uint16 *
find_slot(GpuSortKnownTable *table, const LookedUp *string, uint64 hash)
{
	uint32 slot = hash >> (64 - SLOT_BITS);

	while (table->slots[slot] != 0 && !is_same(&table->entry[table->slots[slot] - 1].string, string))
		slot = (slot + 1) % SLOTS;
	return &table->slots[slot];
}

/* Puts a string, whose bytes are copied, into a slot. */
static void
put(GpuSortKnownTable *table, uint16 *slot, const LookedUp *string, uint32 rank)
{
	char *data = MemoryContextAlloc(table->context, Max(string->length, 1));

	memcpy(data, string->data, string->length);
	table->entry[table->entries] = (RankedString){.string = *string, .rank = rank};
	table->entry[table->entries].string.data = data;
	*slot = ++table->entries;
}

/* Makes what finds the ranks of a column's strings.  It belongs to the current memory context; known to the caller. */
GpuSortKnownTable *
gpusort_known_table_create(const GpuSortColumn *column, const GpuSortKnownValues *known)
{
	Size entries = (known->count + REMEMBERED_MAX) * sizeof(RankedString);
	GpuSortKnownTable *table = palloc(offsetof(GpuSortKnownTable, entry) + entries);

	memset(table, 0, offsetof(GpuSortKnownTable, entry));
	table->context = CurrentMemoryContext;
	for (int i = 0; i < known->count; i++)
	{
		LookedUp string;
		int length;
		const char *data = gpusort_known_value(known, i, &length);
		uint64 hash = look_at(&string, data, length);

		put(table, find_slot(table, &string, hash), &string, 2 * i + 1);
	}
	table->known = table->entries;
	return table;
}

/* Finds the rank of a string that is not known, by comparing; remembers it if there is room. */
static pg_noinline uint32
search(GpuSortKnownTable *table, const GpuSortColumn *column, uint16 *slot, const LookedUp *string)
{
	int low = 0;
	int high = table->known;

	while (low < high)
	{
		int middle = (low + high) / 2;
		const LookedUp *known = &table->entry[middle].string;

		if (compare(column, string->data, string->length, known->data, known->length) < 0)
			high = middle;
		else
			low = middle + 1;
	}
	if (table->entries < table->known + REMEMBERED_MAX && string->length <= REMEMBERED_BYTES_MAX)
		put(table, slot, string, 2 * low);
	return 2 * low;
}

/*
 * Returns the rank of a string among the known values, of which there are n:
 * an odd number, 2i + 1, if it is number i; an even one, 2i, if it sorts behind
 * i of them and before the others.  Errors: those of detoasting and of comparing.
 */
uint32
gpusort_known_rank(const GpuSortKeys *keys, const GpuSortColumn *column, Datum value)
{
	GpuSortKnownTable *table = column->known;
	GpuSortStringBytes bytes = gpusort_find_bytes(keys->scratch, column->type->string, value, 0, true);
	LookedUp string;
	uint64 hash = look_at(&string, bytes.data, bytes.length);
	uint16 *slot = find_slot(table, &string, hash);
	uint32 rank = *slot != 0 ? table->entry[*slot - 1].rank : search(table, column, slot, &string);

	if (unlikely(bytes.fetched))
		MemoryContextReset(keys->scratch);
	return rank;
}
