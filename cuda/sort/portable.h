/*-------------------------------------------------------------------------
 *
 * portable.h
 *	  Lets kernels and the arithmetic that they rest on (row_ref.h, compact.h,
 *	  tie_flags.h) compile as plain C++ too, so that it is tested where there is no
 *	  device.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PORTABLE_H
#define GPUSORT_PORTABLE_H

#ifdef __CUDACC__
#define GPUSORT_HD     __host__ __device__
#define GPUSORT_INLINE __forceinline__
#else
#define GPUSORT_HD
#define GPUSORT_INLINE inline
#endif

/* All lanes of a warp, as a mask. */
#define GPUSORT_ALL_LANES 0xFFFFFFFFu

/* Before a loop whose arrays are to stay in registers; a host compiler has no such pragma. */
#ifdef __CUDA_ARCH__
#define GPUSORT_UNROLL           _Pragma("unroll")
#define GPUSORT_PRAGMA(text)     _Pragma(#text)
#define GPUSORT_UNROLL_BY(times) GPUSORT_PRAGMA(unroll times) /* and no more */
#else
#define GPUSORT_UNROLL
#define GPUSORT_UNROLL_BY(times)
#endif

#endif /* GPUSORT_PORTABLE_H */
