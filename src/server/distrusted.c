/*-------------------------------------------------------------------------
 *
 * distrusted.c
 *	  Collations and operator families whose order was found to be another than that of their keys.
 *
 *-------------------------------------------------------------------------
 */
#include "server/distrusted.h"

#include "catalog/pg_collation_d.h"
#include "miscadmin.h"
#include "server/shared_state.h"

/* Returns true if this object of the current database is distrusted; the lock is held. */
static bool
is_distrusted(const GpuSortSharedState *state, Oid catalog, Oid object)
{
	if (state->ndistrusted == GPUSORT_DISTRUSTED_MAX)
		return true;
	for (int i = 0; i < state->ndistrusted; i++)
	{
		const GpuSortDistrusted *distrusted = &state->distrusted[i];

		if (distrusted->database == MyDatabaseId && distrusted->catalog == catalog && distrusted->object == object)
			return true;
	}
	return false;
}

/* Forbids sorts by the keys of this collation or operator family until the server restarts; true if that is new. */
bool
gpusort_shared_distrust(Oid catalog, Oid object)
{
	GpuSortSharedState *state = gpusort_shared();
	bool news;

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	news = !is_distrusted(state, catalog, object);
	if (news)
		state->distrusted[state->ndistrusted++] =
			(GpuSortDistrusted){.database = MyDatabaseId, .catalog = catalog, .object = object};
	LWLockRelease(&state->lock);
	return news;
}

/* Returns true if nobody is to sort by the keys of this collation or operator family. */
bool
gpusort_shared_distrusts(Oid catalog, Oid object)
{
	GpuSortSharedState *state = gpusort_shared();
	bool distrusts;

	LWLockAcquire(&state->lock, LW_SHARED);
	distrusts = is_distrusted(state, catalog, object);
	LWLockRelease(&state->lock);
	return distrusts;
}

/* Returns the collations of the current database that are distrusted; *all is whether all others are, too. */
List *
gpusort_shared_distrusted_collations(bool *all)
{
	GpuSortDistrusted distrusted[GPUSORT_DISTRUSTED_MAX];
	GpuSortSharedState *state = gpusort_shared();
	List *collations = NIL;
	int count;

	LWLockAcquire(&state->lock, LW_SHARED);
	count = state->ndistrusted;
	memcpy(distrusted, state->distrusted, sizeof(distrusted));
	LWLockRelease(&state->lock);
	*all = count == GPUSORT_DISTRUSTED_MAX;
	for (int i = 0; i < count; i++)
	{
		if (distrusted[i].database == MyDatabaseId && distrusted[i].catalog == CollationRelationId)
			collations = lappend_oid(collations, distrusted[i].object);
	}
	return collations;
}
