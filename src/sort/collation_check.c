/*-------------------------------------------------------------------------
 *
 * collation_check.c
 *	  Verifies that rows sorted under the C library's collations, or by abbreviated keys, are in order.
 *
 * The keys of such strings are made of the C library's tables, and strcoll, which is what
 * PostgreSQL calls, is another program.  That the two agree is not believed: before a row
 * is emitted the rows are read once more than they are emitted, and compared by strcoll.
 *
 * WHAT IS COMPARED
 *	The service returns runs of rows: those of equal truncated keys, which are marked
 *	(GPUSORT_ROW_TIE_NEXT) and ordered by PostgreSQL's comparators when they are emitted
 *	(ties.c), and single rows.  PostgreSQL's comparators are a total order, so all rows are in
 *	order if the greatest row of each run is not above the least of the next one, by the
 *	sort's own order.
 *
 *	Two rows of different runs have different keys.  A string of the C library's is never in
 *	the key whole, so the key ends with the first that is neither NULL nor has a rank there, which
 *	strcoll has given (keys/known_values.c): if the rows have equal values before it,
 *	keys can differ in nothing but this string.  So columns are compared in
 *	turn up to the last one in the key that is of such a collation.  Others among them are
 *	compared by their comparators, for they tell which column decides.  Rows that differ in
 *	none of these columns are ordered by later ones, whose keys are exact; but if they have a
 *	string of the C library's in common, the same bytes have made different keys, which is as
 *	bad as a wrong order.
 *
 *	Within a run every row is compared with the greatest so far, and with the least if it is not
 *	above that: two comparisons a row at most, none of them by strcoll where strings have the same
 *	bytes.  So the work is linear in the rows.
 *
 *	strcoll is asked of the ends of strings that begin alike, where that tells (keys/bytes/libc_less.c), which
 *	goes by the same tables as the keys as far as beginnings are concerned.  So one in WHOLE_EVERY neighbours
 *	is compared whole: what is wrong with a table shows in more than one of them.
 *
 *	Words that an operator class makes of its values (keys/bytes/abbreviation.c) are verified likewise.  The check
 *	makes words of its own, one for each row and all in one state, as PostgreSQL's contract wants: what the class's
 *	comparator of words tells apart is decided, whoever made the words in the keys.  Where it leaves the order open,
 *	values are compared.  A key ends with such a word, so that neighbours that are equal by this are out of order, too.
 *
 * Strings are copied once, to be terminated with a zero byte.  Rows that are needed beyond their
 * chunk are copied when it is left.
 *
 * An inversion has the collation, or the operator family, left alone from then on (server/distrusted.h).  Everything
 * belongs to the memory context that was current at create.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/collation_check.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_collation_d.h"
#include "catalog/pg_opfamily_d.h"
#include "keys/bytes/libc_less.h"
#include "miscadmin.h"
#include "server/distrusted.h"
#include "server/reasons.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"

/* One in so many neighbours is compared from the strings' beginnings on. */
#define WHOLE_EVERY 32

/* What is compared of a row in one column. */
typedef struct CheckedValue
{
	bool known; /* what follows is filled in */
	bool isnull;
	Datum value; /* not of the C library's strings; it may point into the row */
	bool has_word;
	Datum word;   /* of a value that is abbreviated */
	char *string; /* of these: a copy that ends with GPUSORT_LIBC_BEHIND zero bytes */
	uint32 length;
	uint32 capacity;
} CheckedValue;

/* A row to be compared. */
typedef struct CheckedRow
{
	char *row;            /* in the reader's chunk, or copied */
	char *copy;           /* memory for a copy */
	uint32 copy_capacity; /* bytes of it */
	char *long_row;       /* what row stands for in the overflow file; NULL: it is itself */
	CheckedValue *values;
} CheckedRow;

/* The greatest row of the last run; the least and the greatest of the current run; the next one. */
#define CHECKED_ROWS 4

struct GpuSortCollationCheck
{
	const GpuSortColumn *columns;
	int count;            /* columns up to the last one that is verified */
	SortSupport supports; /* of those among them that are not the C library's strings */
	GpuSortRows *rows_of;
	MemoryContext context;
	MemoryContext scratch; /* what comparators and detoasting leave behind */
	CheckedRow rows[CHECKED_ROWS];
	CheckedRow *before;   /* the greatest of the last run; NULL: there is none */
	CheckedRow *least;    /* of the current run; NULL: there is none */
	CheckedRow *greatest; /* of the same */
	int different;        /* the column in which the last two rows compared differ */
	uint32 neighbours;    /* strings that were compared as such */
};

