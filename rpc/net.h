/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses, sockets and whole records, for set-up and control.  The command stream of a session
 * has its own buffers in client/conn and server/worker.  Both use rpc/transport/transport.h.
 *
 * Errors: 0 or -errno, -EPROTO for bytes that are not a record, -EMSGSIZE for a record above the
 * given bound, -ETIMEDOUT. Threading: no shared state.
 */
#pragma once

#include <rpc/rpc.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/bounds.h"
#include "rpc/wire.h"

enum { CKT_DEFAULT_PORT = 7350, CKT_ADDRESS_TEXT_MAX = 512 };

/* One place to connect to or listen on. */
struct ckt_address {
	enum { CKT_ADDRESS_TCP, CKT_ADDRESS_UNIX, CKT_ADDRESS_FILE } type;
	char host[256]; /* TCP: name or number, without brackets; UNIX and FILE: the path */
	uint16_t port;  /* TCP */
};

/*
 * `host`, `host:port`, `[v6]:port`, `unix:/path`, `file:PATH`.  Bad text: -EINVAL and a sentence in
 * ret_message.
 */
int ckt_address_parse(
	const char *text, struct ckt_address *ret_address, char *ret_message, size_t message_size);
/*
 * The servers of a list separated by commas, each in its canonical form: `a` becomes `a:7350`. Else
 * -errno and a sentence that names the address and the remedy: it is empty, listed twice, or not an
 * address.
 */
int ckt_address_split(const char *text, char ret_texts[CKT_SERVERS_MAX][CKT_ADDRESS_TEXT_MAX],
	unsigned *ret_count, char *ret_message, size_t message_size);
/* Writes the address as text. */
void ckt_address_format(const struct ckt_address *address, char *ret_text, size_t text_size);

/*
 * Connects within timeout_ms (all candidate addresses together); for `file:` it reads the address
 * from the file first. The descriptor is close-on-exec and blocking, with TCP_NODELAY; the caller
 * owns it.  ret_message gets the cause in words.
 */
int ckt_net_connect(const struct ckt_address *address, int timeout_ms, int *ret_fd,
	char *ret_message, size_t message_size);
/* The address that the file of a `file:` address holds; it is not another file. */
int ckt_net_read_address_file(
	const char *path, struct ckt_address *ret_address, char *ret_message, size_t message_size);
/*
 * What both ends of a TCP connection set: TCP_NODELAY and keep-alive (below).  ckt_net_connect
 * calls it; the server calls it for accepted connections.
 */
void ckt_net_prepare(int fd);
/*
 * A listening, non-blocking, close-on-exec socket.  UNIX: binds with the mode given; the path must
 * not exist.
 */
int ckt_net_listen(const struct ckt_address *address, int mode, int *ret_fd, char *ret_message,
	size_t message_size);
/*
 * Whether both ends are on one host and share descriptors: a UNIX socket, but no end of
 * ckt_net_pair.
 */
bool ckt_net_is_local(int fd);
/*
 * Two connected stream sockets, the caller's.  They stand for a TCP connection whose TLS ends in
 * another process or thread: nothing that a UNIX socket proves about its peer holds for them.
 */
int ckt_net_pair(int ret_fds[2]);
/* Whether it is an end of one; a copy is, too. */
bool ckt_net_is_pair(int fd);
/* The real address of a listening TCP socket (after port 0). */
int ckt_net_local_address(int fd, struct ckt_address *ret_address);

/*
 * ---- Peers that vanished without a word (transport/keep_alive.c); all of it does nothing to a UNIX socket
 */
enum { CKT_NET_VANISHED_MS = 26000 };
/*
 * An idle connection ends with ETIMEDOUT if its peer gives no sign for CKT_NET_VANISHED_MS.
 * ckt_net_connect calls it.
 */
void ckt_net_keep_alive(int fd);
/*
 * The connection also ends with ETIMEDOUT if the peer does not accept sent data within that time;
 * 0: no limit.
 */
void ckt_net_must_read(int fd, unsigned within_ms);
/* Whether unacknowledged data are in flight and the peer's host has given no sign for that long. */
bool ckt_net_vanished(int fd, unsigned after_ms);

/*
 * ---- Whole records on blocking or non-blocking sockets.  deadline_ms: CLOCK_MONOTONIC
 * milliseconds; -1 for none.
 */
int64_t ckt_net_now_ms(void);
/*
 * *ret_data is malloc'd, the caller frees it. ret_fd (may be NULL) gets a descriptor that came
 * along, or -1.
 */
int ckt_net_read_record(int fd, size_t max_bytes, int64_t deadline_ms, uint8_t **ret_data,
	size_t *ret_size, int *ret_fd);
/* pass_fd: -1 for none; stays the caller's. */
int ckt_net_write_record(
	int fd, const uint8_t *data, size_t size, int64_t deadline_ms, int pass_fd);

/* Whether it is a UNIX socket of sequenced packets, as the channels between server and worker are. */
bool ckt_net_is_packet_socket(int fd);

/* ---- One descriptor beside a message, on a UNIX socket */
union ckt_net_fd_room {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};
/*
 * The descriptor travels with the message and stays the caller's; -1: none.  *room lives as long as
 * the message.
 */
void ckt_net_fd_put(struct msghdr *message, union ckt_net_fd_room *room, int fd);
/* Before receiving a message: makes room for one descriptor.  Use MSG_CMSG_CLOEXEC. */
void ckt_net_fd_expect(struct msghdr *message, union ckt_net_fd_room *room);
/*
 * The received descriptor, now the caller's, or -1.  Closes any further one: the padding of the
 * room fits a second.
 */
int ckt_net_fd_take(struct msghdr *message);

/*
 * recvmsg() and recv(), begun again after a signal: a socket with SO_RCVTIMEO fails with EINTR even
 * where no handler ran, such as after SIGSTOP and SIGCONT (signal(7)).
 */
ssize_t ckt_net_receive_message(int fd, struct msghdr *message, int flags);
ssize_t ckt_net_receive(int fd, void *data, size_t size, int flags);

/*
 * ---- Small calls: header (AUTH_CRICKET, not numbered) + xdr(args) -> record; caller frees
 * *ret_data.  args may be NULL with xdr_void.
 */
int ckt_net_encode_call(uint32_t xid, uint32_t prog, uint32_t proc, xdrproc_t xdr_args, void *args,
	uint8_t **ret_data, size_t *ret_size);
int ckt_net_encode_reply(uint32_t xid, uint64_t executed, xdrproc_t xdr_res, void *res,
	uint8_t **ret_data, size_t *ret_size);
/*
 * The reverse: xdr-decodes what follows the header; *ret must be zeroed before, and freed with
 * xdr_free after success.
 */
int ckt_net_decode(const struct ckt_cursor *c, xdrproc_t xdr, void *ret);
/*
 * Sends a call and reads its reply (one outstanding call at a time). -EPROTO if the reply belongs
 * to another call or is not accepted.
 */
int ckt_net_call(int fd, uint32_t prog, uint32_t proc, xdrproc_t xdr_args, void *args,
	xdrproc_t xdr_res, void *ret_res, int64_t deadline_ms, int pass_fd);
/* Its two halves, for a caller that does something in between. */
int ckt_net_ask(int fd, uint32_t prog, uint32_t proc, xdrproc_t xdr_args, void *args,
	int64_t deadline_ms, int pass_fd, uint32_t *ret_xid);
int ckt_net_answer(int fd, uint32_t xid, xdrproc_t xdr_res, void *ret_res, int64_t deadline_ms);
