/*-------------------------------------------------------------------------
 *
 * admission.c
 *	  Whether a sort may go to the service, and why not.
 *
* The one place that says so before costs are compared, for paths (offer/paths.c) and
 * for Sort nodes of finished plans (sort_nodes.c) alike.  What costs least is asked
 * first: the number of rows, the keys, the service.  Asking the service starts it, if
 * it sleeps; so only a sort that nothing else speaks against does.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/admission.h"

#include "catalog/pg_collation_d.h"
#include "catalog/pg_opfamily_d.h"
#include "client/mapped_pool.h"
#include "keys/types.h"
#include "miscadmin.h"
#include "node.h"
#include "nodes/nodeFuncs.h"
#include "server/availability.h"
#include "server/distrusted.h"
#include "server/service_state.h"
#include "settings.h"
#include "sort/row.h"

/* Refuses a sort; the reason is made only for those who want to know. */
static void pg_attribute_printf(2, 3)
	refuse(GpuSortAdmission *admission, const char *fmt, ...)
{
	StringInfoData text;

	admission->encodable = 0;
	if (!admission->tell)
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
	admission->why_not = text.data;
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
													 exprType((Node *) member->em_expr),
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
		return gpusort_operator_encoding(sort->sortOperators[i], gpusort_sort_value_type(sort, i),
										 sort->collations[i], descending, why_not);
	key = list_nth_node(PathKey, candidate->pathkeys, i);
	*descending = key->pk_cmptype == COMPARE_GT;
	return pathkey_encoding(key, why_not);
}

/* Returns the collation of sort key number i, from 0. */
static Oid
candidate_collation(const GpuSortCandidate *candidate, int i)
{
	if (candidate->sort != NULL)
		return candidate->sort->collations[i];
	return list_nth_node(PathKey, candidate->pathkeys, i)->pk_eclass->ec_collation;
}

/* Returns the type of the values of sort key number i, from 0. */
static Oid
candidate_type(const GpuSortCandidate *candidate, int i)
{
	const EquivalenceClass *eclass;

	if (candidate->sort != NULL)
		return gpusort_sort_value_type(candidate->sort, i);
	eclass = list_nth_node(PathKey, candidate->pathkeys, i)->pk_eclass;
	return exprType((Node *) linitial_node(EquivalenceMember, eclass->ec_members)->em_expr);
}

/* Returns the operator family that orders sort key number i, from 0. */
static Oid
candidate_opfamily(const GpuSortCandidate *candidate, int i)
{
	GpuSortOrder order;
	bool descending;

	if (candidate->sort == NULL)
		return list_nth_node(PathKey, candidate->pathkeys, i)->pk_opfamily;
	(void) gpusort_operator_order(candidate->sort->sortOperators[i], InvalidOid, InvalidOid, &order, &descending);
	return order.opfamily;
}

/* Returns true if one of these collations was found to order strings otherwise than their keys. */
static bool
is_distrusted(const List *collations)
{
	ListCell *cell;

	foreach(cell, collations)
	{
		if (gpusort_shared_distrusts(CollationRelationId, lfirst_oid(cell)))
			return true;
	}
	return false;
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
		List *libc;

		if (encoding == GPUSORT_ENCODE_NONE)
		{
			if (i == 0)
				refuse(admission, "sort key 1 %s", why_not);
			break;
		}
		libc = gpusort_key_libc_collations(encoding, candidate_type(candidate, i), candidate_collation(candidate, i));
		if (is_distrusted(libc))
		{
			refuse(admission, "a check found that the collation of sort key %d does not order strings as their keys do",
				   i + 1);
			break;
		}
		if (libc != NIL)
			admission->verified |= gpusort_verify_collation;
		if (encoding == GPUSORT_ENCODE_ABBREVIATION)
		{
			if (gpusort_shared_distrusts(OperatorFamilyRelationId, candidate_opfamily(candidate, i)))
			{
				refuse(admission, "a check found that the operator class of sort key %d does not order "
								  "values as their abbreviated keys do",
					   i + 1);
				break;
			}
			admission->verified = true;
		}
		if (i == 0)
		{
			admission->first = encoding;
			admission->partial_key = gpusort_key_is_partial(encoding, candidate_type(candidate, i),
															candidate_collation(candidate, i));
			admission->descending = descending;
		}
		admission->encodable = i + 1;
	}
}

