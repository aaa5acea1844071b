/*-------------------------------------------------------------------------
 *
 * checksum.c
 *	  CRC-32C (Castagnoli), the checksum of what is kept in files.
 *
 * CPUs with SSE 4.2 have an instruction for it.  Elsewhere tables do eight bytes
 * at a time ("slicing by 8", Kounavis and Berry, 2005).
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <string.h>

#include "service/external/checksum.h"

#if defined(__x86_64__) && !defined(GPUSORT_PORTABLE)
#include <immintrin.h>
#define HAVE_SSE42 1
#endif

/* The polynomial, lowest power in the highest bit. */
#define POLYNOMIAL 0x82F63B78u

#define SLICES 8

static pthread_once_t tables_made = PTHREAD_ONCE_INIT;
static uint32_t tables[SLICES][256];

static void
make_tables(void)
{
	for (uint32_t i = 0; i < 256; i++)
	{
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		tables[0][i] = crc;
	}
	for (uint32_t i = 0; i < 256; i++)
	{
		for (int slice = 1; slice < SLICES; slice++)
			tables[slice][i] = tables[slice - 1][i] >> 8 ^ tables[0][tables[slice - 1][i] & 0xFF];
	}
}

/* The CRC-32C of so many bytes, on any CPU. */
uint32_t
gpusort_checksum_by_table(const void *start, size_t bytes)
{
	const uint8_t *at = start;
	uint32_t crc = ~0u;

	pthread_once(&tables_made, make_tables);
	for (; bytes >= SLICES; bytes -= SLICES, at += SLICES)
	{
		uint32_t low = crc ^ ((uint32_t) at[0] | (uint32_t) at[1] << 8 | (uint32_t) at[2] << 16 | (uint32_t) at[3] << 24);

		crc = tables[7][low & 0xFF] ^ tables[6][low >> 8 & 0xFF] ^ tables[5][low >> 16 & 0xFF] ^ tables[4][low >> 24] ^
			tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^ tables[0][at[7]];
	}
	for (; bytes > 0; bytes--)
		crc = crc >> 8 ^ tables[0][(crc ^ *at++) & 0xFF];
	return ~crc;
}

#ifdef HAVE_SSE42
__attribute__((target("sse4.2"))) static uint32_t
checksum_by_instruction(const void *start, size_t bytes)
{
	const char *at = start;
	uint64_t crc = ~0u;

	for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), at += sizeof(uint64_t))
	{
		uint64_t word;

		memcpy(&word, at, sizeof(word));
		crc = _mm_crc32_u64(crc, word);
	}
	for (; bytes > 0; bytes--)
		crc = _mm_crc32_u8((uint32_t) crc, (uint8_t) *at++);
	return ~(uint32_t) crc;
}
#endif

/* The CRC-32C of so many bytes. */
uint32_t
gpusort_checksum(const void *start, size_t bytes)
{
#ifdef HAVE_SSE42
	if (__builtin_cpu_supports("sse4.2"))
		return checksum_by_instruction(start, bytes);
#endif
	return gpusort_checksum_by_table(start, bytes);
}
