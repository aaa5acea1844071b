/*-------------------------------------------------------------------------
 *
 * counted_text.h
 *	  Statements as pg_stat_statements keeps them, parsed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COUNTED_TEXT_H
#define GPUSORT_COUNTED_TEXT_H

#include "compat.h"

#include "nodes/pg_list.h"

extern List *gpusort_parse_counted(const char **text);

#endif /* GPUSORT_COUNTED_TEXT_H */
