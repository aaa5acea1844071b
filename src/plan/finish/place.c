/*-------------------------------------------------------------------------
 *
 * place.c
 *	  A place in the finished plans of a statement, and what the steps of the pass over them know of it.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/place.h"

#include "plan/finish/plan_tree.h"

/* Returns a number for a node that the plans did not have. */
int
gpusort_finish_node_id(GpuSortFinish *finish)
{
	if (finish->last_node_id == 0)
		finish->last_node_id = gpusort_plan_last_node_id(finish->stmt);
	return ++finish->last_node_id;
}
