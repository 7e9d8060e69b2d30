/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricket-worker: one session; with --compiler, the process that compiles for a server's sessions
 * (compiler/compile_server.h).
 *
 * Process model: cricket-server execs us with address space randomisation off, an empty environment
 * but for glibc's tunables, the listening control socket as fd 3 and stderr for our log.  We
 * outlive the server, and end when the program says so (BYE), when it has been gone for the
 * disconnect timeout, when nobody claims the session, when the server says so, or on SIGTERM.
 * stdout and stderr become pipes that catch what kernels print.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/option_table.h"
#include "base/log.h"
#include "rpc/net.h"
#include "rpc/worker_descriptors.h"
#include "server/worker/cage/cage.h"
#include "server/worker/compiler/compile_server.h"
#include "server/worker/memory/rescue.h"
#include "server/worker/session/call_trace.h"
#include "server/worker/session/client_process.h"
#include "server/worker/session/control.h"
#include "server/worker/session/stamps.h"
#include "server/worker/session/start.h"
#include "server/worker/worker.h"

/* The watch is all that wakes the worker of an idle session: a few times a second. */
enum { WATCH_MS = 400, STUCK_MS = 1000, START_MS = 10000 };

/* One thread, which does nothing else, receives the signals. */
static void *signals(void *opaque)
{
	int number;
	if (sigwait(opaque, &number) == 0)
		ckt_worker_end_cut_off(number == SIGTERM ? "SIGTERM" : "SIGINT");
	return NULL;
}

static int start_signals(void)
{
	static sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	/* An image beyond ulimit -f is an error to report, not an end. */
	signal(SIGXFSZ, SIG_IGN);
	if (pthread_sigmask(SIG_BLOCK, &set, NULL))
		return -EINVAL;
	pthread_t thread;
	int error = pthread_create(&thread, NULL, signals, &set);
	if (!error)
		pthread_detach(thread);
	return -error;
}

/* The log keeps the stderr we were given. */
static int redirect_output(struct ckt_worker *worker)
{
	int log_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	ckt_log_init_fd("cricket-worker", log_fd >= 0 ? ckt_log_level : CKT_LOG_QUIET, log_fd);
	return ckt_printed_init(&worker->printed);
}

/*
 * The executor notices a client that hung up. If it cannot, because the driver is stuck behind a
 * kernel that never ends, the session must end all the same.
 */
static void watch_client(struct ckt_worker *worker, int64_t now)
{
	static uint64_t hung_up_epoch;
	static int64_t hung_up_ms;
	pthread_mutex_lock(&worker->output.lock);
	struct ckt_transport *client = &worker->output.transport;
	uint64_t epoch = worker->output.epoch;
	bool connected = ckt_transport_open(client);
	bool hung_up = connected && ckt_transport_wait(client, CKT_TRANSPORT_ENDED, 0) > 0;
	/* Replies are unacknowledged and its host is gone: the executor sees an end. */
	if (connected && !hung_up && ckt_transport_vanished(client, CKT_NET_VANISHED_MS))
		ckt_transport_shutdown(client);
	pthread_mutex_unlock(&worker->output.lock);
	if (!hung_up || hung_up_epoch != epoch) {
		hung_up_epoch = hung_up ? epoch : 0;
		hung_up_ms = now;
	} else if (now - hung_up_ms > worker->disconnect_timeout_ms + STUCK_MS) {
		ckt_worker_end("the client is gone, and the driver does not return");
	}
}

/* What the session's other threads left for the watch, at one moment. */
struct sight {
	enum ckt_session_state state;
	unsigned timeout_ms; /* in this state, for a client to come */
	bool over;           /* nobody came in time */
	bool dead;           /* the client's process is, and nobody else waits for the session */
};

static struct sight look(struct ckt_worker *worker, int64_t now)
{
	struct sight sight;
	pthread_mutex_lock(&worker->mail_lock);
	enum ckt_session_state state = sight.state = worker->state;
	/*
	 * What is being saved, or held, is for whoever does that; a paused session waits for its
	 * end.
	 */
	bool frozen = worker->checkpoint.freeze.wanted || worker->checkpoint.freeze.frozen;
	/* A swapped one must not keep the host's memory for a client that is gone. */
	bool idle = worker->new_client.fd < 0 && (!frozen || worker->checkpoint.swapped);
	bool alone = idle && worker->detached_ms &&
		(state == CKT_STATE_STARTING || state == CKT_STATE_RESTORED ||
			state == CKT_STATE_DETACHED);
	sight.timeout_ms = state == CKT_STATE_DETACHED ? worker->disconnect_timeout_ms
						       : worker->claim_timeout_ms;
	sight.over = alone && now - worker->detached_ms > sight.timeout_ms;
	sight.dead = idle && (state == CKT_STATE_RUNNING || state == CKT_STATE_DETACHED) &&
		ckt_worker_client_process_is_dead(worker->client_process);
	pthread_mutex_unlock(&worker->mail_lock);
	return sight;
}

