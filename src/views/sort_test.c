/*-------------------------------------------------------------------------
 *
 * sort_test.c
 *	  Sorts without a plan: what tests call of src/sort and src/parallel.
 *
 * The extension has no function for it: a test makes one, as only a superuser can (test/sql/sorts.sql).
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "parallel/sort_set.h"
#include "sort/datum_rows.h"
#include "sort/heap_rows.h"
#include "sort/index_rows.h"
#include "sort/sort.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/typcache.h"

/* Ranges are cut for so many processes, of which there is but one. */
#define PROCESSES 4

/* TIDs of index tuples: so many to a page; one in so many is dead. */
#define ROWS_PER_PAGE 100
#define DEAD_EVERY    7

/* PostgreSQL 15's PG_FUNCTION_INFO_V1 does not export the function itself. */
extern PGDLLEXPORT Datum gpusort_test_sort(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(gpusort_test_sort);

#define BATCH 10

/* The elements of an array, as rows of a kind, BATCH of them at a time. */

typedef struct TestSource
{
	GpuSortSource source; /* must be first field */
	const GpuSortRowKind *kind;
	GpuSortIndexRows *index;
	Datum *elements;
	bool *nulls;
	int count;
	int next;
	MemoryContext context; /* of rows of the current batch */

	/* of the current batch */
	Datum values[BATCH][2];
	bool isnull[BATCH][2];
} TestSource;

/* The method next_batch. */
static int
test_next_batch(GpuSortSource *source, GpuSortRow *rows, int n)
{
	TestSource *test = (TestSource *) source;
	int count = 0;

	MemoryContextReset(test->context);
	for (; count < Min(n, BATCH) && test->next < test->count; count++, test->next++)
	{
		Datum *values = test->values[count];
		bool *isnull = test->isnull[count];

		values[0] = test->elements[test->next];
		isnull[0] = test->nulls[test->next];
		values[1] = Int64GetDatum(test->next + 1);
		isnull[1] = false;
		rows[count] = (GpuSortRow){.values = values, .nulls = isnull};
		if (test->kind == &gpusort_index_rows)
		{
			ItemPointerData tid;
			char *row;

			ItemPointerSet(&tid, test->next / ROWS_PER_PAGE, test->next % ROWS_PER_PAGE + 1);
			row = gpusort_index_row_form(test->index, values, isnull, &tid, test->next % DEAD_EVERY == 0, test->context);
			gpusort_index_row_open(test->index, row, values, isnull);
			rows[count].tuple = row;
			rows[count].length = gpusort_row_length(row);
		}
	}
	return count;
}

/* The method restart. */
static void
test_restart(GpuSortSource *source)
{
	((TestSource *) source)->next = 0;
}

/* The method table_column. */
static bool
test_table_column(GpuSortSource *source, AttrNumber attno, GpuSortTableColumn *column, Oid *type)
{
	return false;
}

static const GpuSortSourceMethods test_methods = {
	.next_batch = test_next_batch,
	.restart = test_restart,
	.table_column = test_table_column,
};

/* Where rows go that are read: their values as texts, and the numbers that they had in the array. */
typedef struct TestResult
{
	const GpuSortRowKind *kind;
	GpuSortRows *rows;
	FmgrInfo output;
	ArrayBuildState *array;
} TestResult;

/* Adds a row as it was shown. */
static void
add_row(TestResult *result, void *shown)
{
	StringInfoData text;
	Datum value;
	bool isnull;

	initStringInfo(&text);
	if (result->kind == &gpusort_heap_rows)
		value = slot_getattr(shown, 1, &isnull);
	else if (result->kind == &gpusort_index_rows)
		value = gpusort_rows_value(result->rows, shown, 1, &isnull);
	else
	{
		value = ((GpuSortDatum *) shown)->value;
		isnull = ((GpuSortDatum *) shown)->isnull;
	}
	appendStringInfoString(&text, isnull ? "NULL" : OutputFunctionCall(&result->output, value));
	if (result->kind == &gpusort_heap_rows)
		appendStringInfo(&text, " " INT64_FORMAT, DatumGetInt64(slot_getattr(shown, 2, &isnull)));
	else if (result->kind == &gpusort_index_rows)
	{
		ItemPointer tid = &gpusort_index_row_tuple(shown)->t_tid;

		appendStringInfo(&text, " %u%s",
						 ItemPointerGetBlockNumber(tid) * ROWS_PER_PAGE + ItemPointerGetOffsetNumber(tid),
						 gpusort_index_row_is_dead(shown) ? " dead" : "");
	}
	result->array = accumArrayResult(result->array, CStringGetTextDatum(text.data), false, TEXTOID, CurrentMemoryContext);
	pfree(text.data);
}

/* Reads all rows by one process; again: first half of them, and then all from the first. */
static void
sort_alone(GpuSortState *sort, bool again, int count, TestResult *result)
{
	void *row;

	sort->may_reread = again;
	gpusort_sort_begin(sort);
	gpusort_sort_put(sort);
	gpusort_sort_perform(sort);
	if (again)
	{
		GpuSortFailure failure;

		for (int i = 0; i < count / 2; i++)
			(void) gpusort_sort_next(sort, true);
		if (!gpusort_sort_rewind(sort, &failure))
			gpusort_sort_report_lost(true, &failure);
	}
	while ((row = gpusort_sort_next(sort, true)) != NULL)
		add_row(result, row);
}

/* Reads the rows by ranges; from: in place of that, from this row number on. */
static void
sort_in_parallel(GpuSortState *sort, int64 from, TestResult *result)
{
	const volatile bool stop = false;
	GpuSortSortSet set = {0};
	GpuSortParallelSort *parallel = gpusort_parallel_sort_create(sort, 1, NULL);
	GpuSortFailure failure = {0};
	uint32 ranges;
	bool whole;
	void *row;

	gpusort_sort_set_add(&set, parallel);
	if (!gpusort_sort_set_begin(&set, PROCESSES, &failure) ||
		!gpusort_sort_set_ingest(&set, &stop, &whole, &failure) ||
		!gpusort_sort_set_order(&set, PROCESSES, &ranges, &failure) ||
		!gpusort_sort_set_open(&set, &stop, &failure))
		gpusort_sort_report_lost(false, &failure);
	if (from >= 0)
	{
		if (!gpusort_reader_ask(&sort->service.reader, from, gpusort_parallel_sort_rows(parallel)->expected.rows, false,
								&failure))
			gpusort_sort_report_lost(false, &failure);
		ranges = 1;
	}
	for (uint32 range = 0; range < ranges; range++)
	{
		if (from >= 0 ? !gpusort_sort_begin_range(sort, &failure)
					  : !gpusort_sort_set_ask(&set, range, &failure) ||
					!gpusort_sort_set_begin_range(&set, &failure))
			gpusort_sort_report_lost(true, &failure);
		while ((row = gpusort_sort_next(sort, true)) != NULL)
			add_row(result, row);
	}
	if (set.lost || (from < 0 && !gpusort_sort_set_finish(&set, &failure)))
		gpusort_sort_report_lost(true, set.lost ? &sort->reason : &failure);
	ereport(NOTICE, (errmsg("%s", from >= 0 ? "rows" : ranges > 1 ? "several ranges"
																  : "one range")));
	gpusort_sort_set_end(&set);
}

/* Makes the kind of rows that kind names, of elements of a type. */
static GpuSortRows *
create_rows(const char *kind, Oid type, Oid collation, Relation heap, Relation index)
{
	if (strcmp(kind, "heap") == 0)
	{
		TupleDesc desc = CreateTemplateTupleDesc(2);

		TupleDescInitEntry(desc, 1, "value", type, -1, 0);
		TupleDescInitEntryCollation(desc, 1, collation);
		TupleDescInitEntry(desc, 2, "number", INT8OID, -1, 0);
		TupleDescFinalize(desc);
		return &gpusort_heap_rows_create(desc, desc)->rows;
	}
	if (strcmp(kind, "index") == 0 && index != NULL)
		return &gpusort_index_rows_create(heap, index)->rows;
	if (strcmp(kind, "datum") == 0)
		return &gpusort_datum_rows_create(type)->rows;
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("no such kind of rows: %s", kind)));
}

