/*-------------------------------------------------------------------------
 *
 * odd_abbreviation.c
 *	  Functions of operator classes that abbreviate bytea, each within PostgreSQL's contract, as others would not.
 *
 * Loaded into a server by test/t/abbreviation.t.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "port/pg_bswap.h"
#include "utils/sortsupport.h"
#if __has_include("varatt.h")
#include "varatt.h"
#endif

PG_MODULE_MAGIC;

static int
compare_bytes(Datum x, Datum y, SortSupport support)
{
	bytea *left = PG_DETOAST_DATUM_PACKED(x);
	bytea *right = PG_DETOAST_DATUM_PACKED(y);
	int left_length = VARSIZE_ANY_EXHDR(left);
	int right_length = VARSIZE_ANY_EXHDR(right);
	int order = memcmp(VARDATA_ANY(left), VARDATA_ANY(right), Min(left_length, right_length));

	return order != 0 ? order : left_length - right_length;
}

/* The first bytes, as a number. */
static uint64
first_bytes(Datum value, int count)
{
	bytea *bytes = PG_DETOAST_DATUM_PACKED(value);
	uint64 word = 0;

	memcpy(&word, VARDATA_ANY(bytes), Min(VARSIZE_ANY_EXHDR(bytes), count));
	return pg_ntoh64(word);
}

static bool
never_abort(int count, SortSupport support)
{
	return false;
}

static void
set_up(SortSupport support, int (*comparator)(Datum, Datum, SortSupport), Datum (*converter)(Datum, SortSupport),
	   bool (*abort_function)(int, SortSupport))
{
	support->comparator = compare_bytes;
	if (!support->abbreviate)
		return;
	support->comparator = comparator;
	support->abbrev_converter = converter;
	support->abbrev_abort = abort_function;
	support->abbrev_full_comparator = compare_bytes;
}

/* Eight bytes, of which the comparator says nothing where one word is zero, and downwards. */
static int
compare_zero_open(Datum x, Datum y, SortSupport support)
{
	return x == 0 || y == 0 || x == y ? 0 : x > y ? -1
												  : 1;
}

static Datum
convert_down(Datum value, SortSupport support)
{
	return (Datum) ~first_bytes(value, 8);
}

PG_FUNCTION_INFO_V1(abbreviate_open);
Datum
abbreviate_open(PG_FUNCTION_ARGS)
{
	set_up((SortSupport) PG_GETARG_POINTER(0), compare_zero_open, convert_down, never_abort);
	PG_RETURN_VOID();
}

/* Words as distances from the first one that a sort makes, which are ordered round about it. */
static int
compare_distances(Datum x, Datum y, SortSupport support)
{
	uint64 first = support->ssup_extra != NULL ? *(uint64 *) support->ssup_extra : 0;
	uint64 left = (uint64) x + first;
	uint64 right = (uint64) y + first;

	return left < right ? -1 : left > right;
}

static Datum
convert_distance(Datum value, SortSupport support)
{
	uint64 word = first_bytes(value, 8);

	if (support->ssup_extra == NULL)
	{
		support->ssup_extra = MemoryContextAlloc(support->ssup_cxt, sizeof(uint64));
		*(uint64 *) support->ssup_extra = word;
	}
	return (Datum) (word - *(uint64 *) support->ssup_extra);
}

PG_FUNCTION_INFO_V1(abbreviate_distance);
Datum
abbreviate_distance(PG_FUNCTION_ARGS)
{
	set_up((SortSupport) PG_GETARG_POINTER(0), compare_distances, convert_distance, never_abort);
	PG_RETURN_VOID();
}

/* Floating-point numbers, as bits. */
static int
compare_floats(Datum x, Datum y, SortSupport support)
{
	double left;
	double right;

	memcpy(&left, &x, sizeof(left));
	memcpy(&right, &y, sizeof(right));
	return left < right ? -1 : left > right;
}

static Datum
convert_float(Datum value, SortSupport support)
{
	double number = (double) first_bytes(value, 4) - 1e19 / 2;
	Datum word;

	memcpy(&word, &number, sizeof(word));
	return word;
}

PG_FUNCTION_INFO_V1(abbreviate_float);
Datum
abbreviate_float(PG_FUNCTION_ARGS)
{
	set_up((SortSupport) PG_GETARG_POINTER(0), compare_floats, convert_float, never_abort);
	PG_RETURN_VOID();
}

/* The lowest 32 bits of a word count, with a sign. */
static Datum
convert_int32(Datum value, SortSupport support)
{
	return (Datum) ((first_bytes(value, 4) >> 32 ^ 0x80000000) | UINT64CONST(0xABCD) << 48);
}

PG_FUNCTION_INFO_V1(abbreviate_int32);
Datum
abbreviate_int32(PG_FUNCTION_ARGS)
{
	set_up((SortSupport) PG_GETARG_POINTER(0), ssup_datum_int32_cmp, convert_int32, never_abort);
	PG_RETURN_VOID();
}

/* One bit, and aborts as soon as it is asked. */
static Datum
convert_bit(Datum value, SortSupport support)
{
	return (Datum) (first_bytes(value, 1) >> 63);
}

static bool
always_abort(int count, SortSupport support)
{
	return count >= 10;
}

PG_FUNCTION_INFO_V1(abbreviate_bit);
Datum
abbreviate_bit(PG_FUNCTION_ARGS)
{
	set_up((SortSupport) PG_GETARG_POINTER(0), ssup_datum_unsigned_cmp, convert_bit, always_abort);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(abbreviate_error);
Datum
abbreviate_error(PG_FUNCTION_ARGS)
{
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("this class cannot sort")));
}
