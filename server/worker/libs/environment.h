/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of the session for its libraries: variables of the program's environment
 * (rpc/library_environment.h), which a genuine library finds in the worker's when it is opened.
 *
 * Threading: the executor's, or who restores; setenv() is no thread's beside it, because no library
 * is open before.
 */
#pragma once

#include "rpc/session.h"

/*
 * Sets all of them or none: 0; -EINVAL if one is not allowed; -EBUSY if a library is open and one
 * differs from its value then (the same values again, as after a new connection, give 0).
 */
int ckt_worker_environment_take(const ckt_environment_args *args);
/* The accepted settings, for an image; valid until the next ones. */
const ckt_environment_args *ckt_worker_environment_settings(void);
