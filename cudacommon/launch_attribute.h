/*
 * Attributes of launches and streams, as both libraries take them; what CUDA answers was seen on an
 * H200 (tests/truth/api/launch_attributes.txt, stream_attributes.txt).
 */
#pragma once

#include "cudacommon/interface.h"

/*
 * CUDA_SUCCESS where the launch may bring the attribute along.  capturing: it becomes a node.
 * Whether a device has what the attribute asks for is its driver's to say.
 */
CUresult ckt_launch_attribute_check(const CUlaunchAttribute *attribute, bool capturing);
/* The event that the launch records, or NULL; ret_edge is what waits for it in a graph. */
CUevent ckt_launch_attribute_event(const CUlaunchAttribute *attribute, CUgraphEdgeData *ret_edge);
/*
 * Whether a node that came of the launch keeps it: not what says how the launch is ordered, which
 * edges say in a graph.
 */
bool ckt_launch_attribute_stays(const CUlaunchAttribute *attribute);

/* ---- Of streams */

bool ckt_stream_attribute_known(CUstreamAttrID attribute);
/* What a stream has that nothing was set of. */
CUstreamAttrValue ckt_stream_attribute_fresh(CUstreamAttrID attribute);
/* window_bytes: the device's limit of an access-policy window; 0 where it has none. */
CUresult ckt_stream_attribute_check(
	CUstreamAttrID attribute, const CUstreamAttrValue *value, int window_bytes);
