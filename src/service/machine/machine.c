/*-------------------------------------------------------------------------
 *
 * machine.c
 *	  The memory and the CPUs that this process may use.
 *
 * Memory is what the machine has, or less if a control group that the process is
 * in, or one above it, has a limit; CPUs are those that the process may run on,
 * or fewer if such a group has a quota of their time.  Both versions of control
 * groups are looked at, where systemd and container runtimes mount them:
 *
 *				below /sys/fs/cgroup	memory						time of CPUs
 *	version 2	. or unified			memory.max					cpu.max
 *	version 1	memory, cpu				memory.limit_in_bytes		cpu.cfs_quota_us, cpu.cfs_period_us
 *
 * /proc/self/cgroup names the groups.  In a container a name may be that of the
 * machine while only the container's part of the tree is mounted; so of the
 * name's groups, up to the root, those that are there are looked at.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/machine/machine.h"

/* A controller of control groups, in the one version or the other. */
typedef struct Controller
{
	const char *mount; /* below /sys/fs/cgroup */
	const char *name;  /* in /proc/self/cgroup; version 2 has none */
	/* lowers *machine to the limit of the group in a directory, if it has one */
	void (*apply)(const char *directory, GpuSortMachine *machine);
} Controller;

/* Reads the numbers of a file, up to two; returns how many there are.  What is no number is none. */
static int
read_numbers(const char *directory, const char *name, long long numbers[2])
{
	char path[PATH_MAX];
	FILE *file;
	int n;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int) sizeof(path))
		return 0;
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	n = fscanf(file, "%lld %lld", &numbers[0], &numbers[1]);
	fclose(file);
	return n > 0 ? n : 0;
}

static void
apply_memory(const char *directory, const char *name, GpuSortMachine *machine)
{
	long long limit[2];

	if (read_numbers(directory, name, limit) == 1 && limit[0] > 0 && (uint64_t) limit[0] < machine->memory)
		machine->memory = limit[0];
}

/* So much time in each period is that of so many CPUs, and a part of one counts as one. */
static void
apply_quota(long long quota, long long period, GpuSortMachine *machine)
{
	if (quota > 0 && period > 0 && quota <= period * (machine->cpus - 1))
		machine->cpus = (quota + period - 1) / period;
}

static void
apply_memory_1(const char *directory, GpuSortMachine *machine)
{
	apply_memory(directory, "memory.limit_in_bytes", machine);
}

static void
apply_cpu_1(const char *directory, GpuSortMachine *machine)
{
	long long quota[2];
	long long period[2];

	if (read_numbers(directory, "cpu.cfs_quota_us", quota) == 1 &&
		read_numbers(directory, "cpu.cfs_period_us", period) == 1)
		apply_quota(quota[0], period[0], machine);
}

static void
apply_both_2(const char *directory, GpuSortMachine *machine)
{
	long long time[2];

	apply_memory(directory, "memory.max", machine);
	if (read_numbers(directory, "cpu.max", time) == 2)
		apply_quota(time[0], time[1], machine);
}

static const Controller controllers[] = {
	{"", "", apply_both_2},
	{"/unified", "", apply_both_2},
	{"/memory", "memory", apply_memory_1},
	{"/cpu", "cpu", apply_cpu_1},
};

/* Applies what a group allows, and every one above it.  Shortens group. */
static void
apply_groups(const Controller *controller, const char *root, char *group, GpuSortMachine *machine)
{
	char directory[PATH_MAX];

	for (;;)
	{
		char *slash = strrchr(group, '/');

		if (snprintf(directory, sizeof(directory), "%s/sys/fs/cgroup%s%s", root, controller->mount, group) <
			(int) sizeof(directory))
			controller->apply(directory, machine);
		if (slash == NULL)
			return;
		*slash = '\0';
	}
}

/* Returns true if name is one of a list with commas in between. */
static bool
is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (;;)
	{
		size_t item = strcspn(list, ",");

		if (item == length && memcmp(list, name, length) == 0)
			return true;
		if (list[item] == '\0')
			return false;
		list += item + 1;
	}
}

/*
 * What this process may use.  root: what /proc and /sys are below, "" but for
 * tests; what cannot be read there is no limit.
 */
GpuSortMachine
gpusort_machine_read(const char *root)
{
	GpuSortMachine machine = {.memory = (uint64_t) sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)};
	char path[PATH_MAX];
	char *line = NULL;
	size_t size = 0;
	cpu_set_t cpus;
	FILE *file;

	machine.cpus = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : sysconf(_SC_NPROCESSORS_ONLN);
	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	file = fopen(path, "re");
	if (file == NULL)
		return machine;

	/* number:controllers:group */
	while (getline(&line, &size, file) > 0)
	{
		char *names = strchr(line, ':');
		char *group = names != NULL ? strchr(names + 1, ':') : NULL;

		if (group == NULL)
			continue;
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++)
		{
			char *copy;

			if (!is_listed(names + 1, controllers[i].name))
				continue;
			copy = strdup(group);
			if (copy == NULL)
				break;
			apply_groups(&controllers[i], root, copy, &machine);
			free(copy);
		}
	}
	free(line);
	fclose(file);
	return machine;
}

/* What this process may use, as it was when this was first called.  Main thread only. */
const GpuSortMachine *
gpusort_machine(void)
{
	static GpuSortMachine machine;

	if (machine.cpus == 0)
		machine = gpusort_machine_read("");
	return &machine;
}

/* Bytes that sorts may take of the machine's memory, by gpusort.host_memory: 0 is a quarter of it. */
uint64_t
gpusort_machine_memory_limit(const GpuSortMachine *machine, uint64_t setting)
{
	return setting > 0 ? setting : machine->memory / 4;
}
