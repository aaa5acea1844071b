/*-------------------------------------------------------------------------
 *
 * top_rows.c
 *	  The first so many rows of a sort, found by one process alone.
 *
 * Where few rows are wanted, a process keeps copies of the first of those that it has seen, and knows the last row that
 * may be wanted.  A row that is behind this one, which nearly all are, is dropped where it lies: it is compared, and
 * neither formed nor copied.  So there is nothing for the service to do, which is not asked.
 *
 * Twice as many rows as are wanted are taken; then those that are not wanted are dropped, and the last of the others is
 * the new last row (select_first).  That is some five comparisons for a row that is taken, where a heap, as PostgreSQL
 * has it, takes two for each of its levels.  Of rows in no order about half as many more are taken for it, as the last
 * row is known later.
 *
 * The order is PostgreSQL's: its comparators decide, column by column.  Of the first column something cheaper is asked
 * before, which decides most:
 *
 *	  - of numbers and dates, and of numerics, their key, of one column (keys/encode.c);
 *	  - of strings under a collation of the C library their first characters (keys/bytes/libc_less.c), which goes by
 *		tables of the library.  One in WHOLE_EVERY that are dropped so is compared by the comparator, too: what is
 *		wrong with a table shows in more than one of them.
 *
 * The source is told of the last row's value (GpuSortThreshold), so that it leaves most of the rows out before
 * it makes anything of them.
 *
 * Processes that find the first rows of their parts, of which those of all are found then, count together the keys of
 * what they take (cutoff.h): else each would pass on as many rows as are wanted of all.
 *
 * WITH TIES rows that are equal to the last row, in all columns, stay.
 *
 * Rows that turn out to be wider than the planner thought, or ties, may not fit work_mem: collect gives up then.  The
 * rows that it has are the first ones of the input again (give_back), before those that have not been read, and whoever
 * sorts these gets no wrong rows for those that are missing.  That is also how a worker passes on what it has found.
 *
 * Legal order of calls: create, once; then for each sort begin, share where others find first rows, too, collect, and
 * either give_back, or sort, and next and rewind as often as wanted.
 *
 * Memory: what create makes belongs to the context that was current then; the rows are of the input's first.context,
 * and what lists them of the context that begin was given.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/top_rows.h"

#include "catalog/pg_collation_d.h"
#include "keys/bytes/string_keys.h"
#include "server/distrusted.h"
#include "sort/collation_check.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"

/* Words of a key of the first column, where there are such. */
#define KEY_WORDS 2

/* Rows that are taken beside those that are wanted, at least. */
#define ROWS_MORE 64

/* A source that asks gets the last row anew when one in so many of those that are wanted has come. */
#define SETTLE_PART 32

/* One in so many rows that the C library's tables drop is compared by the comparator. */
#define WHOLE_EVERY 32

typedef struct TopRow
{
	uint64 key[KEY_WORDS]; /* of value, where there are keys */
	Datum value;           /* of the first column; it may point into row */
	bool isnull;
	bool exact; /* rows of equal keys have equal values */
	char *row;
} TopRow;

struct GpuSortTopRows
{
	GpuSortThreshold threshold; /* must be first field: what the source is told */
	GpuSortRows *rows_of;
	const GpuSortColumn *columns;
	int ncolumns;
	int attributes; /* the last of those to sort by */
	SortSupport supports;
	GpuSortColumn key_column;  /* the first, of keys */
	GpuSortKeys *keys;         /* of the first column; NULL: none are made */
	const GpuSortColumn *libc; /* the first column, where its first characters are asked; else NULL */
	MemoryContext scratch;     /* what comparators leave behind */

	/* one sort */
	MemoryContext context;
	MemoryContext row_context;
	uint64 wanted;
	bool with_ties;
	TopRow *rows; /* in no order; after sort in order */
	uint64 count;
	uint64 capacity;
	uint64 most;           /* when there are so many, those that are not wanted are dropped */
	bool has_last;         /* rows behind last are not wanted, nor those that equal it, but for ties */
	TopRow last;           /* one of rows */
	GpuSortCutoff *cutoff; /* what the processes have found together; NULL: there are no others, or no keys */
	Size bytes;            /* of rows */
	uint64 seen;           /* rows of the source, but those that it left out */
	uint64 copied;         /* of these */
	uint64 left_out;
	uint32 dropped_by_table;
	uint64 next; /* row to be given out */
	bool ended;  /* it was asked for a row behind the last */
};

