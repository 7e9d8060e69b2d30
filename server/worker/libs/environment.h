/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session's settings for its libraries: variables of the program's environment
 * (rpc/library_environment.h) that a genuine library reads from the worker's environment when it is
 * opened.
 *
 * Threading: the executor or the restoring thread.  No other thread reads the environment during
 * setenv(), because no library is open yet.
 */
#pragma once

#include "rpc/session.h"

/*
 * Applies all settings or none.  0; -EINVAL if a setting is not allowed; -EBUSY if a library is
 * open and a setting differs from its current value.  Repeating the same values, as a new
 * connection does, returns 0.
 */
int ckt_worker_environment_take(const ckt_environment_args *args);
/* The accepted settings, for an image; valid until the next ckt_worker_environment_take. */
const ckt_environment_args *ckt_worker_environment_settings(void);
