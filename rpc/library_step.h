/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of forwarded libraries that an image keeps, so that a restore makes them again
 * (server/worker/libs/state.h).  The values are in images.
 */
#pragma once

enum ckt_lib_step_kind { CKT_LIB_CREATE = 1, CKT_LIB_SET = 2, CKT_LIB_CAPTURE = 3 };

/* What has become of a created object. */
enum ckt_lib_life {
	CKT_LIB_ALIVE = 0,
	CKT_LIB_USED = 1, /* destroyed, but a captured call uses it as it was */
	CKT_LIB_PAST = 2, /* destroyed, and only part of the history of addresses */
};
