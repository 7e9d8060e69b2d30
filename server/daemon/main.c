/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricket-server: one a node (or several, each with a socket of its own).
 *
 * Process model
 *	cricket-server		one epoll loop, never loads a CUDA driver; a thread for each connection that carries files of an image
 *				(stage_data.c), one that writes the file of --audit, one for each group of workers, which forks them inside of
 *				what they share (group_domain.h), and none besides.  Owns the listening sockets, the lock beside
 *				--socket, and of every worker a pidfd and a connection to its control socket.
 *	  probe			a child at start that loads the driver, tells what it finds and ends.
 *	  cricket-worker	a direct child for each session, in a session (setsid) of its own, never root.  Inherits
 *				its control socket, bound at SOCKET.d/SESSION.sock, as descriptor 3, and those of
 *				rpc/worker_descriptors.h and nothing else; the client's socket follows over it, right after the
 *				hello, and the server closes its copy.
 *	  cricket-worker --compiler
 *				with the soft GPU in a cage: a direct child that compiles kernels for the workers
 *				(session/compiler_process.h).  It ends when the server and those workers have ended.
 *	  cricket-replicator	with --replicate: sends automatic images to another server (durable/replicator.h).  It ends with the
 *				server, and then no lease is renewed.
 *	  cricket-server --tls-process
 *				with --tls-certificate: holds the key, and forks a child for each TLS connection, which carries its
 *				bytes to the server and then to the worker (tls/tls_process.h).
 *
 * So the server can die and come back without a session noticing: it finds the workers by their
 * sockets and learns from the kernel (SO_PEERCRED of a connection to them) which processes they
 * are.  A worker's death is seen through its pidfd.
 *
 * Signals arrive through a signalfd.  SIGTERM and SIGINT: no new sessions, --grace seconds for the
 * running ones, then they are ended; a second signal ends them at once.  SIGHUP: opens the audit log
 * again.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/option_table.h"
#include "server/daemon/image/image_mac.h"
#include "server/daemon/audit/audit.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/durable/sleep.h"
#include "server/daemon/durable/replica.h"
#include "server/daemon/events.h"
#include "server/daemon/image/memory_images.h"
#include "server/daemon/image/stage.h"
#include "server/daemon/log_journal.h"
#include "server/daemon/log_limited.h"
#include "server/daemon/metrics/metrics.h"
#include "server/daemon/nvml/nvml.h"
#include "server/daemon/paths.h"
#include "server/daemon/peer/listen.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/policy/admission.h"
#include "server/daemon/policy/limit_store.h"
#include "server/daemon/policy/policy.h"
#include "server/daemon/session/compiler_process.h"
#include "server/daemon/session/module_cache.h"
#include "server/daemon/session/libraries.h"
#include "server/daemon/session/mps.h"
#include "server/daemon/session/save_on_term.h"
#include "server/daemon/session/server_key.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/session_marks.h"
#include "server/daemon/session/group_domain.h"
#include "server/daemon/session/spawn_cage.h"
#include "server/daemon/session/spawn_mounts.h"
#include "server/daemon/session/spawn_user.h"
#include "server/daemon/session/uid_group.h"
#include "server/daemon/session/warm_workers.h"
#include "server/daemon/session/worker_cgroup.h"
#include "server/daemon/systemd_notify.h"
#include "server/daemon/tls/tls_process.h"

enum { MESSAGE_SIZE = 1024, LONELY_MS = 500 };

/* ---- The end */

static void kill_sessions(struct ckt_server *server)
{
	server->killing = true;
	for (struct ckt_session *session = server->sessions; session; session = session->next)
		ckt_session_kill(session, "the server ends");
	if (!server->session_count)
		server->loop.stop = true;
}

void ckt_server_session_gone(struct ckt_server *server)
{
	if (server->stopping && !server->session_count)
		server->loop.stop = true;
	ckt_peer_session_gone(server);
}

