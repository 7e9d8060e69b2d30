/* SPDX-License-Identifier: Apache-2.0 */
/* What systemd hears of the server. */
#pragma once

/* Tells systemd, where it asked to be told. */
void ckt_systemd_notify(const char *state);
