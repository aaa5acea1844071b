/*-------------------------------------------------------------------------
 *
 * libpq.c
 *	  PostgreSQL's client library, where postgres_fdw or Citus has loaded it.
 *
 *-------------------------------------------------------------------------
 */
#include "shards/libpq.h"

#include <dlfcn.h>

#define LOAD(name)                       \
	loaded.name = dlsym(library, #name); \
	if (loaded.name == NULL)             \
		return NULL;

/* Returns the library's functions; NULL if this process has not loaded it. */
const GpuSortLibpq *
gpusort_libpq(void)
{
	static GpuSortLibpq loaded;
	static bool complete = false;
	void *library;

	if (complete)
		return &loaded;
	library = dlopen("libpq.so.5", RTLD_NOW | RTLD_NOLOAD);
	if (library == NULL)
		return NULL;
	GPUSORT_LIBPQ_FUNCTIONS(LOAD)
	complete = true;
	return &loaded;
}