static void watch(struct ckt_worker *worker)
{
	int64_t begun = ckt_net_now_ms();
	bool was_dead = false;
	for (;;) {
		poll(NULL, 0, WATCH_MS);
		int64_t now = ckt_net_now_ms();
		if (!atomic_load(&worker->start_seen) && now - begun > START_MS)
			ckt_worker_end(
				"the server that started the worker never told it what to do");
		struct sight sight = look(worker, now);
		/*
		 * A client that has said BYE ends in the executor.  Children that hold its socket
		 * are no client.
		 */
		if (sight.dead && (was_dead || sight.state == CKT_STATE_DETACHED)) {
			ckt_call_trace_linger(NULL);
			ckt_worker_end("the client's process is dead");
		}
		was_dead = sight.dead;
		if (sight.over) {
			char why[64];
			snprintf(why, sizeof why, "%s within %u ms",
				sight.state == CKT_STATE_DETACHED ? "the client did not come back"
								  : "nobody claimed the session",
				sight.timeout_ms);
			if (sight.state == CKT_STATE_DETACHED)
				ckt_worker_end_cut_off(why);
			ckt_worker_end(why);
		}
		if (sight.state == CKT_STATE_RUNNING)
			watch_client(worker, now);
	}
}

/* The process that reads memory after a device fault has a cage like the worker's. */
static int rescue(const char *driver)
{
	char message[256];
	ckt_log_init("cricket-worker", CKT_LOG_WARNING, NULL);
	if (!ckt_cage_enter(-1, message, sizeof message))
		return ckt_rescue_main(driver);
	ckt_error("%s", message);
	return 1;
}

static int enter_cage(void)
{
	char message[256];
	const char *driver = ckt_cage_driver();
	int result = driver ? ckt_rescue_fork(driver) : 0;
	if (result) {
		ckt_error("cannot fork: %s", strerror(-result));
		return result;
	}
	result = ckt_cage_enter(CKT_WORKER_REFUSED_FD, message, sizeof message);
	if (result)
		ckt_error("%s", message);
	return result;
}

int main(int argc, char **argv)
{
	struct ckt_worker *worker = &ckt_worker;
	enum ckt_log_level level = CKT_LOG_WARNING;
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		puts("cricket-worker " CKT_VERSION);
		return 0;
	}
	/* From here on _exit(): what a sanitizer does at exit, a cage refuses. */
	if (argc == 3 && !strcmp(argv[1], "--rescue"))
		_exit(rescue(argv[2]));
	if (argc == 2 && !strcmp(argv[1], "--compiler")) {
		ckt_log_init("cricket-compiler", CKT_LOG_WARNING, NULL);
		_exit(ckt_compile_server_main(CKT_WORKER_CONTROL_FD));
	}
	if (argc == 3 && !strcmp(argv[1], "--log-level") &&
		ckt_log_level_parse(argv[2], &level) == 0)
		argc = 1;
	if (argc != 1 || fcntl(CKT_WORKER_CONTROL_FD, F_GETFD) < 0) {
		fputs("cricket-worker is started by cricket-server, with its control socket as descriptor 3\n",
			stderr);
		return CKT_EXIT_USAGE;
	}
	ckt_worker_harden(argc, argv);
	fcntl(CKT_WORKER_CONTROL_FD, F_SETFD, FD_CLOEXEC);
	/* The soft GPU's; absent otherwise. */
	fcntl(CKT_WORKER_COMPILER_FD, F_SETFD, FD_CLOEXEC);
	ckt_log_init("cricket-worker", level, NULL);
	ckt_stamps_init();
	if (enter_cage())
		_exit(1);
	worker->client_fd = worker->new_client.fd = worker->new_client.memory_fd = worker->host.fd =
		-1;
	worker->client_process = -1;
	worker->uid = 0xffffffffu;
	pthread_mutex_init(&worker->mail_lock, NULL);
	pthread_cond_init(&worker->mail_cond, NULL);
	worker->space = getenv("CRICKET_SPACE") != NULL;
	/* The thread that waits for signals writes to the log, which this moves. */
	int error = redirect_output(worker);
	if (!error)
		error = start_signals();
	if (!error)
		error = ckt_worker_control_start(worker, CKT_WORKER_CONTROL_FD);
	if (error) {
		ckt_error("cannot start: %s", strerror(-error));
		_exit(1);
	}
	watch(worker);
	return 0;
}