/* Returns how many columns there are up to the last one in the key that is verified. */
static int
checked_columns(const GpuSortKeys *keys)
{
	int count = keys->encoded;

	while (count > 0 && !gpusort_column_is_verified(&keys->columns[count - 1]))
		count--;
	return count;
}

/*
 * Makes what verifies the order of rows by these keys, which are laid out and have a column that is verified.
 * Belongs to the current memory context.
 */
GpuSortCollationCheck *
gpusort_collation_check_create(const GpuSortKeys *keys, GpuSortRows *rows)
{
	GpuSortCollationCheck *check = palloc0(sizeof(GpuSortCollationCheck));

	check->columns = keys->columns;
	check->count = checked_columns(keys);
	check->rows_of = rows;
	check->context = CurrentMemoryContext;
	check->scratch = AllocSetContextCreate(CurrentMemoryContext, "gpusort collation check", ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < CHECKED_ROWS; i++)
		check->rows[i].values = palloc0(check->count * sizeof(CheckedValue));
	check->supports = palloc0(check->count * sizeof(SortSupportData));
	for (int i = 0; i < check->count; i++)
	{
		const GpuSortColumn *column = &check->columns[i];
		SortSupport support = &check->supports[i];

		if (gpusort_column_is_libc(column))
			continue;
		support->ssup_cxt = CurrentMemoryContext;
		support->ssup_collation = column->collation;
		support->ssup_nulls_first = column->nulls_first;
		support->ssup_attno = column->attno;
		support->abbreviate = OidIsValid(column->abbreviated_by);
		PrepareSortSupportFromOrderingOp(column->sort_operator, support);
	}
	return check;
}

/* Makes room for so many bytes, of which none need be kept. */
static pg_noinline void
enlarge(GpuSortCollationCheck *check, char **memory, uint32 *capacity, uint32 bytes)
{
	if (*memory != NULL)
		pfree(*memory);
	*capacity = Max(bytes, 64) * 2;
	*memory = MemoryContextAllocHuge(check->context, *capacity);
}

/* Returns the value of an attribute of a row. */
static inline Datum
row_value(const GpuSortCollationCheck *check, const CheckedRow *row, AttrNumber attno, bool *isnull)
{
	return gpusort_rows_value(check->rows_of, row->long_row != NULL ? row->long_row : row->row, attno, isnull);
}

/* Copies a string, to end with zero bytes. */
static inline void
copy_string(GpuSortCollationCheck *check, CheckedValue *value, const char *data, uint32 length)
{
	if (unlikely(length + GPUSORT_LIBC_BEHIND > value->capacity))
		enlarge(check, &value->string, &value->capacity, length + GPUSORT_LIBC_BEHIND);
	gpusort_copy(value->string, data, length);
	memset(value->string + length, 0, GPUSORT_LIBC_BEHIND);
	value->length = length;
}

/* Fills in a string of the C library's. */
static void
know_string(GpuSortCollationCheck *check, const GpuSortColumn *column, Datum datum, CheckedValue *value)
{
	struct varlena *stored = (struct varlena *) DatumGetPointer(datum);
	struct varlena *plain = stored;
	uint32 length;

	if (column->type->string == GPUSORT_STRING_NAME)
	{
		const char *name = NameStr(*DatumGetName(datum));

		copy_string(check, value, name, strnlen(name, NAMEDATALEN));
		return;
	}
	if (unlikely(VARATT_IS_EXTERNAL(stored) || VARATT_IS_COMPRESSED(stored)))
		plain = detoast_attr(stored);
	length = VARSIZE_ANY_EXHDR(plain);
	if (column->type->string == GPUSORT_STRING_PADDED)
		length = bpchartruelen(VARDATA_ANY(plain), length);
	copy_string(check, value, VARDATA_ANY(plain), length);
	if (unlikely(plain != stored))
		pfree(plain);
}

