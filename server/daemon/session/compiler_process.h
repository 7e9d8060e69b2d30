/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that compiles kernels for the workers of a server with the soft GPU, so that workers
 * need not execute a compiler (server/worker/compiler/compile_server.h says what it does).
 *
 *	init -> running --it ends--> gone --after a while--> running ...
 *
 * If it ends, the sessions that live then interpret the kernels that they have not compiled yet;
 * later ones get the next process.  It outlives us for as long as a worker has its socket.
 *
 * Threading: the loop's thread.
 */
#pragma once

struct ckt_compiler;
struct ckt_server;

/* Starts it where workers have a cage; without it sessions do as well. */
void ckt_compiler_init(struct ckt_server *server);
void ckt_compiler_fini(struct ckt_server *server);
/* A worker's end of a new connection, the caller's; -1: no process runs, or compiler is NULL. */
int ckt_compiler_connect(struct ckt_compiler *compiler);
