/*-------------------------------------------------------------------------
 *
 * admission.c
 *	  Whether a sort may go to the service, and the log of why not.
 *
 * The one place that says so before costs are compared, for paths (planner.c) and
 * for Sort nodes of finished plans (sort_nodes.c) alike.  What costs least is asked
 * first: the number of rows, the keys, the service.  Asking the service starts it, if
 * it sleeps; so only a sort that nothing else speaks against does.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/admission.h"

#include "client/client.h"
#include "keys/types.h"
#include "node.h"
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

/*
 * Returns the encoding of a path's key.  The finished plan sorts by any one of an
 * equivalence class's members, so all of them must have one.
 */
static GpuSortEncoding
pathkey_encoding(const PathKey *key, const char **why_not)
{
	GpuSortEncoding encoding = GPUSORT_ENCODE_NONE;
	ListCell *cell;

	foreach(cell, key->pk_eclass->ec_members)
	{
		const EquivalenceMember *member = lfirst_node(EquivalenceMember, cell);
		GpuSortEncoding found = gpusort_key_encoding(key->pk_opfamily, member->em_datatype,
													 key->pk_eclass->ec_collation, why_not);

		if (found == GPUSORT_ENCODE_NONE)
			return found;
		if (encoding == GPUSORT_ENCODE_NONE)
			encoding = found;
	}
	return encoding;
}

/* Returns the encoding of sort key number i, from 0; if it has one, *descending says which way it is sorted. */
static GpuSortEncoding
candidate_encoding(const GpuSortCandidate *candidate, int i, bool *descending, const char **why_not)
{
	const Sort *sort = candidate->sort;
	const PathKey *key;

	if (sort != NULL)
		return gpusort_operator_encoding(sort->sortOperators[i], sort->collations[i], descending, why_not);
	key = list_nth_node(PathKey, candidate->pathkeys, i);
	*descending = key->pk_cmptype == COMPARE_GT;
	return pathkey_encoding(key, why_not);
}

/* Finds out how many leading keys have an encoding; the comparators order rows by the others. */
static void
look_at_keys(const GpuSortCandidate *candidate, GpuSortAdmission *admission)
{
	int count = candidate->sort != NULL ? candidate->sort->numCols : list_length(candidate->pathkeys);
	const char *why_not;

	for (int i = 0; i < count; i++)
	{
		bool descending;
		GpuSortEncoding encoding = candidate_encoding(candidate, i, &descending, &why_not);

		if (encoding == GPUSORT_ENCODE_NONE)
		{
			if (i == 0)
				gpusort_refuse("sort key 1 %s", why_not);
			break;
		}
		if (i == 0)
		{
			admission->string_key = gpusort_key_types[encoding].string != GPUSORT_STRING_NONE;
			admission->descending = descending;
		}
		admission->encodable = i + 1;
	}
}

/* Returns true if there is a service, or will be, that takes so many rows. */
static bool
service_would_take(const GpuSortService *service, bool cuda, double rows, int width)
{
	double bytes = rows * gpusort_row_bytes(width);

	switch (service->state)
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
		case GPUSORT_SERVICE_HUNG:
		case GPUSORT_SERVICE_BACKOFF:
			gpusort_refuse("the sort service is not running");
			return false;
		case GPUSORT_SERVICE_READY:
		case GPUSORT_SERVICE_DRAINING:
			break;
	}
	if (gpusort_engine == GPUSORT_ENGINE_CUDA && !cuda)
	{
		gpusort_refuse("gpusort.engine is cuda and the service has no CUDA device");
		return false;
	}
	if (rows > (double) GPUSORT_MAX_ROWS)
	{
		gpusort_refuse("%.0f rows are more than one sort takes", rows);
		return false;
	}
	if (bytes > (double) (cuda ? service->device_limit : service->host_limit))
	{
		gpusort_refuse("about %.0f MB of rows are more than %s allows", bytes / (1024 * 1024),
					   cuda ? "gpusort.device_memory" : "gpusort.host_memory");
		return false;
	}
	return true;
}

/*
 * Says whether a sort may go to the service: encodable is 0 if not, and the log then
 * has the reason.  gpusort.force overrules what is only thought not to pay.  May start
 * the service.
 */
GpuSortAdmission
gpusort_admit(const GpuSortCandidate *candidate)
{
	const GpuSortAdmission refused = {0};
	GpuSortAdmission admission = {0};
	GpuSortService service;

	if (!gpusort_force && candidate->rows < gpusort_min_rows)
	{
		gpusort_refuse("%.0f rows are fewer than gpusort.min_rows", candidate->rows);
		return refused;
	}
	if (!gpusort_force && candidate->top_n)
	{
		gpusort_refuse("LIMIT asks for a small part of the rows");
		return refused;
	}
	look_at_keys(candidate, &admission);
	if (admission.encodable == 0)
		return refused;
	service = gpusort_shared_service();
	admission.cuda = gpusort_engine != GPUSORT_ENGINE_HOST && (service.engines & (1 << GPUSORT_ENGINE_CUDA)) != 0;
	admission.pool_mapped = gpusort_client_has_pool();
	if (!service_would_take(&service, admission.cuda, candidate->rows * candidate->processes, candidate->width))
		return refused;
	return admission;
}
