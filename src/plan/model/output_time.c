/*-------------------------------------------------------------------------
 *
 * output_time.c
 *	  How long it takes to form rows for a client, or for a file that COPY writes.
 *
 * A row is taken apart, and each value goes through its type's output function and into the message.  In text and
 * binary that takes about the same time.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/model/output_time.h"

#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "plan/model/constants.h"

/* What a value of a type takes, of those of a common one that takes less or more than most: ns. */
typedef struct TypeTime
{
	Oid type;
	double time;
} TypeTime;

/* Processor time on the host of the constants' last line */
static const TypeTime type_times[] = {
	{BOOLOID, 25},
	{TEXTOID, 26},
	{VARCHAROID, 26},
	{INT4OID, 45},
	{INT8OID, 44},
	{FLOAT8OID, 67},
	{TIMESTAMPOID, 74},
	{TIMESTAMPTZOID, 128},
	{UUIDOID, 161},
	{JSONBOID, 348},
	{INT4ARRAYOID, 116},
	{TEXTARRAYOID, 200},
};

static double
value_time(Oid type)
{
	for (int i = 0; i < lengthof(type_times); i++)
	{
		if (type_times[i].type == type)
			return type_times[i].time;
	}
	return gpusort_constant(GPUSORT_TIME_OUTPUT_VALUE, false);
}

/* Returns what forming so many rows with these columns takes one process, in ns. */
double
gpusort_output_time(const PathTarget *target, double rows)
{
	double time = gpusort_constant(GPUSORT_TIME_OUTPUT_ROW, false);
	ListCell *cell;

	foreach(cell, target->exprs)
		time += value_time(exprType(lfirst(cell)));
	return time * rows;
}
