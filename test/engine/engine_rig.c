/*-------------------------------------------------------------------------
 *
 * engine_rig.c
 *	  What engine_test and engine_bench share; see engine_rig.h.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include "engine_rig.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

const char *const rig_keys_names[RIG_KEYS_COUNT] = {
	"random",
	"equal",
	"sorted",
	"reversed",
	"few",
	"high-bit",
	"low-bit",
	"sparse",
	"suffix",
	"extreme",
	"skewed",
};

const GpuSortEngineOps *
rig_engine(const char *name, const char *library)
{
	const GpuSortEngineOps *ops;
	void *handle;

	if (strcmp(name, "host") == 0)
		return &gpusort_host_engine;
	if (strcmp(name, "cuda") != 0 || library == NULL)
	{
		fprintf(stderr, "--engine host, or --engine cuda --library PATH\n");
		exit(2);
	}
	handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL)
	{
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	ops = dlsym(handle, GPUSORT_CUDA_ENGINE_SYMBOL);
	if (ops == NULL || ops->abi != GPUSORT_ENGINE_ABI || ops->kind != GPUSORT_ENGINE_CUDA)
	{
		fprintf(stderr, "%s is no cuda engine of this version\n", library);
		exit(2);
	}
	return ops;
}

void *
rig_symbol(const char *library, const char *name)
{
	void *handle = library != NULL ? dlopen(library, RTLD_NOW | RTLD_LOCAL) : NULL;

	return handle != NULL ? dlsym(handle, name) : NULL;
}

void (*rig_emulate_fail(const char *library))(long call)
{
	void (*found)(long call);

	*(void **) &found = rig_symbol(library, "emulate_fail");
	return found;
}

char *
rig_pool(uint32_t chunks)
{
	char *pool = mmap(NULL, chunks * GPUSORT_CHUNK_BYTES, PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (pool == MAP_FAILED)
	{
		perror("mmap");
		exit(2);
	}
	return pool;
}

uint64_t
rig_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

uint64_t
rig_random_below(uint64_t *state, uint64_t n)
{
	return rig_random(state) % n;
}

void
rig_key(uint64_t *key, uint32_t key_words, RigKeys keys, uint64_t salt, uint64_t row, uint64_t rows)
{
	uint64_t seed = salt * 31 + row;
	uint64_t constant = salt;
	uint32_t last = key_words - 1;

	/* What is not said to vary is the same, but not zero, in all rows. */
	for (uint32_t w = 0; w < key_words; w++)
		key[w] = rig_random(&constant);

	switch (keys)
	{
		case RIG_KEYS_RANDOM:
			for (uint32_t w = 0; w < key_words; w++)
				key[w] = rig_random(&seed);
			break;
		case RIG_KEYS_EQUAL:
			break;
		case RIG_KEYS_SORTED:
			key[last] = row;
			break;
		case RIG_KEYS_REVERSED:
			key[last] = rows - row;
			break;
		case RIG_KEYS_FEW:
			seed = salt + rig_random(&seed) % 12;
			for (uint32_t w = 0; w < key_words; w++)
				key[w] = rig_random(&seed);
			break;
		case RIG_KEYS_HIGH_BIT:
			key[0] ^= rig_random(&seed) << 63;
			break;
		case RIG_KEYS_LOW_BIT:
			key[last] ^= rig_random(&seed) & 1;
			break;
		case RIG_KEYS_SPARSE:
			for (uint32_t w = 0; w < key_words; w++)
				key[w] ^= rig_random(&seed) & rig_random(&constant) & rig_random(&constant) & rig_random(&constant);
			break;
		case RIG_KEYS_SUFFIX:
			key[last] = rig_random(&seed) % (rows / 4 + 1);
			break;
		case RIG_KEYS_EXTREME:
			for (uint32_t w = 0; w < key_words; w++)
				key[w] = rig_random(&seed) & 1 ? ~UINT64_C(0) : 0;
			break;
		case RIG_KEYS_SKEWED:
			key[0] = rig_random(&seed) >> rig_random_below(&seed, 64);
			key[last] ^= rig_random(&seed) % 8;
			break;
		case RIG_KEYS_COUNT:
			break;
	}
}

void
rig_chunk_start(RigChunk *chunk, char *base)
{
	chunk->base = base;
	chunk->rows = 0;
	chunk->bytes = 0;
}

char *
rig_chunk_add(RigChunk *chunk, uint32_t key_words, uint32_t row_bytes)
{
	uint64_t record = 8 * (uint64_t) key_words + GPUSORT_ALIGN8(row_bytes);
	char *at = chunk->base + chunk->bytes;

	if (chunk->bytes + record + (chunk->rows + 1) * sizeof(uint32_t) > GPUSORT_CHUNK_BYTES)
		return NULL;
	*gpusort_chunk_offset(chunk->base, chunk->rows) = chunk->bytes;
	chunk->bytes += record;
	chunk->rows++;
	return at;
}

double
rig_milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}
