/*-------------------------------------------------------------------------
 *
 * tsquery.c
 *	  tsquery as bytes that order as tsquery_cmp does.
 *
 * It compares numbers of items, then sizes in bytes, then the trees of operators and words from their roots, the left
 * branch before the right one: an operator is before a word, and of two operators or words the one that has the
 * greater number is.  Weights and prefix matches (a:A, a:*) do not count.  So a value is
 *
 *	  4 bytes	the number of items
 *	  4 bytes	its size
 *
 * and then the tree, of each item
 *
 *	  1 byte	what it is, and if it is an operator which one, inverted
 *	  of a word	4 bytes for its checksum, a number with a sign, inverted; its bytes, of which none is zero; a zero byte
 *	  else		its branches, one of NOT and two of others, and behind those of a phrase 2 bytes for the distance, inverted
 *
 *-------------------------------------------------------------------------
 */
#include "keys/encoders.h"

#include "keys/bytes/parts.h"
#include "miscadmin.h"
#include "tsearch/ts_type.h"

/* Adds an item and what is below it.  Returns false if there was no room for all. */
static bool
put_item(GpuSortByteWriter *to, const QueryItem *item, const char *words)
{
	const QueryOperator *op = &item->qoperator;
	const QueryOperand *word = &item->qoperand;

	check_stack_depth();
	if (item->type == QI_VAL)
		return gpusort_put_number(to, (uint8) ~(QI_VAL << 4), 1) &&
			gpusort_put_number(to, (uint32) (PG_INT32_MAX - (int64) word->valcrc), 4) &&
			gpusort_put_data(to, words + word->distance, word->length) && gpusort_put_number(to, 0, 1);
	return gpusort_put_number(to, (uint8) ~(QI_OPR << 4 | op->oper), 1) && put_item(to, item + 1, words) &&
		(op->oper == OP_NOT || put_item(to, item + op->left, words)) &&
		(op->oper != OP_PHRASE || gpusort_put_number(to, (uint16) (PG_INT16_MAX - op->distance), 2));
}

/* A GpuSortBytesEncoder. */
int
gpusort_tsquery_bytes(const GpuSortKeyType *type, void *state, Datum value, char *bytes, int room, bool *whole)
{
	GpuSortByteWriter to = {.next = bytes, .end = bytes + room};
	GpuSortShortVarlena copy;
	TSQuery query = (TSQuery) gpusort_flatten(value, &copy);

	*whole = gpusort_put_number(&to, query->size, 4) && gpusort_put_number(&to, VARSIZE(query), 4) &&
		(query->size == 0 || put_item(&to, GETQUERY(query), GETOPERAND(query)));
	return to.next - bytes;
}
