/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint --every. */
#pragma once

struct ckt_ctl_args;

int ckt_ctl_every(const struct ckt_ctl_args *args);