/* Makes what finds the first rows by these columns, as gpusort_keys_create has left them. */
GpuSortTopRows *
gpusort_top_rows_create(GpuSortRows *rows, const GpuSortColumn *columns, int ncolumns)
{
	GpuSortTopRows *top = palloc0(sizeof(GpuSortTopRows));
	const GpuSortEncoding encoding = columns[0].encoding;

	top->rows_of = rows;
	top->columns = columns;
	top->ncolumns = ncolumns;
	top->scratch = AllocSetContextCreate(CurrentMemoryContext, "gpusort top rows", ALLOCSET_SMALL_SIZES);
	top->supports = palloc0(ncolumns * sizeof(SortSupportData));
	for (int i = 0; i < ncolumns; i++)
	{
		SortSupport support = &top->supports[i];

		support->ssup_cxt = CurrentMemoryContext;
		support->ssup_collation = columns[i].collation;
		support->ssup_nulls_first = columns[i].nulls_first;
		support->ssup_attno = columns[i].attno;
		PrepareSortSupportFromOrderingOp(columns[i].sort_operator, support);
		top->attributes = Max(top->attributes, columns[i].attno);
	}
	if (columns[0].fixed_bits > 0 || encoding == GPUSORT_ENCODE_NUMERIC)
	{
		const GpuSortPrefix prefix = {.length = GPUSORT_NUMERIC_DIGITS};

		top->key_column = columns[0];
		top->key_column.attno = 1;
		top->keys = gpusort_keys_create(&top->key_column, 1);
		gpusort_keys_lay_out(top->keys, &prefix, false);
		Assert(top->keys->words <= KEY_WORDS);
	}
	return top;
}

/* Compares the beginnings of strings under a collation of the C library; 0 where they do not decide. */
static pg_attribute_always_inline int
compare_beginnings(const GpuSortTopRows *top, Datum a, Datum b)
{
	struct varlena *left = (struct varlena *) DatumGetPointer(a);
	struct varlena *right = (struct varlena *) DatumGetPointer(b);
	int order;

	if (!gpusort_is_plain(left) || !gpusort_is_plain(right))
		return 0;
	order = gpusort_keys_order_first_libc(top->libc, VARDATA_ANY(left), VARSIZE_ANY_EXHDR(left), VARDATA_ANY(right),
										  VARSIZE_ANY_EXHDR(right));
	return top->libc->descending ? -order : order;
}

/* Compares the values that two rows have of the first column. */
static pg_attribute_always_inline int
compare_first(const GpuSortTopRows *top, const TopRow *a, const TopRow *b)
{
	if (top->keys != NULL)
	{
		for (int i = 0; i < KEY_WORDS; i++)
		{
			if (a->key[i] != b->key[i])
				return a->key[i] < b->key[i] ? -1 : 1;
		}
		if (a->exact)
			return 0;
	}
	return ApplySortComparator(a->value, a->isnull, b->value, b->isnull, &top->supports[0]);
}

/* Compares two rows that were taken. */
static int
compare_rows(const GpuSortTopRows *top, const TopRow *a, const TopRow *b)
{
	int order = compare_first(top, a, b);

	for (int i = 1; order == 0 && i < top->ncolumns; i++)
	{
		const AttrNumber attno = top->columns[i].attno;
		bool left_isnull;
		bool right_isnull;
		Datum left = gpusort_rows_value(top->rows_of, a->row, attno, &left_isnull);
		Datum right = gpusort_rows_value(top->rows_of, b->row, attno, &right_isnull);

		order = ApplySortComparator(left, left_isnull, right, right_isnull, &top->supports[i]);
	}
	return order;
}

static int
compare_for_qsort(const void *a, const void *b, void *arg)
{
	CHECK_FOR_INTERRUPTS();
	return compare_rows(arg, a, b);
}

/* Compares a row of the source, of whose first column new has the value, with one that was taken. */
static pg_attribute_always_inline int
compare_new(const GpuSortTopRows *top, const TopRow *new, const GpuSortRow *row, const TopRow *kept)
{
	int order = compare_first(top, new, kept);

	for (int i = 1; order == 0 && i < top->ncolumns; i++)
	{
		const AttrNumber attno = top->columns[i].attno;
		bool isnull;
		Datum value = gpusort_rows_value(top->rows_of, kept->row, attno, &isnull);

		order = ApplySortComparator(row->values[attno - 1], row->nulls[attno - 1], value, isnull, &top->supports[i]);
	}
	return order;
}

