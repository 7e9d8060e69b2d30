/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the program maps itself, when a session is made again.
 *
 * Threading: the thread that restores.
 */
#pragma once

struct ckt_loading;

/* What the program mapped of other sessions, once that is there. */
int ckt_vmm_load_imported(struct ckt_loading *l);
