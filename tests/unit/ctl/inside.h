/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl's subcommands inside the test, against a server that answers what a test tells it to.
 */
#pragma once

#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ctl/command.h"
#include "rpc/session.h"
#include "rpc/wire.h"
#include "tests/unit/suite.h"

extern char directory[64]; /* everything lies in it */
extern char address[96];   /* of the server; args->server */

/* One call that came. */
struct seen {
	uint32_t proc;
	bool fd;
	uint8_t args[512];
	size_t size;
};

/* How a procedure is answered; res NULL: a zeroed status, where `answer` gives none. */
struct reply {
	xdrproc_t xdr;
	void *res;
	/*
	 * Where not NULL: decides instead, from the arguments and the descriptor that came; false:
	 * hang up.
	 */
	bool (*answer)(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res);
};

extern struct reply replies[96];
extern struct seen seen[64];
extern _Atomic unsigned seen_count;
/* What the hello is answered. */
extern ckt_hello_status hello_status;

/* Runs a subcommand; what it said is in out and err. */
extern char out[8192], err[8192];
/* words, NULL */
int run(int (*command)(const struct ckt_ctl_args *args), struct ckt_ctl_args args, ...);
/* Forgets calls and answers. */
void begin(void);
/* Procedures of the calls that came are these, in order. */
void calls_are(const uint32_t *procs, unsigned count);
bool decode(unsigned call, xdrproc_t xdr, void *ret_args);

char *path_in(const char *name);
void write_file(const char *path, const char *text);
const char *read_file(const char *path);
bool exists(const char *path);
/*
 * An image in a directory, made where it is missing: its id is 16 times that byte; its ancestors',
 * newest first.
 */
void image_in(int dir_fd, uint8_t id, const char *ancestors);
void image_make(const char *path, uint8_t id, const char *ancestors);
