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

#include "client/failure.h"
#include "service/protocol.h"

typedef struct GpuSortClient GpuSortClient;

/* Rows that have arrived; valid until the caller frees the chunk. */
typedef struct GpuSortData
{
	char *rows;   /* NULL when there are none */
	uint32 chunk; /* to be freed */
	GpuSortEmitted emitted;
} GpuSortData;

extern GpuSortClient *gpusort_client_begin(const GpuSortRequest *request, GpuSortFailure *failure);
extern GpuSortEngineKind gpusort_client_engine(const GpuSortClient *client);
extern const char *gpusort_client_device(const GpuSortClient *client);
extern double gpusort_client_queue_ms(const GpuSortClient *client);
extern bool gpusort_client_has_ecc(const GpuSortClient *client);
extern uint64 gpusort_client_temp_bytes(const GpuSortClient *client);
extern uint64 gpusort_client_token(const GpuSortClient *client);
extern uint32 gpusort_client_generation(const GpuSortClient *client);

extern GpuSortClient *gpusort_client_join(uint64 token, uint32 generation, bool reader, GpuSortFailure *failure);
extern bool gpusort_client_leave(GpuSortClient *client, GpuSortFailure *failure);

extern char *gpusort_client_get_chunk(GpuSortClient *client, uint32 *rows_max, GpuSortFailure *failure);
extern bool gpusort_client_is_full(const GpuSortClient *client);
extern bool gpusort_client_put_chunk(GpuSortClient *client, uint32 rows, uint32 bytes, GpuSortFailure *failure);
extern bool gpusort_client_sort(GpuSortClient *client, uint64 first, GpuSortOutcome *outcome, GpuSortFailure *failure);
extern bool gpusort_client_cut(GpuSortClient *client, uint32 bits, uint32 most, uint64 like, uint64 *first_rows,
							   uint32 *ranges, GpuSortFailure *failure);
extern bool gpusort_client_read(GpuSortClient *client, uint64 first, uint64 end, GpuSortFailure *failure);
extern void gpusort_client_expect_runs(GpuSortClient *client);
extern bool gpusort_client_skip(GpuSortClient *client, GpuSortFailure *failure);
extern bool gpusort_client_next_data(GpuSortClient *client, GpuSortData *data, GpuSortFailure *failure);
extern void gpusort_client_free_data(GpuSortClient *client, GpuSortData *data);
extern bool gpusort_client_rewind(GpuSortClient *client, uint64 first, GpuSortFailure *failure);
extern void gpusort_client_end(GpuSortClient *client);

typedef void (*GpuSortDeviceCallback)(const GpuSortMessage *device, void *arg);
extern bool gpusort_client_devices(GpuSortDeviceCallback callback, void *arg, GpuSortFailure *failure);

#endif /* GPUSORT_CLIENT_H */
