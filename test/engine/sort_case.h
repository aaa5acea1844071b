/*-------------------------------------------------------------------------
 *
 * sort_case.h
 *	  One made-up set of rows, the order that is right for it, and running it
 *	  through an engine.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_CASE_H
#define GPUSORT_SORT_CASE_H

#include "engine_rig.h"

typedef enum RowLengths
{
	LENGTHS_FIXED,  /* all of length_max */
	LENGTHS_SPREAD, /* 8 to length_max */
	LENGTHS_SKEWED, /* mostly below 150, one in a hundred up to length_max */
} RowLengths;

typedef struct CaseSpec
{
	uint64_t rows;
	uint32_t key_words;
	RigKeys keys;
	RowLengths lengths;
	uint32_t length_max;
	uint32_t truncated_percent;
	uint32_t overflow_percent;
	uint32_t chunk_rows; /* at most so many rows per chunk; 0: as fit */
	bool claim_no_ties;  /* may_tie = 0; truncated_percent is 0 then */
	bool reserve_ahead;  /* reserve several chunks at once, and more than are put */
	uint64_t limit;      /* rows wanted; 0: all */
	/* as in GpuSortRequest */
	uint32_t run_bits;
	uint32_t run_rows;
	bool run_peers;
	bool run_exact;
	bool run_counts;       /* rows have 16 bytes at least then */
	uint32_t counts_every; /* every so many rows one is put with another count than 1; 0: none is */
	uint32_t look_ups;     /* keys looked up at once; 0: any few */
	int fits;              /* 1: all rows have to be ingested; -1: some must be refused; 0: either */
} CaseSpec;

/* The rows, as put, and in order. */
typedef struct SortCase
{
	CaseSpec spec;
	uint64_t salt;
	uint64_t *keys; /* key_words each */
	uint32_t *lengths;
	uint8_t *flags;
	uint32_t *order;   /* row numbers, sorted */
	uint8_t *tie_next; /* by place in the order */
	uint64_t wanted;   /* rows that have to come out: up to the limit, and what may tie there */
	uint64_t rows_out; /* rows that are to come out: wanted, or all */
	uint64_t bytes;    /* of them, padded */
	uint64_t tie_rows; /* of them, in runs of equal keys with a row that is KEY_TRUNCATED */
	uint32_t borders;  /* between devices: at each a chunk may end before it is full */
	bool records;      /* they are read with keys, and flags as they were put */
	/* with run_rows: */
	uint32_t *whole;  /* the order of all rows */
	uint8_t *picked;  /* by place in that: it is to come out */
	uint64_t *counts; /* by place in the order: what each row stands for */
} SortCase;

typedef struct CaseFailure
{
	char text[512]; /* empty: none */
} CaseFailure;

/* Makes rows and their order, all of them to come out; sort_case_free frees it. */
extern void sort_case_make(SortCase *made, const CaseSpec *spec, uint64_t salt);
extern void sort_case_free(SortCase *made);

/* Writes row number `row` with its key into a chunk; false: it does not fit. */
extern bool sort_case_write(const SortCase *from, uint64_t row, RigChunk *chunk);

/*
 * Puts all rows from `first` on, until reserve fails (*put_rows tells how far it got) or all
 * are in.  in is a chunk to work with.  A failing reserve fills *full; false is a failure.
 */
extern bool sort_case_put(const SortCase *from, const GpuSortEngineOps *ops, GpuSort *sort, char *in,
						  uint64_t *put_rows, GpuSortError *full, CaseFailure *failure);

/*
 * sort_pick.c: leaves in the order the first rows of each run, and what each of them
 * stands for: sort_case_count of its own and the rows left out behind it.
 */
extern void sort_case_pick(SortCase *made);
extern uint64_t sort_case_count(const SortCase *from, uint64_t row);

/* sort_pick.c: the same, of the rows that a sort on several devices has kept, which may be more; so many. */
extern bool sort_case_note_picked(SortCase *made, const GpuSortEngineOps *ops, GpuSort *sort, char *out, uint64_t rows,
								  CaseFailure *failure);

/* Bytes that a row takes of a chunk as it is read. */
extern uint32_t sort_case_emitted_bytes(const SortCase *from, uint32_t row);

/*
 * Reads rows from place *place of the order on, up to `end`, at most `chunks` chunks, and compares
 * each with what is right.
 */
extern bool sort_case_read(const SortCase *from, const GpuSortEngineOps *ops, GpuSort *sort, char *out,
						   uint64_t *place, uint64_t end, uint64_t chunks, CaseFailure *failure);

/* sort_access.c: the same of intervals here and there. */
extern bool sort_case_read_intervals(const SortCase *from, const GpuSortEngineOps *ops, GpuSort *sort, char *out,
									 CaseFailure *failure);

/* sort_access.c: keys of rows here and there, and the rows below keys like those. */
extern bool sort_case_look_up(const SortCase *from, const GpuSortEngineOps *ops, GpuSort *sort,
							  CaseFailure *failure);

/*
 * The whole way: begin, put, sort, read in order, more than once, and by intervals, look up, end.
 * chunks is memory of two chunks.
 */
extern bool sort_case_run(const CaseSpec *spec, uint64_t salt, const GpuSortEngineOps *ops, GpuSortEngine *engine,
						  char *chunks, CaseFailure *failure);

/* As malloc, but exits the program where there is no memory. */
extern void *sort_case_allocate(uint64_t bytes);

/* Fills *failure and returns false. */
extern bool case_failed(CaseFailure *failure, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A request with no estimates. */
extern GpuSortRequest sort_case_request(const CaseSpec *spec);

/* For begin, of a sort that runs to its end. */
extern const int sort_case_never_cancelled;

#endif /* GPUSORT_SORT_CASE_H */
