/*-------------------------------------------------------------------------
 *
 * estimate.c
 *	  How long a statement takes by the model, and what gpusort saves of it.
 *
 * Of the statements that are planned between begin and end; what puts GpuSort into plans
 * (offers.c, sort_nodes.c) adds what it knows.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/estimate.h"

static GpuSortEstimate *current = NULL; /* NULL: nobody asks */

/* The estimate, which belongs to the caller, is added to until end. */
void
gpusort_estimate_begin(GpuSortEstimate *estimate)
{
	current = estimate;
}

void
gpusort_estimate_end(void)
{
	current = NULL;
}

/* Returns true if somebody asks: what is added takes time to find out. */
bool
gpusort_estimate_is_wanted(void)
{
	return current != NULL;
}

/* Adds nanoseconds of a part of the statement: what it takes without gpusort, and what is saved of that. */
void
gpusort_estimate_add(double native, double saved)
{
	if (current == NULL)
		return;
	current->native += native;
	current->saved += saved;
}
