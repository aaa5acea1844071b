/*-------------------------------------------------------------------------
 *
 * network.c
 *	  inet and cidr values as numbers that order like them.
 *
 * PostgreSQL (network_cmp_internal) orders addresses of one family,
 * of M bits (32 or 128), by their leading bits,
 * as many as both netmasks have; then by the length b of the netmask;
 * then by all bits of the address A.  N is A without its host bits.
 *
 * A network N/b is a node at depth b of the binary tree of all prefixes, whose
 * two children have one bit more.  The first two rules put a node before all that
 * is below it, and the left child's tree before the right one's: preorder.  The
 * third orders the 2^(M - b) addresses that share the node.  So the position of A/b
 * among all values of the family is the number of those before it:
 *
 *	- on the way down from the root each node at depth d < b comes before, with
 *	  its 2^(M - d) addresses: together 2^(M + 1) - 2^(M + 1 - b), which is twice
 *	  the netmask as a number;
 *	- where N goes right at a node, at the bit of value 2^p, the left child's tree
 *	  comes before: it has depths M - p to M with 2^p values at each, (p + 1) 2^p.
 *	  The sum over the bits p of N is N + W(N), W(N) the sum of their p 2^p;
 *	- at its node A - N values come before.
 *
 *	  position(A/b) = A + W(N) + 2 netmask(b)
 *
 * Different values have different positions, from 0 to (M + 1) 2^M - 1: the encoding
 * is exact, in 38 bits for IPv4 and 136 for IPv6.  With p in binary,
 * p = sum of 2^j p_j, W(N) is the sum over j of (the bits of N that have p_j set)
 * shifted left by j: no loop over bits.  One bit before all that is the family,
 * and IPv4's position stands in the low bits.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/encoders.h"

#include <sys/socket.h>

#include "utils/inet.h"

/* W of 64 bits, of which the first has value 2^0: below 64 * 2^64. */
static inline uint128
weighted_bits(uint64 bits)
{
	return (uint128) (bits & UINT64CONST(0xAAAAAAAAAAAAAAAA)) +
		((uint128) (bits & UINT64CONST(0xCCCCCCCCCCCCCCCC)) << 1) +
		((uint128) (bits & UINT64CONST(0xF0F0F0F0F0F0F0F0)) << 2) +
		((uint128) (bits & UINT64CONST(0xFF00FF00FF00FF00)) << 3) +
		((uint128) (bits & UINT64CONST(0xFFFF0000FFFF0000)) << 4) +
		((uint128) (bits & UINT64CONST(0xFFFFFFFF00000000)) << 5);
}

/* The first bits (of 0 to 64) set. */
static inline uint64
leading_ones(int bits)
{
	return bits <= 0 ? 0 : bits >= 64 ? PG_UINT64_MAX
									  : ~(PG_UINT64_MAX >> bits);
}

static inline uint64
load_big_endian(const unsigned char *bytes, int count)
{
	uint64 value = 0;

	for (int i = 0; i < count; i++)
		value = value << 8 | bytes[i];
	return value;
}

/*
 * Encodes a detoasted (possibly short-headed) inet
 * or cidr in GPUSORT_INET_BITS bits. Always true: exact.
 */
bool
gpusort_inet_encode(void *state, Datum value, GpuSortBits *bits)
{
	inet *address = (inet *) DatumGetPointer(value);
	int mask_bits = ip_bits(address);

	if (ip_family(address) == PGSQL_AF_INET)
	{
		uint64 all = load_big_endian(ip_addr(address), 4);
		uint64 mask = leading_ones(mask_bits) >> 32;

		bits->top = 0;
		bits->high = 0;
		bits->low = all + (uint64) weighted_bits(all & mask) + 2 * mask;
	}
	else
	{
		uint64 top = load_big_endian(ip_addr(address), 8);
		uint64 bottom = load_big_endian(ip_addr(address) + 8, 8);
		uint64 top_mask = leading_ones(mask_bits);
		uint64 bottom_mask = leading_ones(mask_bits - 64);
		uint128 lower = bottom + weighted_bits(bottom & bottom_mask) + 2 * (uint128) bottom_mask;
		uint128 upper = top + weighted_bits(top & top_mask) + 2 * (uint128) top_mask;

		/* The positions of the upper half's bits are 64 more than in that half. */
		upper += (uint128) (top & top_mask) << 6;
		upper += lower >> 64;
		bits->low = (uint64) lower;
		bits->high = (uint64) upper;
		bits->top = (uint64) 1 << 8 | (uint64) (upper >> 64);
	}
	return true;
}