static void grace_over(struct ckt_timer *timer)
{
	struct ckt_server *server = CKT_CONTAINER(timer, struct ckt_server, stop_timer);
	if (server->term_saves) {
		ckt_timer_set(&server->loop, timer, LONELY_MS);
		return;
	}
	ckt_info("%u sessions still run after %u s of grace", server->session_count,
		server->options.grace);
	kill_sessions(server);
}

/* Without a client the grace period is of no use. */
static void end_if_alone(struct ckt_session *session, void *context, int error, void *result)
{
	struct ckt_worker_status_res *status = result;
	(void)context;
	if (!error && (status->state == CKT_STATE_DETACHED || status->state == CKT_STATE_RESTORED))
		if (!session->server->term_saves)
			ckt_session_kill(session, "the server ends, and it has no client");
}

static void look_for_lonely(struct ckt_timer *timer)
{
	struct ckt_server *server = CKT_CONTAINER(timer, struct ckt_server, lonely_timer);
	for (struct ckt_session *session = server->sessions; session; session = session->next)
		if (session->phase == CKT_SESSION_LIVE)
			ckt_session_call(session, CKT_WORKER_STATUS, NULL, NULL, -1,
				(xdrproc_t)xdr_ckt_worker_status_res,
				sizeof(struct ckt_worker_status_res), LONELY_MS, end_if_alone,
				NULL);
	ckt_timer_set(&server->loop, timer, LONELY_MS);
}

static void signal_ready(struct ckt_source *source, uint32_t events)
{
	struct ckt_server *server = CKT_CONTAINER(source, struct ckt_server, signals);
	struct signalfd_siginfo info;
	(void)events;
	if (read(source->fd, &info, sizeof info) != sizeof info)
		return;
	if (info.ssi_signo == SIGHUP) {
		if (server->audit)
			ckt_audit_reopen(server->audit);
		ckt_limits_reload(server);
		return;
	}
	if (server->stopping) {
		kill_sessions(server);
		return;
	}
	ckt_info("%s: accepting no new sessions; the %u running ones get %u s",
		info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT", server->session_count,
		server->options.grace);
	ckt_systemd_notify("STOPPING=1");
	server->stopping = true;
	if (!server->session_count) {
		server->loop.stop = true;
		return;
	}
	ckt_session_save_all_on_term(server);
	server->stop_timer.fire = grace_over;
	ckt_timer_set(&server->loop, &server->stop_timer, (int64_t)server->options.grace * 1000);
	server->lonely_timer.fire = look_for_lonely;
	ckt_timer_set(&server->loop, &server->lonely_timer, 0);
}

/* ---- The start */

static int init_signals(struct ckt_server *server)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	/* Without a file to read or open again, a terminal that hangs up ends the server, as usual. */
	if (server->options.audit || server->options.limits ||
		access(CKT_LIMITS_DIRECTORY, F_OK) == 0)
		sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	server->signals = (struct ckt_source){
		.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .ready = signal_ready};
	return server->signals.fd < 0 ? -errno
				      : ckt_loop_add(&server->loop, &server->signals, EPOLLIN);
}

/*
 * Three descriptors a session and one a connection: the usual soft limit of 1024 is soon reached.
 */
static void raise_descriptor_limit(struct ckt_server *server)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		limit = (struct rlimit){1024, 1024};
	server->descriptors = limit;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		server->descriptor_count =
			limit.rlim_cur < INT_MAX ? (unsigned)limit.rlim_cur : INT_MAX;
}

static int init_paths(struct ckt_server *server, char *message)
{
	if (server->options.socket)
		snprintf(server->socket_path, sizeof server->socket_path, "%s",
			server->options.socket);
	else if (ckt_local_socket_path(
			 server->socket_path, sizeof server->socket_path, message, MESSAGE_SIZE))
		return -ENOENT;
	snprintf(server->socket_dir, sizeof server->socket_dir, "%.4000s.d", server->socket_path);
	if (ckt_paths_find_worker(server->worker_path)) {
		snprintf(message, MESSAGE_SIZE,
			"cricket-worker is not in ../libexec/cricket beside this "
			"program: install Cricket again, or name the directory in "
			"CRICKET_LIBEXEC");
		return -ENOENT;
	}
	return 0;
}

