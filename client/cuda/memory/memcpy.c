/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies.  To the device: the bytes are read at call time and sent in batched calls.  To the host:
 * each piece is a call whose reply holds the bytes.  A synchronous copy waits for its last piece.
 * An asynchronous copy to pinned memory continues in the background.  The worker sends its pieces
 * before the reply to any call that tells the program that the copy is done.
 */
#include <stdlib.h>
#include <string.h>

#include "client/cuda/memory/memcpy.h"
#include "base/fork.h"
#include "client/conn/conn.h"
#include "client/cuda/call.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/lane_copy.h"
#include "client/cuda/memory/managed.h"
#include "client/cuda/memory/mapped.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/memory/registered.h"
#include "client/cuda/memory/two_servers.h"
#include "client/cuda/stream/hostfunc.h"
#include "client/cuda/stream/stream.h"
#include "cudacommon/capture.h"

enum { WINDOW = 16 }; /* pieces of one copy that await their replies at once */
#define BY_MESSAGE_MAX ((uint64_t)16 << 10)

/* A copy to the host that is not complete. */
struct to_host {
	struct to_host *next, *prev;
	struct ckt_conn *conn;
	uint64_t begin, end; /* the host memory it writes */
	_Atomic uint32_t outstanding;
	_Atomic CUresult error;
	uint64_t exec; /* of a graph's copy: the executable graph; else 0 */
	uint64_t last; /* the number of the latest piece's call */
	/* every piece has been sent: the last reply of a detached copy frees it */
	bool issued;
	bool detached;
};

struct piece {
	struct to_host *copy;
	uint8_t *dst;
	uint64_t dst_pitch;
	uint32_t width, height;
};

static CKT_LOCK(list_lock);
static struct to_host list = {.next = &list, .prev = &list};
static _Atomic uint32_t list_count;

static void enter(struct to_host *copy)
{
	pthread_mutex_lock(&list_lock);
	copy->next = &list;
	copy->prev = list.prev;
	copy->prev->next = copy;
	list.prev = copy;
	pthread_mutex_unlock(&list_lock);
	atomic_fetch_add(&list_count, 1);
}

static void leave(struct to_host *copy)
{
	pthread_mutex_lock(&list_lock);
	copy->prev->next = copy->next;
	copy->next->prev = copy->prev;
	pthread_mutex_unlock(&list_lock);
	atomic_fetch_sub(&list_count, 1);
}

struct span {
	uint64_t begin, end;
	struct ckt_conn *conn;
};

static bool settled(void *data)
{
	const struct span *span = data;
	bool clear = !ckt_lane_copies_write(span->conn, span->begin, span->end);
	pthread_mutex_lock(&list_lock);
	for (struct to_host *copy = list.next; copy != &list; copy = copy->next)
		if (copy->conn == span->conn && copy->begin < span->end && span->begin < copy->end)
			clear = false;
	pthread_mutex_unlock(&list_lock);
	return clear;
}

void ckt_client_copy_settle(const void *address, uint64_t size)
{
	struct span span = {
		.begin = (uint64_t)(uintptr_t)address, .end = (uint64_t)(uintptr_t)address + size};
	bool any = atomic_load(&list_count) || ckt_lane_copies_any();
	for (unsigned i = 0; i < ckt_conn_count && any; i++) {
		span.conn = ckt_conns[i];
		ckt_conn_wait_until(span.conn, settled, &span);
	}
}

/* ---- To the host */

static void piece_done(void *data, CUresult result, struct ckt_cursor *results)
{
	struct piece *piece = data;
	struct to_host *copy = piece->copy;
	struct ckt_memcpy_dtoh_res res;
	if (!result &&
		(!ckt_memcpy_dtoh_res_get(results, &res) ||
			res.data_len != (uint64_t)piece->width * piece->height))
		result = CUDA_ERROR_UNKNOWN;
	if (!result)
		for (uint32_t row = 0; row < piece->height; row++)
			memcpy(piece->dst + row * piece->dst_pitch,
				res.data + (size_t)row * piece->width, piece->width);
	CUresult none = CUDA_SUCCESS;
	if (result)
		atomic_compare_exchange_strong(&copy->error, &none, result);
	free(piece);
	pthread_mutex_lock(&list_lock);
	bool last = atomic_fetch_sub(&copy->outstanding, 1) == 1 && copy->issued && copy->detached;
	pthread_mutex_unlock(&list_lock);
	if (last) {
		none = CUDA_SUCCESS;
		if (copy->error)
			atomic_compare_exchange_strong(&copy->conn->deferred, &none, copy->error);
		leave(copy);
		free(copy);
	}
}

