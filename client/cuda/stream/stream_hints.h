/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's settings beyond its flags: the attributes that a stream keeps. */
#pragma once

#include <cuda.h>

#include <stdbool.h>

struct ckt_stream_hints {
	CUaccessPolicyWindow window;
	CUsynchronizationPolicy policy; /* 0: never set */
	CUlaunchMemSyncDomain domain;
	CUlaunchMemSyncDomainMap map;
	bool map_set;
	int priority; /* initially the priority from the stream's creation */
};

/* Finds a stream's attributes: the stream's own, or the context's for the default stream. */
CUresult ckt_client_stream_hints(CUstream stream, struct ckt_stream_hints **ret_hints);