/* Finds out where rows of so many bytes go that do not fit the memory, or refuses them if they may go nowhere. */
static void
ask_memory(const GpuSortService *service, double bytes, GpuSortAdmission *admission)
{
	double limit = admission->cuda ? service->device_limit : service->host_limit;
	double in_memory = 0;

	if (bytes <= limit)
		return;
	if (!gpusort_spill)
	{
		refuse(admission, "about %.0f MB of rows exceed %s, and gpusort.spill is off",
			   bytes / (1024 * 1024), admission->cuda ? "gpusort.device_memory" : "gpusort.host_memory");
		return;
	}
	if (admission->cuda)
		in_memory = Min(bytes - limit, (double) service->host_limit);
	admission->memory_run_part = in_memory / bytes;
	admission->disk_run_part = (bytes - limit - in_memory) / bytes;
}

/* Refuses what the service would not take, if there is one or will be. */
static void
ask_service(const GpuSortService *service, double rows, int width, GpuSortAdmission *admission)
{
	double bytes = rows * gpusort_row_bytes(width);
	const char *why_not = gpusort_availability_expected(service);

	if (why_not != NULL)
	{
		refuse(admission, "%s", why_not);
		return;
	}
	if (service->state == GPUSORT_SERVICE_NONE || service->state == GPUSORT_SERVICE_STARTING)
		return; /* what it takes is not known yet: the executor waits for it, and falls back */
	if (gpusort_engine == GPUSORT_ENGINE_CUDA && !admission->cuda)
		refuse(admission, "gpusort.engine is cuda, but the service has no CUDA device");
	else if (gpusort_mapped_pool_is_used_up(service->generation))
		refuse(admission, "other sorts of this session use its whole share of gpusort.staging_memory");
	else if (rows > (double) GPUSORT_MAX_ROWS && !gpusort_spill)
		refuse(admission, "%.0f rows exceed the limit of one sort", rows);
	else
		ask_memory(service, bytes, admission);
}

static bool
uses_cuda(const GpuSortService *service)
{
	return gpusort_engine != GPUSORT_ENGINE_HOST && (service->engines & (1 << GPUSORT_ENGINE_CUDA)) != 0;
}

/* Returns true if a GPU sorts, for this session. */
bool
gpusort_sorts_on_cuda(void)
{
	const GpuSortService service = gpusort_shared_service();

	return uses_cuda(&service);
}

/*
 * Says whether a sort may go to the service: encodable is 0 if not.  gpusort.force overrules what is
 * only thought not to pay.  May start the service.
 */
GpuSortAdmission
gpusort_admit(const GpuSortCandidate *candidate)
{
	GpuSortAdmission admission = {.tell = candidate->tell};
	GpuSortService service;

	if (!gpusort_force && candidate->rows < gpusort_min_rows)
	{
		if (candidate->rows < 1.5)
			refuse(&admission, "1 row is fewer than gpusort.min_rows");
		else if (candidate->processes > 1)
			refuse(&admission, "%.0f rows in each of %d processes are fewer than gpusort.min_rows", candidate->rows,
				   candidate->processes);
		else
			refuse(&admission, "%.0f rows are fewer than gpusort.min_rows", candidate->rows);
		return admission;
	}
	look_at_keys(candidate, &admission);
	if (admission.encodable == 0)
		return admission;
	service = gpusort_shared_service();
	admission.cuda = uses_cuda(&service);
	admission.pool_mapped = gpusort_mapped_pool_exists();
	ask_service(&service, candidate->rows * candidate->processes, candidate->width, &admission);
	return admission;
}