static bool window_open(void *data)
{
	return atomic_load(&((struct to_host *)data)->outstanding) < WINDOW;
}

static bool all_done(void *data)
{
	return atomic_load(&((struct to_host *)data)->outstanding) == 0;
}

static CUresult send_piece(struct to_host *copy, const struct piece *what, uint64_t src,
	uint64_t src_pitch, const struct ckt_array_place *array, uint64_t stream)
{
	struct ckt_call call;
	struct piece *piece = malloc(sizeof *piece);
	if (!piece)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*piece = *what;
	CUresult result;
	if (copy->exec) {
		struct ckt_graph_fetch_args args = {.exec = copy->exec,
			.stream = stream,
			.address = src,
			.pitch = src_pitch,
			.width = what->width,
			.height = what->height};
		result = ckt_call_begin(&call, CKT_PROC_GRAPH_FETCH,
			ckt_graph_fetch_args_size(&args), CKT_CALL_F_NUMBERED);
		if (!result)
			ckt_graph_fetch_args_put(call.p, &args);
	} else if (array->id) {
		struct ckt_memcpy_atoh_args args = {.array = array->id,
			.level = array->level,
			.x = src,
			.y = array->y,
			.z = array->z,
			.width = what->width,
			.height = what->height,
			.stream = stream};
		result = ckt_call_begin(&call, CKT_PROC_MEMCPY_ATOH,
			ckt_memcpy_atoh_args_size(&args), CKT_CALL_F_NUMBERED);
		if (!result)
			ckt_memcpy_atoh_args_put(call.p, &args);
	} else if (what->height == 1) {
		struct ckt_memcpy_dtoh_args args = {
			.src = src, .size = what->width, .stream = stream};
		result = ckt_call_begin(&call, CKT_PROC_MEMCPY_DTOH,
			ckt_memcpy_dtoh_args_size(&args), CKT_CALL_F_NUMBERED);
		if (!result)
			ckt_memcpy_dtoh_args_put(call.p, &args);
	} else {
		struct ckt_memcpy2d_dtoh_args args = {.src = src,
			.src_pitch = src_pitch,
			.width = what->width,
			.height = what->height,
			.stream = stream};
		result = ckt_call_begin(&call, CKT_PROC_MEMCPY2D_DTOH,
			ckt_memcpy2d_dtoh_args_size(&args), CKT_CALL_F_NUMBERED);
		if (!result)
			ckt_memcpy2d_dtoh_args_put(call.p, &args);
	}
	if (result) {
		free(piece);
		return result;
	}
	atomic_fetch_add(&copy->outstanding, 1);
	copy->last = call.seq;
	ckt_call_async(&call, piece_done, piece);
	return CUDA_SUCCESS;
}

/*
 * Packs the rows directly into the ring at p, behind the fixed part of the arguments.  That part
 * ends with the length of the rows.
 */
static CUresult queue_rows(struct ckt_call *call, uint8_t *p, const struct ckt_copy2d *c,
	uint64_t first, uint64_t rows)
{
	uint32_t size = (uint32_t)(rows * c->width);
	ckt_put_u32(p - 4, size);
	for (uint64_t i = 0; i < rows; i++, p += c->width)
		memcpy(p, (const uint8_t *)(uintptr_t)c->src + (first + i) * c->src_pitch,
			c->width);
	memset(p, 0, ckt_padded(size) - size);
	return ckt_call_queue(call);
}

