/*-------------------------------------------------------------------------
 *
 * installation.h
 *	  Where this module lies, what is installed with it, of which build it is, and
 *	  where a service of this build listens.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INSTALLATION_H
#define GPUSORT_INSTALLATION_H

#include "compat.h"

/*
 * Sockets lie below the data directory, which is every backend's working directory: so their paths
 * fit a socket address however deep that lies.  Base backups leave out what is in pg_stat_tmp.
 */
#define GPUSORT_SOCKET_DIRECTORY "pg_stat_tmp"
#define GPUSORT_SOCKET_PREFIX    "gpusort."

extern void gpusort_installation_init(void);
extern const char *gpusort_module_path(void);
extern bool gpusort_module_is_replaced(void);
extern uint64 gpusort_module_build(void);
extern int gpusort_engine_hint(const char *text);
extern void gpusort_installed_path(const char *name, char path[MAXPGPATH]);
extern void gpusort_socket_path(uint32 generation, char path[MAXPGPATH]);

#endif /* GPUSORT_INSTALLATION_H */
