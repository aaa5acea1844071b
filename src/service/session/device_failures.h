/*-------------------------------------------------------------------------
 *
 * device_failures.h
 *	  Which failures of devices mean that the service needs a fresh start.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_FAILURES_H
#define GPUSORT_DEVICE_FAILURES_H

#include <time.h>

#include "service/registry.h"

/* A context is lost after this many failures within this many seconds, or in a row on one device. */
#define GPUSORT_FAILURES        3
#define GPUSORT_FAILURE_SECONDS 60

/* For a sort that failed before it was told its device. */
#define GPUSORT_DEVICE_UNKNOWN GPUSORT_DEVICES_MAX

/* The failures of devices in all sorts; zeroed at first. */
typedef struct GpuSortDeviceFailures
{
	time_t at[GPUSORT_FAILURES];                   /* the last ones, in seconds of CLOCK_MONOTONIC; a ring */
	unsigned count;                                /* since the service began */
	unsigned in_a_row[GPUSORT_DEVICE_UNKNOWN + 1]; /* by device, since a sort worked there */
} GpuSortDeviceFailures;

typedef enum GpuSortDeviceVerdict
{
	GPUSORT_DEVICE_WORKS,
	GPUSORT_DEVICE_DOUBTFUL, /* restart when nobody is sorting */
	GPUSORT_DEVICE_LOST,     /* restart at once */
} GpuSortDeviceVerdict;

extern void gpusort_device_failed(GpuSortDeviceFailures *failures, uint32_t device);
extern void gpusort_device_worked(GpuSortDeviceFailures *failures, uint32_t device);
extern GpuSortDeviceVerdict gpusort_device_verdict(const GpuSortDeviceFailures *failures);

#endif /* GPUSORT_DEVICE_FAILURES_H */
