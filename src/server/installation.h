/*-------------------------------------------------------------------------
 *
 * installation.h
 *	  Where this module lies, what is installed with it, and of which build it is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INSTALLATION_H
#define GPUSORT_INSTALLATION_H

#include "compat.h"

extern const char *gpusort_module_path(void);
extern uint64 gpusort_module_build(void);
extern void gpusort_installed_path(const char *name, char path[MAXPGPATH]);

#endif /* GPUSORT_INSTALLATION_H */
