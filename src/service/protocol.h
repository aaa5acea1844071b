/*-------------------------------------------------------------------------
 *
 * protocol.h
 *	  What gpusort's backends and the sort service gpusortd say to each other,
 *	  and how a chunk of the staging pool is laid out.
 *
 * This is the only header that both sides include;
 * it needs neither PostgreSQL nor CUDA.
 *
 * TRANSPORT
 *	One SOCK_SEQPACKET UNIX connection per sort, and one more for every further
 *	process that puts rows into it (a member).  Every message is one
 *	GpuSortMessage of fixed size in native byte order.  The service accepts
 *	only peers of its own uid.  Closing the connection that began it, in whatever
 *	way, ends the sort and gives back every chunk it held; there is no other way
 *	to end one.
 *
 * LEGAL ORDER (client ->, <- service)
 *	-> HELLO			<- WELCOME		(carries the pool's descriptor)
 *	-> STATUS			<- DEVICE ...	(any time before JOB_BEGIN; one per device,
 *										 the last one has last = 1)
 *	-> JOB_BEGIN		<- JOB | REFUSED (perhaps after a wait for other sorts; after
 *										 REFUSED only closing is legal)
 *						<- CHUNK		(one or more, as the pool allows)
 *	-> CHUNK_PUT		<- CHUNK | FULL	(every put is answered by exactly one of
 *										 them, in time, not at once; after FULL
 *										 only the chunks already granted may be
 *										 put)
 *						<- SPACE		(before the answer to a put, or to SORT: rows have to
 *										 leave the memory)
 *	-> FILE								(the answer to SPACE)
 *	-> SORT				<- SORTED		(chunks granted and not put return to the
 *										 pool with SORT)
 *						<- DATA ...		(ahead of the reader, as the pool allows;
 *										 rows before number first are not sent; the
 *										 one with last = 1 ends the rows.  Where none
 *										 is left there is one DATA with rows = 0,
 *										 last = 1 and no chunk)
 *	-> CHUNK_FREE						(for every DATA that had a chunk)
 *	-> REWIND							(rows start again, at number first; DATA of an
 *										 older epoch may still arrive and must be
 *										 freed unread)
 *	At any time after JOB: <- FAILED	(the sort is lost; close)
 *						<- PONG			(each second while what was asked for is being done;
 *										 a service that is silent for long has forgotten it.
 *										 So for members and readers)
 *
 * LEGAL ORDER FOR A MEMBER
 *	-> HELLO			<- WELCOME
 *	-> JOB_JOIN			<- JOB | REFUSED (the token is the one in the beginner's JOB)
 *						<- CHUNK		(as above)
 *	-> CHUNK_PUT		<- CHUNK | FULL	(as above, but FULL is each process's own)
 *						<- SPACE
 *	-> FILE								(as above)
 *	-> LEAVE			<- LEFT			(what was put is part of the sort; chunks
 *										 granted and not put return to the pool.
 *										 Only closing is legal after it)
 *	At any time after JOB: <- FAILED	(the sort is lost, or has ended; close)
 *
 *	Every member must have got LEFT before the beginner sends SORT, and none may
 *	close before it: the sort would lack rows, so it fails.
 *
 * A SHARED SORT (request.shared) sends no rows unasked.  After SORTED:
 *	-> CUT				<- RANGES		(the beginner; the chunk is to be freed)
 *	-> READ				<- DATA ...		(the rows of an interval; the one with
 *										 last = 1 ends it.  GPUSORT_READS_MAX at
 *										 most may be unanswered)
 *	-> SKIP								(no rows of READs up to this one are wanted any
 *										 more; DATA on their way must be freed unread)
 *	-> CHUNK_FREE						(for RANGES, and every DATA that had a chunk)
 *
 * LEGAL ORDER FOR A READER of a shared sort
 *	-> HELLO			<- WELCOME
 *	-> JOB_JOIN			<- JOB | REFUSED (with reader = 1, once the beginner has SORTED)
 *	-> READ, SKIP, CHUNK_FREE			(as above)
 *	At any time after JOB: <- FAILED	(the sort is lost, or has ended; close)
 *
 *	A reader may close at any time; that is no failure.
 *
 * LEGAL ORDER WHERE A MEMBER HAS A SHARED SORT SORTED, whose beginner need not be there
 *	beginner	-> LEAVE	<- LEFT		(if it has put rows: they are part of the sort)
 *	member		-> JOB_JOIN	<- JOB | REFUSED (with reader = 1, when all others have LEFT and the
 *											  beginner has not SORTED: so it is the sorter, which
 *											  puts no rows)
 *				-> SORT, CUT			(in the place of the beginner, which hears nothing of it and
 *										 may READ from then on)
 *				-> LEAVE	<- LEFT		(in the place of SORT: others are to have it sorted)
 *	After SORTED it is a reader.  If it closes before, the sort fails.  Who means to read alone joins
 *	when it knows of SORTED.
 *
 * A SORT LARGER THAN MEMORY (request.spill)
 *	What does not fit is kept in sorted runs, in the host's memory or in temporary files.
 *	Files are the client's, which makes them, counts their bytes against its limits before
 *	one is written, and deletes them whenever it likes: the service has descriptors of its
 *	own.  SPACE asks for so many bytes more; FILE gives them, at the end of the process's
 *	one file, whose descriptor comes with the first FILE of a connection.  Who cannot give
 *	them closes.  The service writes only where it was given space.
 *
 * CHUNKS
 *	The pool is one memfd of pool_chunks chunks of GPUSORT_CHUNK_BYTES.  A chunk
 *	belongs to the client from CHUNK to CHUNK_PUT and from DATA to CHUNK_FREE,
 *	else to the service.  Whoever does not own it neither reads nor writes it.
 *	When the service closes the connection the client keeps what it owns until it
 *	has closed its end.
 *
 *	A chunk of ingest: records from the front, offsets from the back.
 *
 *	  0                                                      GPUSORT_CHUNK_BYTES
 *	  | key 0 | row 0 | key 1 | row 1 | ... free ... | off n-1 | ... | off 0 |
 *
 *	  key	key_words words of 64 bits, the most significant word first, compared
 *			as unsigned numbers word by word; smaller sorts first
 *	  row	uint32 length in bytes, these four included; one byte of flags; the
 *			rest is the client's own.  Padded to 8 bytes
 *	  off	uint32, bytes from the start of the chunk to the record (its key);
 *			a multiple of 8
 *
 *	An emitted chunk: rows back to back, each padded to 8 bytes, no keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PROTOCOL_H
#define GPUSORT_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#define GPUSORT_PROTOCOL_MAGIC   0x67707573u /* "gpus" */
#define GPUSORT_PROTOCOL_VERSION 10

