/*-------------------------------------------------------------------------
 *
 * path_tree.h
 *	  Finds its way in trees of paths, GpuSort's own among them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PATH_TREE_H
#define GPUSORT_PATH_TREE_H

#include "compat.h"

#include "nodes/pathnodes.h"

/* How a path refers to what is below it. */
typedef struct GpuSortPathChildren
{
	Size size;       /* of the path; 0: it is not gone through */
	Path **links[2]; /* NULL: none */
	List **list;     /* of paths; NULL: none */
} GpuSortPathChildren;

extern bool gpusort_path_is_join(const Path *path);
extern bool gpusort_path_reads_again(const Path *path);
extern bool gpusort_path_passes_rows(const Path *path, const Path *child, int link);
extern bool gpusort_path_streams(const Path *path);
extern GpuSortPathChildren gpusort_path_children(Path *path);
extern const Path *gpusort_path_only_child(const Path *path);
extern List *gpusort_path_add_joins(List *joins, const Path *path, bool partial_only);

#endif /* GPUSORT_PATH_TREE_H */
