/*-------------------------------------------------------------------------
 *
 * node_time.c
 *	  How long a window takes for a row.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/model/node_time.h"

#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "utils/fmgroids.h"

/* A window over a GpuSort that only numbers rows passes them on (exec/ranks.c); others keep them in a tuplestore. */
#define NUMBERED_ROW NS(75)
#define WINDOW_ROW   NS(300)

/* A window of which the functions are looked for. */
typedef struct Functions
{
	Index window;
	bool others; /* there is one that does more than number rows */
} Functions;

static bool
find_other_function(Node *node, void *arg)
{
	Functions *functions = arg;

	if (node == NULL)
		return false;
	if (IsA(node, WindowFunc))
	{
		const Oid function = ((const WindowFunc *) node)->winfnoid;

		/* those of another window have been computed below */
		functions->others |= ((const WindowFunc *) node)->winref == functions->window && function != F_ROW_NUMBER &&
			function != F_RANK_ && function != F_DENSE_RANK_;
		return functions->others;
	}
	return expression_tree_walker(node, find_other_function, arg);
}

/* Returns what a window takes for each row, of which these are the columns, right over a GpuSort or over something else. */
double
gpusort_window_row_time(List *columns, Index window, List *run_condition, bool over_gpusort)
{
	Functions functions = {.window = window};

	if (!over_gpusort || run_condition != NIL || find_other_function((Node *) columns, &functions))
		return WINDOW_ROW;
	return NUMBERED_ROW;
}
