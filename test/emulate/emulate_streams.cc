/*-------------------------------------------------------------------------
 *
 * emulate_streams.cc
 *	  Streams and events, and copies in their order: work waits until somebody does, or is
 *	  done at once, by chance.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <set>
#include <vector>

#include "emulate.h"

struct EmulatedStream
{
	std::vector<std::function<void()>> work; /* not run yet */
	uint64_t first;                          /* number of work[0] since the stream's start */
};

struct EmulatedEvent
{
	cudaStream_t stream;
	uint64_t end; /* all work below this number has run when the event has happened */
};

/* All streams that this thread made. */
static thread_local std::set<EmulatedStream *> streams;

static void
run_until(cudaStream_t stream, uint64_t end)
{
	while (stream != NULL && stream->first < end)
	{
		std::function<void()> next = stream->work.front();

		stream->work.erase(stream->work.begin());
		stream->first++;
		next();
	}
}

static bool
random_bit()
{
	static thread_local unsigned int state = (unsigned int) time(NULL);

	return rand_r(&state) >> 8 & 1;
}

void
emulate_append(cudaStream_t stream, std::function<void()> work)
{
	if (emulate_call_fails())
		emulate_spoilt = true;
	if (emulate_spoilt)
		return;
	if (stream == NULL)
	{
		work();
		return;
	}
	stream->work.push_back(work);
	if (random_bit())
		run_until(stream, stream->first + stream->work.size());
}

cudaError_t
cudaStreamCreate(cudaStream_t *stream)
{
	return cudaStreamCreateWithFlags(stream, 0);
}

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int)
{
	if (emulate_plain_call() != cudaSuccess)
		return cudaErrorLaunchFailure;
	*stream = new EmulatedStream();
	streams.insert(*stream);
	return cudaSuccess;
}

cudaError_t
cudaStreamDestroy(cudaStream_t stream)
{
	streams.erase(stream);
	delete stream;
	return cudaSuccess;
}

cudaError_t
cudaStreamQuery(cudaStream_t)
{
	return emulate_spoilt ? cudaErrorLaunchFailure : cudaSuccess;
}

cudaError_t
cudaStreamSynchronize(cudaStream_t stream)
{
	if (stream == NULL)
		return emulate_plain_call();
	if (emulate_spoilt)
		stream->work.clear();
	run_until(stream, stream->first + stream->work.size());
	return emulate_plain_call();
}

cudaError_t
cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int)
{
	EmulatedEvent now = *event;

	emulate_append(stream, [now]()
				   { run_until(now.stream, now.end); });
	return emulate_plain_call();
}

cudaError_t
cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, 0);
}

cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int)
{
	if (emulate_plain_call() != cudaSuccess)
		return cudaErrorLaunchFailure;
	*event = new EmulatedEvent();
	return cudaSuccess;
}

cudaError_t
cudaEventDestroy(cudaEvent_t event)
{
	delete event;
	return cudaSuccess;
}

cudaError_t
cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	event->stream = stream;
	event->end = stream != NULL ? stream->first + stream->work.size() : 0;
	return emulate_plain_call();
}

/*
 * An event nobody sleeps for never happens by itself.  Not counted as a call: how often it is
 * made depends on the clock.
 */
cudaError_t
cudaEventQuery(cudaEvent_t event)
{
	if (emulate_spoilt)
		return cudaErrorLaunchFailure;
	return event->stream == NULL || event->stream->first >= event->end ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t
cudaEventSynchronize(cudaEvent_t event)
{
	if (emulate_plain_call() != cudaSuccess)
		return cudaErrorLaunchFailure;
	run_until(event->stream, event->end);
	return cudaSuccess;
}

cudaError_t
cudaEventElapsedTime(float *ms, cudaEvent_t begun, cudaEvent_t ended)
{
	if ((begun->stream != NULL && begun->stream->first < begun->end) ||
		(ended->stream != NULL && ended->stream->first < ended->end))
	{
		fprintf(stderr, "times of events that have not happened\n");
		abort();
	}
	*ms = 0;
	return emulate_plain_call();
}

cudaError_t
cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t stream)
{
	emulate_append(stream, [=]()
				   { memcpy(to, from, bytes); });
	return emulate_plain_call();
}

cudaError_t
cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
	emulate_append(stream, [=]()
				   { memset(to, value, bytes); });
	return emulate_plain_call();
}

cudaError_t
cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
	if (!emulate_spoilt)
		memcpy(to, from, bytes);
	return emulate_plain_call();
}

cudaError_t
cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t bytes, cudaStream_t stream)
{
	return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}

cudaError_t
cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
				  cudaMemcpyKind, cudaStream_t stream)
{
	emulate_append(stream, [=]()
				   {
		for (size_t i = 0; i < height; i++)
			memcpy((char *) to + i * to_pitch, (const char *) from + i * from_pitch, width); });
	return emulate_plain_call();
}

cudaError_t
cudaMemset(void *to, int value, size_t bytes)
{
	if (!emulate_spoilt)
		memset(to, value, bytes);
	return emulate_plain_call();
}

/* Runs what every stream of this thread has. */
cudaError_t
cudaDeviceSynchronize()
{
	for (EmulatedStream *stream : streams)
		run_until(stream, stream->first + stream->work.size());
	return emulate_plain_call();
}