/* Copies rows of c->width bytes, which is at most CKT_DATA_MAX: issue_rows cuts wider rows. */
static CUresult issue_to_host(struct to_host *copy, const struct ckt_copy2d *c, uint64_t stream)
{
	uint64_t rows_at_once = c->width ? CKT_DATA_MAX / c->width : 1;
	CUresult result = CUDA_SUCCESS;
	struct ckt_array_place array = c->array;
	for (uint64_t row = 0; row < c->height && !result; row += rows_at_once) {
		uint64_t rows = c->height - row < rows_at_once ? c->height - row : rows_at_once;
		array.y = c->array.y + row;
		ckt_call_wait_until(window_open, copy);
		result = send_piece(copy,
			&(struct piece){.copy = copy,
				.dst = (uint8_t *)(uintptr_t)(c->dst + row * c->dst_pitch),
				.dst_pitch = c->dst_pitch,
				.width = (uint32_t)c->width,
				.height = (uint32_t)rows},
			c->src + row * c->src_pitch, c->src_pitch, &array, stream);
	}
	return result;
}

/* Sends a wide row in pieces of CKT_DATA_MAX, and narrow rows several at once. */
static CUresult issue_rows(const struct ckt_copy2d *c, uint64_t stream,
	CUresult (*issue)(void *data, const struct ckt_copy2d *c, uint64_t stream), void *data)
{
	if (c->width <= CKT_DATA_MAX)
		return issue(data, c, stream);
	CUresult result = CUDA_SUCCESS;
	for (uint64_t row = 0; row < c->height; row++) {
		for (uint64_t x = 0; x < c->width && !result; x += CKT_DATA_MAX) {
			struct ckt_copy2d part = *c;
			part.dst += row * c->dst_pitch + x;
			part.src += row * c->src_pitch + x;
			part.array.y += row;
			part.width = c->width - x < CKT_DATA_MAX ? c->width - x : CKT_DATA_MAX;
			part.height = 1;
			result = issue(data, &part, stream);
		}
	}
	return result;
}

static CUresult issue_to_host_adapter(void *data, const struct ckt_copy2d *c, uint64_t stream)
{
	return issue_to_host(data, c, stream);
}

/* Copies slice by slice; depth 0 counts as one slice. */
static CUresult issue_slices(const struct ckt_copy2d *c, uint64_t stream, bool to_host,
	CUresult (*issue)(void *data, const struct ckt_copy2d *c, uint64_t stream), void *data)
{
	struct ckt_copy2d slice = *c;
	CUresult result = issue_rows(&slice, stream, issue, data);
	for (uint64_t z = 1; z < c->depth && !result; z++) {
		*(to_host ? &slice.dst : &slice.src) += c->memory_slice;
		slice.array.z++;
		result = issue_rows(&slice, stream, issue, data);
	}
	return result;
}

static CUresult copy_to_host(const struct ckt_copy2d *c, uint64_t exec, uint64_t stream)
{
	uint64_t extent = (c->height - 1) * c->dst_pitch + c->width +
		(c->depth ? c->depth - 1 : 0) * c->memory_slice;
	/*
	 * The memory of a graph's copy may have been mapped since its capture.  Then it must stay
	 * open until the bytes arrive.
	 */
	bool opened = exec && ckt_client_host_open(c->dst, extent, true);
	/* A copy to shared memory is not in the background: later kernels must find the bytes. */
	bool background = (exec && !opened) ||
		(c->async && !opened && ckt_range_is_pinned((void *)(uintptr_t)c->dst, extent) &&
			!ckt_range_is_shared(c->dst, extent));
	struct to_host *copy = calloc(1, sizeof *copy);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy->conn = ckt_call_conn;
	copy->begin = c->dst;
	copy->end = c->dst + extent;
	copy->detached = background;
	copy->exec = exec;
	enter(copy);
	CUresult result = issue_slices(c, stream, true, issue_to_host_adapter, copy);
	if (!background || result) {
		ckt_call_wait_until(all_done, copy);
		ckt_lanes_settle(copy->conn);
		if (!result)
			result = copy->error;
		if (!result && !exec)
			ckt_client_stream_done(stream, copy->last + 1);
		leave(copy);
		free(copy);
		return result;
	}
	pthread_mutex_lock(&list_lock);
	copy->issued = true;
	bool finished = atomic_load(&copy->outstanding) == 0;
	pthread_mutex_unlock(&list_lock);
	if (finished) {
		result = copy->error;
		leave(copy);
		free(copy);
	}
	return result;
}

