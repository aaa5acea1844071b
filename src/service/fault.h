/*-------------------------------------------------------------------------
 *
 * fault.h
 *	  Fault points: where the service can be made to do wrong, for tests.
 *
 * They are there with -DGPUSORT_FAULTS alone (make gpusortd-faults);
 * in the service that is installed each use is nothing.
 * test/service/fault.c has what they do.
 *
 * One fault at a time is chosen by the file gpusort.fault in the service's
 * working directory, which is the server's data directory:
 *
 *	POINT [N [SEED]]
 *
 * The fault happens when its point is passed for the N-th time (1) after the
 * file was put there, counted over all sorts.  Then the file is removed, so that
 * it happens once, and a test can tell that it has.  With N = 0 it happens
 * whenever its point is passed, and the file stays.  SEED (0) decides where there
 * is a choice of rows or bits.
 *
 * The file is looked for when the service starts and whenever a client says HELLO;
 * it is to be moved there as a whole.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FAULT_H
#define GPUSORT_FAULT_H

#ifdef GPUSORT_FAULTS

#include <stdbool.h>

#include "service/protocol.h"

/* Messages to a client, and their chunks, that are damaged: POINT(name, message, what is wrong). */
#define GPUSORT_FAULTS_SENT(POINT)                                                          \
	POINT(drop_row, DATA, "one row fewer is counted, its bytes are")                        \
	POINT(drop_row_and_bytes, DATA, "the last row is counted neither in rows nor in bytes") \
	POINT(last_early, DATA, "last is set before the last chunk")                            \
	POINT(last_missing, DATA, "last is not set in the last chunk")                          \
	POINT(skip_chunk, DATA, "a chunk is not sent")                                          \
	POINT(no_rows, DATA, "a chunk of no rows that is not the last")                         \
	POINT(send_twice, DATA, "a chunk is sent twice")                                        \
	POINT(more_rows, DATA, "one row more is counted than is there")                         \
	POINT(more_bytes, DATA, "eight bytes more are counted")                                 \
	POINT(huge_bytes, DATA, "more bytes are counted than a chunk has")                      \
	POINT(other_epoch, DATA, "rows of an epoch that never was")                             \
	POINT(chunk_range, DATA, "a chunk beyond the pool")                                     \
	POINT(chunk_again, DATA, "the chunk that was sent before")                              \
	POINT(other_chunk, DATA, "a chunk that holds other things")                             \
	POINT(zero_length, DATA, "a row of length 0")                                           \
	POINT(short_length, DATA, "a row shorter than any row's header")                        \
	POINT(huge_length, DATA, "a row longer than memory")                                    \
	POINT(long_length, DATA, "a row that ends behind its chunk")                            \
	POINT(false_overflow, DATA, "OVERFLOW on a row that is no stand-in")                    \
	POINT(false_flags, DATA, "flags that mean nothing")                                     \
	POINT(false_count, DATA, "a row stands for one row more")                               \
	POINT(false_tie, DATA, "TIE_NEXT where the next row's key may differ")                  \
	POINT(tie_at_end, DATA, "TIE_NEXT on the very last row")                                \
	POINT(lost_tie, DATA, "a TIE_NEXT is taken away")                                       \
	POINT(insert_row, DATA, "a row is there twice, and counted so")                         \
	POINT(duplicate_row, DATA, "a row is in the place of another")                          \
	POINT(swap_rows, DATA, "two rows have changed places")                                  \
	POINT(flip_bit, DATA, "any bit of a chunk's rows")                                      \
	POINT(flip_header, DATA, "a bit of a row's first 16 bytes")                             \
	POINT(flip_end, DATA, "a bit of a row's last 16 bytes")                                 \
	POINT(sorted_more_rows, SORTED, "one row more is said to come")                         \
	POINT(sorted_fewer_rows, SORTED, "one row fewer is said to come")                       \
	POINT(sorted_rows_in, SORTED, "one row fewer is said to have been put")                 \
	POINT(sorted_bytes, SORTED, "eight bytes fewer are said to come")                       \
	POINT(ranges_range, RANGES, "borders of ranges in a chunk beyond the pool")             \
	POINT(ranges_more, RANGES, "more ranges than were asked for")                           \
	POINT(ranges_first, RANGES, "the first range does not begin at the first row")          \
	POINT(ranges_swapped, RANGES, "two borders have changed places")                        \
	POINT(ranges_beyond, RANGES, "a range begins behind the last row")                      \
	POINT(grant_range, CHUNK, "a chunk beyond the pool is granted")                         \
	POINT(grant_twice, CHUNK, "a chunk is granted twice")                                   \
	POINT(grant_missing, CHUNK, "a chunk is not granted")                                   \
	POINT(job_token, JOB, "the token of another sort")                                      \
	POINT(job_engine, JOB, "an engine that does not exist")                                 \
	POINT(welcome_bytes, WELCOME, "a pool larger than its memory")                          \
	POINT(welcome_chunks, WELCOME, "more chunks than the pool has")                         \
	POINT(welcome_id, WELCOME, "the pool's number is 0")                                    \
	POINT(welcome_other_id, WELCOME, "another pool's number, without a descriptor")         \
	POINT(message_short, ANY, "a message of half the size")                                 \
	POINT(message_long, ANY, "a message and 8 bytes more")                                  \
	POINT(message_version, ANY, "a message of the next protocol version")                   \
	POINT(message_type, ANY, "a message of a type that does not exist")                     \
	POINT(message_late, ANY, "a message of a type that is over")                            \
	POINT(exit_service, DATA, "the service exits")

