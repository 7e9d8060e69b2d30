/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a user id that workers had fit for another owner: ends all its processes and removes what they
 * left.  A child does it, because it may take long and because it becomes that user.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* How the child ends. */
enum ckt_uid_clean_result { CKT_UID_CLEAN, CKT_UID_PROCESSES_LEFT, CKT_UID_FILES_LEFT };

/*
 * Precondition: root, or a user namespace that has the id (user_namespace.h).  The child's number, to be waited for
 * by the caller, or -errno.
 */
pid_t ckt_uid_clean_start(uid_t uid, int user_namespace);
/*
 * Before an id is drawn: false if it has processes, or files that cannot be removed.  Others are removed.
 */
bool ckt_uid_clean_now(uid_t uid, int user_namespace);
