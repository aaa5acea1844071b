/*-------------------------------------------------------------------------
 *
 * settings.h
 *	  Settings of the extension.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SETTINGS_H
#define GPUSORT_SETTINGS_H

#include "compat.h"

/* Per query, anybody's. */
extern bool gpusort_enable;
extern bool gpusort_force;
extern bool gpusort_verify_rows;
extern bool gpusort_verify_collation;
extern bool gpusort_parallel_output;
extern bool gpusort_parallel_cursors;
extern bool gpusort_spill;
extern bool gpusort_index_builds;
extern bool gpusort_page_scan;
extern int gpusort_engine; /* GpuSortEngineKind */
extern int gpusort_min_rows;
extern int gpusort_shard_connections;
extern double gpusort_setup_cost;
extern double gpusort_row_cost;

/* Per query, the administrator's. */
extern bool gpusort_allowed;
extern bool gpusort_log_decisions;

/* The administrator's: a change restarts the service once its sorts have ended. */
extern char *gpusort_devices;
extern int gpusort_device_memory;  /* MB; 0: 90 % of what is free */
extern int gpusort_host_memory;    /* MB; 0: a quarter of the machine's */
extern int gpusort_host_threads;   /* 0: as many as the server may use processors */
extern int gpusort_staging_memory; /* MB */

/* Whether this user's sorts may be planned for gpusort. */
static inline bool
gpusort_settings_enabled(void)
{
	return gpusort_enable && gpusort_allowed;
}

extern void gpusort_settings_init(void);

#endif /* GPUSORT_SETTINGS_H */