CUresult ckt_client_copy_fetch(const struct ckt_copy2d *c, uint64_t exec, uint64_t stream)
{
	return copy_to_host(c, exec, stream);
}

/* ---- When a copy returns */

/*
 * Whether copies with this memory must be synchronous: the program asked for it
 * (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), or it can observe the copy in shared memory.
 */
static bool is_sync(uint64_t address)
{
	struct ckt_client_range range;
	return ckt_range_find(address, &range) && (range.sync || range.shared);
}

/*
 * The program may write mapped memory as soon as a copy from it returns.  That write reaches the
 * device on another path.
 */
static bool is_mapped(uint64_t address)
{
	struct ckt_client_range range;
	return ckt_range_find(address, &range) && range.mapped;
}

/*
 * Whether work may exist that does not wait for this copy from the host.  CUDA promises that the
 * bytes are on the device when the call returns; work that waits for the copy's stream cannot tell.
 */
static bool is_seen_at_once(const struct ckt_copy2d *c, uint64_t stream)
{
	return (c->array.id || c->dst_device) && !c->src_device &&
		(stream > ckt_handle_id(CU_STREAM_LEGACY) || ckt_stream_beside);
}

/*
 * A synchronous copy is waited for if the program could tell the difference.  Other copies may
 * continue.
 */
static bool is_waited_for(const struct ckt_copy2d *c, uint64_t stream)
{
	return !c->async &&
		(ckt_registered_any() || is_seen_at_once(c, stream) || is_sync(c->dst) ||
			(c->src_device && (is_sync(c->src) || is_mapped(c->src))));
}

static CUresult finish(CUresult result, const struct ckt_copy2d *c, uint64_t stream)
{
	return result || !is_waited_for(c, stream) ? result : ckt_client_stream_wait(stream);
}

/* ---- To the device */

static CUresult issue_to_device(void *unused, const struct ckt_copy2d *c, uint64_t stream)
{
	if (c->height == 1)
		return CKT_BATCHED(memcpy_htod, MEMCPY_HTOD, .dst = c->dst, .stream = stream,
			.data = (const uint8_t *)(uintptr_t)c->src, .data_len = (uint32_t)c->width);
	uint64_t rows_at_once = CKT_DATA_MAX / c->width;
	CUresult result = CUDA_SUCCESS;
	for (uint64_t row = 0; row < c->height && !result; row += rows_at_once) {
		uint64_t rows = c->height - row < rows_at_once ? c->height - row : rows_at_once;
		struct ckt_memcpy2d_htod_args args = {.dst = c->dst + row * c->dst_pitch,
			.dst_pitch = c->dst_pitch,
			.width = (uint32_t)c->width,
			.height = (uint32_t)rows,
			.stream = stream};
		struct ckt_call call;
		result = ckt_call_begin(&call, CKT_PROC_MEMCPY2D_HTOD,
			ckt_memcpy2d_htod_args_size(&args) + ckt_padded(rows * c->width),
			CKT_CALL_F_BATCHED);
		if (!result)
			result = queue_rows(
				&call, ckt_memcpy2d_htod_args_put(call.p, &args), c, row, rows);
	}
	return result;
}

