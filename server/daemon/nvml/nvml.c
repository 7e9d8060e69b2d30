/* SPDX-License-Identifier: Apache-2.0 */
/* See nvml.h. */
#include "server/daemon/nvml/nvml.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/daemon/policy/ask.h"
#include "base/log.h"

enum {
	ANSWER_MS = 3000, /* well below the client's time limit */
	/* NVML starts slowly if the driver keeps nothing ready: seconds for each GPU */
	HUNG_MS = 60000,
	AGAIN_MS = 10000,  /* wait before a reader that ended is started again */
	ABSENT_MS = 60000, /* wait after one that found no NVML: a driver may be loaded later */
	WORKER_MS = 1000,
};

const char *ckt_nvml_library;

/* answer: NULL if none came in time. */
struct question {
	struct question *next;
	struct ckt_reader_question asked;
	struct ckt_peer *peer; /* held; NULL once it was told about the timeout */
	void (*done)(struct ckt_peer *peer, struct question *question,
		const struct ckt_reader_answer *answer);
	/* the server's own question; NULL once it was told */
	ckt_nvml_heard *heard;
	struct ckt_server *server;
	struct ckt_timer timer;
	unsigned gpu;
};

/* Of a server. */
struct ckt_nvml {
	struct ckt_server *server;
	struct ckt_source source;       /* fd -1: no reader runs */
	pid_t pid;                      /* 0: none is left */
	int64_t again_ms;               /* when one may be started again */
	bool absent;                    /* it reported that there is no NVML */
	struct question *first, **last; /* the reader has the first question */
	struct ckt_timer hung;
	struct ckt_reader_answer answer;
};

static void name_gpu(const struct ckt_driver_gpu *gpu, struct ckt_reader_gpu *ret)
{
	snprintf(ret->pci_bus_id, sizeof ret->pci_bus_id, "%s", gpu->pci_bus_id);
	ckt_driver_uuid_text(gpu, ret->uuid);
}

static struct ckt_share share_of(const struct ckt_peer *peer)
{
	struct ckt_share share;
	ckt_ask_share_of_peer(peer, &share);
	return share;
}

/* Whether that peer's sessions get that GPU. */
static bool given(const struct ckt_peer *peer, u_int gpu)
{
	const struct ckt_share share = share_of(peer);
	for (u_int i = 0; i < share.gpu_count; i++)
		if (share.gpus[i] == gpu)
			return gpu < peer->server->driver.gpu_count;
	return false;
}

/* The smallest of the GPU's memory and the limits of the peer's sessions; what is left of these. */
static uint64_t limited(
	const struct ckt_peer *peer, unsigned gpu, uint64_t bytes, uint64_t *ret_left)
{
	uint64_t limit = share_of(peer).device_memory_bytes, total;
	ckt_ask_memory_of_peer(peer, gpu, &total, ret_left);
	if (limit && limit < total)
		total = limit;
	return total < bytes ? total : bytes;
}

/* ---- The reader */

static void ask_next(struct ckt_nvml *nvml);

static void question_done(struct question *question, const struct ckt_reader_answer *answer)
{
	struct ckt_peer *peer = question->peer;
	ckt_nvml_heard *heard = question->heard;
	question->peer = NULL;
	question->heard = NULL;
	ckt_timer_clear(&question->timer);
	if (heard)
		heard(question->server, question->gpu, answer);
	if (peer && ckt_peer_release(peer))
		question->done(peer, question, answer);
}

/*
 * A process that hangs in the driver does not end even when it is killed: the server neither waits
 * for it nor starts another one beside it.
 */
static bool reap(struct ckt_nvml *nvml)
{
	if (nvml->pid && waitpid(nvml->pid, NULL, WNOHANG) != 0)
		nvml->pid = 0;
	return nvml->pid == 0;
}

