/*-------------------------------------------------------------------------
 *
 * registry.c
 *	  The engines the service has, and which one a sort gets.
 *
 * The host engine is built in and always open.  The cuda engine is a library
 * that is loaded if it can be; whatever is missing for it, from the library to
 * a device, is one line in the log and no error: the host engine serves then.
 *
 * open and close are called once each, by the main thread.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/build.h"
#include "service/machine/machine.h"
#include "service/registry.h"
#include "service/service_log.h"

/* The registry: written by open and close alone. */
static GpuSortEngineHandle host;
static GpuSortEngineHandle cuda;
static int host_threads;

/* The cuda engine's library beside this program's own file. */
static bool
default_library(char *path, size_t size)
{
	char *slash;
	ssize_t length = readlink("/proc/self/exe", path, size - 1);

	if (length <= 0)
		return false;
	path[length] = '\0';
	slash = strrchr(path, '/');
	if (slash == NULL || slash + 1 + sizeof(GPUSORT_CUDA_ENGINE_FILE) > path + size)
		return false;
	strcpy(slash + 1, GPUSORT_CUDA_ENGINE_FILE);
	return true;
}

/* Loads and opens the cuda engine, or logs why not. */
static void
open_cuda(const GpuSortRegistryConfig *config)
{
	GpuSortEngineConfig engine_config = {
		.devices = config->devices,
		.memory_limit = config->device_memory,
		.pool = config->pool,
		.pool_bytes = config->pool_bytes,
	};
	GpuSortError error = {.reason = GPUSORT_REASON_NONE};
	const GpuSortEngineOps *ops;
	const char *path = config->cuda_library;
	char buffer[PATH_MAX];
	void *library;

	if (path == NULL)
	{
		if (!default_library(buffer, sizeof(buffer)))
		{
			gpusort_log(false, "no cuda engine: cannot tell where this program is");
			return;
		}
		path = buffer;
	}
	if (access(path, F_OK) != 0)
	{
		gpusort_log(false, "no GPU engine, sorting on CPU cores: %s is not installed", path);
		return;
	}
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
	{
		gpusort_log(false, "no GPU engine, sorting on CPU cores: %s", dlerror());
		return;
	}
	ops = dlsym(library, GPUSORT_CUDA_ENGINE_SYMBOL);
	if (ops == NULL)
		gpusort_log(true, "no GPU engine, sorting on CPU cores: %s does not export %s", path,
					GPUSORT_CUDA_ENGINE_SYMBOL);
	else if (ops->abi != GPUSORT_ENGINE_ABI || ops->kind != GPUSORT_ENGINE_CUDA)
		gpusort_log(true, "no GPU engine, sorting on CPU cores: %s is of another version (%u, not %u)",
					path, ops->abi, GPUSORT_ENGINE_ABI);
	else if (ops->build != gpusort_service_build)
		gpusort_log(true, "no GPU engine, sorting on CPU cores: %s is of another build (%016llx, not %016llx)", path,
					(unsigned long long) ops->build, (unsigned long long) gpusort_service_build);
	else if (ops->open(&engine_config, &cuda.engine, &error) != 0)
		gpusort_log(false, "no GPU engine, sorting on CPU cores: %s", error.text);
	else
		cuda.ops = ops;

	/*
	 * There is no dlclose: what a driver has started in this process would not
	 * survive being unmapped.
	 */
}

/* Opens what engines there are; false, after a line in the log, if not even the host engine can be. */
bool
gpusort_registry_open(const GpuSortRegistryConfig *config)
{
	GpuSortEngineConfig host_config = {
		.memory = config->host_memory,
		.threads = config->threads,
		.pool = config->pool,
		.pool_bytes = config->pool_bytes,
	};
	GpuSortError error = {.reason = GPUSORT_REASON_NONE};

	if (host_config.threads <= 0)
		host_config.threads = gpusort_machine()->cpus;
	host_threads = host_config.threads;
	if (gpusort_host_engine.open(&host_config, &host.engine, &error) != 0)
	{
		gpusort_log(true, "could not open the host engine: %s", error.text);
		return false;
	}
	host.ops = &gpusort_host_engine;
	if (config->kind != GPUSORT_ENGINE_HOST)
		open_cuda(config);
	return true;
}

/* Closes the engines.  No sort may be running. */
void
gpusort_registry_close(void)
{
	if (cuda.ops != NULL)
		cuda.ops->close(cuda.engine);
	if (host.ops != NULL)
		host.ops->close(host.engine);
	cuda.ops = host.ops = NULL;
}

/* The engines that are open, as a bit mask of 1 << GpuSortEngineKind. */
uint32_t
gpusort_registry_mask(void)
{
	return (host.ops ? 1u << GPUSORT_ENGINE_HOST : 0) | (cuda.ops ? 1u << GPUSORT_ENGINE_CUDA : 0);
}

/* The engine for a sort that asks for kind, or NULL if there is none; valid until close. */
const GpuSortEngineHandle *
gpusort_registry_find(GpuSortEngineKind kind)
{
	if (kind == GPUSORT_ENGINE_AUTO)
		kind = cuda.ops != NULL ? GPUSORT_ENGINE_CUDA : GPUSORT_ENGINE_HOST;
	if (kind == GPUSORT_ENGINE_CUDA && cuda.ops != NULL)
		return &cuda;
	if (kind == GPUSORT_ENGINE_HOST && host.ops != NULL)
		return &host;
	return NULL;
}

/* Fills in what READY says about the engines: all but pool_chunks.  message was zeroed. */
void
gpusort_registry_ready(GpuSortMessage *message)
{
	GpuSortDevice devices[GPUSORT_DEVICES_MAX];
	int n;

	message->u.ready.engines = gpusort_registry_mask();
	message->u.ready.threads = host_threads;
	host.ops->describe(host.engine, devices, 1);
	message->u.ready.host_limit = devices[0].memory_limit;
	memcpy(message->u.ready.device, devices[0].name, GPUSORT_NAME_BYTES);
	if (cuda.ops == NULL)
		return;

	n = cuda.ops->describe(cuda.engine, devices, GPUSORT_DEVICES_MAX);
	if (n > GPUSORT_DEVICES_MAX)
		n = GPUSORT_DEVICES_MAX;
	message->u.ready.devices = n;
	for (int i = 0; i < n; i++)
	{
		if (devices[i].sort_limit > message->u.ready.device_limit)
		{
			message->u.ready.device_limit = devices[i].sort_limit;
			memcpy(message->u.ready.device, devices[i].name, GPUSORT_NAME_BYTES);
		}
	}
}
