/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that compiles the soft GPU's kernels for the workers of one server: cricket-worker
 * --compiler, started by the server (server/daemon/session/compiler_process.h) with its control
 * socket as descriptor 3.
 *
 *	server   one byte, a worker's socket --->
 *	worker   request, text               --->   a compilation each, some at a time (compile_job.h)
 *	         <--- answer, object
 *
 * A worker has one request at a time: the next one stays in its socket.  What is no request costs
 * the worker its socket.  The process ends once the server and all workers are gone, so workers of
 * a server that was restarted keep it.  One thread.
 */
#pragma once

/* Takes over the descriptor.  The exit status. */
int ckt_compile_server_main(int control);
