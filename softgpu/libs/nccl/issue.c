/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts work on streams.
 *
 * The operations of a group for one communicator are one function on the first operation's stream.
 * The group's other streams and that stream wait for each other.  As in NCCL, a communicator's
 * operations run in the order of their calls, even on different streams.  Otherwise, two ranks
 * could start them in different orders and deadlock.
 */
#include "softgpu/libs/nccl/issue.h"

#include "softgpu/libs/common/driver.h"

/* Where work goes.  Events of captured work are valid only in that capture. */
struct place {
	bool captured;
	unsigned long long capture;
};

static CUresult make_event(const struct ckt_softlib_driver *d, CUevent *event)
{
	return *event ? CUDA_SUCCESS : d->event_create(event, CU_EVENT_DISABLE_TIMING);
}

/* Makes `stream` wait for the present work of `before`. */
static CUresult join(
	const struct ckt_softlib_driver *d, CUevent event, CUstream before, CUstream stream)
{
	CUresult result = d->event_record(event, before);
	return result == CUDA_SUCCESS ? d->stream_wait_event(stream, event, 0) : result;
}

static bool is_first(const CUstream *streams, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (streams[k] == streams[i])
			return false;
	return true;
}

/* Counts the work before it can run; a graph's work is not counted. */
static CUresult queue(struct ncclComm *comm, CUstream stream, const struct ckt_work *work)
{
	size_t counts = !work->captured;
	pthread_mutex_lock(&comm->lock);
	comm->pending += counts;
	pthread_mutex_unlock(&comm->lock);
	CUresult result = ckt_softlib_enqueue(stream, ckt_soft_nccl_run_work, work,
		sizeof *work + work->count * sizeof *work->ops);
	if (result != CUDA_SUCCESS) {
		pthread_mutex_lock(&comm->lock);
		comm->pending -= counts;
		pthread_mutex_unlock(&comm->lock);
	}
	return result;
}

/* Precondition: comm->issue is locked, and its context is current. */
static CUresult put(struct ncclComm *comm, struct ckt_work *work, const CUstream *streams,
	const struct place *place)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	CUevent *after = place->captured ? &comm->after_captured : &comm->after;
	CUstream stream = streams[0];
	CUresult result = make_event(d, after);
	bool known = place->captured ? comm->capture == place->capture
				     : *after && comm->stream != stream;
	if (result == CUDA_SUCCESS && known)
		result = d->stream_wait_event(stream, *after, 0);
	for (size_t i = 1; i < work->count && result == CUDA_SUCCESS; i++)
		if (is_first(streams, i))
			result = join(d, *after, streams[i], stream);
	if (result == CUDA_SUCCESS)
		result = queue(comm, stream, work);
	if (result == CUDA_SUCCESS)
		result = d->event_record(*after, stream);
	for (size_t i = 1; i < work->count && result == CUDA_SUCCESS; i++)
		if (is_first(streams, i))
			result = d->stream_wait_event(streams[i], *after, 0);
	if (place->captured)
		comm->capture = place->capture;
	else
		comm->stream = stream;
	return result;
}

static CUresult where(const struct ckt_softlib_driver *d, CUstream stream, struct place *ret_place)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	cuuint64_t number = 0;
	CUresult result = d->stream_capture_info(stream, &status, &number, NULL, NULL, NULL);
	*ret_place = (struct place){
		.captured = status == CU_STREAM_CAPTURE_STATUS_ACTIVE, .capture = number};
	return result;
}

ncclResult_t ckt_soft_nccl_issue(
	struct ncclComm *comm, struct ckt_work *work, const CUstream *streams)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	CUcontext before = NULL;
	struct place place;
	if (!d)
		return ncclUnhandledCudaError;
	pthread_mutex_lock(&comm->issue);
	CUresult result = d->ctx_get_current(&before);
	if (result == CUDA_SUCCESS)
		result = d->ctx_set_current(comm->context);
	if (result == CUDA_SUCCESS)
		result = where(d, streams[0], &place);
	if (result == CUDA_SUCCESS) {
		work->comm = comm->number;
		work->captured = place.captured;
		result = put(comm, work, streams, &place);
	}
	d->ctx_set_current(before);
	pthread_mutex_unlock(&comm->issue);
	if (result != CUDA_SUCCESS)
		ckt_soft_nccl_comm_say(
			"the driver refused work on a stream: CUresult %d", (int)result);
	return result == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}

void ckt_soft_nccl_issue_end(struct ncclComm *comm)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	CUcontext before = NULL;
	if (!d || d->ctx_get_current(&before) != CUDA_SUCCESS ||
		d->ctx_set_current(comm->context) != CUDA_SUCCESS)
		return;
	pthread_mutex_lock(&comm->issue);
	CUevent *const events[] = {&comm->after, &comm->after_captured};
	for (int i = 0; i < 2; i++) {
		if (*events[i])
			d->event_destroy(*events[i]);
		*events[i] = NULL;
	}
	pthread_mutex_unlock(&comm->issue);
	d->ctx_set_current(before);
}
