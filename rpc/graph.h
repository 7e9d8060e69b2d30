/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a graph is described on the wire and in a checkpoint image: big-endian words, opaque parts
 * padded to four bytes, as XDR has it.
 *
 *	graph	u32 count, node * count; u32 count, edge * count
 *	node	u64 id | u32 type (CUgraphNodeType) | u64 context | opaque record<>
 *	edge	u32 from | u32 to (indices of nodes) | u32 from_port << 16 | to_port << 8 | type
 *
 *	record of a
 *	kernel	u64 function | u32 grid[3] | u32 block[3] | u32 shared_bytes | opaque attributes<> | opaque params<>
 *		attributes: u32 id and the 64 bytes of its CUlaunchAttributeValue, one behind the other
 *	memcpy	side src | side dst | u64 width | u64 height | u64 depth
 *		side: u32 memory type | u64 address | u64 x | u64 y | u64 z | u64 pitch | u64 height
 *		      of an array: its id in place of the address, the number of its level in place of the height
 *	memset	u64 dst | u64 pitch | u32 value | u32 element size | u64 width | u64 height
 *	host	empty: the function is the client's, known by the node's id
 *	graph	a graph
 *	event	u64 event (record and wait)
 *	alloc	u64 address | u64 size; the worker has the memory already and takes these two for empty nodes
 *	free	u64 address
 *	memop	u32 flags | operation * count, each u32 CUstreamBatchMemOpType | u32 flags | u64 address | u64 value
 *	conditional	u64 handle | u64 context | u32 value | u32 flags | u32 up | u32 CUgraphConditionalNodeType | u32 count, graph * count
 *		up: how many graphs around the node's own one the handle was made for
 *	empty	empty
 *	library	u64 call: a library call that the worker has captured under that id (CKT_GRAPH_NODE_LIBRARY; no type of CUDA's)
 *
 * The client also chooses a condition's handle, a random number.  The worker replaces it by the
 * driver's own handle wherever a kernel's parameters hold it at a multiple of eight bytes.
 *
 * Host addresses are the client's.  The worker has a buffer for each range that nodes touch;
 * overlapping ranges share one.
 */
#pragma once

enum {
	/* of a description: ten thousands of nodes with full parameters */
	CKT_GRAPH_BYTES_MAX = 256 << 20,
	CKT_GRAPH_NODES_MAX = 1 << 20,
	CKT_GRAPH_DEPTH_MAX = 16, /* child graphs and bodies inside one another */
	/* of a conditional node; cudacommon/graph.h has the same */
	CKT_GRAPH_BODIES_MAX = 1 << 16,
	CKT_GRAPH_ATTRIBUTE_BYTES = 64,
	CKT_GRAPH_CONDITIONAL_BYTES = 36, /* before the bodies */
	/* a node's type: a library call, which a child graph represents in CUDA */
	CKT_GRAPH_NODE_LIBRARY = 0x10000,
	CKT_MEMOP_BYTES = 24,
	CKT_MEMOPS_MAX = 256, /* of one batch: the driver's own bound */
};