/* Takes a row of the source, of whose first column new has the value. */
static void
add_row(GpuSortTopRows *top, const GpuSortRow *row, TopRow *new)
{
	MemoryContext caller = MemoryContextSwitchTo(top->row_context);

	new->row = top->rows_of->kind->copy(top->rows_of, row);
	MemoryContextSwitchTo(caller);
	top->bytes += GetMemoryChunkSpace(new->row);
	top->copied++;
	if (!new->isnull)
		new->value = gpusort_rows_value(top->rows_of, new->row, top->columns[0].attno, &new->isnull);
	if (top->count == top->capacity)
	{
		top->capacity = Max(2 * top->capacity, ROWS_MORE);
		if (top->rows == NULL)
			top->rows = MemoryContextAlloc(top->context, top->capacity * sizeof(TopRow));
		else
			top->rows = repalloc_huge(top->rows, top->capacity * sizeof(TopRow));
	}
	top->rows[top->count++] = *new;
}

static inline void
swap(TopRow *a, TopRow *b)
{
	const TopRow row = *a;

	*a = *b;
	*b = row;
}

/* Returns the row in the middle of three, by their order. */
static const TopRow *
middle(const GpuSortTopRows *top, const TopRow *a, const TopRow *b, const TopRow *c)
{
	if (compare_rows(top, a, b) > 0)
	{
		const TopRow *row = a;

		a = b;
		b = row;
	}
	if (compare_rows(top, b, c) <= 0)
		return b;
	return compare_rows(top, a, c) > 0 ? a : c;
}

/*
 * Puts rows into their places as far as needed for row n, from 0, to be in its own: none behind it is before it.  It
 * stays within the rows, and ends, whatever a comparator says.
 */
static void
select_row(const GpuSortTopRows *top, uint64 n)
{
	TopRow *rows = top->rows;
	int64 low = 0;
	int64 high = (int64) top->count - 1;

	while (low < high)
	{
		const TopRow pivot = *middle(top, &rows[low], &rows[(low + high) / 2], &rows[high]);
		int64 i = low;
		int64 j = high;

		CHECK_FOR_INTERRUPTS();
		while (i <= j)
		{
			while (i < high && compare_rows(top, &rows[i], &pivot) < 0)
				i++;
			while (j > low && compare_rows(top, &pivot, &rows[j]) < 0)
				j--;
			if (i <= j)
				swap(&rows[i++], &rows[j--]);
		}
		/* What is between the two equals the pivot. */
		if ((int64) n <= j)
			high = j;
		else if ((int64) n >= i)
			low = i;
		else
			break;
	}
}

/* Drops the rows that are not wanted, of at least as many as are, and finds the last row. */
static void
select_first(GpuSortTopRows *top)
{
	uint64 kept = top->wanted;

	select_row(top, top->wanted - 1);
	top->last = top->rows[top->wanted - 1];
	top->has_last = true;
	for (uint64 i = top->wanted; i < top->count; i++)
	{
		if (top->with_ties && compare_rows(top, &top->rows[i], &top->last) == 0)
			top->rows[kept++] = top->rows[i];
		else
		{
			top->bytes -= GetMemoryChunkSpace(top->rows[i].row);
			pfree(top->rows[i].row);
		}
	}
	top->count = kept;
	top->most = kept + Max(kept, ROWS_MORE);

	top->threshold.known = true;
	top->threshold.value = top->last.value;
	top->threshold.isnull = top->last.isnull;
}

/*
 * Returns true if the first characters of a row's string tell that it is behind the last row.  Errors: the comparator
 * has them in another order.
 */
static pg_attribute_always_inline bool
is_dropped_by_table(GpuSortTopRows *top, const TopRow *new)
{
	const TopRow *last = &top->last;

	if (top->libc == NULL || new->isnull || last->isnull || compare_beginnings(top, new->value, last->value) <= 0)
		return false;
	if (++top->dropped_by_table % WHOLE_EVERY == 0 && compare_first(top, new, last) <= 0)
		gpusort_collation_check_report(linitial_oid(top->libc->libc_collations));
	return true;
}

/* Returns true if a row of the source, of whose first column new has the value, may be among the first. */
static pg_attribute_always_inline bool
may_be_first(GpuSortTopRows *top, const GpuSortRow *row, const TopRow *new)
{
	int order;

	if (top->cutoff != NULL && gpusort_cutoff_drops(top->cutoff, new->key))
		return false;
	if (unlikely(!top->has_last))
		return true;
	if (is_dropped_by_table(top, new))
		return false;
	order = compare_new(top, new, row, &top->last);
	return order < 0 || (order == 0 && top->with_ties);
}