static void reader_end(struct ckt_nvml *nvml)
{
	int fd = nvml->source.fd < 0 ? -1 : ckt_loop_remove(&nvml->server->loop, &nvml->source);
	ckt_timer_clear(&nvml->hung);
	if (fd < 0)
		return;
	close(fd);
	kill(nvml->pid, SIGKILL);
	reap(nvml);
	nvml->again_ms = ckt_net_now_ms() + (nvml->absent ? ABSENT_MS : AGAIN_MS);
}

/* All waiting questions end without an answer. */
static void give_up(struct ckt_nvml *nvml)
{
	reader_end(nvml);
	while (nvml->first) {
		struct question *question = nvml->first;
		nvml->first = question->next;
		question_done(question, NULL);
		free(question);
	}
	nvml->last = &nvml->first;
}

static void reader_hung(struct ckt_timer *timer)
{
	struct ckt_nvml *nvml = CKT_CONTAINER(timer, struct ckt_nvml, hung);
	ckt_warning("NVML has not answered for %d s: ending its reader, process %d", HUNG_MS / 1000,
		(int)nvml->pid);
	give_up(nvml);
}

static void question_late(struct ckt_timer *timer)
{
	question_done(CKT_CONTAINER(timer, struct question, timer), NULL);
}

static void reader_ready(struct ckt_source *source, uint32_t events)
{
	struct ckt_nvml *nvml = CKT_CONTAINER(source, struct ckt_nvml, source);
	ssize_t n = recv(source->fd, &nvml->answer, sizeof nvml->answer, MSG_DONTWAIT);
	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	struct question *question = nvml->first;
	if (n != (ssize_t)sizeof nvml->answer || !question ||
		nvml->answer.data_bytes > sizeof nvml->answer.data ||
		nvml->answer.process_count > CKT_READER_PROCESSES_MAX) {
		ckt_warning("NVML's reader, process %d, ended or failed", (int)nvml->pid);
		give_up(nvml);
		return;
	}
	nvml->answer.text[sizeof nvml->answer.text - 1] = 0;
	nvml->absent = nvml->answer.result == CKT_NVML_LIBRARY_NOT_FOUND;
	nvml->first = question->next;
	if (!nvml->first)
		nvml->last = &nvml->first;
	/* First, because what is done with the answer may be another question. */
	if (!nvml->absent)
		ask_next(nvml);
	question_done(question, nvml->absent ? NULL : &nvml->answer);
	free(question);
	if (nvml->absent)
		give_up(nvml);
}

static int reader_begin(struct ckt_nvml *nvml)
{
	int fd, pid;
	if (nvml->source.fd >= 0)
		return 0;
	if (nvml->server->driver.soft || !reap(nvml) || ckt_net_now_ms() < nvml->again_ms)
		return -ENODEV;
	int result = ckt_daemon_nvml_reader_start(
		ckt_nvml_library ? ckt_nvml_library : "libnvidia-ml.so.1", &pid, &fd);
	if (result)
		return result;
	nvml->pid = pid;
	nvml->source = (struct ckt_source){.fd = fd, .ready = reader_ready};
	result = ckt_loop_add(&nvml->server->loop, &nvml->source, EPOLLIN);
	if (result) {
		close(fd);
		kill(pid, SIGKILL);
		nvml->source.fd = -1;
	}
	return result;
}

