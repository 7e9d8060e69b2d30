/* SPDX-License-Identifier: Apache-2.0 */
/* The process that holds the key; see tls_process.h.  One thread. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "rpc/net.h"
#include "rpc/transport/tls_relay.h"
#include "server/daemon/tls/tls_cage.h"
#include "server/daemon/tls/tls_process.h"

enum { FILES = 4, PATH_SIZE = 4096, PARTING_MS = 1000 };

/* What a file was when it was read. */
struct stamp {
	struct timespec changed;
	off_t size;
	ino_t inode;
};

static struct {
	struct ckt_tls_settings settings;
	struct ckt_tls_context *context;
	struct stamp stamps[FILES];
	char crl[PATH_SIZE];
	uid_t uid;
	gid_t gid;
} keeper;

/* ---- The files */

static void stamp_all(struct stamp ret_stamps[FILES])
{
	const char *const paths[FILES] = {keeper.settings.certificate, keeper.settings.key,
		keeper.settings.ca, *keeper.crl ? keeper.crl : NULL};
	memset(ret_stamps, 0, FILES * sizeof *ret_stamps);
	for (unsigned i = 0; i < FILES; i++) {
		struct stat st;
		if (paths[i] && stat(paths[i], &st) == 0)
			ret_stamps[i] = (struct stamp){
				.changed = st.st_mtim, .size = st.st_size, .inode = st.st_ino};
	}
}

static bool same(const struct stamp *a, const struct stamp *b)
{
	bool equal = true;
	for (unsigned i = 0; i < FILES; i++)
		equal = equal && a[i].changed.tv_sec == b[i].changed.tv_sec &&
			a[i].changed.tv_nsec == b[i].changed.tv_nsec && a[i].size == b[i].size &&
			a[i].inode == b[i].inode;
	return equal;
}

/* Reads the files if they have changed; the old ones stay in force if that fails. */
static int load(char *ret_message, size_t message_size)
{
	struct ckt_tls_context *context;
	struct stamp stamps[FILES];
	stamp_all(stamps);
	if (keeper.context && same(stamps, keeper.stamps))
		return 0;
	struct ckt_tls_settings settings = keeper.settings;
	settings.crl = *keeper.crl && access(keeper.crl, F_OK) == 0 ? keeper.crl : NULL;
	int result = ckt_tls_context_make(&settings, true, &context, ret_message, message_size);
	memcpy(keeper.stamps, stamps, sizeof stamps);
	if (result)
		return result;
	if (keeper.context)
		ckt_info("TLS: %s and its key are read again", keeper.settings.certificate);
	ckt_tls_context_free(keeper.context);
	keeper.context = context;
	return 0;
}

/* ---- A connection, in a child */

static void tell(int fd, int error, const char *why, const struct ckt_transport *t)
{
	uint8_t record[CKT_TLS_FACTS_MAX], *certificate = NULL;
	struct ckt_tls_facts facts = {.error = error};
	size_t size = 0;
	if (!facts.error)
		facts.error = ckt_tls_exporter(t, facts.exporter);
	if (!facts.error && ckt_tls_peer_certificate(t, &certificate, &size) == 0 &&
		size > CKT_TLS_CERTIFICATE_MAX) {
		facts.error = -EMSGSIZE;
		why = "the client's certificate is too long";
	}
	facts.certificate = facts.error ? (const uint8_t *)why : certificate;
	facts.certificate_size = (uint32_t)(facts.error ? strlen(why) : size);
	uint8_t *end = ckt_tls_facts_put(record, &facts);
	ckt_net_write_record(
		fd, record, (size_t)(end - record), ckt_net_now_ms() + CKT_TLS_HANDSHAKE_MS, -1);
	free(certificate);
}

/* Takes what still comes, so that the peer gets the alert and no reset. */
static void part(struct ckt_transport *t)
{
	int64_t deadline_ms = ckt_net_now_ms() + PARTING_MS;
	uint8_t data[4096];
	ckt_transport_finish(t);
	for (;;) {
		ssize_t n = ckt_transport_read(t, data, sizeof data);
		if (n < 0 && n != -EAGAIN)
			return;
		if (n == -EAGAIN && ckt_transport_wait_until(t, CKT_TRANSPORT_READ, deadline_ms))
			return;
		if (ckt_net_now_ms() > deadline_ms)
			return;
	}
}

