/*-------------------------------------------------------------------------
 *
 * checksum.h
 *	  The checksum of what is kept in files.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_CHECKSUM_H
#define GPUSORT_EXTERNAL_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

extern uint32_t gpusort_checksum(const void *start, size_t bytes);
extern uint32_t gpusort_checksum_by_table(const void *start, size_t bytes);

#endif /* GPUSORT_EXTERNAL_CHECKSUM_H */
