/*-------------------------------------------------------------------------
 *
 * rows.c
 *	  Rows of the host engine: from chunks into records, and back into chunks.
 *
 * Ingest: offsets and lengths are checked once, here, against the chunk's bytes;
 * everything after this trusts the refs made here.  While a key is in the
 * cache it is folded into the OR and AND of its words, which later tell the
 * bits that vary, and compared with the one before, so that input that is in
 * order already needs no sort.  Threads take parts of a chunk, and what they found
 * is put together in the order of the parts.
 *
 * Emit: refs are read one after another but the rows they
 * mean lie anywhere. What a row costs is a miss or two,
 * so rows are asked for well before they are copied.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#if defined(__SSE2__) && !defined(GPUSORT_PORTABLE)
#define HAVE_STREAM 1
#include <emmintrin.h>
#endif

#include "service/host/rows.h"

/* Rows asked for ahead of the one being copied. */
#define PREFETCH_ROWS 16

/* Of longer rows the CPU's own prefetcher gets the rest. */
#define PREFETCH_BYTES 256

/*
 * A chunk is ingested in a part for each thread, this many at most.  Fewer threads
 * than the least gain nothing that waking them does not cost, nor do smaller chunks.
 */
#define INGEST_PARTS_MAX      16
#define INGEST_THREADS_MIN    4
#define INGEST_PARALLEL_BYTES ((uint32_t) 64 << 10)

/*
 * A chunk is filled in this many parts at most, two for each thread: one that
 * is late then does not hold up the others for long.
 */
#define EMIT_PARTS_MAX 32

/*
 * Copies records to a page.  They are next read when they are emitted, long
 * after any cache has lost them, so they are stored past it: memory is not read
 * before it is written, which is a third of the traffic.
 */
static void
store_records(char *to, const char *from, size_t bytes)
{
	size_t done = 0;

#ifdef HAVE_STREAM
	for (; done + 64 <= bytes; done += 64)
	{
		for (int i = 0; i < 64; i += 16)
			_mm_stream_si128((__m128i *) (to + done + i),
							 _mm_loadu_si128((const __m128i *) (from + done + i)));
	}
	_mm_sfence();
#endif
	memcpy(to + done, from + done, bytes - done);
}

/* What the rows of a part of a chunk, or of all of it, say of their keys and lengths. */
typedef struct IngestPart
{
	bool good;
	bool ascending;
	bool descending;
	bool counts_differ;
	const uint64_t *first_key; /* in the chunk; NULL: no rows */
	const uint64_t *last_key;
	uint64_t row_bytes;
	uint64_t ref_sum;
	uint64_t any[GPUSORT_MAX_KEY_WORDS];
	uint64_t all[GPUSORT_MAX_KEY_WORDS];
} IngestPart;

/* A chunk being ingested, perhaps by several threads. */
typedef struct Ingest
{
	const GpuSort *sort;
	const char *chunk;
	uint32_t rows;
	uint32_t bytes;
	const GpuSortHostChunk *ingested;
	uint32_t nparts;
	IngestPart parts[INGEST_PARTS_MAX];
} Ingest;

/* Takes note that a key follows another one. */
static inline __attribute__((always_inline)) void
compare_keys(const uint64_t *previous, const uint64_t *key, const uint32_t words, bool *ascending, bool *descending)
{
	uint32_t w = 0;

	while (w + 1 < words && previous[w] == key[w])
		w++;
	if (key[w] < previous[w])
		*ascending = false;
	else
		*descending = false;
}

/*
 * Checks rows of a chunk, from first up to end, and makes their entries.
 * The client could still write to the chunk, so what is checked is read once.
 * words is sort->key_words and inline_words is sort->inline_words;
 * they are arguments so that the compiler makes a loop
 * for each common width.  Returns false if they make no sense.
 */
