/*-------------------------------------------------------------------------
 *
 * attempt.c
 *	  Calls that may fail and leave nothing behind, where no subtransaction may be begun.
 *
 * What is called are output functions of types, which write nothing: what they hold when they fail is let go of as at
 * the end of a subtransaction, by a resource owner of its own.  In parallel mode no subtransaction may be begun; and
 * for each row it would take too long.
 *
 *-------------------------------------------------------------------------
 */
#include "form/attempt.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "utils/palloc.h"

ResourceOwner
gpusort_attempts_begin(void)
{
	return ResourceOwnerCreate(CurrentResourceOwner, "gpusort attempts");
}

/* Forgets the current error, unless it is that of a cancel or of waiting, or the transaction cannot go on. */
static void
forget_error(void)
{
	const int category = ERRCODE_TO_CATEGORY(geterrcode());

	if (category == ERRCODE_OPERATOR_INTERVENTION || category == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE ||
		category == ERRCODE_TRANSACTION_ROLLBACK)
		PG_RE_THROW();
	FlushErrorState();
	LWLockReleaseAll();
	ConditionVariableCancelSleep();
	UnlockBuffers();
}

/* Calls a function; returns false if it has raised an error, which is forgotten: then there may be no other attempt. */
bool
gpusort_attempt(ResourceOwner own, void (*function)(void *arg), void *arg)
{
	const ResourceOwner owner = CurrentResourceOwner;
	const MemoryContext caller = CurrentMemoryContext;
	volatile bool good = true;

	CurrentResourceOwner = own;
	PG_TRY();
	{
		function(arg);
	}
	PG_CATCH();
	{
		CurrentResourceOwner = owner;
		MemoryContextSwitchTo(caller);
		forget_error();
		good = false;
	}
	PG_END_TRY();
	CurrentResourceOwner = owner;
	return good;
}

/* Lets go of what was held; good: none has failed. */
void
gpusort_attempts_end(ResourceOwner own, bool good)
{
	ResourceOwnerRelease(own, RESOURCE_RELEASE_BEFORE_LOCKS, good, false);
	ResourceOwnerRelease(own, RESOURCE_RELEASE_LOCKS, good, false);
	ResourceOwnerRelease(own, RESOURCE_RELEASE_AFTER_LOCKS, good, false);
	ResourceOwnerDelete(own);
}

/* Does all that for one call. */
bool
gpusort_attempt_once(void (*function)(void *arg), void *arg)
{
	const ResourceOwner own = gpusort_attempts_begin();
	const bool good = gpusort_attempt(own, function, arg);

	gpusort_attempts_end(own, good);
	return good;
}
