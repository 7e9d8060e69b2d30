/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between host and device in every variant. */
#include "driver.h"

CASE(plain)
{
	uint8_t out[32], back[32];
	CUdeviceptr p, q;
	start();
	p = memory(64);
	q = memory(64);
	numbers(out, sizeof(out), 1);
	CALL(cuMemcpyHtoD_v2, p, out, 16);
	CONTENT("bytes", p, 20);
	CALL(cuMemcpyDtoD_v2, q + 4, p, 8);
	CONTENT("bytes", q, 16);
	memset(back, 0xee, sizeof(back));
	CALL(cuMemcpyDtoH_v2, back, q, 12);
	BYTES("bytes", back, 16);
	CALL(cuMemcpy, q, p, 16);
	CONTENT("bytes", q, 20);
	CALL(cuMemcpy, (CUdeviceptr)(uintptr_t)back, p, 16);
	BYTES("bytes", back, 20);
	CALL(cuMemcpy, p, (CUdeviceptr)(uintptr_t)out + 8, 16);
	CONTENT("bytes", p, 20);
}

CASE(per_thread)
{
	uint8_t out[32], back[32];
	CUdeviceptr p, q;
	start();
	p = memory(64);
	q = memory(64);
	numbers(out, sizeof(out), 1);
	CALL(cuMemcpyHtoD_v2_ptds, p, out, 16);
	CONTENT("bytes", p, 20);
	CALL(cuMemcpyDtoD_v2_ptds, q + 4, p, 8);
	CONTENT("bytes", q, 16);
	memset(back, 0xee, sizeof(back));
	CALL(cuMemcpyDtoH_v2_ptds, back, q, 12);
	BYTES("bytes", back, 16);
	CALL(cuMemcpy_ptds, q, p, 16);
	CONTENT("bytes", q, 20);
	CALL(cuMemcpyHtoD_v2_ptds, 0x1234, out, 4);
	CALL(cuMemcpyDtoH_v2_ptds, NULL, p, 4);
}

CASE(async)
{
	uint8_t out[32], back[32];
	CUdeviceptr p, q;
	CUstream stream;
	start();
	p = memory(64);
	q = memory(64);
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	CALL(cuMemcpyHtoDAsync_v2, p, out, 16, stream);
	CALL(cuMemcpyDtoDAsync_v2, q + 4, p, 8, stream);
	CALL(cuMemcpyDtoHAsync_v2, back, q, 12, stream);
	CALL(cuStreamSynchronize, stream);
	BYTES("bytes", back, 16);
	CALL(cuMemcpyAsync, q, p, 16, stream);
	CONTENT("bytes", q, 20);
	CALL(cuMemcpyAsync, (CUdeviceptr)(uintptr_t)back, p + 4, 16, stream);
	CALL(cuStreamSynchronize, stream);
	BYTES("bytes", back, 20);
	CALL(cuMemcpyHtoDAsync_v2, p, out, 0, stream);
	CALL(cuMemcpyHtoDAsync_v2, p, NULL, 4, stream);
	CALL(cuMemcpyDtoHAsync_v2, NULL, p, 4, stream);
	CALL(cuMemcpyDtoDAsync_v2, 0, p, 4, stream);
}

CASE(async_per_thread)
{
	uint8_t out[32], back[32];
	CUdeviceptr p, q;
	start();
	p = memory(64);
	q = memory(64);
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	CALL(cuMemcpyHtoDAsync_v2_ptsz, p, out, 16, NULL);
	CALL(cuMemcpyDtoDAsync_v2_ptsz, q + 4, p, 8, NULL);
	CALL(cuMemcpyDtoHAsync_v2_ptsz, back, q, 12, NULL);
	CALL(cuStreamSynchronize_ptsz, NULL);
	BYTES("bytes", back, 16);
	CALL(cuMemcpyAsync_ptsz, q, p, 16, NULL);
	CALL(cuStreamSynchronize_ptsz, NULL);
	CONTENT("bytes", q, 20);
}

CASE(wrong)
{
	uint8_t data[16];
	CUdeviceptr p;
	start();
	p = memory(2 << 20);
	CALL(cuMemcpyHtoD_v2, p, NULL, 4);
	CALL(cuMemcpyHtoD_v2, 0, data, 4);
	CALL(cuMemcpyHtoD_v2, p, data, 0);
	CALL(cuMemcpyDtoH_v2, NULL, p, 4);
	CALL(cuMemcpyDtoH_v2, data, 0, 4);
	CALL(cuMemcpyDtoH_v2, data, 0x1234, 4);
	CALL(cuMemcpyDtoD_v2, p, 0, 4);
	CALL(cuMemcpyDtoD_v2, 0, p, 4);
	CALL(cuMemcpyDtoD_v2, 0, 0, 0);
	CALL(cuMemcpy, 0, 0, 4);
	CALL(cuMemcpy, 0, 0, 0);
	CALL(cuMemcpyDtoD_v2, p, p + (2 << 20), 4096);
}

