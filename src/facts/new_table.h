/*-------------------------------------------------------------------------
 *
 * new_table.h
 *	  Whether all processes may put rows into pages of a table, or one many rows at once.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FACTS_NEW_TABLE_H
#define GPUSORT_FACTS_NEW_TABLE_H

#include "compat.h"

#include "utils/relcache.h"

extern const char *gpusort_why_no_pages(Relation table);
extern const char *gpusort_why_not_inserted_at_once(Relation table);
extern const char *gpusort_why_not_inserted_by_pages(Relation table);

#endif /* GPUSORT_FACTS_NEW_TABLE_H */
