/*-------------------------------------------------------------------------
 *
 * patience.c
 *	  How long a sort waits in the queue.
 *
 * As long as it is worth: a multiple of what PostgreSQL's own sort of the rows would
 * take.  Were those refused that wait, they would all be sorted at once, on the processors
 * that there are; so where more wait than these are, they wait longer.  Of its own role's,
 * so that no other role's crowd makes anybody wait.
 *
 *-------------------------------------------------------------------------
 */
#include "service/session/patience.h"
#include "service/session/session_state.h"

#define WAIT_LEAST_MS 10

/* What a comparison of two rows takes PostgreSQL, as planned ("comparison" in src/plan/model/constants.c). */
#define COMPARISON_MS 25e-6

/* About how many milliseconds PostgreSQL's own sort of the session's rows would take, on a processor of its own. */
static double
native_ms(const GpuSortRequest *request)
{
	double comparisons = 1; /* for each row */

	for (uint64_t rows = request->estimated_rows; rows > 1 && request->limit == 0; rows /= 2)
		comparisons++;
	return (double) request->estimated_rows * comparisons * COMPARISON_MS;
}

/* Milliseconds that a session which is about to enter the queue waits there at most. */
double
gpusort_session_patience(const GpuSortSession *session)
{
	const GpuSortSessions *sessions = session->sessions;
	double patience = GPUSORT_QUEUE_NATIVE_TIMES * native_ms(&session->request);
	int waiting = 1; /* this one too */
	const GpuSortSession *other;

	TAILQ_FOREACH(other, &sessions->queue, neighbours)
	{
		waiting += other->state == STATE_QUEUED && other->request.role == session->request.role;
	}
	if (waiting > sessions->cpus)
		patience *= (double) waiting / sessions->cpus;
	if (patience > GPUSORT_QUEUE_WAIT_MS || session->request.estimated_rows == 0)
		return GPUSORT_QUEUE_WAIT_MS;
	return patience > WAIT_LEAST_MS ? patience : WAIT_LEAST_MS;
}
