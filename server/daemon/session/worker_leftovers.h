/* SPDX-License-Identifier: Apache-2.0 */
/* What workers left that are gone. */
#pragma once

struct ckt_server;

/* Removes it from /dev/shm. */
void ckt_leftovers_sweep(const struct ckt_server *server);
