/*-------------------------------------------------------------------------
 *
 * testlib.h
 *	  What the service's test programs share: TAP output, a service of their
 *	  own to talk to, a client's side of protocol.h, rows and the right answer.
 *
 * A helper that cannot go on (the service does not start, an answer does not
 * come) ends the program with "Bail out!".
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TESTLIB_H
#define GPUSORT_TESTLIB_H

#include <stdbool.h>
#include <sys/types.h>

#include "service/protocol.h"

/*
 * A guard against hanging, and nothing else: a machine that is ten times slower keeps it, with sanitizers too.  What is
 * to be quick is told by what only the quick way gives.
 */
#define ANSWER_MS 180000

/* TAP */
extern bool ok(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));
extern void diag(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern void bail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
extern const char *told(const char *problem);
extern int done_testing(void);

/* A service and its supervisor's end of the control socket. */
typedef struct Service
{
	pid_t pid;
	int control;
	char socket[100];
	GpuSortMessage ready;
	int warnings; /* LOG messages seen by service_log */
	char last_log[GPUSORT_TEXT_BYTES];
} Service;

/* options end with NULL and follow --socket and --engine host */
extern void service_start(Service *service, const char *const *options);
extern bool service_begin(Service *service, const char *path, const char *const *options);
extern void service_start_at(Service *service, const char *path, const char *const *options);
extern int service_try(const char *socket, const char *const *options, int milliseconds);
extern bool service_log(Service *service, const char *part, int milliseconds);
extern void service_send(Service *service, GpuSortMessageType type);
extern bool service_pong(Service *service, uint64_t number, int milliseconds);
extern int service_wait(Service *service, int milliseconds);
extern int service_stop(Service *service);
extern bool fake_call_begun(const Service *service);
extern const char *test_directory(void);
extern const char *service_program(void);
extern bool receive_message(int socket, GpuSortMessage *message, int milliseconds);

/* testclient.c: a client */
typedef struct Client
{
	int socket;
	uint64_t pool_id;
	char *pool;
	uint32_t pool_chunks;
	uint32_t engines;
	uint32_t epoch; /* of the rows read now; of a shared sort: READs that were sent */
} Client;

extern void clients_are_one_process(bool one);
extern bool client_connect(Client *client, const Service *service);
extern bool client_try_open(Client *client, const Service *service);
extern void client_open(Client *client, const Service *service);
extern void client_close(Client *client);
extern bool client_send(Client *client, GpuSortMessageType type, GpuSortMessage message);
extern bool client_receive(Client *client, GpuSortMessage *message, int milliseconds);
extern GpuSortMessage client_expect(Client *client, GpuSortMessageType type);
extern bool client_sees_idle(const Service *service);
extern bool client_sees_room(const Service *service, int sorts);
extern bool client_is_closed(Client *client, int milliseconds);
extern void *client_chunk(Client *client, uint32_t chunk);
extern GpuSortMessage client_begin(Client *client, uint32_t key_words, bool may_tie,
								   uint64_t rows, uint64_t bytes);
extern GpuSortMessage client_begin_shared(Client *client, uint32_t key_words);

/* Rows: keys of words, lengths and flags; row i carries i and bytes that follow from i. */
typedef struct Rows
{
	uint32_t key_words;
	uint64_t n;
	uint64_t *keys; /* n * key_words */
	uint32_t *lengths;
	uint8_t *flags;
	uint64_t *order;   /* the right answer: row numbers */
	uint8_t *tie_next; /* by place in the order */
	uint64_t tie_rows;
} Rows;

typedef enum Keys
{
	KEYS_RANDOM,
	KEYS_FEW, /* 17 different ones */
	KEYS_EQUAL,
	KEYS_ASCENDING,
	KEYS_DESCENDING,
	KEYS_SKEWED, /* nearly all small */
	KEYS_HIGH_BIT,
	KEYS_LAST_WORD, /* only the last word differs much */
	KEYS_TEXT,      /* hexadecimal digits, half of them with the same first one */
} Keys;

extern void rows_make(Rows *rows, uint64_t n, uint32_t key_words, Keys keys,
					  uint32_t shortest, uint32_t longest, int truncated_of_100);
extern void rows_free(Rows *rows);
extern uint64_t rows_fill(const Rows *rows, uint64_t from, uint32_t rows_max, void *chunk, uint32_t *count,
						  uint32_t *bytes);
extern const char *rows_check(const Rows *rows, uint64_t place, const void *chunk,
							  const GpuSortMessage *data);

/* Whole sorts */
extern const char *sort_put(Client *client, const Rows *rows);
extern const char *sort_finish(Client *client, const Rows *rows, GpuSortMessage *sorted);
extern const char *sort_read(Client *client, const Rows *rows);
extern const char *sort_finish_from(Client *client, const Rows *rows, uint64_t first, GpuSortMessage *sorted);
extern const char *sort_read_from(Client *client, const Rows *rows, uint64_t first);
extern const char *sort_cut(Client *client, const Rows *rows, uint32_t bits, uint32_t most, uint64_t *first_rows,
							uint32_t *ranges);
extern const char *sort_read_interval(Client *client, const Rows *rows, uint64_t first, uint64_t end);
extern const char *sort_read_ranges(Client *client, const Rows *rows);
extern const char *sort_all(const Service *service, const Rows *rows, bool may_tie);

extern uint64_t random64(void);
extern void random_seed(uint64_t seed);
extern double now_ms(void);
extern double processor_ms(pid_t pid);
extern int count_descriptors(pid_t pid);

/* A file of a client's, for the service to write to. */
typedef struct SpaceFile
{
	int descriptor; /* -1: there is none yet */
	uint64_t given; /* bytes */
} SpaceFile;

/* testspace.c */
extern int space_make_file(int flags);
extern bool space_send_bytes(Client *client, void *bytes, size_t size, const int *descriptors, int count, int flags);
extern bool space_send_with(Client *client, GpuSortMessage message, size_t bytes, const int *descriptors, int count);
extern bool space_send_file(Client *client, uint64_t start, uint64_t bytes, const int *descriptors, int count);
extern void space_give(Client *client, SpaceFile *file, uint64_t bytes);
extern uint64_t space_put_chunk(Client *client, const Rows *rows, uint64_t from, const GpuSortMessage *granted);
extern const char *space_put(Client *client, const Rows *rows, uint64_t *next, uint64_t end, SpaceFile *file);
extern bool space_await(Client *client, GpuSortMessageType type, SpaceFile *file, GpuSortMessage *message);
extern const char *space_sort(Client *client, const Rows *rows, uint64_t next, SpaceFile *file, GpuSortMessage *sorted);
extern void space_close(Client *client, SpaceFile *file);

#endif /* GPUSORT_TESTLIB_H */
