/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for the disk; see chain_job.h. */
#include "server/daemon/durable/chain_job.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"
#include "server/daemon/durable/chain_mac.h"
#include "server/daemon/durable/sealed_chain.h"

enum { STACK_BYTES = 256 << 10 };

struct job {
	struct ckt_source source; /* an eventfd that the thread writes to at its end */
	struct job *next;
	struct ckt_loop *loop;
	pthread_t thread;
	bool threaded;
	int parent_fd, dir_fd, image_fd; /* parent_fd -1: a commit; image_fd -1: a drop */
	struct ckt_chain_state state;
	bool clean, foreign;
	bool prepares;                   /* the next state is written, and not the state */
	bool counts;                     /* the next state becomes the state */
	struct ckt_sealed_image *sealed; /* NULL: the files are there */
	int result;
	ckt_chain_job_done done;
	void *context;
};

static struct job *jobs;

static void *run(void *opaque)
{
	struct job *job = opaque;
	if (job->parent_fd >= 0) {
		ckt_chain_remove(job->parent_fd, job->dir_fd, job->state.session);
	} else {
		if (job->sealed)
			job->result = ckt_sealed_image_finish(
				job->sealed, ckt_chain_keys(), job->image_fd);
		if (!job->result && !job->counts &&
			(job->foreign ? syncfs(job->dir_fd) : fsync(job->image_fd)))
			job->result = -errno;
		/* An earlier one, of a group that is no more. */
		if (!job->result && job->foreign && !job->prepares)
			job->result = ckt_chain_next_settle(job->dir_fd, false);
		if (!job->result)
			job->result = job->counts ? ckt_chain_next_settle(job->dir_fd, true)
				: job->prepares   ? ckt_chain_next_write(job->dir_fd, &job->state)
						  : ckt_chain_write(job->dir_fd, &job->state);
		if (!job->result && job->clean && job->prepares)
			ckt_chain_clean_beside(job->dir_fd, job->state.session, &job->state);
		else if (!job->result && job->clean)
			ckt_chain_clean(job->dir_fd, &job->state);
	}
	uint64_t one = 1;
	/* It cannot be full. */
	while (write(job->source.fd, &one, sizeof one) < 0 && errno == EINTR)
		;
	return NULL;
}

static void job_free(struct job *job)
{
	const int fds[] = {job->parent_fd, job->dir_fd, job->image_fd, job->source.fd};
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	ckt_sealed_image_unref(job->sealed);
	free(job);
}

static void finish(struct job *job)
{
	struct job **place = &jobs;
	while (*place != job)
		place = &(*place)->next;
	*place = job->next;
	if (job->threaded)
		pthread_join(job->thread, NULL);
	job->source.fd = ckt_loop_remove(job->loop, &job->source);
	job->done(job->context, job->result);
	job_free(job);
}

static void ended(struct ckt_source *source, uint32_t events)
{
	(void)events;
	finish(CKT_CONTAINER(source, struct job, source));
}

/* Without a thread it is done here. */
static void start(struct job *job)
{
	job->threaded = ckt_thread_start(&job->thread, STACK_BYTES, run, job) == 0;
	if (!job->threaded)
		run(job);
}

static int copy_of(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* The caller's descriptors and wishes; takes over nothing. */
static int begin(struct ckt_loop *loop, const struct job *wanted)
{
	struct job *job = malloc(sizeof *job);
	if (!job)
		return -ENOMEM;
	*job = *wanted;
	job->loop = loop;
	job->parent_fd = copy_of(wanted->parent_fd);
	job->dir_fd = copy_of(wanted->dir_fd);
	job->image_fd = copy_of(wanted->image_fd);
	job->sealed = ckt_sealed_image_ref(wanted->sealed);
	job->source =
		(struct ckt_source){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = ended};
	bool good = job->source.fd >= 0 && job->dir_fd >= 0 &&
		(job->parent_fd >= 0) == (wanted->parent_fd >= 0) &&
		(job->image_fd >= 0) == (wanted->image_fd >= 0);
	int result = good ? ckt_loop_add(loop, &job->source, EPOLLIN) : -EMFILE;
	if (result) {
		job_free(job);
		return result;
	}
	job->next = jobs;
	jobs = job;
	start(job);
	return 0;
}

int ckt_chain_commit(struct ckt_loop *loop, int dir_fd, int image_fd,
	const struct ckt_chain_state *state, bool clean, ckt_chain_job_done done, void *context)
{
	return ckt_chain_commit_sealed(loop, dir_fd, image_fd, state, NULL, clean, done, context);
}

int ckt_chain_commit_sealed(struct ckt_loop *loop, int dir_fd, int image_fd,
	const struct ckt_chain_state *state, struct ckt_sealed_image *sealed, bool clean,
	ckt_chain_job_done done, void *context)
{
	return begin(loop,
		&(struct job){.parent_fd = -1,
			.dir_fd = dir_fd,
			.image_fd = image_fd,
			.state = *state,
			.sealed = sealed,
			.clean = clean,
			.done = done,
			.context = context});
}

int ckt_chain_prepare(struct ckt_loop *loop, int dir_fd, int image_fd,
	const struct ckt_chain_state *state, struct ckt_sealed_image *sealed,
	ckt_chain_job_done done, void *context)
{
	return begin(loop,
		&(struct job){.parent_fd = -1,
			.dir_fd = dir_fd,
			.image_fd = image_fd,
			.state = *state,
			.sealed = sealed,
			.prepares = true,
			.done = done,
			.context = context});
}

int ckt_chain_count(struct ckt_loop *loop, int dir_fd, const struct ckt_chain_state *state,
	ckt_chain_job_done done, void *context)
{
	return begin(loop,
		&(struct job){.parent_fd = -1,
			.dir_fd = dir_fd,
			.image_fd = -1,
			.state = *state,
			.clean = true,
			.counts = true,
			.done = done,
			.context = context});
}

int ckt_chain_commit_foreign(struct ckt_loop *loop, int dir_fd, const struct ckt_chain_state *state,
	ckt_chain_job_done done, void *context)
{
	return begin(loop,
		&(struct job){.parent_fd = -1,
			.dir_fd = dir_fd,
			.image_fd = -1,
			.state = *state,
			.clean = true,
			.foreign = true,
			.prepares = state->member_count != 0,
			.done = done,
			.context = context});
}

int ckt_chain_drop(struct ckt_loop *loop, int parent_fd, int dir_fd, const char *session,
	ckt_chain_job_done done, void *context)
{
	struct job job = {.parent_fd = parent_fd,
		.dir_fd = dir_fd,
		.image_fd = -1,
		.done = done,
		.context = context};
	for (size_t i = 0; i < CKT_SESSION_ID_SIZE && session[i]; i++)
		job.state.session[i] = session[i];
	return begin(loop, &job);
}

void ckt_chain_jobs_finish(void)
{
	while (jobs)
		finish(jobs);
}