/* Finds the value of a row's first column, and its key. */
static pg_attribute_always_inline void
open_row(const GpuSortTopRows *top, const GpuSortRow *row, TopRow *new)
{
	const AttrNumber attno = top->columns[0].attno;

	new->value = row->values[attno - 1];
	new->isnull = row->nulls[attno - 1];
	if (top->keys != NULL)
	{
		new->key[1] = 0;
		new->exact = gpusort_keys_encode(top->keys, &new->value, &new->isnull, new->key);
	}
}

/* Looks at a row of the source. */
static pg_attribute_always_inline void
take(GpuSortTopRows *top, const GpuSortRow *row)
{
	MemoryContext caller = MemoryContextSwitchTo(top->scratch);
	TopRow new;

	open_row(top, row, &new);
	top->seen++;
	if (unlikely(may_be_first(top, row, &new)))
	{
		add_row(top, row, &new);
		if (top->cutoff != NULL && !top->cutoff->useless)
			gpusort_cutoff_took(top->cutoff, new.key);
		if (top->count == top->most)
			select_first(top);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextReset(top->scratch);
}

/* Drops the rows that are not wanted. */
static void
drop_unwanted(GpuSortTopRows *top)
{
	MemoryContext caller;

	if (top->count <= top->wanted)
		return;
	caller = MemoryContextSwitchTo(top->scratch);
	select_first(top);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(top->scratch);
}

/* The threshold's is_behind, where the first column has keys. */
static bool
is_behind_by_key(GpuSortThreshold *threshold, Datum value, bool isnull)
{
	const GpuSortTopRows *top = (const GpuSortTopRows *) threshold;
	const uint64 *last = top->last.key;
	uint64 key[KEY_WORDS] = {0};

	if (!threshold->by_value && !isnull && !gpusort_is_plain((struct varlena *) DatumGetPointer(value)))
		return false;
	(void) gpusort_keys_encode(top->keys, &value, &isnull, key);
	return key[0] > last[0] || (key[0] == last[0] && key[1] > last[1]);
}

/* The threshold's is_behind, where the C library's tables tell. */
static bool
is_behind_by_table(GpuSortThreshold *threshold, Datum value, bool isnull)
{
	const TopRow new = {.value = value, .isnull = isnull};

	if (unlikely(isnull))
		return !threshold->isnull && !threshold->nulls_first;
	return is_dropped_by_table((GpuSortTopRows *) threshold, &new);
}

/* The threshold's is_behind, where strings compare by their bytes. */
static bool
is_behind_by_bytes(GpuSortThreshold *threshold, Datum value, bool isnull)
{
	const GpuSortTopRows *top = (const GpuSortTopRows *) threshold;

	if ((!isnull && !gpusort_is_plain((struct varlena *) DatumGetPointer(value))) ||
		(!threshold->isnull && !gpusort_is_plain((struct varlena *) DatumGetPointer(threshold->value))))
		return false;
	return ApplySortComparator(value, isnull, threshold->value, threshold->isnull, &top->supports[0]) > 0;
}

/* Returns what tells with little work that a value is behind the last row's; NULL: nothing does. */
static GpuSortIsBehind
find_is_behind(const GpuSortTopRows *top)
{
	if (top->keys != NULL)
		return is_behind_by_key;
	switch (top->columns[0].encoding)
	{
		case GPUSORT_ENCODE_LIBC_TEXT:
			return top->libc != NULL ? is_behind_by_table : NULL;
		case GPUSORT_ENCODE_TEXT:
		case GPUSORT_ENCODE_BPCHAR:
		case GPUSORT_ENCODE_BYTEA:
			return is_behind_by_bytes;
		default:
			return NULL;
	}
}

/* The threshold's settle: of many rows that are wanted, a few more may be taken before it is worth it. */
static void
settle(GpuSortThreshold *threshold)
{
	GpuSortTopRows *top = (GpuSortTopRows *) threshold;

	if (top->count > top->wanted + top->wanted / SETTLE_PART)
		drop_unwanted(top);
}

/* Begins a sort of which so many rows are wanted, and those that equal the last of them. */
void
gpusort_top_rows_begin(GpuSortTopRows *top, uint64 wanted, bool with_ties, MemoryContext context)
{
	top->context = context;
	top->wanted = wanted;
	top->with_ties = with_ties;
	top->rows = NULL;
	top->count = top->capacity = 0;
	top->most = wanted;
	top->has_last = false;
	top->libc = NULL;
	if (top->columns[0].encoding == GPUSORT_ENCODE_LIBC_TEXT &&
		!gpusort_shared_distrusts(CollationRelationId, linitial_oid(top->columns[0].libc_collations)))
		top->libc = &top->columns[0];
	top->threshold = (GpuSortThreshold){
		.by_value = top->columns[0].fixed_bits > 0,
		.is_behind = find_is_behind(top),
		.settle = settle,
		.equal_wanted = with_ties || top->ncolumns > 1,
		.descending = top->columns[0].descending,
		.nulls_first = top->columns[0].nulls_first};
	top->cutoff = NULL;
	top->bytes = 0;
	top->seen = top->copied = top->left_out = 0;
	top->dropped_by_table = 0;
	gpusort_top_rows_rewind(top);
}

/* Begins what processes know together of rows of which so many are wanted. */
void
gpusort_top_rows_shared_init(GpuSortCutoffShared *shared, uint64 wanted)
{
	gpusort_cutoff_shared_init(shared, KEY_WORDS, wanted);
}

/* Lets the process, which has begun, drop rows by what others find, too. */
void
gpusort_top_rows_share(GpuSortTopRows *top, GpuSortCutoffShared *shared)
{
	MemoryContext caller = MemoryContextSwitchTo(top->context);

	if (top->keys != NULL)
		top->cutoff = gpusort_cutoff_join(shared);
	MemoryContextSwitchTo(caller);
}

/* Reads the input to its end; false if the rows that are to be kept do not fit work_mem, before the end. */
bool
gpusort_top_rows_collect(GpuSortTopRows *top, GpuSortInput *input)
{
	/* Half of it is for rows that are taken and dropped again. */
	const Size room = (Size) work_mem * 1024 / 2;
	GpuSortSource *source = input->source;
	const GpuSortRow *row;
	bool fits = true;

	top->row_context = input->first.context;
	source->attributes = top->attributes;
	source->left_out = 0;
	source->threshold = &top->threshold;
	while (fits && (row = gpusort_input_next(input)) != NULL)
	{
		take(top, row);
		/* Between batches alone rows can be given back. */
		if (unlikely(top->bytes > room / 2 * 3) && !input->at_first && input->next >= input->count)
		{
			drop_unwanted(top);
			fits = top->bytes <= room;
		}
	}
	top->left_out = source->left_out;
	source->threshold = NULL;
	return fits;
}

/* Makes the rows the first ones of the input again; ended: it has no others. */
void
gpusort_top_rows_give_back(GpuSortTopRows *top, GpuSortInput *input, bool ended)
{
	char **rows = MemoryContextAlloc(top->row_context, Max(top->count, 1) * sizeof(char *));
	int kept = 0;

	drop_unwanted(top);
	if (top->cutoff != NULL)
		gpusort_cutoff_tell(top->cutoff);
	for (uint64 i = 0; i < top->count; i++)
	{
		if (top->cutoff == NULL || !gpusort_cutoff_is_beyond(top->cutoff, top->rows[i].key))
			rows[kept++] = top->rows[i].row;
	}
	gpusort_input_keep(input, rows, kept, ended);
	top->count = 0;
}

/* Puts the rows into order. */
void
gpusort_top_rows_sort(GpuSortTopRows *top)
{
	MemoryContext caller;

	drop_unwanted(top);
	caller = MemoryContextSwitchTo(top->scratch);
	qsort_arg(top->rows, top->count, sizeof(TopRow), compare_for_qsort, top);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(top->scratch);
}

/* Goes back to before the first row. */
void
gpusort_top_rows_rewind(GpuSortTopRows *top)
{
	top->next = 0;
	top->ended = false;
}

/* Returns the next row, or going backward the one before, as tuplesort has it; NULL if there is none. */
char *
gpusort_top_rows_next(GpuSortTopRows *top, bool forward)
{
	if (forward)
	{
		if (top->next < top->count)
			return top->rows[top->next++].row;
		top->ended = true;
		return NULL;
	}
	if (top->ended)
		top->ended = false;
	else if (top->next > 0)
		top->next--;
	return top->next > 0 ? top->rows[top->next - 1].row : NULL;
}

/* Returns how many rows there are. */
uint64
gpusort_top_rows_count(const GpuSortTopRows *top)
{
	return top->count;
}

/* Returns how many rows the source had. */
uint64
gpusort_top_rows_seen(const GpuSortTopRows *top)
{
	return top->seen + top->left_out;
}

/* Returns how many rows were copied. */
uint64
gpusort_top_rows_copied(const GpuSortTopRows *top)
{
	return top->copied;
}

/* Returns the bytes of the rows. */
Size
gpusort_top_rows_bytes(const GpuSortTopRows *top)
{
	return top->bytes;
}