/* What is installed with the module, in one directory. */
#define GPUSORT_SERVICE_FILE     "gpusortd"
#define GPUSORT_CUDA_ENGINE_FILE "gpusort_cuda.so"

#define GPUSORT_CHUNK_BYTES   ((size_t) 4 << 20)
#define GPUSORT_MAX_KEY_WORDS 32
#define GPUSORT_MAX_ROWS      UINT64_C(0xFFFFFFFE) /* 32-bit row ids */

/* Less than this as gpusort.host_memory or gpusort.device_memory is not enough for one sort, in bytes. */
#define GPUSORT_MEMORY_MIN ((uint64_t) 16 << 20)

/* Every sort, and every member, is guaranteed this many chunks; more may be borrowed while there are some. */
#define GPUSORT_JOB_CHUNKS_MIN 2
/* It holds at most this many chunks at once, so that one cannot starve the rest. */
#define GPUSORT_JOB_CHUNKS_MAX 8

/* A client may have asked for so many intervals that it has not got whole. */
#define GPUSORT_READS_MAX 2

/* The rows of a sort are cut into so many ranges at most. */
#define GPUSORT_RANGES_MAX 4096

/* Row header as both sides see it, and the flags in it. */
#define GPUSORT_ROW_FLAGS_OFFSET  4
/* client: the key does not hold its values whole, so rows of an equal key need a tie-break */
#define GPUSORT_ROW_KEY_TRUNCATED 0x01
/* client: stands for a row kept elsewhere; the service passes it on */
#define GPUSORT_ROW_OVERFLOW      0x02
/* service, in an emitted chunk: this row and the next one have equal keys and this one is KEY_TRUNCATED */
#define GPUSORT_ROW_TIE_NEXT      0x80

/* Where the number of rows that a row stands for is, with run_counts: a uint64_t. */
#define GPUSORT_ROW_COUNT_OFFSET 8

