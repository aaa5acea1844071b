/*-------------------------------------------------------------------------
 *
 * portable.h
 *	  Lets kernels and the arithmetic that they rest on (row_ref.h, compact.h,
 *	  tie_rows.h) compile as plain C++ too, so that it is tested where there is no
 *	  device.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PORTABLE_H
#define GPUSORT_PORTABLE_H

#ifdef __CUDACC__
#define GPUSORT_HD	__host__ __device__
#define GPUSORT_UNROLL	_Pragma("unroll")	/* the loop that follows, so that arrays stay in registers */
#else
#define GPUSORT_HD
#define GPUSORT_UNROLL
#endif

/* Before a loop; g++ has no such pragma. */
#ifdef __CUDACC__
#define GPUSORT_UNROLL	_Pragma("unroll")
#else
#define GPUSORT_UNROLL
#endif

#endif							/* GPUSORT_PORTABLE_H */