static void ask_next(struct ckt_nvml *nvml)
{
	ckt_timer_clear(&nvml->hung);
	if (!nvml->first)
		return;
	nvml->hung.fire = reader_hung;
	ckt_timer_set(&nvml->server->loop, &nvml->hung, HUNG_MS);
	/*
	 * At most one message is in flight, so this never waits; a dead reader shows as an error.
	 */
	if (send(nvml->source.fd, &nvml->first->asked, sizeof nvml->first->asked,
		    MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		ckt_debug("NVML's reader: %s", strerror(errno));
}

static struct ckt_nvml *nvml_of(struct ckt_server *server)
{
	if (!server->nvml) {
		server->nvml = calloc(1, sizeof *server->nvml);
		if (server->nvml)
			*server->nvml = (struct ckt_nvml){.server = server,
				.source = {.fd = -1},
				.last = &server->nvml->first};
	}
	return server->nvml;
}

void ckt_daemon_nvml_fini(struct ckt_server *server)
{
	if (server->nvml)
		give_up(server->nvml);
	free(server->nvml);
	server->nvml = NULL;
}

/* NULL if there is no NVML. */
static struct question *question_new(struct ckt_server *server, const struct question *like)
{
	struct ckt_nvml *nvml = nvml_of(server);
	struct question *question =
		nvml && reader_begin(nvml) == 0 ? malloc(sizeof *question) : NULL;
	if (question) {
		*question = *like;
		question->timer.fire = question_late;
		ckt_timer_set(&server->loop, &question->timer, ANSWER_MS);
	}
	return question;
}

/* place: the end of the list, or the link of the question that the reader has. */
static void question_add(struct ckt_nvml *nvml, struct question *question, struct question **place)
{
	bool idle = !nvml->first;
	question->next = *place;
	*place = question;
	if (nvml->last == place)
		nvml->last = &question->next;
	if (idle)
		ask_next(nvml);
}

/* Calls done at once if there is no NVML. */
static void ask(struct ckt_peer *peer, const struct question *like)
{
	struct question *question = question_new(peer->server, like);
	if (!question) {
		struct question none = *like;
		like->done(peer, &none, NULL);
		return;
	}
	question->peer = peer;
	ckt_peer_hold(peer);
	question_add(peer->server->nvml, question, peer->server->nvml->last);
}

bool ckt_nvml_ask_health(struct ckt_server *server, unsigned gpu, ckt_nvml_heard *heard)
{
	struct question like = {.server = server,
		.heard = heard,
		.gpu = gpu,
		.asked = {.function = CKT_READER_HEALTH}};
	name_gpu(&server->driver.gpus[gpu], &like.asked.gpu);
	struct question *question = question_new(server, &like);
	if (question) {
		/* Before those of all clients, so that a crowd of them cannot make it late. */
		struct ckt_nvml *nvml = server->nvml;
		question_add(nvml, question, nvml->first ? &nvml->first->next : nvml->last);
	}
	return question;
}

/* ---- DEVICES */

void ckt_control_devices(struct ckt_peer *peer, void *args, int *passed_fd)
{
	(void)args, (void)passed_fd;
	struct ckt_server *server = peer->server;
	struct ckt_share share = share_of(peer);
	ckt_control_device devices[CKT_DEVICES_MAX];
	uint64_t left;
	ckt_control_devices_res res = {
		.cuda_version = server->driver.cuda_version, .devices = {0, devices}};
	for (u_int i = 0; i < share.gpu_count; i++) {
		if (share.gpus[i] >= server->driver.gpu_count)
			continue;
		struct ckt_driver_gpu *gpu = &server->driver.gpus[share.gpus[i]];
		ckt_control_device *device = &devices[res.devices.devices_len++];
		*device = (ckt_control_device){.ordinal = share.gpus[i],
			.name = gpu->name,
			.pci_bus_id = gpu->pci_bus_id,
			.major = (u_int)gpu->major,
			.minor = (u_int)gpu->minor,
			.memory_bytes = limited(peer, share.gpus[i], gpu->memory_bytes, &left)};
		memcpy(device->uuid, gpu->uuid, sizeof device->uuid);
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_devices_res, &res);
}

/* ---- NVML */

static void nvml_done(
	struct ckt_peer *peer, struct question *question, const struct ckt_reader_answer *answer)
{
	const struct ckt_server *server = peer->server;
	bool none = server->driver.soft || !server->nvml || server->nvml->absent;
	char version[CKT_READER_TEXT_MAX];
	ckt_control_nvml_res res = {
		.result = none ? CKT_NVML_NOT_SUPPORTED : CKT_NVML_TIMEOUT, .text = (char *)""};
	if (answer) {
		res.result = answer->result;
		/*
		 * An older NVML lacks the function, or does not know a part of a GPU: not
		 * supported.
		 */
		if (res.result == CKT_NVML_FUNCTION_NOT_FOUND || res.result == CKT_NVML_NOT_FOUND)
			res.result = CKT_NVML_NOT_SUPPORTED;
		res.data.data_len = answer->data_bytes;
		res.data.data_val = (char *)answer->data;
		res.text = (char *)answer->text;
	}
	/*
	 * Programs compare versions before anything else; without NVIDIA's driver, CUDA's version
	 * serves.
	 */
	if (res.result == CKT_NVML_NOT_SUPPORTED &&
		ckt_nvml_functions[question->asked.function].system) {
		int cuda = server->driver.cuda_version;
		snprintf(version, sizeof version, "%d.%d", cuda / 1000, cuda % 1000 / 10);
		res.result = CKT_NVML_SUCCESS;
		res.text = version;
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_nvml_res, &res);
}

void ckt_control_nvml(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_nvml_args *args = decoded;
	const struct ckt_server *server = peer->server;
	const struct ckt_nvml_function *function = args->function < ckt_nvml_functions_count
		? &ckt_nvml_functions[args->function]
		: NULL;
	struct question question = {.done = nvml_done, .asked = {.function = args->function}};
	(void)passed_fd;
	if (!function || !function->name || (!function->system && !given(peer, args->gpu)) ||
		(function->device2 && !given(peer, args->other))) {
		ckt_control_nvml_res res = {.result = function && function->name
				? CKT_NVML_INVALID_ARGUMENT
				: CKT_NVML_NOT_SUPPORTED,
			.text = (char *)""};
		ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_nvml_res, &res);
		return;
	}
	memcpy(question.asked.selectors, args->selectors, sizeof question.asked.selectors);
	if (!function->system)
		name_gpu(&server->driver.gpus[args->gpu], &question.asked.gpu);
	if (function->device2)
		name_gpu(&server->driver.gpus[args->other], &question.asked.other);
	ask(peer, &question);
}

/* ---- GPU_USE */

struct use {
	struct ckt_peer *peer; /* held */
	unsigned gpu;
	unsigned asked; /* answers still to come, and one for the asking itself */
	uint64_t total_bytes, free_bytes, own_bytes;
	uint64_t left_bytes; /* of limits of owners */
	struct ckt_reader_answer from_nvml;
	bool genuine; /* from_nvml is valid */
	unsigned count;
	struct use_session {
		pid_t worker;
		ckt_control_gpu_process process;
	} sessions[CKT_CONTROL_GPU_PROCESSES_MAX];
};

/*
 * What the session's worker has on the GPU, as nvidia-smi would show it, or else by the worker's
 * own count.
 */
static uint64_t shown_bytes(const struct use *use, const struct use_session *session)
{
	for (unsigned i = 0; use->genuine && i < use->from_nvml.process_count; i++)
		if (use->from_nvml.processes[i].pid == (uint32_t)session->worker &&
			use->from_nvml.processes[i].memory_bytes != UINT64_MAX)
			return use->from_nvml.processes[i].memory_bytes;
	return session->process.memory_bytes;
}

static void use_answered(struct use *use)
{
	if (--use->asked)
		return;
	struct ckt_peer *peer = use->peer;
	ckt_control_gpu_process processes[CKT_CONTROL_GPU_PROCESSES_MAX];
	ckt_control_gpu_use_res res = {
		.result = CKT_NVML_SUCCESS, .processes = {use->count, processes}};
	for (unsigned i = 0; i < use->count; i++) {
		processes[i] = use->sessions[i].process;
		processes[i].memory_bytes = shown_bytes(use, &use->sessions[i]);
	}
	/*
	 * As cuMemGetInfo reports it: the free part of the limit, but never more than the GPU has
	 * free.
	 */
	uint64_t total = use->total_bytes, left = total;
	if (!use->genuine || share_of(peer).device_memory_bytes)
		left = use->own_bytes < total ? total - use->own_bytes : 0;
	if (use->left_bytes < left)
		left = use->left_bytes;
	res.total_bytes = total;
	res.free_bytes = use->genuine && use->free_bytes < left ? use->free_bytes : left;
	if (ckt_peer_release(peer))
		ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_gpu_use_res, &res);
	free(use);
}

