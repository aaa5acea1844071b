/*-------------------------------------------------------------------------
 *
 * installation.c
 *	  Where this module lies, what is installed with it, of which build it is, and
 *	  where a service of this build listens.
 *
 * Service and cuda engine are looked for beside the module first: one that is
 * loaded from a directory of its own, as by PostgreSQL 18's extension_control_path
 * and dynamic_library_path, brings them along.  Where the module is a symbolic link,
 * they may lie beside the link or beside what it leads to.
 *
 *-------------------------------------------------------------------------
 */
#include "server/installation.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build_id.h"
#include "miscadmin.h"
#include "service/protocol.h"

/* The module's file as it was when it was loaded; all zeros if it could not be seen. */
static struct stat loaded;

/* The path by which this module was loaded; valid as long as it is. */
const char *
gpusort_module_path(void)
{
	Dl_info module;

	if (dladdr(gpusort_module_path, &module) == 0 || module.dli_fname == NULL)
		return "gpusort";
	return module.dli_fname;
}

/* To be called once, at load: notes which file this module is. */
void
gpusort_installation_init(void)
{
	if (stat(gpusort_module_path(), &loaded) != 0)
		memset(&loaded, 0, sizeof(loaded));
}

/* Returns true if another file has been put in the place of this module since it was loaded. */
bool
gpusort_module_is_replaced(void)
{
	struct stat now;

	if (loaded.st_ino == 0)
		return false;
	return stat(gpusort_module_path(), &now) != 0 || now.st_dev != loaded.st_dev || now.st_ino != loaded.st_ino ||
		now.st_mtime != loaded.st_mtime;
}

/* The same in the service and the engines that are built with this module, and in no others. */
uint64
gpusort_module_build(void)
{
	return GPUSORT_BUILD;
}

/* Fills in the path of a file beside that one; false if there is none. */
static bool
find_beside(const char *file, const char *name, char path[MAXPGPATH])
{
	strlcpy(path, file, MAXPGPATH);
	get_parent_directory(path);
	join_path_components(path, path, name);
	return access(path, F_OK) == 0;
}

/* Fills in where a file lies that is installed with the module: beside it, else where PostgreSQL's modules are. */
void
gpusort_installed_path(const char *name, char path[MAXPGPATH])
{
	const char *module = gpusort_module_path();
	char *resolved;
	bool found = find_beside(module, name, path);

	if (!found && (resolved = realpath(module, NULL)) != NULL)
	{
		found = find_beside(resolved, name, path);
		free(resolved);
	}
	if (!found)
		join_path_components(path, pkglib_path, name);
}

/* Within an ereport of what the service says: a hint where that is that there is no engine for GPUs to load. */
int
gpusort_engine_hint(const char *text)
{
	char path[MAXPGPATH];

	gpusort_installed_path(GPUSORT_CUDA_ENGINE_FILE, path);
	if (strncmp(text, "no GPU engine", strlen("no GPU engine")) != 0 || access(path, F_OK) == 0)
		return 0;
	return errhint(
		"To sort on a GPU, install the package gpusort-cuda (gpusort_%d-cuda where packages are RPMs), "
		"or build gpusort with nvcc.",
		PG_MAJOR);
}

/*
 * Fills in where the service of that generation listens.  The build is in the name, so that modules of
 * two builds, in sessions that load them by themselves, have services side by side.
 */
void
gpusort_socket_path(uint32 generation, char path[MAXPGPATH])
{
	snprintf(path, MAXPGPATH, "%s/%s%08x.%u.sock", GPUSORT_SOCKET_DIRECTORY, GPUSORT_SOCKET_PREFIX,
			 (uint32) (gpusort_module_build() >> 32), generation);
}
