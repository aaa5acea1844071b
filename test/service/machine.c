/*-------------------------------------------------------------------------
 *
 * machine.c
 *	  What memory and CPUs the service finds that it may use, in trees that look
 *	  like /proc and /sys of machines and containers.  Calls host/machine.c itself.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "service/machine/machine.h"
#include "testlib.h"

#define MIB UINT64_C(1048576)

/* Of this machine, with no limit that a tree tells. */
static GpuSortMachine real;

static char root[200];

/* A new, empty tree. */
static void
plant(void)
{
	static int trees = 0;

	snprintf(root, sizeof(root), "%s/tree%d", test_directory(), trees++);
}

/* Writes a file of the tree, and makes the directories above it. */
static void
put_file(const char *name, const char *text)
{
	char path[400];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/'))
	{
		*slash = '\0';
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			bail("mkdir %s: %s", path, strerror(errno));
		*slash = '/';
	}
	file = fopen(path, "w");
	if (file == NULL || fputs(text, file) == EOF || fclose(file) != 0)
		bail("%s: %s", path, strerror(errno));
}

/* Returns true if the tree says so; 0: no limit. */
static bool
says(uint64_t memory, int cpus)
{
	GpuSortMachine found = gpusort_machine_read(root);
	bool good = found.memory == (memory > 0 ? memory : real.memory) && found.cpus == (cpus > 0 ? cpus : real.cpus);

	if (!good)
		diag("%llu MB and %d CPUs", (unsigned long long) (found.memory / MIB), found.cpus);
	return good;
}

int
main(void)
{
	plant();
	real = gpusort_machine_read(root);
	ok(real.memory > 64 * MIB && real.cpus >= 1, "without control groups it is the machine: %llu MB, %d CPUs",
	   (unsigned long long) (real.memory / MIB), real.cpus);

	put_file("proc/self/cgroup", "0::/\n");
	put_file("sys/fs/cgroup/memory.max", "max\n");
	put_file("sys/fs/cgroup/cpu.max", "max 100000\n");
	ok(says(0, 0), "a container without limits has the machine");
	put_file("sys/fs/cgroup/memory.max", "50331648\n");
	put_file("sys/fs/cgroup/cpu.max", "40000 100000\n");
	ok(says(48 * MIB, 1), "version 2: a container's limits, and a part of a CPU is one");
	put_file("sys/fs/cgroup/cpu.max", "99900000 100000\n");
	ok(says(48 * MIB, 0), "a quota of more CPUs than there are is none");

	plant();
	put_file("proc/self/cgroup", "0::/system.slice/postgresql.service\n");
	put_file("sys/fs/cgroup/system.slice/memory.max", "33554432\n");
	put_file("sys/fs/cgroup/system.slice/cpu.max", "10000 10000\n");
	put_file("sys/fs/cgroup/system.slice/postgresql.service/memory.max", "67108864\n");
	put_file("sys/fs/cgroup/system.slice/postgresql.service/cpu.max", "max 10000\n");
	ok(says(32 * MIB, 1), "the limits of a group above count");
	put_file("sys/fs/cgroup/system.slice/postgresql.service/memory.max", "16777216\n");
	ok(says(16 * MIB, 1), "and the least of them");

	plant();
	put_file("proc/self/cgroup", "5:memory:/docker/0123\n4:cpu,cpuacct:/docker/0123\n1:name=systemd:/docker/0123\n0::/\n");
	put_file("sys/fs/cgroup/memory/docker/0123/memory.limit_in_bytes", "9223372036854771712\n");
	put_file("sys/fs/cgroup/cpu/docker/0123/cpu.cfs_quota_us", "-1\n");
	put_file("sys/fs/cgroup/cpu/docker/0123/cpu.cfs_period_us", "100000\n");
	ok(says(0, 0), "version 1: no limits");
	put_file("sys/fs/cgroup/memory/docker/0123/memory.limit_in_bytes", "134217728\n");
	put_file("sys/fs/cgroup/cpu/docker/0123/cpu.cfs_quota_us", "50000\n");
	ok(says(128 * MIB, 1), "version 1: limits");

	plant();
	put_file("proc/self/cgroup", "5:memory:/docker/4567\n4:cpuacct,cpu:/docker/4567\n");
	put_file("sys/fs/cgroup/memory/memory.limit_in_bytes", "20971520\n");
	put_file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
	put_file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
	ok(says(20 * MIB, 1), "version 1: in a container that knows its name outside but has its own tree mounted");

	plant();
	put_file("proc/self/cgroup", "4:memory:/\n0::/user.slice\n");
	put_file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put_file("sys/fs/cgroup/unified/user.slice/memory.max", "29360128\n");
	ok(says(28 * MIB, 0), "both versions at once");

	plant();
	put_file("proc/self/cgroup", "nonsense\n\n0:\n7:memory\n0::/\n");
	put_file("sys/fs/cgroup/memory.max", "lots\n");
	put_file("sys/fs/cgroup/cpu.max", "0 0\n");
	ok(says(0, 0), "nonsense is no limit");
	return done_testing();
}
