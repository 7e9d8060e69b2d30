/* SPDX-License-Identifier: Apache-2.0 */
/* What a signal that ends cricketctl removes. */
#pragma once

/*
 * A directory that SIGINT, SIGTERM and SIGHUP remove before they end us; two at one time: an image in
 * the making, and what of it is plain in memory.
 */
void ckt_ctl_cleanup_add(const char *path);
/* It stays, or is gone.  One that was not added is fine. */
void ckt_ctl_cleanup_drop(const char *path);
