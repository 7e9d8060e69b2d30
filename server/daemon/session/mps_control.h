/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to a control daemon of MPS, by its control program, nvidia-cuda-mps-control without an option: one
 * command in, its answer out.
 *
 *	get_server_list               process IDs of the daemon's servers, one a line
 *	get_client_list SERVER        process IDs of that server's clients
 *	terminate_client SERVER PID   what the client has on the GPU ends, and its context
 *	quit                          the daemon and its servers end
 *
 * For a child of the server's (spawn_group.h): nothing here allocates.  Each question ends after
 * CKT_MPS_ASK_MS.  Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ckt_mps_control {
	const char *program;            /* its path */
	const char *const *environment; /* names the daemon by CUDA_MPS_PIPE_DIRECTORY */
};

enum { CKT_MPS_ASK_MS = 2000 };

/* 0, or -errno: -EIO if the program says no, -ETIMEDOUT.  The answer ends with 0, and is cut if it is too long. */
int ckt_mps_control_ask(const struct ckt_mps_control *control, const char *command,
	char *ret_answer, size_t answer_size);
/* Asks until the daemon answers; false: it did not within this time. */
bool ckt_mps_control_is_there(const struct ckt_mps_control *control, int timeout_ms);
/* By whichever server has that client.  0; -ESRCH: none has; or as ckt_mps_control_ask. */
int ckt_mps_control_terminate(const struct ckt_mps_control *control, pid_t client);