static inline __attribute__((always_inline)) bool
ingest_rows(const Ingest *ingest, uint32_t first, uint32_t end, IngestPart *part, const uint32_t words,
			const uint32_t inline_words)
{
	const GpuSort *sort = ingest->sort;
	const char *chunk = ingest->chunk;
	const uint32_t bytes = ingest->bytes;
	const uint32_t *offsets = (const uint32_t *) (chunk + GPUSORT_CHUNK_BYTES) - 1;
	const uint32_t key_bytes = words * 8;
	const uint32_t least = sort->run_counts ? GPUSORT_ROW_COUNT_OFFSET + sizeof(uint64_t) : 8;
	uint64_t *entries = ingest->ingested->entries + (uint64_t) first * (inline_words + 1);
	const uint64_t *first_key = NULL;
	const uint64_t *previous = NULL;
	uint64_t row_bytes = 0;
	uint64_t ref_sum = 0;
	uint64_t any[GPUSORT_MAX_KEY_WORDS];
	uint64_t all[GPUSORT_MAX_KEY_WORDS];
	bool ascending = sort->ascending;
	bool descending = sort->descending;
	uint64_t counts_differ = 0;

	for (uint32_t w = 0; w < words; w++)
	{
		any[w] = 0;
		all[w] = UINT64_MAX;
	}

	for (uint32_t i = first; i < end; i++)
	{
		uint32_t offset = __atomic_load_n(&offsets[-(int64_t) i], __ATOMIC_RELAXED);
		uint32_t length;
		uint32_t padded;
		const uint64_t *key;
		const char *row;
		uint64_t ref;

		if ((offset & 7) != 0 || offset > bytes || bytes - offset < key_bytes + 8)
			return false;
		key = (const uint64_t *) (chunk + offset);
		row = chunk + offset + key_bytes;
		length = __atomic_load_n((const uint32_t *) row, __ATOMIC_RELAXED);
		if (length < least || length > bytes - offset - key_bytes)
			return false;
		padded = GPUSORT_ALIGN8(length);
		row_bytes += padded;
		if (sort->run_counts)
			counts_differ |= *(const uint64_t *) (row + GPUSORT_ROW_COUNT_OFFSET) ^ 1;

		for (uint32_t w = 0; w < words; w++)
		{
			any[w] |= key[w];
			all[w] &= key[w];
			if (w < inline_words)
				entries[w] = key[w];
		}
		ref = gpusort_host_ref_make(sort->nchunks, offset + key_bytes, padded,
									sort->may_tie && (row[GPUSORT_ROW_FLAGS_OFFSET] & GPUSORT_ROW_KEY_TRUNCATED));
		ref_sum += ref >> 1;
		entries[inline_words] = ref;
		entries += inline_words + 1;

		if (previous == NULL)
			first_key = key;
		else if (ascending || descending)
			compare_keys(previous, key, words, &ascending, &descending);
		previous = key;
	}

	for (uint32_t w = 0; w < words; w++)
	{
		part->any[w] = any[w];
		part->all[w] = all[w];
	}
	part->first_key = first_key;
	part->last_key = previous;
	part->ascending = ascending;
	part->descending = descending;
	part->counts_differ = counts_differ != 0;
	part->row_bytes = row_bytes;
	part->ref_sum = ref_sum;
	return true;
}

/* Where part p of n begins in what has a size, of which each part but the last is a multiple of unit. */
static uint32_t
part_start(uint32_t size, uint32_t p, uint32_t n, uint32_t unit)
{
	return p == n ? size : (uint64_t) size * p / n / unit * unit;
}

/* Ingests a part of the rows, and copies as large a part of the records. */
static void
ingest_part(void *arg, uint32_t p)
{
	Ingest *ingest = arg;
	IngestPart *part = &ingest->parts[p];
	const uint32_t first = part_start(ingest->rows, p, ingest->nparts, 1);
	const uint32_t end = part_start(ingest->rows, p + 1, ingest->nparts, 1);
	const uint32_t from = part_start(ingest->bytes, p, ingest->nparts, 64);
	const uint32_t to = part_start(ingest->bytes, p + 1, ingest->nparts, 64);

	switch (ingest->sort->key_words)
	{
		case 1:
			part->good = ingest_rows(ingest, first, end, part, 1, 1);
			break;
		case 2:
			part->good = ingest_rows(ingest, first, end, part, 2, 2);
			break;
		case 3:
			part->good = ingest_rows(ingest, first, end, part, 3, 3);
			break;
		case 4:
			part->good = ingest_rows(ingest, first, end, part, 4, 4);
			break;
		default:
			part->good = ingest_rows(ingest, first, end, part, ingest->sort->key_words, 0);
			break;
	}
	if (part->good)
		store_records(ingest->ingested->records + from, ingest->chunk + from, to - from);
}

