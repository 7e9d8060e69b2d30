/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attempts, as tables by subject.  An attempt returns 0 if it got in, or -errno.  It undoes
 * what it did where it got in, for the cage may be off.
 *
 * expected.txt says of each how it must end, for each kind of cage.
 */
#pragma once

struct ckt_escape_attempt {
	const char *name;
	int (*run)(void);
};

/* Each ends with an entry without a name. */
extern const struct ckt_escape_attempt ckt_escape_processes[], ckt_escape_files[],
	ckt_escape_network[], ckt_escape_sockets[], ckt_escape_kernel[], ckt_escape_resources[];

/* Lets go of threads and memory that the last attempts of ckt_escape_resources[] hold. */
void ckt_escape_let_go(void);