#define GPUSORT_ALIGN8(n) (((n) + 7) & ~(uint64_t) 7)

/* Where the offset of record i of a chunk is. */
static inline uint32_t *
gpusort_chunk_offset(void *chunk, uint32_t i)
{
	return (uint32_t *) ((char *) chunk + GPUSORT_CHUNK_BYTES) - 1 - i;
}

/* The most rows that a chunk can hold: keys, the shortest rows, offsets. */
static inline uint32_t
gpusort_chunk_rows_most(uint32_t key_words)
{
	return (uint32_t) (GPUSORT_CHUNK_BYTES /
					   (8 * (size_t) key_words + GPUSORT_ALIGN8(GPUSORT_ROW_FLAGS_OFFSET + 1) + sizeof(uint32_t)));
}

typedef enum GpuSortMessageType
{
	/* client to service */
	GPUSORT_MSG_HELLO = 1,
	GPUSORT_MSG_STATUS,
	GPUSORT_MSG_JOB_BEGIN,
	GPUSORT_MSG_CHUNK_PUT,
	GPUSORT_MSG_SORT,
	GPUSORT_MSG_CHUNK_FREE,
	GPUSORT_MSG_REWIND,
	GPUSORT_MSG_JOB_JOIN,
	GPUSORT_MSG_LEAVE,
	GPUSORT_MSG_CUT,
	GPUSORT_MSG_READ,
	GPUSORT_MSG_SKIP,
	GPUSORT_MSG_FILE,

	/* service to client */
	GPUSORT_MSG_WELCOME = 64,
	GPUSORT_MSG_DEVICE,
	GPUSORT_MSG_JOB,
	GPUSORT_MSG_REFUSED,
	GPUSORT_MSG_CHUNK,
	GPUSORT_MSG_FULL,
	GPUSORT_MSG_SORTED,
	GPUSORT_MSG_DATA,
	GPUSORT_MSG_FAILED,
	GPUSORT_MSG_LEFT,
	GPUSORT_MSG_RANGES,
	GPUSORT_MSG_SPACE,

	/* service to supervisor, on the control socket */
	GPUSORT_MSG_READY = 128,
	GPUSORT_MSG_LOG,
	GPUSORT_MSG_PONG, /* the answer to PING; to a client, unasked: it is being worked for */

	/* supervisor to service, on the control socket */
	GPUSORT_MSG_DRAIN = 192, /* take no new sort, exit when the last has ended */
	GPUSORT_MSG_PING,        /* a service that does not answer is hung */
} GpuSortMessageType;

typedef enum GpuSortEngineKind
{
	GPUSORT_ENGINE_AUTO = 0, /* cuda where there is a device, else host */
	GPUSORT_ENGINE_CUDA,
	GPUSORT_ENGINE_HOST,
} GpuSortEngineKind;

/* Why a sort was refused, is full or failed; decides what the client tells the user. */
typedef enum GpuSortReason
{
	GPUSORT_REASON_NONE = 0,
	GPUSORT_REASON_NO_ENGINE,    /* the engine asked for is not there */
	GPUSORT_REASON_MEMORY_LIMIT, /* more than gpusort.device_memory or gpusort.host_memory allows */
	GPUSORT_REASON_MEMORY_BUSY,  /* they would allow it, but others use it now */
	GPUSORT_REASON_NO_MEMORY,    /* the device or the host had no more to give */
	GPUSORT_REASON_POOL,         /* gpusort.staging_memory is used up */
	GPUSORT_REASON_TOO_MANY_ROWS,
	GPUSORT_REASON_DRAINING,    /* the service is about to restart */
	GPUSORT_REASON_BUILD,       /* service and module are not of the same build */
	GPUSORT_REASON_DEVICE,      /* the device or its driver reported an error */
	GPUSORT_REASON_ORDER_CHECK, /* the sorted keys were found out of order */
	GPUSORT_REASON_BAD_CHUNK,   /* a chunk's offsets or lengths made no sense */
	GPUSORT_REASON_STORAGE,     /* a run could not be written or read; system_error tells, 0: it is not what was written */
	GPUSORT_REASON_INTERNAL,
} GpuSortReason;

#define GPUSORT_TEXT_BYTES 192
#define GPUSORT_NAME_BYTES 64

/*
 * What client, service and engine tell each other of a sort.  Messages carry these structs, and the
 * engine's calls (engine.h) take and fill them.
 */