/* Returns the value of a row in a column, numbered from 0. */
static pg_attribute_always_inline CheckedValue *
know_value(GpuSortCollationCheck *check, CheckedRow *row, int i)
{
	CheckedValue *value = &row->values[i];
	const GpuSortColumn *column = &check->columns[i];
	Datum datum;

	if (value->known)
		return value;
	datum = row_value(check, row, column->attno, &value->isnull);
	value->known = true;
	if (!gpusort_column_is_libc(column))
		value->value = datum;
	else if (!value->isnull)
		know_string(check, column, datum, value);
	return value;
}

/* Compares two strings under a collation of the C library, neither of them NULL, as PostgreSQL does. */
static inline int
compare_strings(const GpuSortColumn *column, const CheckedValue *left, const CheckedValue *right)
{
	int order;

	if (left->length == right->length && memcmp(left->string, right->string, left->length) == 0)
		return 0;
	order = gpusort_keys_compare_libc(column, left->string, right->string);
	if (order == 0)
		order = strcmp(left->string, right->string);
	if (column->descending)
		INVERT_COMPARE_RESULT(order);
	return order;
}

/* Returns true if left is before right, for the less work where that is the case; false: compare_strings tells. */
static inline bool
are_in_order(const GpuSortColumn *column, const CheckedValue *left, const CheckedValue *right)
{
	return column->descending ? gpusort_keys_is_less_libc(column, right->string, right->length, left->string)
							  : gpusort_keys_is_less_libc(column, left->string, left->length, right->string);
}

/* Returns the word that the check makes of a value. */
static inline Datum
know_word(GpuSortCollationCheck *check, CheckedValue *value, SortSupport support)
{
	if (!value->has_word)
	{
		/* As in PostgreSQL's sort, what a class keeps between values may be in the current context. */
		MemoryContext caller = MemoryContextSwitchTo(check->context);

		value->word = support->abbrev_converter(value->value, support);
		value->has_word = true;
		MemoryContextSwitchTo(caller);
	}
	return value->word;
}

/*
 * Compares two values that are abbreviated, neither of them NULL; of neighbours, which are expected to have
 * different words, by these first.
 */
static inline int
compare_abbreviated(GpuSortCollationCheck *check, CheckedValue *left, CheckedValue *right, SortSupport support,
					bool neighbours)
{
	int order;

	/* The class may have lost its words since the sort was planned. */
	if (support->abbrev_converter == NULL)
		return ApplySortComparator(left->value, false, right->value, false, support);
	if (neighbours)
	{
		order = ApplySortComparator(know_word(check, left, support), false, know_word(check, right, support), false, support);
		if (order != 0)
			return order;
	}
	return ApplySortAbbrevFullComparator(left->value, false, right->value, false, support);
}

/*
 * Compares two rows as the sort orders them, in the columns that are looked at: less than 0, more, or 0 if none
 * of these decides.  Of neighbours, rows of different runs, the left one should be first, and those that have
 * a string without ranks or an abbreviated value in common are out of order, as that has no order in later columns:
 * more than 0.
 */
static pg_attribute_always_inline int
compare(GpuSortCollationCheck *check, CheckedRow *left_row, CheckedRow *right_row, bool neighbours)
{
	for (int i = 0; i < check->count; i++)
	{
		const GpuSortColumn *column = &check->columns[i];
		CheckedValue *left = know_value(check, left_row, i);
		CheckedValue *right = know_value(check, right_row, i);
		int order;

		check->different = i;
		if (OidIsValid(column->abbreviated_by) && !left->isnull && !right->isnull)
		{
			order = compare_abbreviated(check, left, right, &check->supports[i], neighbours);
			return order != 0 ? order : neighbours;
		}
		if (!gpusort_column_is_libc(column))
			order = ApplySortComparator(left->value, left->isnull, right->value, right->isnull, &check->supports[i]);
		else if (left->isnull || right->isnull)
			order = left->isnull == right->isnull ? 0 : left->isnull == column->nulls_first ? -1
																							: 1;
		else
		{
			if (neighbours && check->neighbours++ % WHOLE_EVERY != 0 && are_in_order(column, left, right))
				return -1;
			order = compare_strings(column, left, right);
			if (order != 0 || column->rank_bits == 0)
				return order != 0 ? order : neighbours;
		}
		if (order != 0)
			return order;
	}
	return 0;
}

