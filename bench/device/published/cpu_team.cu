/*-------------------------------------------------------------------------
 *
 * cpu_team.cu
 *	  Threads that sort together on the CPU; see cpu_team.h.
 *
 *-------------------------------------------------------------------------
 */
#include "published/cpu_team.h"

#include <unistd.h>

#define LEAST_SHARE 4096 /* rows that are worth a thread */

typedef struct Start
{
	GpuSortTeam team;
	pthread_mutex_t gate; /* held until it is known how many threads there are */
	GpuSortTeamWork work;
	void *arg;
} Start;

typedef struct Member
{
	Start *start;
	pthread_t id;
	int thread;
} Member;

static void *
run_member(void *arg)
{
	Member *member = (Member *) arg;
	Start *start = member->start;

	(void) pthread_mutex_lock(&start->gate);
	(void) pthread_mutex_unlock(&start->gate);
	start->work(&start->team, member->thread, start->arg);
	return NULL;
}

void
gpusort_team_run(int wanted, uint32_t rows, GpuSortTeamWork work, void *arg)
{
	Start start;
	Member members[GPUSORT_TEAM_MOST];
	int count = 1;

	start.work = work;
	start.arg = arg;
	if (wanted <= 0)
		wanted = (int) sysconf(_SC_NPROCESSORS_ONLN);
	if ((uint32_t) wanted > rows / LEAST_SHARE)
		wanted = (int) (rows / LEAST_SHARE);
	if (wanted > GPUSORT_TEAM_MOST)
		wanted = GPUSORT_TEAM_MOST;

	(void) pthread_mutex_init(&start.gate, NULL);
	(void) pthread_mutex_lock(&start.gate);
	for (; count < wanted; count++)
	{
		members[count].start = &start;
		members[count].thread = count;
		if (pthread_create(&members[count].id, NULL, run_member, &members[count]) != 0)
			break;
	}
	start.team.threads = count;
	(void) pthread_barrier_init(&start.team.barrier, NULL, (unsigned int) count);
	(void) pthread_mutex_unlock(&start.gate);

	work(&start.team, 0, arg);
	while (--count > 0)
		(void) pthread_join(members[count].id, NULL);
	(void) pthread_barrier_destroy(&start.team.barrier);
	(void) pthread_mutex_destroy(&start.gate);
}
