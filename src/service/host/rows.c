/*-------------------------------------------------------------------------
 *
 * rows.c
 *	  Rows of the host engine: from chunks into records, and back into chunks.
 *
 * Ingest: offsets and lengths are checked once, here, against the chunk's bytes;
 * everything after this trusts the refs made here.  While a key is in the
 * cache it is folded into the OR and AND of its words, which later tell the
 * bits that vary, and compared with the one before, so that input that is in
 * order already needs no sort.
 *
 * Emit: refs are read one after another but the rows they mean lie anywhere.
 * What a row costs is a miss or two, so rows are asked for well before they
 * are copied.
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
 * A chunk is filled in this many parts at most, two for each thread: one that
 * is late then does not hold up the others for long.
 */
#define EMIT_PARTS_MAX 8

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

/*
 * Checks the rows of a chunk and makes their entries.  The client could still
 * write to the chunk, so what is checked is read once.  words is sort->key_words
 * and inline_words is sort->inline_words; they are arguments so that the
 * compiler makes a loop for each common width.
 */
static inline __attribute__((always_inline)) bool
ingest_rows(GpuSort *sort, const char *chunk, uint32_t rows, uint32_t bytes, uint64_t *entries,
			const uint32_t words, const uint32_t inline_words)
{
	const uint32_t *offsets = (const uint32_t *) (chunk + GPUSORT_CHUNK_BYTES) - 1;
	const uint32_t key_bytes = words * 8;
	uint64_t row_bytes = 0;
	uint64_t ref_sum = 0;
	uint64_t any[GPUSORT_MAX_KEY_WORDS];
	uint64_t all[GPUSORT_MAX_KEY_WORDS];
	const uint64_t *previous = sort->last_key;
	bool ascending = sort->ascending;
	bool descending = sort->descending;

	for (uint32_t w = 0; w < words; w++)
	{
		any[w] = sort->any[w];
		all[w] = sort->all[w];
	}

	/* The first row of all has nothing before it, and agrees with any order. */
	if (sort->rows == 0)
		previous = NULL;

	for (uint32_t i = 0; i < rows; i++)
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
		if (length < 8 || length > bytes - offset - key_bytes)
			return false;
		padded = GPUSORT_ALIGN8(length);
		row_bytes += padded;

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

		if ((ascending || descending) && previous != NULL)
		{
			uint32_t w = 0;

			while (w + 1 < words && previous[w] == key[w])
				w++;
			if (key[w] < previous[w])
				ascending = false;
			else
				descending = false;
		}
		previous = key;
	}

	for (uint32_t w = 0; w < words; w++)
	{
		sort->any[w] = any[w];
		sort->all[w] = all[w];
	}
	memcpy(sort->last_key, previous, key_bytes);
	sort->ascending = ascending;
	sort->descending = descending;
	sort->row_bytes += row_bytes;
	sort->ref_sum += ref_sum;
	return true;
}

/*
 * Ingests a chunk of at least one row: fills ingested->records and ingested->entries,
 * which the caller has allocated, and the sort's knowledge of its keys.  Fails
 * with BAD_CHUNK.
 */
int
gpusort_host_ingest(GpuSort *sort, const char *chunk, uint32_t rows, uint32_t bytes,
					GpuSortHostChunk *ingested, GpuSortError *error)
{
	bool good;

	switch (sort->key_words)
	{
		case 1:
			good = ingest_rows(sort, chunk, rows, bytes, ingested->entries, 1, 1);
			break;
		case 2:
			good = ingest_rows(sort, chunk, rows, bytes, ingested->entries, 2, 2);
			break;
		case 3:
			good = ingest_rows(sort, chunk, rows, bytes, ingested->entries, 3, 3);
			break;
		case 4:
			good = ingest_rows(sort, chunk, rows, bytes, ingested->entries, 4, 4);
			break;
		default:
			good = ingest_rows(sort, chunk, rows, bytes, ingested->entries, sort->key_words, 0);
			break;
	}
	if (!good)
	{
		error->reason = GPUSORT_REASON_BAD_CHUNK;
		strcpy(error->text, "a chunk's offsets or lengths make no sense");
		return -1;
	}
	store_records(ingested->records, chunk, bytes);
	return 0;
}

static inline void
prefetch_row(const GpuSort *sort, uint64_t ref)
{
	const char *row = sort->chunks[gpusort_host_ref_chunk(ref)].records + gpusort_host_ref_offset(ref);
	uint32_t length = gpusort_host_ref_length(ref);

	if (length > PREFETCH_BYTES)
		length = PREFETCH_BYTES;
	for (uint32_t at = 0; at < length; at += 64)
		__builtin_prefetch(row + at, 0, 0);
	__builtin_prefetch(row + length - 1, 0, 0);
}

/* Copies rows, in the order of the elements from first up to end, to "to". */
static uint32_t
emit_rows(const GpuSort *sort, uint64_t first, uint64_t end, char *to, const char *to_end)
{
	uint32_t tie_rows = 0;

	for (uint64_t i = first; i < end; i++)
	{
		uint64_t ref = sort->elements[i].ref;
		uint32_t length = gpusort_host_ref_length(ref);
		const char *row = sort->chunks[gpusort_host_ref_chunk(ref)].records + gpusort_host_ref_offset(ref);
		uint8_t flags;

		if (i + PREFETCH_ROWS < end)
			prefetch_row(sort, sort->elements[i + PREFETCH_ROWS].ref);

		/*
		 * Short rows are copied 32 bytes at a time and up to 24 bytes too far,
		 * which the next row overwrites; records have room behind them to be
		 * read too far.
		 */
		if (length <= 512 && length + 32 <= to_end - to)
		{
			for (uint32_t done = 0; done < length; done += 32)
				memcpy(to + done, row + done, 32);
		}
		else
			memcpy(to, row, length);

		flags = row[GPUSORT_ROW_FLAGS_OFFSET] & GPUSORT_ROW_OVERFLOW;
		if (ref & GPUSORT_HOST_REF_MARK)
		{
			flags |= GPUSORT_ROW_TIE_NEXT;
			tie_rows++;
		}
		to[GPUSORT_ROW_FLAGS_OFFSET] = flags;
		to += length;
	}
	return tie_rows;
}

/* A chunk being filled by several threads. */
typedef struct Filling
{
	const GpuSort *sort;
	char *chunk;
	uint64_t rows[EMIT_PARTS_MAX + 1]; /* where parts start, and the end */
	uint32_t bytes[EMIT_PARTS_MAX + 1];
	uint32_t tie_rows[EMIT_PARTS_MAX];
} Filling;

static void
fill_part(void *arg, uint32_t p)
{
	Filling *filling = arg;

	filling->tie_rows[p] = emit_rows(filling->sort, filling->rows[p], filling->rows[p + 1],
									 filling->chunk + filling->bytes[p],
									 filling->chunk + filling->bytes[p + 1]);
}

/*
 * Fills a chunk with the rows from number first on, as many as it takes, up to end.
 * Refs tell the lengths, so where each row goes is known before one is copied, and
 * threads can share the copying.
 */
void
gpusort_host_emit(const GpuSort *sort, uint64_t first, uint64_t end, char *chunk, GpuSortEmitted *emitted)
{
	Filling filling = {.sort = sort, .chunk = chunk};
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
		uint32_t length = gpusort_host_ref_length(sort->elements[i].ref);

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