static CUresult issue_to_array(void *unused, const struct ckt_copy2d *c, uint64_t stream)
{
	uint64_t rows_at_once = CKT_DATA_MAX / c->width;
	CUresult result = CUDA_SUCCESS;
	for (uint64_t row = 0; row < c->height && !result; row += rows_at_once) {
		uint64_t rows = c->height - row < rows_at_once ? c->height - row : rows_at_once;
		struct ckt_memcpy_htoa_args args = {.array = c->array.id,
			.level = c->array.level,
			.x = c->dst,
			.y = c->array.y + row,
			.z = c->array.z,
			.width = (uint32_t)c->width,
			.height = (uint32_t)rows,
			.stream = stream};
		struct ckt_call call;
		result = ckt_call_begin(&call, CKT_PROC_MEMCPY_HTOA,
			ckt_memcpy_htoa_args_size(&args) + ckt_padded(rows * c->width),
			CKT_CALL_F_BATCHED);
		if (!result)
			result = queue_rows(
				&call, ckt_memcpy_htoa_args_put(call.p, &args), c, row, rows);
	}
	return result;
}

CUresult ckt_client_copy_to_array(const struct ckt_copy2d *c, uint64_t stream)
{
	ckt_client_copy_settle((void *)(uintptr_t)c->src,
		(c->height - 1) * c->src_pitch + c->width +
			(c->depth ? c->depth - 1 : 0) * c->memory_slice);
	return finish(issue_slices(c, stream, false, issue_to_array, NULL), c, stream);
}

CUresult ckt_client_copy_send(uint64_t dst, const void *data, uint64_t size, uint64_t stream)
{
	struct ckt_copy2d c = {
		.dst = dst, .src = (uint64_t)(uintptr_t)data, .width = size, .height = 1};
	return issue_rows(&c, stream, issue_to_device, NULL);
}

static CUresult copy_to_device(const struct ckt_copy2d *c, uint64_t stream)
{
	/* A copy in the background may still write the source. */
	ckt_client_copy_settle(
		(void *)(uintptr_t)c->src, (c->height - 1) * c->src_pitch + c->width);
	return issue_rows(c, stream, issue_to_device, NULL);
}

static CUresult copy_host_to_host(const struct ckt_copy2d *c, uint64_t stream)
{
	CUresult result =
		CKT_WAITED(stream_synchronize, STREAM_SYNCHRONIZE, 0, NULL, .stream = stream);
	if (result)
		return result;
	ckt_client_copy_settle(
		(void *)(uintptr_t)c->src, (c->height - 1) * c->src_pitch + c->width);
	ckt_client_copy_settle(
		(void *)(uintptr_t)c->dst, (c->height - 1) * c->dst_pitch + c->width);
	for (uint64_t row = 0; row < c->height; row++)
		memmove((uint8_t *)(uintptr_t)c->dst + row * c->dst_pitch,
			(const uint8_t *)(uintptr_t)c->src + row * c->src_pitch, c->width);
	return CUDA_SUCCESS;
}

/*
 * Precondition: ckt_capture_enter succeeded.  Captures pointers: the bytes are read at the launch.
 */
static CUresult capture(struct ckt_capture_stream *capturing, const struct ckt_copy2d *c)
{
	struct ckt_node *node;
	CUresult result = ckt_capture_append(capturing, CU_GRAPH_NODE_TYPE_MEMCPY, &node);
	if (result)
		return result;
	node->copy = (CUDA_MEMCPY3D){
		.srcMemoryType = c->src_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
		.srcHost = (void *)(uintptr_t)c->src,
		.srcDevice = c->src,
		.srcPitch = c->src_pitch,
		.srcHeight = c->height,
		.dstMemoryType = c->dst_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
		.dstHost = (void *)(uintptr_t)c->dst,
		.dstDevice = c->dst,
		.dstPitch = c->dst_pitch,
		.dstHeight = c->height,
		.WidthInBytes = c->width,
		.Height = c->height,
		.Depth = 1};
	return CUDA_SUCCESS;
}

/*
 * With unified addressing, CUDA accepts pinned memory where it expects a device address.  The copy
 * then uses the host's path.
 */
bool ckt_client_copy_side_is_right(
	const char *what, uint64_t address, bool *device, uint64_t extent)
{
	if (!*device)
		return address;
	if (!ckt_range_is_device(address, extent) &&
		ckt_range_is_pinned((void *)(uintptr_t)address, extent)) {
		*device = false;
		return true;
	}
	return ckt_range_require_device(what, address, extent);
}