/*
 * gpusort_test_sort(elements anyarray, kind text, how text, descending boolean, index oid) returns text[]: sorts the
 * elements as rows of a kind, "datum", "heap" or "index" (of one column, of that type, descending alike), and reads
 * them as "next", "rewind" or "ranges" say, or from the row whose number how is.
 */
Datum
gpusort_test_sort(PG_FUNCTION_ARGS)
{
	ArrayType *array = PG_GETARG_ARRAYTYPE_P(0);
	const char *kind = text_to_cstring(PG_GETARG_TEXT_PP(1));
	const char *how = text_to_cstring(PG_GETARG_TEXT_PP(2));
	const bool descending = PG_GETARG_BOOL(3);
	const Oid index_oid = PG_GETARG_OID(4);
	const Oid type = ARR_ELEMTYPE(array);
	const TypeCacheEntry *typcache = lookup_type_cache(type, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
	Oid collation = PG_GET_COLLATION();
	Relation index = NULL;
	Relation heap = NULL;
	TestSource source = {.source.methods = &test_methods, .source.may_restart = true};
	TestResult result = {0};
	GpuSortColumn *columns = palloc0(2 * sizeof(GpuSortColumn));
	GpuSortState *sort;
	Oid output;
	bool varlena;
	int16 length;
	bool by_value;
	char align;

	if (OidIsValid(index_oid))
	{
		index = index_open(index_oid, AccessShareLock);
		heap = table_open(IndexGetRelation(index_oid, false), AccessShareLock);
		collation = index->rd_indcollation[0];
	}
	get_typlenbyvalalign(type, &length, &by_value, &align);
	deconstruct_array(array, type, length, by_value, align, &source.elements, &source.nulls, &source.count);
	source.context = AllocSetContextCreate(CurrentMemoryContext, "test rows", ALLOCSET_DEFAULT_SIZES);
	result.rows = create_rows(kind, type, collation, heap, index);
	result.kind = source.kind = result.rows->kind;
	source.index = source.kind == &gpusort_index_rows ? (GpuSortIndexRows *) result.rows : NULL;
	getTypeOutputInfo(type, &output, &varlena);
	fmgr_info(output, &result.output);

	columns[0] = (GpuSortColumn){
		.attno = 1,
		.sort_operator = descending ? typcache->gt_opr : typcache->lt_opr,
		.collation = collation,
		.nulls_first = descending,
		.value_type = type};
	columns[1] = (GpuSortColumn){.attno = 2, .sort_operator = TIDLessOperator, .value_type = TIDOID};
	sort = gpusort_sort_create(result.rows, &source.source, columns, source.index != NULL ? 2 : 1);
	sort->estimated_rows = source.count;
	sort->estimated_width = 16;
	if (strcmp(how, "next") == 0 || strcmp(how, "rewind") == 0)
		sort_alone(sort, strcmp(how, "rewind") == 0, source.count, &result);
	else
		sort_in_parallel(sort, strcmp(how, "ranges") == 0 ? -1 : pg_strtoint64(how), &result);
	gpusort_sort_drop(sort);
	if (index != NULL)
	{
		table_close(heap, AccessShareLock);
		index_close(index, AccessShareLock);
	}
	if (result.array == NULL)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(makeArrayResult(result.array, CurrentMemoryContext));
}
