/*
 * cricketctl: a table of subcommands, one file each: connect, call one procedure, print.
 *
 * A subcommand gets its parsed arguments and gives back the exit code; what went wrong has been said on stderr by then.
 */
#pragma once

#include <jansson.h>
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "rpc/control.h"
#include "rpc/net.h"

/* The contract with scripts. */
enum {
	CKT_EXIT_DONE = 0,
	CKT_EXIT_REFUSED = 1,
	CKT_EXIT_USAGE = 2,
	CKT_EXIT_NO_SERVER = 3,
	CKT_EXIT_NO_SESSION = 4,
};

struct ckt_ctl_args {
	const char *server;		/* --server; NULL: REMOTE_GPU_ADDRESS, then the local socket */
	bool json, help, version;
	bool stop;			/* checkpoint --stop */
	const char *deadline;		/* checkpoint --deadline SECONDS */
	const char *gpu;		/* restore --gpu N */
	const char *command;		/* the subcommand */
	char *const *words;		/* what follows it; not owned */
	int word_count;
};

struct ckt_ctl_command {
	const char *name;
	int min_words, max_words;
	bool rest;			/* everything from the first word on is a command of the user's, options included */
	const char *options;		/* space separated long options of its own */
	const char *synopsis;
	const char *help;
	int (*run)(const struct ckt_ctl_args *args);
};

int ckt_ctl_ps(const struct ckt_ctl_args *args);
int ckt_ctl_info(const struct ckt_ctl_args *args);
int ckt_ctl_kill(const struct ckt_ctl_args *args);
int ckt_ctl_stats(const struct ckt_ctl_args *args);
int ckt_ctl_doctor(const struct ckt_ctl_args *args);
int ckt_ctl_checkpoint(const struct ckt_ctl_args *args);
int ckt_ctl_restore(const struct ckt_ctl_args *args);

/* args.c: CKT_EXIT_DONE or CKT_EXIT_USAGE with the reason said. ret_command is NULL with --help or --version alone. */
int ckt_ctl_parse(const struct ckt_ctl_command *commands, int argc, char **argv, struct ckt_ctl_args *ret_args,
		  const struct ckt_ctl_command **ret_command);

/* ---- server.c */
struct ckt_ctl_server {
	int fd;
	bool is_unix;
	char address[CKT_ADDRESS_TEXT_MAX];	/* for messages */
};

/* An exit code, with the reason in ret_message (cause and remedy in one sentence). */
int ckt_ctl_try_connect(const struct ckt_ctl_args *args, struct ckt_ctl_server *ret_server, char *ret_message, size_t message_size);
/* The same, said. */
int ckt_ctl_connect(const struct ckt_ctl_args *args, struct ckt_ctl_server *ret_server);
/* As above, and over the server's UNIX socket, because a descriptor has to travel. */
int ckt_ctl_connect_unix(const struct ckt_ctl_args *args, struct ckt_ctl_server *ret_server);
void ckt_ctl_disconnect(struct ckt_ctl_server *server);
/* One call; ret_result is zeroed by the caller and freed with xdr_free.  timeout_ms -1: as long as it takes. An exit code; said. */
int ckt_ctl_call(struct ckt_ctl_server *server, uint32_t proc, xdrproc_t xdr_args, void *args, xdrproc_t xdr_result, void *ret_result,
		 int timeout_ms, int pass_fd);
/* The exit code for what the server answered; a refusal is said. */
int ckt_ctl_result(const ckt_control_result *result);
/* Whether the text has the form of a session or of a prefix of one; CKT_EXIT_NO_SESSION with the reason said. */
int ckt_ctl_check_session(const char *text);
/* Connects and checks. */
int ckt_ctl_connect_for(const struct ckt_ctl_args *args, const char *session, struct ckt_ctl_server *ret_server);

/* ---- print.c */
const char *ckt_ctl_state_name(unsigned state);
/* "1.5 GiB", "0 B" */
const char *ckt_ctl_size_text(uint64_t bytes, char *buffer, size_t size);
/* "2026-11-21T04:55:00Z" */
const char *ckt_ctl_time_text(int64_t seconds, char *buffer, size_t size);
/* Text of a peer's, with control characters replaced: it goes to a terminal. */
const char *ckt_ctl_clean(const char *text, char *buffer, size_t size);
/* JSON strings must be UTF-8; what is not is replaced. */
json_t *ckt_ctl_json_text(const char *text);
/* Prints and frees; CKT_EXIT_DONE, or CKT_EXIT_REFUSED where stdout is full. */
int ckt_ctl_json_print(json_t *value);
int ckt_ctl_flush(void);
