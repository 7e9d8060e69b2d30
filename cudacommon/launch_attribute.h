/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of launches and streams that both libraries accept; CUDA's answers were recorded on an
 * H200 (tests/truth/api/launch_attributes.txt, stream_attributes.txt).
 */
#pragma once

#include "cudacommon/interface.h"

/*
 * CUDA_SUCCESS if the launch may have the attribute.  capturing: the launch becomes a node.  The
 * driver decides whether a device supports the attribute.
 */
CUresult ckt_launch_attribute_check(const CUlaunchAttribute *attribute, bool capturing);
/*
 * The event that the launch records, or NULL; ret_edge is the kind of edge that waits for it in a
 * graph.
 */
CUevent ckt_launch_attribute_event(const CUlaunchAttribute *attribute, CUgraphEdgeData *ret_edge);
/*
 * Whether the launch's node keeps the attribute.  In a graph, edges define the order, so attributes
 * about order are dropped.
 */
bool ckt_launch_attribute_stays(const CUlaunchAttribute *attribute);

/* ---- Of streams */

bool ckt_stream_attribute_known(CUstreamAttrID attribute);
/* The attribute's value in a new stream. */
CUstreamAttrValue ckt_stream_attribute_fresh(CUstreamAttrID attribute);
/* window_bytes: the device's limit of an access-policy window; 0 if it has none. */
CUresult ckt_stream_attribute_check(
	CUstreamAttrID attribute, const CUstreamAttrValue *value, int window_bytes);
