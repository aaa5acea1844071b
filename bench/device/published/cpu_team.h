/*-------------------------------------------------------------------------
 *
 * cpu_team.h
 *	  Threads that sort together on the CPU.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CPU_TEAM_H
#define GPUSORT_CPU_TEAM_H

#include <pthread.h>
#include <stdint.h>

#define GPUSORT_TEAM_MOST 256 /* threads */

typedef struct GpuSortTeam
{
	int threads;
	pthread_barrier_t barrier;
} GpuSortTeam;

typedef void (*GpuSortTeamWork)(GpuSortTeam *team, int thread, void *arg);

/*
 * Runs work(team, thread, arg) with thread = 0, 1, ... team->threads - 1 at once, and returns when all
 * have.  There are `wanted` threads (0: one per core), fewer for few rows or if the system gives no more.
 * The calling thread is number 0.
 */
extern void gpusort_team_run(int wanted, uint32_t rows, GpuSortTeamWork work, void *arg);

static inline void
gpusort_team_wait(GpuSortTeam *team)
{
	(void) pthread_barrier_wait(&team->barrier);
}

/* Where the share of this thread begins; that of the next is where it ends. */
static inline uint64_t
gpusort_team_share(const GpuSortTeam *team, int thread, uint64_t rows)
{
	return rows * (uint64_t) thread / (uint64_t) team->threads;
}

#endif /* GPUSORT_CPU_TEAM_H */
