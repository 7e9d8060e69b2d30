/* SPDX-License-Identifier: Apache-2.0 */
/* The options of cricket-run; see run.h and base/option_table.h. */
#include "client/run/run.h"

const struct ckt_option run_option_table[RUN_OPTIONS] = {
	[RUN_OPTION_SERVER] = {"server", "ADDRESS",
		"host, host:port, unix:/path or file:PATH; otherwise REMOTE_GPU_ADDRESS. Several, separated by commas: the GPUs "
		"of all of them, in that order. local: runs COMMAND on this machine's own driver with Cricket's runtime, to "
		"compare; local:PATH on the libcuda.so.1 named",
		.letter = 's'},
	[RUN_OPTION_PLACE] = {"place", "POLICY",
		"use one of the servers, chosen by what they report: least-loaded, pack or spread"},
	[RUN_OPTION_REPLAY_MEMORY] = {"replay-memory", "SIZE",
		"make the session durable (CRICKET_DURABLE=1), and keep so much of its commands in memory before they "
		"go to a file in TMPDIR"},
	[RUN_OPTION_SOFT] = {"soft", NULL,
		"start a private server on the soft GPU and end it with COMMAND"},
	[RUN_OPTION_VERBOSE] = {"verbose", NULL,
		"log what the client library does (CRICKET_LOG=debug)", .letter = 'v'},
	[RUN_OPTION_HELP] = {"help", NULL, "this text", .letter = 'h'},
	[RUN_OPTION_VERSION] = {"version", NULL, "the version"},
};
