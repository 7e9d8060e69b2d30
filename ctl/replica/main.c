/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricket-replicator HOST LEASE_MS DIR: sends chains of automatic images to another server, for the
 * server at the other end of descriptor 3 (server/daemon/durable/replicator.h has the lines).
 *
 *	main thread    reads lines; sends the images of one session after the other
 *	lease thread   has a connection of its own, so that no transfer delays a lease
 *
 * It ends with its server, and then no lease is renewed.  What went wrong stands in the last line
 * of its own stderr, a file in memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl/replica/replica.h"

int main(int argc, char **argv)
{
	struct replicator replicator = {.lock = PTHREAD_MUTEX_INITIALIZER};
	if (argc != 4) {
		fprintf(stderr, "cricket-replicator: cricket-server starts this program\n");
		return 2;
	}
	int said = memfd_create("stderr", 0);
	if (said < 0 || dup2(said, STDERR_FILENO) < 0)
		return EXIT_FAILURE;
	replicator.args.server = argv[1];
	replicator.lease_ms = (unsigned)strtoul(argv[2], NULL, 10);
	replicator.directory = argv[3];
	return ckt_replicator_run(&replicator);
}
