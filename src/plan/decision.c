/*-------------------------------------------------------------------------
 *
 * decision.c
 *	  Whether a sort can go to the service, and the log of why not.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/decision.h"

#include "plan/cost.h"
#include "server/shared.h"
#include "server/supervisor.h"
#include "settings.h"

/* Logs why a sort is left to PostgreSQL, with gpusort.log_decisions. */
void
gpusort_refuse(const char *fmt, ...)
{
	StringInfoData text;

	if (!gpusort_log_decisions)
		return;
	initStringInfo(&text);
	for (;;)
	{
		va_list values;
		int needed;

		va_start(values, fmt);
		needed = appendStringInfoVA(&text, fmt, values);
		va_end(values);
		if (needed == 0)
			break;
		enlargeStringInfo(&text, needed);
	}
	ereport(LOG,
			(errmsg("gpusort: not used: %s", text.data)));
	pfree(text.data);
}

/* Is there a service that would take rows x row_bytes? */
bool
gpusort_service_would_take(double rows, double row_bytes)
{
	GpuSortService service = gpusort_shared_service();
	bool cuda;
	uint64 limit;

	switch (service.state)
	{
		case GPUSORT_SERVICE_NONE:
			if (!gpusort_supervisor_wake())
			{
				gpusort_refuse("there is no background worker slot for the supervisor");
				return false;
			}
			return true; /* the executor waits for it, and falls back */
		case GPUSORT_SERVICE_STARTING:
			return true;
		case GPUSORT_SERVICE_BACKOFF:
			gpusort_refuse("the sort service is not running");
			return false;
		case GPUSORT_SERVICE_READY:
		case GPUSORT_SERVICE_DRAINING:
			break;
	}
	if (gpusort_engine == GPUSORT_ENGINE_CUDA && !(service.engines & (1 << GPUSORT_ENGINE_CUDA)))
	{
		gpusort_refuse("gpusort.engine is cuda and the service has no CUDA device");
		return false;
	}
	cuda = gpusort_would_use_cuda(service.engines);
	limit = cuda ? service.device_limit : service.host_limit;
	if (rows > (double) GPUSORT_MAX_ROWS)
	{
		gpusort_refuse("%.0f rows are more than one sort takes", rows);
		return false;
	}
	if (rows * row_bytes > (double) limit)
	{
		gpusort_refuse("about %.0f MB of rows are more than %s allows", rows * row_bytes / (1024 * 1024),
					   cuda ? "gpusort.device_memory" : "gpusort.host_memory");
		return false;
	}
	return true;
}
