/*-------------------------------------------------------------------------
 *
 * client.h
 *	  A backend's side of one sort in the service.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CLIENT_H
#define GPUSORT_CLIENT_H

#include "compat.h"

#include "service/protocol.h"

typedef struct GpuSortClient GpuSortClient;

/* Why there is no sort, or no more of it. */
typedef struct GpuSortFailure
{
	int reason; /* GpuSortReason or one of shared.h's own; NONE: all is well */
	char text[GPUSORT_TEXT_BYTES];
} GpuSortFailure;

typedef struct GpuSortRequest
{
	GpuSortEngineKind engine;
	uint32 key_words;
	bool may_tie;
	uint64 estimated_rows;
	uint64 estimated_bytes;
	uint64 limit; /* only the first so many rows are wanted; 0: all */
} GpuSortRequest;

/* What the service said of a sort that is done. */
typedef struct GpuSortOutcome
{
	uint64 rows_in; /* that were put */
	uint64 rows;    /* that will come; with a limit, at least as many as are wanted */
	uint64 bytes;
	uint64 tie_rows;
	uint32 key_bits;
	uint32 packed_bits;
	double sort_ms;
} GpuSortOutcome;

/* Rows that have arrived; they belong to the client until it frees the chunk. */
typedef struct GpuSortData
{
	char *rows; /* NULL when there are none */
	uint32 count;
	uint32 bytes;
	uint32 tie_rows;
	uint32 chunk;
	bool last;
	double gather_ms;
} GpuSortData;

extern bool gpusort_client_has_pool(void);
extern GpuSortClient *gpusort_client_begin(const GpuSortRequest *request, GpuSortFailure *failure);
extern GpuSortEngineKind gpusort_client_engine(const GpuSortClient *client);
extern const char *gpusort_client_device(const GpuSortClient *client);
extern uint64 gpusort_client_token(const GpuSortClient *client);

extern GpuSortClient *gpusort_client_join(uint64 token, GpuSortFailure *failure);
extern bool gpusort_client_leave(GpuSortClient *client, GpuSortFailure *failure);

extern char *gpusort_client_get_chunk(GpuSortClient *client, GpuSortFailure *failure);
extern bool gpusort_client_is_full(const GpuSortClient *client);
extern bool gpusort_client_put_chunk(GpuSortClient *client, uint32 rows, uint32 bytes, GpuSortFailure *failure);
extern bool gpusort_client_sort(GpuSortClient *client, GpuSortOutcome *outcome, GpuSortFailure *failure);
extern bool gpusort_client_next_data(GpuSortClient *client, GpuSortData *data, GpuSortFailure *failure);
extern void gpusort_client_free_data(GpuSortClient *client, GpuSortData *data);
extern bool gpusort_client_rewind(GpuSortClient *client, GpuSortFailure *failure);
extern void gpusort_client_end(GpuSortClient *client);

typedef void (*GpuSortDeviceCallback)(const GpuSortMessage *device, void *arg);
extern bool gpusort_client_devices(GpuSortDeviceCallback callback, void *arg, GpuSortFailure *failure);

#endif /* GPUSORT_CLIENT_H */
