/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a session may be saved or moved without others.
 *
 * Threading: any.
 */
#pragma once

#include <stddef.h>

struct ckt_worker;

/*
 * 0, or -EBUSY with what ties it to other sessions, and the remedy: an image of it alone could not
 * be restored.  A session that is held with its job passes, because the others are saved too.
 */
int ckt_separable_check(struct ckt_worker *worker, char *ret_message, size_t message_size);
