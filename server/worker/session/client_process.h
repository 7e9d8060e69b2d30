/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of a client on this host, as far as the kernel names it: a session whose program was
 * killed ends at once instead of waiting for it to come back.
 *
 * Only a UNIX socket tells who connected, and only where that process says the same of itself is it
 * the program's: a forwarder connects for another one, which may well be alive.
 *
 * Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * A descriptor of the process (pidfd) that connected this socket and calls itself claimed_pid; -1
 * if that is not known.
 */
int ckt_worker_client_process_open(int socket_fd, uint32_t claimed_pid);
/*
 * The same by its number, for kernels before 6.5: only while the socket is open, and for a process
 * that is older than this one.
 */
int ckt_worker_client_process_by_number(int socket_fd, int pid);
/* Whether it has ended; false if that is not known. */
bool ckt_worker_client_process_is_dead(int process_fd);
