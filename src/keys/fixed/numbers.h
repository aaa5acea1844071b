/*-------------------------------------------------------------------------
 *
 * numbers.h
 *	  Encodings of up to 64 bits, from GPUSORT_ENCODE_BOOL to TID; for src/keys alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NUMBERS_H
#define GPUSORT_NUMBERS_H

#include "compat.h"

#include <math.h>

#include "keys/bit_writer.h"
#include "keys/types.h"
#include "storage/itemptr.h"
#include "utils/builtins.h"
#include "utils/inet.h"

/* The bits of a float, turned so that they order as PostgreSQL orders floats. */
static inline uint32
gpusort_float4_bits(float4 value)
{
	uint32 bits;

	if (unlikely(isnan(value)))
		return PG_UINT32_MAX;
	value += 0.0f; /* -0 becomes 0 */
	memcpy(&bits, &value, sizeof(bits));
	return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

static inline uint64
gpusort_float8_bits(float8 value)
{
	uint64 bits;

	if (unlikely(isnan(value)))
		return PG_UINT64_MAX;
	value += 0.0;
	memcpy(&bits, &value, sizeof(bits));
	return bits & UINT64CONST(0x8000000000000000) ? ~bits : bits | UINT64CONST(0x8000000000000000);
}

/* The bits of a value of up to 64, as they are for ASC. */
static pg_attribute_always_inline uint64
gpusort_fixed_value(GpuSortEncoding encoding, Datum value)
{
	switch (encoding)
	{
		case GPUSORT_ENCODE_BOOL:
			return DatumGetBool(value);
		case GPUSORT_ENCODE_CHAR:
			return (uint8) DatumGetChar(value);
		case GPUSORT_ENCODE_INT2:
			return (uint16) DatumGetInt16(value) ^ 0x8000;
		case GPUSORT_ENCODE_INT4:
			return (uint32) DatumGetInt32(value) ^ 0x80000000;
		case GPUSORT_ENCODE_INT8:
			return (uint64) DatumGetInt64(value) ^ UINT64CONST(0x8000000000000000);
		case GPUSORT_ENCODE_UINT8:
			return (uint64) DatumGetInt64(value);
		case GPUSORT_ENCODE_OID:
			return DatumGetObjectId(value);
		case GPUSORT_ENCODE_FLOAT4:
			return gpusort_float4_bits(DatumGetFloat4(value));
		case GPUSORT_ENCODE_FLOAT8:
			return gpusort_float8_bits(DatumGetFloat8(value));
		case GPUSORT_ENCODE_INT2_AS_INT4:
			return (uint32) DatumGetInt16(value) ^ 0x80000000;
		case GPUSORT_ENCODE_INT2_AS_INT8:
			return (uint64) DatumGetInt16(value) ^ UINT64CONST(0x8000000000000000);
		case GPUSORT_ENCODE_INT4_AS_INT8:
			return (uint64) DatumGetInt32(value) ^ UINT64CONST(0x8000000000000000);
		case GPUSORT_ENCODE_FLOAT4_AS_FLOAT8:
			return gpusort_float8_bits(DatumGetFloat4(value));
		case GPUSORT_ENCODE_MACADDR:
			return gpusort_load_bytes((const char *) DatumGetMacaddrP(value), sizeof(macaddr)) >> 16;
		case GPUSORT_ENCODE_MACADDR8:
			return gpusort_load_bytes((const char *) DatumGetMacaddr8P(value), sizeof(macaddr8));
		case GPUSORT_ENCODE_TID:
			{
				const ItemPointerData *tid = (const ItemPointerData *) DatumGetPointer(value);

				return (uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16 | ItemPointerGetOffsetNumberNoCheck(tid);
			}
		default:
			pg_unreachable();
	}
}

#endif /* GPUSORT_NUMBERS_H */
