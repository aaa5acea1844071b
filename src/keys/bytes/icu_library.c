/*-------------------------------------------------------------------------
 *
 * icu_library.c
 *	  ICU's functions, from the library that the server uses.
 *
 * The server's collators are of that library, and no other version can use them.
 * So the module is not linked with any: it looks for the library among those that
 * the process has loaded.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/bytes/icu_library.h"

#include <dlfcn.h>
#include <link.h>

GpuSortIcuFunctions gpusort_icu;

static const struct
{
	const char *name;
	void *function;
} icu_functions[] =
	{
		{"ucol_nextSortKeyPart", &gpusort_icu.ucol_nextSortKeyPart},
		{"ucol_safeClone", &gpusort_icu.ucol_safeClone},
		{"ucol_getAttribute", &gpusort_icu.ucol_getAttribute},
		{"ucol_setAttribute", &gpusort_icu.ucol_setAttribute},
		{"ucol_getReorderCodes", &gpusort_icu.ucol_getReorderCodes},
		{"ucol_getTailoredSet", &gpusort_icu.ucol_getTailoredSet},
		{"uiter_setUTF8", &gpusort_icu.uiter_setUTF8},
		{"uiter_setString", &gpusort_icu.uiter_setString},
		{"uset_getItemCount", &gpusort_icu.uset_getItemCount},
		{"uset_getItem", &gpusort_icu.uset_getItem},
		{"uset_close", &gpusort_icu.uset_close},
		{"ucnv_open", &gpusort_icu.ucnv_open},
		{"ucnv_toUChars", &gpusort_icu.ucnv_toUChars},
};

/* A callback of dl_iterate_phdr, which has the server's own libraries first: the first of ICU's. */
static int
is_icu_library(struct dl_phdr_info *info, size_t size, void *path)
{
	static const char name[] = "/libicui18n.so";

	if (strstr(info->dlpi_name, name) == NULL)
		return 0;
	strlcpy(path, info->dlpi_name, MAXPGPATH);
	return 1;
}

/* Finds ICU's functions, whose names end in the library's version, or do not.  false: there is no ICU. */
bool
gpusort_icu_load(void)
{
	char path[MAXPGPATH];
	const char *version;
	void *library;

	if (dl_iterate_phdr(is_icu_library, path) == 0)
		return false;
	library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	if (library == NULL)
		return false;
	version = strstr(path, ".so.");
	for (int i = 0; i < lengthof(icu_functions); i++)
	{
		char name[NAMEDATALEN];
		void *function = NULL;

		if (version != NULL)
		{
			snprintf(name, sizeof(name), "%s_%d", icu_functions[i].name, atoi(version + strlen(".so.")));
			function = dlsym(library, name);
		}
		if (function == NULL)
			function = dlsym(library, icu_functions[i].name);
		if (function == NULL)
		{
			dlclose(library);
			return false;
		}
		memcpy(icu_functions[i].function, &function, sizeof(function));
	}
	return true;
}