/* Distrusts a collation, and says so in the log if it was not distrusted before. */
static void
distrust(Oid collation)
{
	char *name;

	if (!gpusort_shared_distrust(CollationRelationId, collation))
		return;
	name = get_collation_name(collation);
	ereport(LOG,
			(errmsg("gpusort leaves sorts under collation \"%s\" to PostgreSQL until the server restarts",
					name != NULL ? name : "?"),
			 errdetail("strcoll() and the collation keys of the C library "
					   "disagree about the order of two strings."),
			 errhint("PostgreSQL has done the sorts that were running. "
					 "Please report the locale, and the version of the C library.")));
}

/* Distrusts a collation, after a row was dropped that the C library has among the first: ends the query. */
void
gpusort_collation_check_report(Oid collation)
{
	distrust(collation);
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("gpusort has dropped a row that may be among the first"),
			 errdetail("The C library's strcoll orders two strings otherwise than their first characters."),
			 errhint("Run the query again: PostgreSQL will sort.")));
}

/* Distrusts the keys of an operator family, likewise. */
static void
distrust_family(Oid family)
{
	ObjectAddress address;
	char *name;

	if (!gpusort_shared_distrust(OperatorFamilyRelationId, family))
		return;
	ObjectAddressSet(address, OperatorFamilyRelationId, family);
	name = getObjectDescription(&address, true);
	ereport(LOG,
			(errmsg("gpusort leaves sorts by %s to PostgreSQL until the server restarts", name != NULL ? name : "?"),
			 errdetail("Its comparator and its abbreviated keys disagree about the order of two values."),
			 errhint("PostgreSQL has done the sorts that were running. "
					 "Please report it to the authors of the type's extension.")));
}

/* Two rows of different runs are the other way round: returns false, for the caller to return. */
static pg_noinline bool
note_inversion(GpuSortCollationCheck *check, GpuSortFailure *failure)
{
	const GpuSortColumn *column = &check->columns[check->different];
	ListCell *cell;

	if (OidIsValid(column->abbreviated_by))
	{
		(void) gpusort_failure_set(failure, GPUSORT_REASON_COLLATION,
								   "rows in the order of their keys are not in the comparator's order, in sort key %d",
								   check->different + 1);
		distrust_family(column->abbreviated_by);
		return false;
	}
	(void) gpusort_failure_set(failure, GPUSORT_REASON_COLLATION,
							   "rows in the order of their keys are not in the C library's order, in sort key %d", check->different + 1);
	foreach(cell, column->libc_collations)
		distrust(lfirst_oid(cell));
	return false;
}

/* Returns a row that is not in use. */
static inline CheckedRow *
free_row(GpuSortCollationCheck *check)
{
	CheckedRow *row = check->rows;

	while (row == check->before || row == check->least || row == check->greatest)
		row++;
	return row;
}

/* Begins to look at a row out of the reader's chunk. */
static inline CheckedRow *
take_row(GpuSortCollationCheck *check, char *data)
{
	CheckedRow *row = free_row(check);

	row->row = data;
	for (int i = 0; i < check->count; i++)
		row->values[i].known = row->values[i].has_word = false;
	if (unlikely(row->long_row != NULL))
	{
		pfree(row->long_row);
		row->long_row = NULL;
	}
	if (unlikely(gpusort_row_flags(data) & GPUSORT_ROW_OVERFLOW))
	{
		MemoryContext caller = MemoryContextSwitchTo(check->context);

		row->long_row = gpusort_overflow_fetch(&check->rows_of->overflow, data);
		MemoryContextSwitchTo(caller);
	}
	return row;
}

/* A run has ended: compares its least row with the greatest of the one before. */
static inline bool
end_run(GpuSortCollationCheck *check, CheckedRow *least, CheckedRow *greatest, uint64 *pairs, GpuSortFailure *failure)
{
	if (likely(check->before != NULL))
	{
		if (unlikely(compare(check, check->before, least, true) > 0))
			return note_inversion(check, failure);
		(*pairs)++;
	}
	check->before = greatest;
	check->least = check->greatest = NULL;
	return true;
}

/* Adds a row to the current run. */
static void
add_to_run(GpuSortCollationCheck *check, CheckedRow *row)
{
	int order;

	if (check->least == NULL)
	{
		check->least = check->greatest = row;
		return;
	}
	order = compare(check, row, check->greatest, false);
	if (order > 0)
		check->greatest = row;
	else if (order < 0 && (check->least == check->greatest || compare(check, row, check->least, false) < 0))
		check->least = row;
}

