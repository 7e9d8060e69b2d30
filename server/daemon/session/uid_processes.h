/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a user id that workers had: how to end all of them, whatever they do against
 * it.  Threading: none; for a child of the server's (uid_clean.h).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Sends SIGKILL to all of them in one system call, so that none can fork its way past it, and empties
 * the keyring of the user.  user_namespace: see user_namespace.h.  0, or -errno: none is known to
 * be dead.
 */
int ckt_uid_processes_kill(uid_t uid, int user_namespace);
/* Whether one of them is left that is not dead.  Zombies of a careless init do not count. */
bool ckt_uid_processes_any(uid_t uid);