/* Adds what a part says to what the sort knows, in the order of the parts; previous: the key before it, or NULL. */
static void
add_part(GpuSort *sort, const IngestPart *part, const uint64_t *previous)
{
	sort->ascending = sort->ascending && part->ascending;
	sort->descending = sort->descending && part->descending;
	sort->counts_differ |= part->counts_differ;
	if (previous != NULL)
		compare_keys(previous, part->first_key, sort->key_words, &sort->ascending, &sort->descending);
	for (uint32_t w = 0; w < sort->key_words; w++)
	{
		sort->any[w] |= part->any[w];
		sort->all[w] &= part->all[w];
	}
	sort->row_bytes += part->row_bytes;
	sort->ref_sum += part->ref_sum;
}

/* In how many parts a chunk of so many bytes is ingested. */
static uint32_t
count_ingest_parts(const GpuSort *sort, uint32_t bytes)
{
	uint32_t threads = gpusort_threads_count(sort->threads);

	if (threads < INGEST_THREADS_MIN || bytes < INGEST_PARALLEL_BYTES)
		return 1;
	return threads < INGEST_PARTS_MAX ? threads : INGEST_PARTS_MAX;
}

/*
 * Ingests a chunk of at least one row: fills ingested->records and ingested->entries,
 * which the caller has allocated, and the sort's knowledge of its keys.  Fails
 * with BAD_CHUNK, and has not changed the sort then.
 */
int
gpusort_host_ingest(GpuSort *sort, const char *chunk, uint32_t rows, uint32_t bytes,
					GpuSortHostChunk *ingested, GpuSortError *error)
{
	/* The first row of all has nothing before it, and agrees with any order. */
	const uint64_t *previous = sort->rows > 0 ? sort->last_key : NULL;
	Ingest ingest;

	ingest.sort = sort;
	ingest.chunk = chunk;
	ingest.rows = rows;
	ingest.bytes = bytes;
	ingest.ingested = ingested;
	ingest.nparts = count_ingest_parts(sort, bytes);
	gpusort_threads_run(sort->threads, ingest.nparts, ingest_part, &ingest);
	for (uint32_t p = 0; p < ingest.nparts; p++)
	{
		if (!ingest.parts[p].good)
		{
			error->reason = GPUSORT_REASON_BAD_CHUNK;
			strcpy(error->text, "a chunk has invalid offsets or lengths");
			return -1;
		}
	}
	for (uint32_t p = 0; p < ingest.nparts; p++)
	{
		/* There may be fewer rows than parts. */
		if (ingest.parts[p].first_key == NULL)
			continue;
		add_part(sort, &ingest.parts[p], previous);
		previous = ingest.parts[p].last_key;
	}
	memcpy(sort->last_key, previous, sort->key_words * sizeof(uint64_t));
	return 0;
}

/* A chunk being filled by several threads. */
typedef struct Filling
{
	const GpuSort *sort;
	char *chunk;
	bool records;                      /* rows have their keys before them */
	uint32_t key_bytes;                /* before each row */
	uint64_t rows[EMIT_PARTS_MAX + 1]; /* where parts start, and the end */
	uint32_t bytes[EMIT_PARTS_MAX + 1];
	uint32_t tie_rows[EMIT_PARTS_MAX];
} Filling;

static inline void
prefetch_row(const Filling *filling, uint64_t ref)
{
	const char *row = filling->sort->chunks[gpusort_host_ref_chunk(ref)].records + gpusort_host_ref_offset(ref) -
		filling->key_bytes;
	uint32_t length = gpusort_host_ref_length(ref) + filling->key_bytes;

	if (length > PREFETCH_BYTES)
		length = PREFETCH_BYTES;
	for (uint32_t at = 0; at < length; at += 64)
		__builtin_prefetch(row + at, 0, 0);
	__builtin_prefetch(row + length - 1, 0, 0);
}

