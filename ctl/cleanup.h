/* SPDX-License-Identifier: Apache-2.0 */
/* What a signal that ends cricketctl removes. */
#pragma once

/* The directory that SIGINT, SIGTERM and SIGHUP remove before they end us; NULL: none any more. */
void ckt_ctl_cleanup_set(const char *path);
