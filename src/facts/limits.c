/*-------------------------------------------------------------------------
 *
 * limits.c
 *	  How many rows LIMIT and OFFSET ask for.
 *
 *-------------------------------------------------------------------------
 */
#include "facts/limits.h"

#include "nodes/primnodes.h"

/* What a LIMIT or OFFSET that is known only at run time is thought to be, of the rows: as PostgreSQL guesses. */
#define UNKNOWN_PART 0.1

/*
 * How many of so many rows LIMIT count OFFSET offset asks for; -1 for all.  offset may be NULL.  If one of
 * them is not known before the query runs, *known becomes false.
 */
double
gpusort_limit_rows(Node *count, Node *offset, double rows, bool *known)
{
	double first = 0;

	*known = true;
	for (int i = 0; i < 2; i++)
	{
		const Const *bound = (const Const *) (i == 0 ? count : offset);

		if (bound == NULL)
			continue;
		if (!IsA(bound, Const))
		{
			*known = false;
			first += UNKNOWN_PART * rows;
		}
		else if (!bound->constisnull)
			first += Max(DatumGetInt64(bound->constvalue), 0);
		else if (i == 0)
			return -1; /* LIMIT NULL is no limit */
	}
	return Max(first, 1);
}
