/*-------------------------------------------------------------------------
 *
 * role.h
 *	  Who asks for a sort: what JOB_BEGIN has behind the request of protocol.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROLE_H
#define GPUSORT_ROLE_H

#include "service/protocol.h"

#include <stddef.h>
#include <string.h>

/* JOB_BEGIN, as it lies in the message. */
typedef struct GpuSortRoleRequest
{
	GpuSortRequest request;
	uint32_t role; /* an OID of the server's: roles share the pool; 0: not told, and not limited */
} GpuSortRoleRequest;

_Static_assert(sizeof(((GpuSortMessage *) NULL)->u) >= sizeof(GpuSortRoleRequest), "a message has room for the role");

static inline void
gpusort_message_set_role(GpuSortMessage *message, uint32_t role)
{
	memcpy((char *) &message->u + offsetof(GpuSortRoleRequest, role), &role, sizeof(role));
}

static inline uint32_t
gpusort_message_role(const GpuSortMessage *message)
{
	uint32_t role;

	memcpy(&role, (const char *) &message->u + offsetof(GpuSortRoleRequest, role), sizeof(role));
	return role;
}

#endif /* GPUSORT_ROLE_H */