static int init_driver(struct ckt_server *server, char *message)
{
	char soft[CKT_PATH_MAX];
	bool has_soft = ckt_paths_find_soft(soft) == 0;
	int result = ckt_driver_choose(server->options.driver, has_soft ? soft : NULL,
		&server->driver, message, MESSAGE_SIZE);
	if (result)
		return result;
	if (*message)
		ckt_warning("%s", message);
	for (unsigned i = 0; i < server->gpu_count; i++) {
		if (server->gpus[i] >= server->driver.gpu_count) {
			snprintf(message, MESSAGE_SIZE,
				"--gpus: '%s': the driver has %u GPUs, numbered from 0",
				server->options.gpus, server->driver.gpu_count);
			return -EINVAL;
		}
	}
	return 0;
}

/* Without the journal "auto" stays at stderr. */
static int init_log(struct ckt_server *server, char *message)
{
	bool wanted = strcmp(server->options.log, "journal") == 0;
	if (!wanted && (strcmp(server->options.log, "auto") != 0 || !ckt_log_journal_is_stderr()))
		return 0;
	int result = ckt_log_journal_open(server, CKT_LOG_JOURNAL_SOCKET, message, MESSAGE_SIZE);
	if (result && !wanted) {
		*message = 0;
		return 0;
	}
	return result;
}

/* What the rest relies on: limits, the loop, signals, and the audit log before anybody connects. */
static int init_process(struct ckt_server *server, char *message)
{
	/*
	 * Everybody must find the directories of the sockets and the address file; private files
	 * get their mode explicitly.
	 */
	umask(022);
	raise_descriptor_limit(server);
	if (init_log(server, message))
		return EXIT_FAILURE;
	int result = ckt_loop_init(&server->loop);
	if (!result)
		result = init_signals(server);
	if (result) {
		snprintf(message, MESSAGE_SIZE, "cannot start: %s", strerror(-result));
		return EXIT_FAILURE;
	}
	if (server->options.audit &&
		ckt_audit_open(server->options.audit, &server->loop, &server->audit, message,
			MESSAGE_SIZE))
		return EXIT_FAILURE;
	return 0;
}

/* Who the workers run as. */
static int init_users(struct ckt_server *server, char *message)
{
	int result = ckt_spawn_find_user(server, message, MESSAGE_SIZE);
	if (!result && *message)
		ckt_warning("%s", message);
	server->compiler_user = server->user;
	if (!result)
		result = ckt_uid_groups_init(server, message, MESSAGE_SIZE);
	if (!result && *message)
		ckt_warning("%s", message);
	return result;
}

/* What the workers need.  0, or the exit status. */
static int init_workers(struct ckt_server *server, char *message)
{
	ckt_spawn_mounts_probe(server);
	if (ckt_group_domain_probe(server, message, MESSAGE_SIZE))
		return CKT_EXIT_USAGE;
	int result = ckt_daemon_libraries_init(server, message, MESSAGE_SIZE);
	if (result)
		return result == -EINVAL ? CKT_EXIT_USAGE : EXIT_FAILURE;
	if (ckt_spawn_check(server, message, MESSAGE_SIZE))
		return EXIT_FAILURE;
	ckt_worker_cgroups_init(
		server, NULL, NULL, server->cgroup_text, sizeof server->cgroup_text);
	return 0;
}

/* 0, or the exit status. */
static int listen_or_fail(struct ckt_server *server, char *message)
{
	int result = ckt_listen_open(server, message, MESSAGE_SIZE);
	return !result                                                             ? 0
		: result == -EPERM || result == -EINVAL || result == -ENAMETOOLONG ? CKT_EXIT_USAGE
										   : EXIT_FAILURE;
}