/* bytes: of a session of that process, on the GPU that is asked for. */
static void use_add(struct use *use, const struct ckt_session *session, const char *client,
	unsigned client_pid, uint64_t bytes, bool has_context)
{
	/* A pid means something on its own host. */
	if (strcmp(client, use->peer->hello.host) != 0 ||
		use->count == CKT_CONTROL_GPU_PROCESSES_MAX)
		return;
	if (client_pid == use->peer->hello.pid)
		use->own_bytes += bytes;
	if (bytes || has_context)
		use->sessions[use->count++] = (struct use_session){
			session->pid, {.pid = client_pid, .memory_bytes = bytes}};
}

static void use_worker(struct ckt_session *session, void *context, int error, void *result)
{
	struct use *use = context;
	const struct ckt_worker_gpus_res *res = result;
	const struct ckt_ledger_holder *holder = &session->lease.holder;
	/* Of a worker that is silent its lease, which covers what it has: free memory is not overstated. */
	if (error && session->lease.is_holder)
		use_add(use, session, session->status.client ? session->status.client : "",
			session->status.client_pid, holder->leased[use->gpu], false);
	for (u_int i = 0; !error && i < res->gpus.gpus_len; i++)
		/* A session has a context on its first GPU, and elsewhere once it uses it. */
		if (res->gpus.gpus_val[i].gpu == (int)use->gpu)
			use_add(use, session, res->client, res->client_pid,
				res->gpus.gpus_val[i].memory_bytes, i == 0);
	use_answered(use);
}

