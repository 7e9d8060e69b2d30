/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server for tests of the client's connection: speaks greeting and hello, then counts and answers
 * whatever comes.
 *
 * It checks what a worker checks: numbered calls arrive in order, without a gap; each is "executed"
 * once.  It can drop the connection after a number of records or withhold replies.  One thread; the
 * counters may be read from others.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct fake_server {
	char path[64], other_path[64];
	/* the second one is where the session lives once `parked` is set */
	int listener, other_listener;
	pthread_t thread;
	_Atomic uint64_t executed; /* last executed number */
	_Atomic uint64_t records;
	_Atomic uint64_t gaps;     /* numbers that came too late or too early: must stay 0 */
	_Atomic uint64_t replayed; /* answered from the store */
	_Atomic uint64_t connections, other_connections; /* all; at the second listener */
	uint8_t *record; /* being handled: found by who looks for leaks in a forked child */
	_Atomic uint64_t byes;
	_Atomic uint64_t bytes_to_device;
	_Atomic uint64_t drop_every; /* close the connection after so many records; 0: never */
	/* when dropping, execute the call but keep its reply from the client */
	_Atomic bool lose_reply;
	/* answer an ACK late, with what had been executed when it came */
	_Atomic bool slow_ack;
	_Atomic bool refuse;             /* say NO_SESSION to every RESUME */
	_Atomic bool behind;             /* say in every RESUME that less was executed than was */
	_Atomic uint64_t behind_records; /* that came all the same */
	_Atomic bool parked;             /* say PARKED to every RESUME at the first listener */
	_Atomic uint64_t parked_answers;
	/* once: after the next record, tell the client to be quiet and close the connection */
	_Atomic bool quiesce;
	uint64_t stored_seq[4096];
	uint64_t next_address;
};

void fake_server_start(struct fake_server *server);