/* The place of the server that runs; where none does, a place of our own.  0, or the exit status. */
static int replace(struct ckt_server *server, char *message)
{
	int result = ckt_replace_take(server, message, MESSAGE_SIZE);
	if (result == -ENOENT)
		ckt_warning("--replace: no server runs at %s: this one starts as usual",
			server->socket_path);
	else if (result)
		return EXIT_FAILURE;
	result = listen_or_fail(server, message);
	ckt_replace_fini(server);
	return result;
}

/*
 * After the sockets of another server, which may have had this address, too.  Then it is too late to
 * end.  0, or the exit status.
 */
static int open_metrics(struct ckt_server *server, char *message)
{
	int result = ckt_metrics_open(server, &server->metrics, message, MESSAGE_SIZE);
	if (result && server->options.replace)
		ckt_warning("%s: there are no metrics", message);
	return !result || server->options.replace ? 0
		: result == -EPERM                ? CKT_EXIT_USAGE
						  : EXIT_FAILURE;
}

/* 0, or the exit status. */
/* What sessions need, and those of an earlier server. */
static int init_sessions(struct ckt_server *server, char *message)
{
	ckt_drain_open(server);
	int result = ckt_stages_init(server, message, MESSAGE_SIZE);
	if (!result)
		result = ckt_automatic_init(server, message, MESSAGE_SIZE);
	if (!result)
		result = ckt_replica_init(server, message, MESSAGE_SIZE);
	if (!result)
		result = ckt_daemon_events_init(server, message, MESSAGE_SIZE);
	if (!result)
		ckt_worker_bounds_init(server);
	if (result)
		return EXIT_FAILURE;
	ckt_compiler_init(server);
	ckt_module_cache_init(server);
	ckt_session_marks_watch(server);
	ckt_mps_init(server);
	ckt_session_adopt_all(server);
	ckt_mps_settle(server);
	ckt_sleep_open(server);
	ckt_worker_cgroups_sweep(server);
	ckt_warm_init(server);
	return ckt_listen_write_address_file(server, message, MESSAGE_SIZE) ? EXIT_FAILURE : 0;
}

static int init(struct ckt_server *server, char *message)
{
	struct ckt_options *options = &server->options;
	server->policy = &ckt_policy_limits;
	server->lock_fd = -1;
	server->started = time(NULL);
	if (gethostname(server->host, sizeof server->host - 1))
		strcpy(server->host, "localhost");
	ckt_options_gpus_parse(options->gpus, server->gpus, &server->gpu_count);
	if (ckt_tokens_open(server, message, MESSAGE_SIZE))
		return CKT_EXIT_USAGE;
	int result = init_process(server, message);
	if (result)
		return result;
	if (init_users(server, message))
		return CKT_EXIT_USAGE;
	if (ckt_tls_process_init(server, message, MESSAGE_SIZE))
		return CKT_EXIT_USAGE;
	if (init_paths(server, message))
		return EXIT_FAILURE;
	result = options->replace ? 0 : listen_or_fail(server, message);
	if (result)
		return result;
	if (ckt_server_key_load(server, message, MESSAGE_SIZE))
		return EXIT_FAILURE;
	if (ckt_image_mac_init(server, message, MESSAGE_SIZE))
		return CKT_EXIT_USAGE;
	result = init_driver(server, message);
	if (result)
		return result == -EINVAL ? CKT_EXIT_USAGE : EXIT_FAILURE;
	if (ckt_limits_open(server, message, MESSAGE_SIZE))
		return CKT_EXIT_USAGE;
	result = init_workers(server, message);
	if (result)
		return result;
	/* What could fail has not, so that no server is lost. */
	result = options->replace ? replace(server, message) : 0;
	if (!result)
		result = open_metrics(server, message);
	if (result)
		return result;
	return init_sessions(server, message);
}