static _Noreturn void serve(int tcp_fd, int plain_fd)
{
	struct ckt_transport tls, plain;
	char why[CKT_TLS_WHY_MAX] = "";
	/* Or OpenSSL's look at dates would open the file of the time zone. */
	setenv("TZ", "UTC0", 1);
	tzset();
	int result = ckt_tls_cage_enter(keeper.uid, keeper.gid);
	if (result)
		_exit(EXIT_FAILURE);
	ckt_transport_init_socket(&tls, tcp_fd);
	ckt_transport_init_socket(&plain, plain_fd);
	result = ckt_tls_accept(
		&tls, keeper.context, ckt_net_now_ms() + CKT_TLS_HANDSHAKE_MS, why, sizeof why);
	tell(plain_fd, result, why, &tls);
	if (result) {
		part(&tls);
		_exit(EXIT_FAILURE);
	}
	/* A program may be stopped; the relay sees a host that is gone. */
	ckt_net_must_read(tcp_fd, 0);
	ckt_tls_relay(&tls, &plain);
	_exit(EXIT_SUCCESS);
}

/* Two descriptors; false: the server is gone, or nothing of that form came. */
static bool receive(int ret_fds[2], bool *ret_gone)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} room;
	char byte;
	struct iovec part = {.iov_base = &byte, .iov_len = sizeof byte};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &room,
		.msg_controllen = sizeof room};
	ssize_t n = recvmsg(CKT_TLS_PROCESS_FD, &message, MSG_CMSG_CLOEXEC);
	*ret_gone = n == 0 || (n < 0 && errno != EINTR && errno != EMFILE && errno != ENFILE);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return false;
	if (c->cmsg_len == CMSG_LEN(2 * sizeof(int))) {
		memcpy(ret_fds, CMSG_DATA(c), 2 * sizeof(int));
		return true;
	}
	if (c->cmsg_len == CMSG_LEN(sizeof(int))) {
		memcpy(ret_fds, CMSG_DATA(c), sizeof(int));
		close(ret_fds[0]);
	}
	return false;
}

static void take_one(const int fds[2])
{
	char message[CKT_TLS_WHY_MAX];
	if (load(message, sizeof message))
		ckt_warning("TLS: %s; the files that were read before stay in force", message);
	pid_t pid = fork();
	if (pid == 0) {
		close(CKT_TLS_PROCESS_FD);
		serve(fds[0], fds[1]);
	}
	if (pid < 0)
		ckt_warning("TLS: no process for a connection: %s", strerror(errno));
	close(fds[0]);
	close(fds[1]);
}

static void set_crl(const char *ca)
{
	const char *slash = strrchr(ca, '/');
	int length = slash ? (int)(slash - ca) + 1 : 0;
	if (*ca &&
		snprintf(keeper.crl, sizeof keeper.crl, "%.*scrl.pem", length, ca) >=
			(int)sizeof keeper.crl)
		*keeper.crl = 0;
}

int ckt_tls_process_main(int argc, char **argv)
{
	enum ckt_log_level level = CKT_LOG_INFO;
	char message[CKT_TLS_WHY_MAX] = "";
	if (argc != 8)
		return EXIT_FAILURE;
	ckt_log_level_parse(argv[7], &level);
	ckt_log_init("cricket-server", level, NULL);
	prctl(PR_SET_NAME, "cricket-tls");
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	signal(SIGPIPE, SIG_IGN);
	/* Nobody waits for the children. */
	signal(SIGCHLD, SIG_IGN);
	/* What systemd sends to all of its unit is the server's to answer. */
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	keeper.settings = (struct ckt_tls_settings){
		.certificate = argv[2], .key = argv[3], .ca = *argv[4] ? argv[4] : NULL};
	set_crl(argv[4]);
	keeper.uid = (uid_t)strtoul(argv[5], NULL, 10);
	keeper.gid = (gid_t)strtoul(argv[6], NULL, 10);
	int result = load(message, sizeof message);
	if (send(CKT_TLS_PROCESS_FD, message, result ? strlen(message) : 1, MSG_NOSIGNAL) < 1 ||
		result)
		return EXIT_FAILURE;
	for (bool gone = false; !gone;) {
		int fds[2];
		if (receive(fds, &gone))
			take_one(fds);
	}
	return EXIT_SUCCESS;
}
