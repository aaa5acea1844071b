/*-------------------------------------------------------------------------
 *
 * checksum.c
 *	  The checksum of what is kept in files, by CRC-32C (Castagnoli).
 *
 * CPUs with SSE 4.2 have an instruction for it.  As each waits for the one before, four of them are
 * under way: a checksum is the CRC of the CRCs of four quarters.  Elsewhere tables do eight bytes at a
 * time ("slicing by 8", Kounavis and Berry, 2005).
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <string.h>

#include "service/external/storage/checksum.h"

#if defined(__x86_64__) && !defined(GPUSORT_PORTABLE)
#include <immintrin.h>
#define HAVE_SSE42 1
#endif

/* The polynomial, lowest power in the highest bit. */
#define POLYNOMIAL 0x82F63B78u

#define SLICES   8
#define QUARTERS 4

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

/* Adds so many bytes to a CRC. */
static uint32_t
add_by_table(uint32_t crc, const uint8_t *at, size_t bytes)
{
	for (; bytes >= SLICES; bytes -= SLICES, at += SLICES)
	{
		uint32_t low = crc ^ ((uint32_t) at[0] | (uint32_t) at[1] << 8 | (uint32_t) at[2] << 16 | (uint32_t) at[3] << 24);

		crc = tables[7][low & 0xFF] ^ tables[6][low >> 8 & 0xFF] ^ tables[5][low >> 16 & 0xFF] ^ tables[4][low >> 24] ^
			tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^ tables[0][at[7]];
	}
	for (; bytes > 0; bytes--)
		crc = crc >> 8 ^ tables[0][(crc ^ *at++) & 0xFF];
	return crc;
}

/* Bytes of each quarter but the last, which has what is left too; 0: there is but one part. */
static size_t
quarter_bytes(size_t bytes)
{
	return bytes / QUARTERS / sizeof(uint64_t) * sizeof(uint64_t);
}

/* gpusort_checksum on any CPU. */
uint32_t
gpusort_checksum_by_table(const void *start, size_t bytes)
{
	const size_t quarter = quarter_bytes(bytes);
	const uint8_t *at = start;
	uint32_t crcs[QUARTERS];

	pthread_once(&tables_made, make_tables);
	if (quarter == 0)
		return ~add_by_table(~0u, at, bytes);
	for (int q = 0; q < QUARTERS; q++)
		crcs[q] = add_by_table(~0u, at + q * quarter, q + 1 < QUARTERS ? quarter : bytes - q * quarter);
	return ~add_by_table(~0u, (const uint8_t *) crcs, sizeof(crcs));
}

#ifdef HAVE_SSE42
static inline uint64_t
load_word(const char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* Adds so many bytes to a CRC. */
__attribute__((target("sse4.2"))) static uint32_t
add_by_instruction(uint64_t crc, const char *at, size_t bytes)
{
	for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), at += sizeof(uint64_t))
		crc = _mm_crc32_u64(crc, load_word(at));
	for (; bytes > 0; bytes--)
		crc = _mm_crc32_u8((uint32_t) crc, (uint8_t) *at++);
	return (uint32_t) crc;
}

__attribute__((target("sse4.2"))) static uint32_t
checksum_by_instruction(const char *start, size_t bytes)
{
	const size_t quarter = quarter_bytes(bytes);
	uint64_t a = ~0u;
	uint64_t b = ~0u;
	uint64_t c = ~0u;
	uint64_t d = ~0u;
	uint32_t crcs[QUARTERS];

	if (quarter == 0)
		return ~add_by_instruction(a, start, bytes);
	for (size_t at = 0; at < quarter; at += sizeof(uint64_t))
	{
		a = _mm_crc32_u64(a, load_word(start + at));
		b = _mm_crc32_u64(b, load_word(start + quarter + at));
		c = _mm_crc32_u64(c, load_word(start + 2 * quarter + at));
		d = _mm_crc32_u64(d, load_word(start + 3 * quarter + at));
	}
	crcs[0] = (uint32_t) a;
	crcs[1] = (uint32_t) b;
	crcs[2] = (uint32_t) c;
	crcs[3] = add_by_instruction(d, start + QUARTERS * quarter, bytes - QUARTERS * quarter);
	return ~add_by_instruction(~0u, (const char *) crcs, sizeof(crcs));
}
#endif

/* The CRC-32C of the CRCs of the quarters of so many bytes; of fewer than 32 their own. */
uint32_t
gpusort_checksum(const void *start, size_t bytes)
{
#ifdef HAVE_SSE42
	if (__builtin_cpu_supports("sse4.2"))
		return checksum_by_instruction(start, bytes);
#endif
	return gpusort_checksum_by_table(start, bytes);
}