static void announce(const struct ckt_server *server)
{
	const struct ckt_driver_info *driver = &server->driver;
	ckt_info("version %s, driver %s (%s), %u GPU%s, first: %s", CKT_VERSION, driver->path,
		driver->soft ? "the soft GPU" : "real", driver->gpu_count,
		driver->gpu_count == 1 ? "" : "s",
		driver->gpu_count ? driver->gpus[0].name : "none");
	char cage[256];
	ckt_spawn_cage_describe(server, cage, sizeof cage);
	ckt_info("%s", cage);
	ckt_log(*server->cgroup_dir ? CKT_LOG_INFO : CKT_LOG_DEBUG, "%s", server->cgroup_text);
	if (ckt_uid_groups_describe(server, cage, sizeof cage))
		ckt_info("%s", cage);
	for (unsigned i = 0; i < server->listener_count; i++)
		ckt_info("listening on %s%s", i == 0 ? "unix:" : "", server->listeners[i].text);
	if (server->metrics)
		ckt_info("metrics at %s", ckt_metrics_text(server->metrics));
}

static void fini(struct ckt_server *server)
{
	while (server->peers_first)
		ckt_peer_close(server->peers_first);
	ckt_metrics_close(server->metrics);
	ckt_sleep_close(server);
	ckt_automatic_fini(server);
	ckt_replica_fini(server);
	ckt_stages_fini(server);
	ckt_daemon_nvml_fini(server);
	ckt_compiler_fini(server);
	ckt_tls_process_fini(server);
	ckt_module_cache_fini(server);
	ckt_memory_image_fini(server);
	ckt_warm_fini(server);
	ckt_mps_fini(server);
	ckt_uid_groups_fini(server);
	ckt_drain_close(server);
	ckt_listen_close(server);
	ckt_admission_fini(server);
	ckt_daemon_log_limited_fini(server);
	ckt_audit_close(server->audit);
	explicit_bzero(&server->token, sizeof server->token);
	ckt_tokens_close(server);
	ckt_certificates_close(server);
	ckt_limits_close(server);
	ckt_turns_fini(server);
	explicit_bzero(&server->key, sizeof server->key);
	ckt_image_mac_fini(server);
	/* From here on a successor uses what lies on disk. */
	ckt_replace_fini(server);
	ckt_loop_fini(&server->loop);
	ckt_daemon_libraries_fini(server);
	ckt_options_fini(&server->options);
	ckt_log_journal_close();
}

int main(int argc, char **argv)
{
	static struct ckt_server server;
	char message[MESSAGE_SIZE] = "";
	enum ckt_log_level level = CKT_LOG_INFO;
	if (argc > 1 && strcmp(argv[1], CKT_TLS_PROCESS_OPTION) == 0)
		return ckt_tls_process_main(argc, argv);
	if (ckt_options_parse(&server.options, argc, argv, message, sizeof message)) {
		fprintf(stderr, "cricket-server: %s\n", message);
		return CKT_EXIT_USAGE;
	}
	if (server.options.help)
		ckt_options_help(stdout);
	else if (server.options.version)
		printf("cricket-server %s\n", CKT_VERSION);
	else if (server.options.print_config)
		ckt_options_print(&server.options, stdout);
	if (server.options.help || server.options.version || server.options.print_config)
		return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
	ckt_log_level_parse(server.options.log_level, &level);
	ckt_log_init("cricket-server", level, NULL);
	/* Its memory holds tokens and the server's key: no core dump, and no debugger but root's. */
	prctl(PR_SET_DUMPABLE, 0);
	int ready_fd = -1;
	int detached = server.options.replace ? ckt_replace_detach(&ready_fd) : -1;
	if (detached >= 0)
		return detached;
	int status = init(&server, message);
	if (status) {
		fprintf(stderr, "cricket-server: %s\n", message);
	} else {
		announce(&server);
		ckt_systemd_notify("READY=1");
		ckt_replace_ready(ready_fd);
		status = ckt_loop_run(&server.loop) ? EXIT_FAILURE : EXIT_SUCCESS;
		ckt_info("ended");
	}
	fini(&server);
	return status;
}