/* What a client asks for. */
typedef struct GpuSortRequest
{
	uint32_t engine;    /* GpuSortEngineKind; the engine that gets the sort does not look at it */
	uint32_t key_words; /* 64-bit words per key, 1 to GPUSORT_MAX_KEY_WORDS */
	uint32_t may_tie;   /* 0: no row will be KEY_TRUNCATED */
	uint32_t shared;    /* rows are read by intervals, by several clients; not with a limit */
	uint32_t spill;     /* the client gives space in files when memory is full; 0: it wants to hear FULL then */
	uint32_t readers;   /* of a shared sort: processes that will read it, about */
	uint32_t role;      /* who asks, an OID of the server's: roles share the pool; 0: not told, and not limited */
	uint64_t estimated_rows;
	uint64_t estimated_bytes; /* records, as they lie in chunks */
	/*
	 * only the first so many rows are wanted, 0: all. More may come; with may_tie at least
	 * all whose keys equal the last wanted row's do
	 */
	uint64_t limit;
	/*
	 * Rows that are equal in the first run_bits bits of the key are a run.  Only the first run_rows rows of each
	 * are wanted; 0: all rows are.  More may come: rows whose key does not hold its values whole are never left
	 * out unless run_exact is set, and rows that were sorted apart (runs in memory or files, several devices)
	 * are looked at apart.  Not with a limit.
	 */
	uint32_t run_bits;
	uint32_t run_rows;
	uint32_t run_peers; /* 1: and so are all rows whose keys equal the last wanted row's */
	uint32_t run_exact; /* 1: the first run_bits bits hold their values whole, KEY_TRUNCATED or not */
	/*
	 * 1: only with run_rows 1.  The 8 bytes after the header's first 8 (GPUSORT_ROW_COUNT_OFFSET) are a number, 1
	 * when the row is put; a row that leaves has the sum of its own and those of the rows left out for it
	 */
	uint32_t run_counts;
} GpuSortRequest;

/* Where it is sorted: one of the engine's devices, or the first of several. */
typedef struct GpuSortPlace
{
	uint32_t ordinal;
	uint32_t ecc; /* 0: its memory does not correct errors: rows are verified whatever gpusort.verify_rows says */
	char device[GPUSORT_NAME_BYTES];
} GpuSortPlace;

/* What came of it, when the rows are in order. */
typedef struct GpuSortOutcome
{
	uint64_t rows_in;     /* that were put */
	uint64_t rows;        /* that will come; with a limit, at least as many as are wanted */
	uint64_t bytes;       /* of them, padded to 8, without keys */
	uint64_t tie_rows;    /* rows in a run of equal keys with a row that is KEY_TRUNCATED; with runs not known yet, 0 */
	uint64_t run_memory;  /* bytes of runs in the host's memory */
	uint64_t run_disk;    /* bytes of runs in files, as they were written */
	uint32_t runs;        /* that rows were sorted in; 0: all of them at once, in memory */
	uint32_t key_bits;    /* before compaction: 64 * key_words */
	uint32_t packed_bits; /* after */
	double sort_ms;       /* compaction, sort and check */
} GpuSortOutcome;

/* What a chunk was filled with. */
typedef struct GpuSortEmitted
{
	uint32_t rows;
	uint32_t bytes;
	uint32_t tie_rows; /* rows here with TIE_NEXT set */
	uint32_t last;     /* 1: no rows come after these */
	double gather_ms;  /* what it took to put these rows into order */
} GpuSortEmitted;

/* Why it was refused, takes no more rows or is lost. */
typedef struct GpuSortError
{
	GpuSortReason reason;
	int32_t system_error; /* STORAGE: the errno; else 0 */
	char text[GPUSORT_TEXT_BYTES];
} GpuSortError;

/* A device of an engine; the host is one. */
typedef struct GpuSortDevice
{
	uint32_t ordinal;
	uint32_t jobs;         /* sorts on it now */
	uint64_t memory_total; /* bytes */
	uint64_t memory_limit; /* bytes that gpusort may use */
	uint64_t sort_limit;   /* bytes for one sort: of all devices that share sorts with this one */
	uint64_t memory_used;  /* bytes that sorts use, caches not counted */
	char name[GPUSORT_NAME_BYTES];
	char detail[GPUSORT_NAME_BYTES]; /* compute capability, driver; threads */
} GpuSortDevice;

