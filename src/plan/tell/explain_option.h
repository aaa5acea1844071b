/*-------------------------------------------------------------------------
 *
 * explain_option.h
 *	  EXPLAIN (GPUSORT): why sorts are done as they are.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXPLAIN_OPTION_H
#define GPUSORT_EXPLAIN_OPTION_H

#include "compat.h"

#ifdef HAVE_EXPLAIN_OPTIONS
struct ExplainState;

extern void gpusort_explain_option_init(void);
extern bool gpusort_explain_option_is_on(struct ExplainState *explain);
#endif

#endif /* GPUSORT_EXPLAIN_OPTION_H */