/* Copies rows, in the order of the elements from first up to end, to "to". */
static uint32_t
emit_rows(const Filling *filling, uint64_t first, uint64_t end, char *to, const char *to_end)
{
	const GpuSort *sort = filling->sort;
	const uint32_t key_bytes = filling->key_bytes;
	const uint8_t flags_kept = filling->records ? GPUSORT_ROW_KEY_TRUNCATED | GPUSORT_ROW_OVERFLOW : GPUSORT_ROW_OVERFLOW;
	const uint64_t tie_mark = filling->records ? 0 : GPUSORT_HOST_REF_MARK;
	uint32_t tie_rows = 0;

	for (uint64_t i = first; i < end; i++)
	{
		uint64_t ref = sort->elements[i].ref;
		uint32_t length = gpusort_host_ref_length(ref) + key_bytes;
		const char *row = sort->chunks[gpusort_host_ref_chunk(ref)].records + gpusort_host_ref_offset(ref) - key_bytes;
		uint8_t flags;

		if (i + PREFETCH_ROWS < end)
			prefetch_row(filling, sort->elements[i + PREFETCH_ROWS].ref);

		/*
		 * Short rows are copied 32 bytes at a time and up
		 * to 24 bytes too far, which the next row overwrites;
		 * records have room behind them to be read too far.
		 */
		if (length <= 512 && length + 32 <= to_end - to)
		{
			for (uint32_t done = 0; done < length; done += 32)
				memcpy(to + done, row + done, 32);
		}
		else
			memcpy(to, row, length);

		flags = row[key_bytes + GPUSORT_ROW_FLAGS_OFFSET] & flags_kept;
		if (ref & tie_mark)
		{
			flags |= GPUSORT_ROW_TIE_NEXT;
			tie_rows++;
		}
		to[key_bytes + GPUSORT_ROW_FLAGS_OFFSET] = flags;
		if (sort->run_counts)
			memcpy(to + key_bytes + GPUSORT_ROW_COUNT_OFFSET, &sort->elements[i].key, sizeof(uint64_t));
		to += length;
	}
	return tie_rows;
}

static void
fill_part(void *arg, uint32_t p)
{
	Filling *filling = arg;

	filling->tie_rows[p] = emit_rows(filling, filling->rows[p], filling->rows[p + 1],
									 filling->chunk + filling->bytes[p],
									 filling->chunk + filling->bytes[p + 1]);
}

/*
 * Fills a chunk with the rows from number first on, as many as it takes, up to end.
 * Refs tell the lengths, so where each row goes is known before one is copied, and
 * threads can share the copying.  With records each has its key before it and the
 * flags that it was put with.
 */
void
gpusort_host_emit(const GpuSort *sort, uint64_t first, uint64_t end, bool records, char *chunk,
				  GpuSortEmitted *emitted)
{
	const uint32_t key_bytes = records ? sort->key_words * sizeof(uint64_t) : 0;
	Filling filling = {.sort = sort, .chunk = chunk, .records = records, .key_bytes = key_bytes};
	uint32_t parts = 2 * gpusort_threads_count(sort->threads);
	uint32_t part = 0;
	uint32_t part_bytes;
	uint32_t at = 0;
	uint64_t i = first;

	if (parts > EMIT_PARTS_MAX)
		parts = EMIT_PARTS_MAX;
	part_bytes = GPUSORT_CHUNK_BYTES / parts;
	filling.rows[0] = i;
	for (; i < end; i++)
	{
		uint32_t length = gpusort_host_ref_length(sort->elements[i].ref) + key_bytes;

		if (length > GPUSORT_CHUNK_BYTES - at)
			break;
		if (at - filling.bytes[part] >= part_bytes)
		{
			part++;
			filling.rows[part] = i;
			filling.bytes[part] = at;
		}
		at += length;
	}
	filling.rows[part + 1] = i;
	filling.bytes[part + 1] = at;
	gpusort_threads_run(sort->threads, part + 1, fill_part, &filling);

	emitted->rows = i - first;
	emitted->bytes = at;
	emitted->tie_rows = 0;
	for (uint32_t p = 0; p <= part; p++)
		emitted->tie_rows += filling.tie_rows[p];
	emitted->last = i == end;
}