typedef struct GpuSortMessage
{
	uint32_t magic;
	uint16_t version;
	uint16_t type; /* GpuSortMessageType */
	union
	{
		struct
		{
			/*
			 * pool the client has mapped already, or 0;
			 * then WELCOME carries no descriptor if it is the same one
			 */
			uint64_t pool_id;
			uint64_t build; /* GPUSORT_BUILD of the client; the service refuses sorts of another one */
		} hello;
		struct
		{
			uint64_t pool_id; /* never 0; another one after each start of the service */
			uint64_t pool_bytes;
			uint32_t pool_chunks;
			uint32_t engines; /* bit mask of 1 << GpuSortEngineKind */
		} welcome;
		struct
		{
			uint32_t engine; /* GpuSortEngineKind, never AUTO */
			uint32_t last;
			GpuSortDevice state;
		} device;
		GpuSortRequest job_begin;
		struct
		{
			uint64_t token;  /* from the beginner's JOB */
			uint32_t reader; /* it joins to read, not to put */
		} job_join;
		struct
		{
			uint64_t token;  /* names the sort to its members; never 0 */
			uint32_t engine; /* GpuSortEngineKind, never AUTO */
			GpuSortPlace place;
			double queue_ms; /* how long it waited for chunks and memory; 0: not at all */
		} job;
		GpuSortError failure; /* REFUSED, FULL, FAILED */
		struct
		{
			uint32_t chunk;
			uint32_t rows_max; /* CHUNK: it may be filled with so many rows at most */
		} chunk;               /* CHUNK, CHUNK_FREE */
		struct
		{
			uint32_t chunk;
			uint32_t rows;
			uint32_t bytes; /* of the records, from the front of the chunk */
		} put;
		struct
		{
			uint64_t bytes; /* SPACE: that are wanted; FILE: that are given, as many at least */
			uint64_t start; /* FILE: where they begin in the file */
		} space;
		struct
		{
			uint64_t first; /* number of the first row that is wanted; of a shared sort 0 */
		} sort;
		GpuSortOutcome sorted;
		struct
		{
			uint32_t chunk;
			uint32_t epoch; /* number of REWINDs before it; of a shared sort: of the READ, the connection's first is 1 */
			uint64_t first; /* number of rows before these in the order */
			GpuSortEmitted emitted;
		} data;
		struct
		{
			uint32_t epoch; /* 1 for the first REWIND, and so on */
			uint64_t first; /* number of the first row that is wanted */
		} rewind;
		struct
		{
			uint32_t bits; /* of the key, from its first: rows that are equal in these stay in one range */
			uint32_t most; /* ranges wanted, GPUSORT_RANGES_MAX at most */
			/*
			 * 0: in about equal parts.  Else the token of another shared sort that this process began
			 * and has cut by as many bits: at its borders, into as many ranges, some perhaps empty
			 */
			uint64_t like;
		} cut;
		struct
		{
			uint32_t chunk; /* so many uint64_t: number of the first row of each range; NO_CHUNK if there is no range */
			uint32_t ranges;
		} ranges;
		struct
		{
			uint64_t first; /* number of the first row */
			uint64_t end;   /* number of the row after the last, above first */
		} read;
		struct
		{
			uint32_t number; /* of the connection's READs, from 1 */
		} skip;
		struct
		{
			uint32_t engines;      /* as in welcome */
			uint32_t devices;      /* of the cuda engine */
			uint64_t device_limit; /* bytes that one sort may use on them, at most */
			uint64_t host_limit;   /* bytes the host engine may use */
			uint32_t threads;      /* of the host engine */
			uint32_t pool_chunks;
			char device[GPUSORT_NAME_BYTES];
		} ready;
		struct
		{
			uint32_t warning; /* 0: LOG, 1: WARNING */
			char text[GPUSORT_TEXT_BYTES];
		} log;
		struct
		{
			uint64_t number; /* PONG has its PING's */
		} ping;
	} u;
} GpuSortMessage;

#ifdef __cplusplus
static_assert(sizeof(GpuSortMessage) <= 256, "a message is meant to stay small");
#else
_Static_assert(sizeof(GpuSortMessage) <= 256, "a message is meant to stay small");
#endif

#endif /* GPUSORT_PROTOCOL_H */
