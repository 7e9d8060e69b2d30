/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing a server by what servers report, as cricketctl place does. */
#pragma once

#include "ctl/command.h"

/* One of the addresses, for `least-loaded`; NULL: none of them can take a program now. */
const char *ckt_ctl_place_least_loaded(
	const struct ckt_ctl_args *args, const char *const *addresses, unsigned count);