static CUDA_MEMCPY2D two(CUdeviceptr to, size_t to_pitch, const void *from, size_t from_pitch,
	size_t width, size_t height)
{
	CUDA_MEMCPY2D c;
	memset(&c, 0, sizeof(c));
	c.srcMemoryType = CU_MEMORYTYPE_HOST;
	c.srcHost = from;
	c.srcPitch = from_pitch;
	c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.dstDevice = to;
	c.dstPitch = to_pitch;
	c.WidthInBytes = width;
	c.Height = height;
	return c;
}

CASE(two)
{
	uint8_t out[64], back[64];
	CUDA_MEMCPY2D c;
	CUdeviceptr p, q;
	CUstream stream;
	start();
	p = memory(256);
	q = memory(256);
	QUIET(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
	numbers(out, sizeof(out), 1);
	c = two(p, 16, out, 8, 6, 3);
	CALL(cuMemcpy2D_v2, &c);
	CONTENT("bytes", p, 48);
	c.dstXInBytes = 2;
	c.dstY = 1;
	c.srcXInBytes = 1;
	c.srcY = 2;
	CALL(cuMemcpy2DUnaligned_v2, &c);
	CONTENT("bytes", p, 64);
	CALL(cuMemcpy2DAsync_v2, &c, stream);
	QUIET(cuStreamSynchronize, stream);
	CONTENT("bytes", p, 64);
	memset(&c, 0, sizeof(c));
	c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.srcDevice = p;
	c.dstDevice = q;
	c.srcPitch = 16;
	c.dstPitch = 32;
	c.WidthInBytes = 12;
	c.Height = 3;
	CALL(cuMemcpy2D_v2, &c);
	CONTENT("bytes", q, 96);
	memset(back, 0xee, sizeof(back));
	c.dstMemoryType = CU_MEMORYTYPE_HOST;
	c.dstHost = back;
	c.dstPitch = 12;
	CALL(cuMemcpy2D_v2, &c);
	BYTES("bytes", back, sizeof(back));
	memset(back, 0xee, sizeof(back));
	c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	c.dstDevice = (CUdeviceptr)(uintptr_t)back;
	c.dstPitch = 16;
	CALL(cuMemcpy2DUnaligned_v2, &c);
	BYTES("bytes", back, sizeof(back));
}

CASE(two_per_thread)
{
	uint8_t out[64];
	CUDA_MEMCPY2D c;
	CUdeviceptr p;
	start();
	p = memory(256);
	numbers(out, sizeof(out), 1);
	c = two(p, 16, out, 8, 6, 3);
	CALL(cuMemcpy2D_v2_ptds, &c);
	CONTENT("bytes", p, 48);
	c.dstY = 3;
	CALL(cuMemcpy2DUnaligned_v2_ptds, &c);
	CONTENT("bytes", p, 96);
	c.dstY = 6;
	CALL(cuMemcpy2DAsync_v2_ptsz, &c, NULL);
	CONTENT("bytes", p, 144);
}

CASE(two_wrong)
{
	uint8_t out[64];
	CUDA_MEMCPY2D c;
	CUdeviceptr p;
	start();
	p = memory(256);
	c = two(p, 16, out, 8, 6, 3);
	c.dstPitch = 4;
	CALL(cuMemcpy2D_v2, &c);
	c = two(p, 16, out, 4, 6, 3);
	CALL(cuMemcpy2D_v2, &c);
	c = two(p, 16, out, 8, 0, 3);
	CALL(cuMemcpy2D_v2, &c);
	c = two(p, 16, out, 8, 6, 0);
	CALL(cuMemcpy2D_v2, &c);
	c = two(0, 16, out, 8, 6, 3);
	CALL(cuMemcpy2D_v2, &c);
	c = two(p, 16, NULL, 8, 6, 3);
	CALL(cuMemcpy2D_v2, &c);
	c = two(p, 16, out, 8, 6, 3);
	c.srcMemoryType = (CUmemorytype)9;
	CALL(cuMemcpy2D_v2, &c);
	CALL(cuMemcpy2D_v2, NULL);
	CALL(cuMemcpy2DAsync_v2, NULL, NULL);
}

static CUDA_MEMCPY3D three(CUdeviceptr to, const void *from)
{
	CUDA_MEMCPY3D c;
	memset(&c, 0, sizeof(c));
	c.srcMemoryType = CU_MEMORYTYPE_HOST;
	c.srcHost = from;
	c.srcPitch = 8;
	c.srcHeight = 4;
	c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.dstDevice = to;
	c.dstPitch = 16;
	c.dstHeight = 3;
	c.WidthInBytes = 6;
	c.Height = 2;
	c.Depth = 2;
	return c;
}

CASE(three)
{
	uint8_t out[128], back[64];
	CUDA_MEMCPY3D c;
	CUdeviceptr p;
	CUstream stream;
	start();
	p = memory(512);
	QUIET(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
	numbers(out, sizeof(out), 1);
	c = three(p, out);
	CALL(cuMemcpy3D_v2, &c);
	CONTENT("bytes", p, 96);
	c.dstXInBytes = 1;
	c.dstY = 1;
	c.dstZ = 1;
	c.srcXInBytes = 2;
	c.srcY = 1;
	c.srcZ = 1;
	CALL(cuMemcpy3DAsync_v2, &c, stream);
	QUIET(cuStreamSynchronize, stream);
	CONTENT("bytes", p, 192);
	memset(back, 0xee, sizeof(back));
	memset(&c, 0, sizeof(c));
	c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	c.srcDevice = p;
	c.srcPitch = 16;
	c.srcHeight = 3;
	c.dstMemoryType = CU_MEMORYTYPE_HOST;
	c.dstHost = back;
	c.dstPitch = 8;
	c.dstHeight = 2;
	c.WidthInBytes = 8;
	c.Height = 2;
	c.Depth = 2;
	CALL(cuMemcpy3D_v2, &c);
	BYTES("bytes", back, sizeof(back));
}

CASE(three_per_thread)
{
	uint8_t out[128];
	CUDA_MEMCPY3D c;
	CUdeviceptr p;
	start();
	p = memory(512);
	numbers(out, sizeof(out), 1);
	c = three(p, out);
	CALL(cuMemcpy3D_v2_ptds, &c);
	CONTENT("bytes", p, 96);
	c.dstZ = 2;
	CALL(cuMemcpy3DAsync_v2_ptsz, &c, NULL);
	CONTENT("bytes", p, 192);
	c.dstPitch = 3;
	CALL(cuMemcpy3D_v2_ptds, &c);
	CALL(cuMemcpy3D_v2, NULL);
}

CASE(peer)
{
	CUcontext context = start(), other = NULL;
	uint8_t out[32];
	CUdeviceptr p, q;
	p = memory(64);
	numbers(out, sizeof(out), 1);
	QUIET(cuMemcpyHtoD_v2, p, out, 32);
	QUIET(cuCtxCreate_v2, &other, 0, 0);
	q = memory(64);
	CALL(cuMemcpyPeer, q, other, p, context, 16);
	CONTENT("bytes", q, 20);
	CALL(cuMemcpyPeer_ptds, q + 16, other, p, context, 8);
	CONTENT("bytes", q, 28);
	CALL(cuMemcpyPeerAsync, q, other, p + 16, context, 8, NULL);
	CONTENT("bytes", q, 28);
	CALL(cuMemcpyPeerAsync_ptsz, q + 8, other, p + 16, context, 8, NULL);
	CONTENT("bytes", q, 28);
	CALL(cuMemcpyPeer, q, NULL, p, context, 16);
	CALL(cuMemcpyPeer, q, other, p, NULL, 16);
	CALL(cuMemcpyPeer, 0, other, p, context, 16);
	CALL(cuMemcpyPeer, q, other, p, context, 0);
}

CASE(three_peer)
{
	CUcontext context = start();
	uint8_t out[32];
	CUDA_MEMCPY3D_PEER c;
	CUdeviceptr p, q;
	p = memory(64);
	q = memory(64);
	numbers(out, sizeof(out), 1);
	QUIET(cuMemcpyHtoD_v2, p, out, 32);
	memset(&c, 0, sizeof(c));
	c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.srcDevice = p;
	c.dstDevice = q;
	c.srcContext = c.dstContext = context;
	c.srcPitch = 8;
	c.dstPitch = 16;
	c.srcHeight = c.dstHeight = 2;
	c.WidthInBytes = 6;
	c.Height = 2;
	c.Depth = 1;
	CALL(cuMemcpy3DPeer, &c);
	CONTENT("bytes", q, 32);
	c.dstXInBytes = 1;
	CALL(cuMemcpy3DPeer_ptds, &c);
	CONTENT("bytes", q, 32);
	c.dstXInBytes = 2;
	CALL(cuMemcpy3DPeerAsync, &c, NULL);
	CONTENT("bytes", q, 32);
	c.dstXInBytes = 3;
	CALL(cuMemcpy3DPeerAsync_ptsz, &c, NULL);
	CONTENT("bytes", q, 32);
	CALL(cuMemcpy3DPeer, NULL);
}

CASE(batch)
{
	uint8_t out[32], back[16];
	CUdeviceptr p, q, to[3], from[3];
	size_t sizes[3] = {8, 4, 6}, attribute_at[1] = {0}, failed = 77;
	CUmemcpyAttributes attributes[1];
	CUstream stream;
	start();
	p = memory(64);
	q = memory(64);
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	memset(attributes, 0, sizeof(attributes));
	attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	to[0] = p, from[0] = (CUdeviceptr)(uintptr_t)out;
	to[1] = q + 8, from[1] = q;
	to[2] = q + 32, from[2] = (CUdeviceptr)(uintptr_t)out + 4;
	CALL(cuMemcpyBatchAsync_v2, to, from, sizes, 3, attributes, attribute_at, 1, stream);
	QUIET(cuStreamSynchronize, stream);
	CONTENT("bytes", p, 12);
	CONTENT("bytes", q + 32, 12);
	CALL(cuMemcpyBatchAsync, to, from, sizes, 3, attributes, attribute_at, 1, &failed, stream);
	YES("failed changed", failed != 77);
	to[0] = (CUdeviceptr)(uintptr_t)back, from[0] = p;
	CALL(cuMemcpyBatchAsync_v2, to, from, sizes, 1, attributes, attribute_at, 1, stream);
	QUIET(cuStreamSynchronize, stream);
	BYTES("bytes", back, 16);
	CALL(cuMemcpyBatchAsync_v2, to, from, sizes, 1, attributes, attribute_at, 1, NULL);
	CALL(cuMemcpyBatchAsync_v2, to, from, sizes, 0, attributes, attribute_at, 1, stream);
	CALL(cuMemcpyBatchAsync_v2, to, from, sizes, 1, attributes, attribute_at, 0, stream);
	CALL(cuMemcpyBatchAsync_v2, NULL, from, sizes, 1, attributes, attribute_at, 1, stream);
	sizes[0] = 0;
	CALL(cuMemcpyBatchAsync_v2, to, from, sizes, 1, attributes, attribute_at, 1, stream);
}

CASE(batch_per_thread)
{
	CUdeviceptr p, q;
	size_t size = 8, at = 0, failed = 77;
	CUmemcpyAttributes attributes;
	CUstream stream;
	start();
	p = memory(64);
	q = memory(64);
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	QUIET(cuMemsetD8_v2, p, 3, 8);
	memset(&attributes, 0, sizeof(attributes));
	attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	CALL(cuMemcpyBatchAsync_v2_ptsz, &q, &p, &size, 1, &attributes, &at, 1, stream);
	CONTENT("bytes", q, 12);
	CALL(cuMemcpyBatchAsync_ptsz, &q, &p, &size, 1, &attributes, &at, 1, &failed, stream);
	CALL(cuMemcpyBatchAsync_v2_ptsz, &q, &p, &size, 1, &attributes, &at, 1, NULL);
}

static CUDA_MEMCPY3D_BATCH_OP box_op(CUdeviceptr to, CUdeviceptr from)
{
	CUDA_MEMCPY3D_BATCH_OP op;
	memset(&op, 0, sizeof(op));
	op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	op.src.op.ptr.ptr = from;
	op.dst.op.ptr.ptr = to;
	op.dst.op.ptr.rowLength = 6;
	op.dst.op.ptr.layerHeight = 3;
	op.extent.width = 4, op.extent.height = 2, op.extent.depth = 2;
	op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	return op;
}

CASE(boxes)
{
	uint8_t out[32];
	CUdeviceptr p, q;
	CUDA_MEMCPY3D_BATCH_OP ops[2];
	size_t failed = 77;
	CUstream stream;
	start();
	p = memory(64);
	q = memory(64);
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	numbers(out, sizeof(out), 1);
	QUIET(cuMemcpyHtoD_v2, p, out, 32);
	ops[0] = box_op(q, p);
	ops[1] = box_op(q + 36, p + 16);
	ops[1].extent.depth = 1;
	CALL(cuMemcpy3DBatchAsync_v2, 2, ops, 0, stream);
	CONTENT("bytes", q, 32);
	CONTENT("bytes", q + 32, 24);
	QUIET(cuMemsetD8_v2, q, 0xab, 64);
	CALL(cuMemcpy3DBatchAsync_v2_ptsz, 1, ops, 0, stream);
	CONTENT("bytes", q, 32);
	QUIET(cuMemsetD8_v2, q, 0xab, 64);
	CALL(cuMemcpy3DBatchAsync, 2, ops, &failed, 0, stream);
	CONTENT("bytes", q, 32);
	CALL(cuMemcpy3DBatchAsync_ptsz, 2, ops, &failed, 0, stream);
	YES("failed changed", failed != 77);
	CALL(cuMemcpy3DBatchAsync_v2, 0, ops, 0, stream);
	CALL(cuMemcpy3DBatchAsync_v2, 1, ops, 1, stream);
	CALL(cuMemcpy3DBatchAsync_v2, 1, NULL, 0, stream);
	ops[1].extent.width = 0;
	CALL(cuMemcpy3DBatchAsync, 2, ops, &failed, 0, stream);
	ops[0].dst.op.ptr.rowLength = 3;
	CALL(cuMemcpy3DBatchAsync_v2, 1, ops, 0, stream);
}

CASE(three_peer_own_stream)
{
	CUcontext context = start();
	uint8_t out[32];
	CUDA_MEMCPY3D_PEER c;
	CUdeviceptr p = memory(64), q = memory(64);
	numbers(out, sizeof(out), 1);
	QUIET(cuMemcpyHtoD_v2, p, out, 32);
	memset(&c, 0, sizeof(c));
	c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.srcDevice = p;
	c.dstDevice = q;
	c.srcContext = c.dstContext = context;
	c.srcPitch = 8;
	c.dstPitch = 16;
	c.srcHeight = c.dstHeight = 2;
	c.WidthInBytes = 6;
	c.Height = 2;
	c.Depth = 1;
	CALL(cuMemcpy3DPeer_ptds, &c);
	CONTENT("bytes", q, 32);
	c.dstXInBytes = 3;
	CALL(cuMemcpy3DPeerAsync_ptsz, &c, NULL);
	CONTENT("bytes", q, 32);
	c.dstPitch = 4;
	CALL(cuMemcpy3DPeer_ptds, &c);
	c.dstPitch = 16;
	c.dstDevice = 8;
	CALL(cuMemcpy3DPeerAsync_ptsz, &c, NULL);
}

CASE(batch_own_stream)
{
	CUdeviceptr p, q;
	size_t size = 8, at = 0;
	CUmemcpyAttributes attributes;
	start();
	p = memory(64);
	q = memory(64);
	QUIET(cuMemsetD8_v2, p, 3, 8);
	memset(&attributes, 0, sizeof(attributes));
	attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	CALL(cuMemcpyBatchAsync_v2_ptsz, &q, &p, &size, 1, &attributes, &at, 1,
		CU_STREAM_PER_THREAD);
	CONTENT("bytes", q, 12);
	CALL(cuMemcpyBatchAsync_v2_ptsz, &q, &p, &size, 1, &attributes, &at, 1, CU_STREAM_LEGACY);
	CALL(cuMemcpyBatchAsync_v2, &q, &p, &size, 1, &attributes, &at, 1, CU_STREAM_LEGACY);
	CALL(cuMemcpyBatchAsync_v2, &q, &p, &size, 1, &attributes, &at, 1, NULL);
}

/* Stream 0 of the forms whose default stream is the thread's own. */
CASE(batch_without_stream)
{
	CUdeviceptr p, q;
	size_t size = 8, at = 0, failed = 77;
	CUmemcpyAttributes attributes;
	CUDA_MEMCPY3D_BATCH_OP op;
	start();
	p = memory(64);
	q = memory(64);
	op = box_op(q, p);
	memset(&attributes, 0, sizeof(attributes));
	attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	CALL(cuMemcpyBatchAsync_ptsz, &q, &p, &size, 1, &attributes, &at, 1, &failed, NULL);
	CALL(cuMemcpyBatchAsync_v2_ptsz, &q, &p, &size, 1, &attributes, &at, 1, NULL);
	CALL(cuMemcpy3DBatchAsync_ptsz, 1, &op, &failed, 0, NULL);
	CALL(cuMemcpy3DBatchAsync_v2_ptsz, 1, &op, 0, NULL);
	CALL(cuMemcpy3DBatchAsync_v2_ptsz, 1, &op, 0, CU_STREAM_PER_THREAD);
	CALL(cuMemcpy3DBatchAsync_v2, 1, &op, 0, NULL);
	CALL(cuMemcpy3DBatchAsync_v2, 1, &op, 0, CU_STREAM_PER_THREAD);
}
