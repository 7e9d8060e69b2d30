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
 * All of them or none: 0; -EINVAL where one may not travel; -EBUSY where a library is open and one
 * is other than it was then (the same again, as after a new connection, is 0).
 */
int ckt_environment_take(const ckt_environment_args *args);
/* What was taken, for an image; valid until the next one. */
const ckt_environment_args *ckt_environment_settings(void);
