/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl top on a terminal, by ncurses: the table of the sessions, read again and again, and
 * keys.
 *
 * Threading: a thread of its own reads the server, so that keys never wait for it.
 */
#pragma once

#include "ctl/top/top_sample.h"

/*
 * Draws until q is pressed.  source: open, and stays the caller's.  An exit code, with the error
 * printed: stdin or stdout is no terminal, or ncurses does not know it.
 */
int ckt_ctl_top_screen(struct ckt_top_source *source, int delay_ms);
