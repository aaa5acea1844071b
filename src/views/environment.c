/*-------------------------------------------------------------------------
 *
 * environment.c
 *	  The function behind gpusort_check(): what it looks at and SQL cannot see, in
 *	  one row.
 *
 * What is right of it is for gpusort_check() to say, in SQL.  Everybody may ask; what
 * the service reported and which libraries have hooks only members of pg_monitor are
 * told, as of shared_preload_libraries.
 *
 * Of a hook's chain two places can be seen: whose function is called first now, and
 * whose was before gpusort was loaded.
 *
 *-------------------------------------------------------------------------
 */
#include "views/environment.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "client/client.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "server/distrusted.h"
#include "server/installation.h"
#include "server/service_state.h"
#include "server/shared.h"
#include "settings.h"
#include "storage/fd.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"

/* PostgreSQL 15's PG_FUNCTION_INFO_V1 does not export the function itself. */
extern PGDLLEXPORT Datum gpusort_show_environment(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(gpusort_show_environment);

/* A hook of the planner or the executor, and whose function was there before gpusort. */
typedef struct Hook
{
	const char *name;
	void **now;
	void *before;
} Hook;

#define HOOK(name)                               \
	{                                            \
		CppAsString(name), (void **) &name, NULL \
	}

static Hook hooks[] = {
	HOOK(planner_hook),
	HOOK(create_upper_paths_hook),
	HOOK(set_rel_pathlist_hook),
	HOOK(set_join_pathlist_hook),
	HOOK(join_search_hook),
	HOOK(ExecutorStart_hook),
	HOOK(ExecutorRun_hook),
	HOOK(ExecutorFinish_hook),
	HOOK(ExecutorEnd_hook),
	HOOK(ExplainOneQuery_hook),
};

/* To be called once, at load, before gpusort has hooks of its own. */
void
gpusort_environment_init(void)
{
	for (int i = 0; i < lengthof(hooks); i++)
		hooks[i].before = *hooks[i].now;
}

/* Returns the name of the library that a function is in; NULL if it is gpusort, or there is no function. */
static char *
library_of(void *function)
{
	Dl_info info;
	const char *base;
	const char *end;

	if (function == NULL || dladdr(function, &info) == 0 || info.dli_fname == NULL ||
		strcmp(info.dli_fname, gpusort_module_path()) == 0)
		return NULL;
	base = last_dir_separator(info.dli_fname);
	base = base != NULL ? base + 1 : info.dli_fname;
	end = strstr(base, ".so");
	return end != NULL ? pnstrdup(base, end - base) : pstrdup(base);
}

/* Returns the libraries that have hooks of the planner or the executor, each once, as text[]. */
static Datum
hooked_libraries(void)
{
	Datum names[2 * lengthof(hooks)];
	int count = 0;

	for (int i = 0; i < 2 * lengthof(hooks); i++)
	{
		char *name = library_of(i % 2 == 0 ? *hooks[i / 2].now : hooks[i / 2].before);
		bool known = name == NULL;

		for (int j = 0; j < count && !known; j++)
			known = strcmp(TextDatumGetCString(names[j]), name) == 0;
		if (!known)
			names[count++] = CStringGetTextDatum(name);
	}
	return PointerGetDatum(construct_array(names, count, TEXTOID, -1, false, TYPALIGN_INT));
}

/* Reads the first line of a file, without its end; false if there is none. */
static bool
read_line(const char *path, char *line, int size)
{
	FILE *file = AllocateFile(path, "r");
	bool found;

	if (file == NULL)
		return false;
	found = fgets(line, size, file) != NULL;
	FreeFile(file);
	if (found)
		line[strcspn(line, "\n")] = '\0';
	return found;
}

/* Returns how many GPUs of NVIDIA the machine has on its PCI bus, whether there is a driver or not. */
static int
count_gpus(void)
{
	static const char *const bus = "/sys/bus/pci/devices";
	DIR *directory = AllocateDir(bus);
	struct dirent *entry;
	int count = 0;

	while (directory != NULL && (entry = ReadDirExtended(directory, bus, DEBUG1)) != NULL)
	{
		char path[MAXPGPATH];
		char vendor[16];
		char class[16];

		snprintf(path, sizeof(path), "%s/%s/vendor", bus, entry->d_name);
		if (!read_line(path, vendor, sizeof(vendor)) || strcmp(vendor, "0x10de") != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s/class", bus, entry->d_name);
		/* a display controller: VGA or 3D */
		count += read_line(path, class, sizeof(class)) && strncmp(class, "0x03", 4) == 0;
	}
	if (directory != NULL)
		FreeDir(directory);
	return count;
}

/* Returns true if the server's shared memory lies in huge pages, by what the kernel says of this process. */
static bool
has_huge_pages(void)
{
	FILE *file = AllocateFile("/proc/self/smaps", "r");
	uintptr_t wanted = (uintptr_t) MyProc;
	char line[1024];
	bool here = false;
	bool huge = false;

	if (file == NULL)
		return false;
	while (fgets(line, sizeof(line), file) != NULL)
	{
		unsigned long start;
		unsigned long end;
		unsigned long kb;

		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = wanted >= start && wanted < end;
		else if (here && sscanf(line, "KernelPageSize: %lu kB", &kb) == 1)
		{
			huge = kb * 1024 > (unsigned long) sysconf(_SC_PAGESIZE);
			break;
		}
	}
	FreeFile(file);
	return huge;
}

/* A GpuSortDeviceCallback: what memory the server may use, as the service has found. */
static void
take_host_memory(const GpuSortMessage *message, void *arg)
{
	if (message->u.device.engine == GPUSORT_ENGINE_HOST)
		*(uint64 *) arg = message->u.device.state.memory_total;
}

/* Returns the bytes of memory that the server may use; where there is no service to ask, of the machine. */
static uint64
server_memory(const GpuSortService *service)
{
	uint64 memory = 0;
	GpuSortFailure ignored;

	if (service->state == GPUSORT_SERVICE_READY)
		(void) gpusort_client_devices(take_host_memory, &memory, &ignored);
	if (memory == 0)
		memory = (uint64) sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	return memory;
}

/* Returns how many processors this process may run on. */
static int
processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : (int) sysconf(_SC_NPROCESSORS_ONLN);
}

/* Returns a list of OIDs as oid[]. */
static Datum
oid_array(const List *list)
{
	Datum *oids = palloc((list_length(list) + 1) * sizeof(Datum));
	int count = 0;
	ListCell *cell;

	foreach(cell, list)
		oids[count++] = ObjectIdGetDatum(lfirst_oid(cell));
	return PointerGetDatum(construct_array(oids, count, OIDOID, sizeof(Oid), true, TYPALIGN_INT));
}

/* The row of gpusort_environment(). */
Datum
gpusort_show_environment(PG_FUNCTION_ARGS)
{
	const GpuSortService service = gpusort_shared_service();
	bool may_see = has_privs_of_role(GetUserId(), ROLE_PG_MONITOR);
	TupleDesc desc;
	struct rlimit memlock;
	char driver[256];
	bool all_distrusted;
	List *distrusted = gpusort_shared_distrusted_collations(&all_distrusted);
	Datum values[19];
	bool nulls[19] = {0};
	int i = 0;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[i++] = CStringGetTextDatum(GPUSORT_VERSION);
	values[i++] = CStringGetTextDatum(psprintf("%016llx", (unsigned long long) gpusort_module_build()));
	values[i++] = BoolGetDatum(gpusort_shared_is_preloaded());
	values[i++] = BoolGetDatum(gpusort_module_is_replaced());
	values[i++] = CStringGetTextDatum(gpusort_service_state_name(service.state));
	nulls[i] = !may_see || service.report[0] == '\0';
	values[i++] = CStringGetTextDatum(service.report);
	values[i++] = BoolGetDatum((service.engines & (1 << GPUSORT_ENGINE_CUDA)) != 0);
	values[i++] = Int32GetDatum(service.devices);
	values[i++] = Int64GetDatum(service.host_limit);
	values[i++] = Int64GetDatum((int64) gpusort_staging_memory << 20);
	values[i++] = Int64GetDatum(server_memory(&service));
	nulls[i] = getrlimit(RLIMIT_MEMLOCK, &memlock) != 0 || memlock.rlim_cur == RLIM_INFINITY;
	values[i] = nulls[i] ? (Datum) 0 : Int64GetDatum(memlock.rlim_cur);
	i++;
	values[i++] = BoolGetDatum(has_huge_pages());
	values[i++] = Int32GetDatum(processors());
	values[i++] = Int32GetDatum(count_gpus());
	nulls[i] = !read_line("/proc/driver/nvidia/version", driver, sizeof(driver));
	values[i] = nulls[i] ? (Datum) 0 : CStringGetTextDatum(driver);
	i++;
	nulls[i] = !may_see;
	values[i++] = hooked_libraries();
	values[i++] = oid_array(distrusted);
	values[i++] = BoolGetDatum(all_distrusted);
	Assert(i == lengthof(values) && i == desc->natts);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
