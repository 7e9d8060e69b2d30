/* SPDX-License-Identifier: Apache-2.0 */
/* The client's records of executable graphs. */
#pragma once

#include <stdbool.h>

#include "cudacommon/graph.h"

struct ckt_client_exec {
	struct ckt_exec exec;
	bool has_host_memory; /* the graph copies from or to the client's memory */
	unsigned host_nodes;
};