/* Verifies the next row. */
static inline bool
check_row(GpuSortCollationCheck *check, char *data, uint64 *pairs, GpuSortFailure *failure)
{
	bool ties = (gpusort_row_flags(data) & GPUSORT_ROW_TIE_NEXT) != 0;
	CheckedRow *row = take_row(check, data);

	if (likely(!ties && check->least == NULL))
		return end_run(check, row, row, pairs, failure);
	add_to_run(check, row);
	return ties || end_run(check, check->least, check->greatest, pairs, failure);
}

/* The reader's chunk is about to go: copies the rows that are needed still. */
static void
keep_rows(GpuSortCollationCheck *check)
{
	for (CheckedRow *row = check->rows; row < check->rows + CHECKED_ROWS; row++)
	{
		uint32 length;

		if ((row != check->before && row != check->least && row != check->greatest) || row->row == row->copy)
			continue;
		length = gpusort_row_length(row->row);
		if (length > row->copy_capacity)
			enlarge(check, &row->copy, &row->copy_capacity, length);
		memcpy(row->copy, row->row, length);
		row->row = row->copy;
		for (int i = 0; i < check->count; i++)
			row->values[i].known &= gpusort_column_is_libc(&check->columns[i]);
	}
}

/* Goes to the next chunk; false after the last, or with a reason if the sort is lost. */
static pg_noinline bool
next_chunk(GpuSortCollationCheck *check, GpuSortReader *reader, GpuSortFailure *failure)
{
	CHECK_FOR_INTERRUPTS();
	keep_rows(check);
	MemoryContextReset(check->scratch);
	return gpusort_reader_next_chunk(reader, failure);
}

/*
 * Verifies the order of the rows that the reader has: so many of them, and where there are more, that of these and the
 * run after them.  Adds to *pairs how many pairs of neighbours have been compared.  false, with a reason, if
 * they are out of order, or lost.  Errors: those of comparators, of detoasting and of the overflow file.
 */
bool
gpusort_collation_check_rows(GpuSortCollationCheck *check, GpuSortReader *reader, uint64 rows, uint64 *pairs,
							 GpuSortFailure *failure)
{
	MemoryContext caller = MemoryContextSwitchTo(check->scratch);
	bool good = true;

	failure->reason = GPUSORT_REASON_NONE;
	check->before = check->least = check->greatest = NULL;
	for (uint64 read = 0; good; read++)
	{
		char *row = gpusort_reader_plain_row(reader);

		if (unlikely(row == NULL))
		{
			if (gpusort_reader_at_end(reader) && !next_chunk(check, reader, failure))
			{
				good = failure->reason == GPUSORT_REASON_NONE;
				break;
			}
			row = gpusort_reader_row(reader);
			if (row == NULL)
			{
				*failure = reader->failure;
				good = false;
				break;
			}
		}
		CHECK_FOR_INTERRUPTS();
		good = check_row(check, row, pairs, failure);
		if (unlikely(read >= rows) && check->least == NULL)
			break;
	}
	MemoryContextSwitchTo(caller);
	return good;
}

/*
 * Says whether keys like these may be sorted by; false, with a reason,
 * if a collation or an operator family of theirs has been found to be out of order.
 */
bool
gpusort_collation_check_allows(const GpuSortKeys *keys, GpuSortFailure *failure)
{
	for (int i = 0; i < keys->encoded; i++)
	{
		ListCell *cell;

		foreach(cell, keys->columns[i].libc_collations)
		{
			if (gpusort_shared_distrusts(CollationRelationId, lfirst_oid(cell)))
				return gpusort_failure_set(failure, GPUSORT_REASON_COLLATION,
										   "a check found that the collation of sort key %d does not order strings as their keys do", i + 1);
		}
		if (OidIsValid(keys->columns[i].abbreviated_by) &&
			gpusort_shared_distrusts(OperatorFamilyRelationId, keys->columns[i].abbreviated_by))
			return gpusort_failure_set(failure, GPUSORT_REASON_COLLATION,
									   "a check found that the operator class of sort key %d does not order values "
									   "as their abbreviated keys do",
									   i + 1);
	}
	return true;
}
