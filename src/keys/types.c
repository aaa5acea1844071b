/*-------------------------------------------------------------------------
 *
 * types.c
 *	  What each encoding is.
 *
 * Which one values have is in orders.c.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/types.h"

#include "keys/encoders.h"
#include "keys/fixed/inline_encoders.h"
#include "keys/fixed/numeric.h"

/*
 * The encodings.  What a new type takes:
 *
 *	  - if its values are encoded as another type's are, a row in orders (orders.c);
 *	  - else a name in GpuSortEncoding (types.h), a row here, one in orders, and an
 *		encoder: a function declared in encoders.h, in a file of its own, and named in the
 *		row.  If it must not cost a call, it is in inline_encoders.h and gets a case in
 *		gpusort_keys_encode, or, as a number of up to 64 bits, is a case of gpusort_fixed_value
 *		alone (numbers.h).  What has no fixed number of bits has an encoder of the
 *		other form, bytes, and the case of its like in gpusort_keys_encode;
 *	  - its line in doc/types.md, and its values in test/sql/types.sql.
 *
 * All else, such as the layout of keys, what a tie needs,
 * samples and costs, follows from the row.
 */
const GpuSortKeyType gpusort_key_types[GPUSORT_ENCODE_Count] = {
	[GPUSORT_ENCODE_BOOL] = {.bits = 1},
	[GPUSORT_ENCODE_CHAR] = {.bits = 8},
	[GPUSORT_ENCODE_INT2] = {.bits = 16},
	[GPUSORT_ENCODE_INT4] = {.bits = 32},
	[GPUSORT_ENCODE_INT8] = {.bits = 64},
	[GPUSORT_ENCODE_UINT8] = {.bits = 64},
	[GPUSORT_ENCODE_OID] = {.bits = 32},
	[GPUSORT_ENCODE_FLOAT4] = {.bits = 32},
	[GPUSORT_ENCODE_FLOAT8] = {.bits = 64},
	[GPUSORT_ENCODE_INT2_AS_INT4] = {.bits = 32, .as = GPUSORT_ENCODE_INT4},
	[GPUSORT_ENCODE_INT2_AS_INT8] = {.bits = 64, .as = GPUSORT_ENCODE_INT8},
	[GPUSORT_ENCODE_INT4_AS_INT8] = {.bits = 64, .as = GPUSORT_ENCODE_INT8},
	[GPUSORT_ENCODE_FLOAT4_AS_FLOAT8] = {.bits = 64, .as = GPUSORT_ENCODE_FLOAT8},
	[GPUSORT_ENCODE_MACADDR] = {.bits = 48},
	[GPUSORT_ENCODE_MACADDR8] = {.bits = 64},
	[GPUSORT_ENCODE_TID] = {.bits = 48},
	[GPUSORT_ENCODE_UUID] = {.bits = GPUSORT_UUID_BITS, .encode = gpusort_uuid_encode},
	[GPUSORT_ENCODE_INTERVAL] = {.bits = GPUSORT_INTERVAL_BITS, .encode = gpusort_interval_encode},
	[GPUSORT_ENCODE_TIMETZ] = {.bits = GPUSORT_TIMETZ_BITS, .encode = gpusort_timetz_encode},
	[GPUSORT_ENCODE_INET] = {.bits = GPUSORT_INET_BITS, .encode = gpusort_inet_encode, .detoast = true},
	[GPUSORT_ENCODE_NUMERIC] = {
		.bits = GPUSORT_NUMERIC_BITS(GPUSORT_NUMERIC_DIGITS),
		.truncates = true,
		.encode = gpusort_numeric_encode,
		.detoast = true,
		.bytes = gpusort_numeric_bytes,
	},
	[GPUSORT_ENCODE_ENUM] = {
		.bits = GPUSORT_ENUM_BITS,
		.truncates = true, /* values that are newer than the query's snapshot */
		.encode = gpusort_enum_encode,
		.create = gpusort_enum_create,
	},
	[GPUSORT_ENCODE_TEXT] = {
		.truncates = true,
		.bytes = gpusort_own_bytes,
		.string = GPUSORT_STRING_BYTES,
		.under_icu = GPUSORT_ENCODE_ICU_TEXT,
		.under_libc = GPUSORT_ENCODE_LIBC_TEXT,
	},
	[GPUSORT_ENCODE_BPCHAR] = {
		.truncates = true,
		.bytes = gpusort_own_bytes,
		.string = GPUSORT_STRING_PADDED,
		.under_icu = GPUSORT_ENCODE_ICU_BPCHAR,
		.under_libc = GPUSORT_ENCODE_LIBC_BPCHAR,
	},
	[GPUSORT_ENCODE_BYTEA] = {.truncates = true, .bytes = gpusort_own_bytes, .string = GPUSORT_STRING_BYTES},
	[GPUSORT_ENCODE_NAME] = {
		.truncates = true,
		.bytes = gpusort_own_bytes,
		.string = GPUSORT_STRING_NAME,
		.under_icu = GPUSORT_ENCODE_ICU_NAME,
		.under_libc = GPUSORT_ENCODE_LIBC_NAME,
	},
	[GPUSORT_ENCODE_BIT] = {.truncates = true, .bytes = gpusort_own_bytes, .string = GPUSORT_STRING_BITS},
	[GPUSORT_ENCODE_ICU_TEXT] = {
		.truncates = true,
		.create = gpusort_icu_create,
		.bytes = gpusort_icu_string_bytes,
		.string = GPUSORT_STRING_BYTES,
		.source = GPUSORT_SOURCE_ICU,
	},
	[GPUSORT_ENCODE_ICU_BPCHAR] = {
		.truncates = true,
		.create = gpusort_icu_create,
		.bytes = gpusort_icu_string_bytes,
		.string = GPUSORT_STRING_PADDED,
		.source = GPUSORT_SOURCE_ICU,
	},
	[GPUSORT_ENCODE_ICU_NAME] = {
		.truncates = true,
		.create = gpusort_icu_create,
		.bytes = gpusort_icu_string_bytes,
		.string = GPUSORT_STRING_NAME,
		.source = GPUSORT_SOURCE_ICU,
	},
	[GPUSORT_ENCODE_LIBC_TEXT] = {
		.truncates = true,
		.create = gpusort_libc_create,
		.bytes = gpusort_libc_string_bytes,
		.string = GPUSORT_STRING_BYTES,
		.source = GPUSORT_SOURCE_LIBC,
	},
	[GPUSORT_ENCODE_LIBC_BPCHAR] = {
		.truncates = true,
		.create = gpusort_libc_create,
		.bytes = gpusort_libc_string_bytes,
		.string = GPUSORT_STRING_PADDED,
		.source = GPUSORT_SOURCE_LIBC,
	},
	[GPUSORT_ENCODE_LIBC_NAME] = {
		.truncates = true,
		.create = gpusort_libc_create,
		.bytes = gpusort_libc_string_bytes,
		.string = GPUSORT_STRING_NAME,
		.source = GPUSORT_SOURCE_LIBC,
	},
	[GPUSORT_ENCODE_ARRAY] = {
		.truncates = true,
		.create = gpusort_array_create,
		.bytes = gpusort_array_bytes,
		.string = GPUSORT_STRING_BYTES,
		.source = GPUSORT_SOURCE_PARTS,
		.parts = gpusort_array_parts,
	},
	[GPUSORT_ENCODE_RANGE] = {
		.truncates = true,
		.create = gpusort_range_create,
		.bytes = gpusort_range_bytes,
		.string = GPUSORT_STRING_BYTES,
		.source = GPUSORT_SOURCE_PARTS,
		.parts = gpusort_range_parts,
	},
	[GPUSORT_ENCODE_MULTIRANGE] = {
		.truncates = true,
		.create = gpusort_multirange_create,
		.bytes = gpusort_multirange_bytes,
		.string = GPUSORT_STRING_BYTES,
		.source = GPUSORT_SOURCE_PARTS,
		.parts = gpusort_multirange_parts,
	},
	[GPUSORT_ENCODE_RECORD] = {
		.truncates = true,
		.create = gpusort_record_create,
		.bytes = gpusort_record_bytes,
		.string = GPUSORT_STRING_BYTES,
		.source = GPUSORT_SOURCE_PARTS,
		.parts = gpusort_record_parts,
	},
	[GPUSORT_ENCODE_JSONB] = {
		.truncates = true,
		.create = gpusort_jsonb_create,
		.bytes = gpusort_jsonb_bytes,
		.string = GPUSORT_STRING_BYTES,
		.source = GPUSORT_SOURCE_PARTS,
		.parts = gpusort_jsonb_parts,
	},
	[GPUSORT_ENCODE_TSVECTOR] = {
		.truncates = true,
		.bytes = gpusort_tsvector_bytes,
		.string = GPUSORT_STRING_BYTES,
		.source = GPUSORT_SOURCE_PARTS,
	},
	[GPUSORT_ENCODE_TSQUERY] = {
		.truncates = true,
		.bytes = gpusort_tsquery_bytes,
		.string = GPUSORT_STRING_BYTES,
		.source = GPUSORT_SOURCE_PARTS,
	},
	[GPUSORT_ENCODE_ABBREVIATION] = {
		.truncates = true,
		.create = gpusort_abbreviation_create,
		.bytes = gpusort_abbreviation_bytes,
		.string = GPUSORT_STRING_BYTES,
		.source = GPUSORT_SOURCE_ABBREVIATION,
	},
};