/* Messages of a client that stop the whole service, by SIGSTOP: POINT(name, message, when). */
#define GPUSORT_FAULTS_STOP(POINT)                   \
	POINT(stop_connect, HELLO, "stops at connect")   \
	POINT(stop_status, STATUS, "stops at status")    \
	POINT(stop_ingest, CHUNK_PUT, "stops at ingest") \
	POINT(stop_join, JOB_JOIN, "stops at join")      \
	POINT(stop_sort, SORT, "stops at sort")          \
	POINT(stop_cut, CUT, "stops at cut")             \
	POINT(stop_read, READ, "stops at read")          \
	POINT(stop_emit, CHUNK_FREE, "stops at emit")    \
	POINT(stop_rewind, REWIND, "stops at rewind")

/* Engine calls that do not return, even if they are cancelled: POINT(name, command of job.h, when). */
#define GPUSORT_FAULTS_HANG(POINT)             \
	POINT(hang_begin, BEGIN, "hangs in begin") \
	POINT(hang_put, PUT, "hangs in put")       \
	POINT(hang_sort, SORT, "hangs in sort")    \
	POINT(hang_cut, CUT, "hangs in cut")       \
	POINT(hang_emit, EMIT, "hangs in emit")    \
	POINT(hang_end, END, "hangs in end")

/* Reads of a part of a run: POINT(name, what). */
#define GPUSORT_FAULTS_READ(POINT) \
	POINT(hang_read, "a read of a part of a run does not return")

/* Points that are passed once, when the service starts: POINT(name, what). */
#define GPUSORT_FAULTS_START(POINT) \
	POINT(never_ready, "is neither ready nor ends")

struct GpuSortSession;

extern bool gpusort_fault_sent(struct GpuSortSession *session, const GpuSortMessage *message, GpuSortMessageType type);
extern void gpusort_fault_received(const GpuSortMessage *message);
extern void gpusort_fault_call(int command);
extern void gpusort_fault_read(void);
extern void gpusort_fault_start(void);

/* To be called before a message is sent; returns true if it was sent here, in another way. */
#define GPUSORT_FAULT_SENT(session, message, type) gpusort_fault_sent(session, message, type)
/* To be called when a valid message has come. */
#define GPUSORT_FAULT_RECEIVED(message)            gpusort_fault_received(message)
/* To be called before an engine call for a command. */
#define GPUSORT_FAULT_CALL(command)                gpusort_fault_call(command)
/* To be called before a part of a run is read. */
#define GPUSORT_FAULT_READ()                       gpusort_fault_read()
/* To be called before the service reports that it is ready. */
#define GPUSORT_FAULT_START()                      gpusort_fault_start()

#else

#define GPUSORT_FAULT_SENT(session, message, type) false
#define GPUSORT_FAULT_RECEIVED(message)            ((void) 0)
#define GPUSORT_FAULT_CALL(command)                ((void) 0)
#define GPUSORT_FAULT_READ()                       ((void) 0)
#define GPUSORT_FAULT_START()                      ((void) 0)

#endif

#endif /* GPUSORT_FAULT_H */