/* A peer without an identity sees only the sessions that name the same process of the same host. */
static bool may_see(const struct ckt_peer *peer, const struct ckt_session *session)
{
	if (ckt_peer_is_anonymous(peer))
		return session->uid == CKT_UID_UNKNOWN &&
			session->status.client_pid == peer->hello.pid;
	return ckt_peer_may(peer, session->uid);
}

static void use_of_sessions(
	struct ckt_peer *peer, unsigned gpu, const struct ckt_reader_answer *answer)
{
	struct use *use = calloc(1, sizeof *use);
	if (!use) {
		ckt_peer_close(peer);
		return;
	}
	use->peer = peer;
	use->gpu = gpu;
	use->asked = 1;
	use->total_bytes =
		limited(peer, gpu, peer->server->driver.gpus[gpu].memory_bytes, &use->left_bytes);
	use->genuine = answer && !answer->result;
	if (use->genuine) {
		use->from_nvml = *answer;
		use->free_bytes = answer->free_bytes;
	}
	ckt_peer_hold(peer);
	unsigned asked = 0;
	for (struct ckt_session *session = peer->server->sessions;
		session && asked < CKT_CONTROL_GPU_PROCESSES_MAX; session = session->next) {
		if (session->phase != CKT_SESSION_LIVE || !may_see(peer, session))
			continue;
		asked++;
		if (ckt_session_call(session, CKT_WORKER_GPUS, NULL, NULL, -1,
			    (xdrproc_t)xdr_ckt_worker_gpus_res, sizeof(struct ckt_worker_gpus_res),
			    WORKER_MS, use_worker, use) == 0)
			use->asked++;
	}
	use_answered(use);
}

static void use_done(
	struct ckt_peer *peer, struct question *question, const struct ckt_reader_answer *answer)
{
	use_of_sessions(peer, question->gpu, answer);
}

void ckt_control_gpu_use(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_gpu_args *args = decoded;
	struct question question = {.done = use_done, .gpu = args->gpu};
	(void)passed_fd;
	if (!given(peer, args->gpu)) {
		ckt_control_gpu_use_res res = {.result = CKT_NVML_INVALID_ARGUMENT};
		ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_gpu_use_res, &res);
		return;
	}
	name_gpu(&peer->server->driver.gpus[args->gpu], &question.asked.gpu);
	ask(peer, &question);
}
