/*-------------------------------------------------------------------------
 *
 * transaction.h
 *	  Whether a statement may read foreign tables over connections of its own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARD_TRANSACTION_H
#define GPUSORT_SHARD_TRANSACTION_H

#include "compat.h"

#include "nodes/plannodes.h"

extern const char *gpusort_shards_why_not_read(void);
extern const char *gpusort_tasks_why_not_read(void);
extern void gpusort_shards_note_alone(void);
extern uint64 gpusort_shards_alone(void);
extern void gpusort_shards_note_use(void);
extern void gpusort_shards_note_start(const PlannedStmt *stmt, bool runs);
extern void gpusort_shards_note_end(void);
extern void gpusort_shards_note_command(const Node *command);

#endif /* GPUSORT_SHARD_TRANSACTION_H */
