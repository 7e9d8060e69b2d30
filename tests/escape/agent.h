/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a worker that misbehaves: a thread in a cricket-worker of a test, which tries what a
 * worker in a cage must not be able to do.  It is linked into cricket-worker-escape alone, which is
 * neither installed nor bundled (test `escape`; tests/bundle/check.py).
 *
 * The thread starts behind the cage, where main() of the worker calls ckt_worker_control_start(),
 * and waits for plans: escape-plan-1, -2 and so on in the directory of CRICKET_INSIDE, which a worker may
 * read and the test can write; lines of a key, a space and a value.
 *
 *	attacker PID            who is meant; others wait for theirs
 *	attempt NAME            once for each; see attempts.h
 *	victim PID, server PID, uid UID, and paths: see the attempts
 *
 * A worker that waits also looks for escape-knock, with the lines "knocker PID" and "port PORT": the
 * one that is meant connects to that port of its own loopback, and says "escape: worker PID knocked at
 * PORT: RESULT" in the log.  By it the listener of another owner's worker is called from outside.
 *
 * It begins by making the file /dev/shm/escape-PID, and with the line "escape: worker PID address A abstract
 * NAME driver PATH" in the worker's log: what another worker's attempts on this one need.  Each answer is a line of the worker's log, "escape: NAME RESULT": 0 for "got in", or what errno
 * said.  The line "escape: plan N done, of M attempts" follows.  What an attempt holds (threads, memory) is held
 * until the next plan.
 */
#pragma once

#include <stdbool.h>

/* The value of a key of the present plan; "" where it has none. */
const char *ckt_escape_told(const char *key);
/* As a number; 0 where it has none. */
long ckt_escape_told_number(const char *key);

/* Whether the test made this file in the directory of the plans. */
bool ckt_escape_is_there(const char *name);
/* Connects to the port of the own loopback.  0 or -errno. */
int ckt_escape_call(int port);