static CUresult copy_on_device(const struct ckt_copy2d *c, uint64_t stream)
{
	if (c->height == 1)
		return CKT_BATCHED(memcpy_dtod, MEMCPY_DTOD, .dst = c->dst, .src = c->src,
			.size = c->width, .stream = stream);
	return CKT_BATCHED(memcpy2d_dtod, MEMCPY2D_DTOD, .dst = c->dst, .dst_pitch = c->dst_pitch,
		.src = c->src, .src_pitch = c->src_pitch, .width = c->width, .height = c->height,
		.stream = stream);
}

/*
 * The GPU can write shared memory itself.  But the program waits for a synchronous copy anyway, and
 * a small one is faster inside a reply.  Copies from shared memory cannot use a message: it would
 * hold the source as it was before the stream reached the copy.
 */
static void prefer_message(struct ckt_copy2d *c)
{
	if (c->async || !c->dst_device || !c->src_device || c->width * c->height >= BY_MESSAGE_MAX)
		return;
	if (ckt_range_is_shared(c->dst, 1) && !ckt_range_is_shared(c->src, 1))
		c->dst_device = false;
}

CUresult ckt_client_copy_2d(const struct ckt_copy2d *asked)
{
	struct ckt_copy2d own = *asked, *c = &own;
	uint64_t stream, dst_extent, src_extent;
	if (__builtin_expect(ckt_conn_count > 1, 0) && ckt_client_copy_is_between(asked))
		return ckt_client_copy_between(asked);
	CKT_ROUTE_STREAM(c->stream);
	CUresult result = ckt_stream_resolve(c->stream, &stream);
	if (result)
		return result;
	if (!c->width || !c->height)
		return CUDA_SUCCESS;
	if (c->height > 1 && (c->dst_pitch < c->width || c->src_pitch < c->width))
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_mul_overflow(c->height - 1, c->dst_pitch, &dst_extent) ||
		__builtin_add_overflow(dst_extent, c->width, &dst_extent) ||
		__builtin_mul_overflow(c->height - 1, c->src_pitch, &src_extent) ||
		__builtin_add_overflow(src_extent, c->width, &src_extent))
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_copy_side_is_right("copy to", c->dst, &c->dst_device, dst_extent) ||
		!ckt_client_copy_side_is_right("copy from", c->src, &c->src_device, src_extent))
		return CUDA_ERROR_INVALID_VALUE;
	c->dst_device = c->dst_device || ckt_registered_side(&c->dst, dst_extent);
	c->src_device = c->src_device || ckt_registered_side(&c->src, src_extent);
	struct ckt_capture_stream *capturing;
	result = ckt_capture_enter(stream, &capturing);
	if (result)
		return result;
	if (capturing)
		return ckt_graph_leave(capture(capturing, c));
	/* A thread that captures must not make a synchronous copy. */
	if (!c->async && (result = ckt_capture_unsafe()))
		return result;
	prefer_message(c);
	if (!c->dst_device || !c->src_device)
		ckt_host_settle();
	if (c->src_device && (result = ckt_managed_before_access(c->src, src_extent, false)))
		return result;
	if (c->dst_device && (result = ckt_managed_before_access(c->dst, dst_extent, true)))
		return result;
	if (ckt_large_copy(c, stream, is_waited_for(c, stream), &result))
		return finish(result, c, stream);
	if (c->dst_device)
		return finish(c->src_device ? copy_on_device(c, stream) : copy_to_device(c, stream),
			c, stream);
	result = c->src_device ? copy_to_host(c, 0, stream) : copy_host_to_host(c, stream);
	return c->async ? result : ckt_registered_after_wait(result, 0);
}

CUresult ckt_client_copy(uint64_t dst, bool dst_device, uint64_t src, bool src_device,
	uint64_t size, CUstream stream, bool async)
{
	return ckt_client_copy_2d(&(struct ckt_copy2d){.dst = dst,
		.src = src,
		.dst_pitch = size,
		.src_pitch = size,
		.width = size,
		.height = 1,
		.dst_device = dst_device,
		.src_device = src_device,
		.stream = stream,
		.async = async});
}
