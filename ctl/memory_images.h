/* SPDX-License-Identifier: Apache-2.0 */
/* Images in the server's memory: image list, image remove memory:NAME. */
#pragma once

struct ckt_ctl_args;

int ckt_ctl_kept_list(const struct ckt_ctl_args *args);
int ckt_ctl_kept_remove(const struct ckt_ctl_args *args);
