/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What concerns no operation: the library itself, memory, registrations, and the program's
 * operators; see nccl.h.
 */
#include <stdlib.h>
#include <string.h>

#include "client/libs/nccl/nccl.h"
#include "base/fork.h"

/* ---- The library */

CKT_LIB_EXPORT ncclResult_t ncclGetVersion(int *version)
{
	const struct ckt_client_table *client;
	if (!version)
		return ncclInvalidArgument;
	client = ckt_client();
	/*
	 * Natively that needs no GPU, and a program may ask before it forks: a context is not made
	 * for it.
	 */
	bool there = client && client->context() && ckt_nccl_enter(&client) == ncclSuccess &&
		ckt_nccl_version();
	*version = there ? (int)ckt_nccl_version() : NCCL_VERSION_CODE;
	return ncclSuccess;
}

CKT_LIB_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId)
{
	const struct ckt_client_table *client;
	struct ckt_call call;
	struct ckt_reply reply;
	struct ckt_ncclGetUniqueId_res res;
	if (!uniqueId)
		return ncclInvalidArgument;
	ncclResult_t status = ckt_nccl_enter(&client);
	if (status)
		return status;
	CUresult result = client->begin(
		&call, CKT_LIB_PROC(CKT_LIB_NCCL, CKT_NCCL_PROC_NCCLGETUNIQUEID), 0, 0);
	if (!result)
		result = client->wait(&call, &reply);
	if (result)
		return ckt_nccl_status(result);
	bool whole = ckt_ncclGetUniqueId_res_get(&reply.results, &res) &&
		res.id_len == CKT_NCCL_ID_BYTES;
	status = whole ? (ncclResult_t)res.status : ncclInternalError;
	if (!status)
		memcpy(uniqueId, res.id, CKT_NCCL_ID_BYTES);
	client->release(&reply);
	return status;
}

/* The genuine library's words, of NCCL 2.28 and 2.30. */
CKT_LIB_EXPORT const char *ncclGetErrorString(ncclResult_t result)
{
	static const char *const words[] = {"no error",
		"unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
		"unhandled system error (run with NCCL_DEBUG=INFO for details)",
		"internal error - please report this issue to the NCCL developers",
		"invalid argument (run with NCCL_DEBUG=WARN for details)",
		"invalid usage (run with NCCL_DEBUG=WARN for details)",
		"remote process exited or there was a network error", "NCCL operation in progress",
		"timeout"};
	return (unsigned)result < sizeof words / sizeof *words ? words[result]
							       : "unknown result code";
}

CKT_LIB_EXPORT const char *ncclGetLastError(ncclComm_t comm)
{
	static __thread char text[CKT_NCCLGETLASTERROR_RES_TEXT_MAX + 1];
	const struct ckt_client_table *client = ckt_client();
	const struct ckt_nccl_handle *handle = ckt_nccl_handle(comm);
	struct ckt_ncclGetLastError_args args = {.comm = handle ? handle->object.id : 0};
	struct ckt_call call;
	struct ckt_reply reply;
	struct ckt_ncclGetLastError_res res;
	*text = 0;
	/* Before the first call there is none, and no session need be made to say so. */
	if (!client || !ckt_nccl_version())
		return text;
	CUresult result =
		CKT_NCCL_BEGIN(client, &call, NCCLGETLASTERROR, ncclGetLastError, &args, 0);
	if (!result) {
		call.p = ckt_ncclGetLastError_args_put(call.p, &args);
		result = client->wait(&call, &reply);
	}
	if (result)
		return text;
	if (ckt_ncclGetLastError_res_get(&reply.results, &res)) {
		memcpy(text, res.text, res.text_len);
		text[res.text_len] = 0;
	}
	client->release(&reply);
	return text;
}

/* ---- Memory: the session's, as any other */

enum { GRANULARITY = 2 << 20, ALIGNMENT = NCCL_WIN_REQUIRED_ALIGNMENT };

struct piece {
	struct piece *next;
	uint64_t address, base;
};

static CKT_LOCK(lock);
static struct piece *pieces;

CKT_LIB_EXPORT ncclResult_t ncclMemAlloc(void **ptr, size_t size)
{
	const struct ckt_client_table *client;
	/* The genuine library leaves these to cudaMalloc. */
	if (!ptr || size > SIZE_MAX - GRANULARITY - ALIGNMENT)
		return ncclUnhandledCudaError;
	if (!size) {
		*ptr = NULL;
		return ncclSuccess;
	}
	ncclResult_t status = ckt_nccl_enter(&client);
	struct piece *piece = status ? NULL : malloc(sizeof *piece);
	if (!piece)
		return status ? status : ncclSystemError;
	/* Windows begin on pages, and blocks need not. */
	size_t whole = (size + GRANULARITY - 1) / GRANULARITY * GRANULARITY + ALIGNMENT;
	CUresult result = client->workspace_alloc(whole, &piece->base);
	if (result) {
		free(piece);
		return ncclUnhandledCudaError;
	}
	piece->address = (piece->base + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	*ptr = (void *)(uintptr_t)piece->address;
	pthread_mutex_lock(&lock);
	piece->next = pieces;
	pieces = piece;
	pthread_mutex_unlock(&lock);
	return ncclSuccess;
}

CKT_LIB_EXPORT ncclResult_t ncclMemFree(void *ptr)
{
	const struct ckt_client_table *client;
	ncclResult_t status = ckt_nccl_enter(&client);
	uint64_t base = (uintptr_t)ptr;
	if (status || !ptr)
		return status;
	pthread_mutex_lock(&lock);
	for (struct piece **link = &pieces; *link; link = &(*link)->next) {
		struct piece *piece = *link;
		if (piece->address != base)
			continue;
		base = piece->base;
		*link = piece->next;
		free(piece);
		break;
	}
	pthread_mutex_unlock(&lock);
	return ckt_nccl_status(client->workspace_free(base)) ? ncclUnhandledCudaError : ncclSuccess;
}

/*
 * Registered memory is mapped by the other ranks' workers, who would get the extent that it lies
 * in, and keep what a pause moves to the host.  So nothing is registered, as with
 * NCCL_LOCAL_REGISTER=0: collectives go through NCCL's own buffers.  Handles are what a program
 * sees of NCCL's own registrations all the same: one for a range, and for what lies within it,
 * counted, and gone with the communicator.
 */
enum { PAGE = 4096 };

struct registration {
	struct registration *next;
	const struct ckt_nccl_handle *comm;
	uint64_t begin, end;
	unsigned refs;
};

static struct registration *registrations;

/* Precondition: locked. */
static struct registration *registration_of(
	const struct ckt_nccl_handle *comm, uint64_t begin, uint64_t end)
{
	struct registration *r = registrations;
	while (r && (r->comm != comm || r->begin > begin || r->end < end))
		r = r->next;
	return r;
}

CKT_LIB_EXPORT ncclResult_t ncclCommRegister(
	const ncclComm_t comm, void *buff, size_t size, void **handle)
{
	struct ckt_nccl_handle *own;
	uint64_t begin = (uintptr_t)buff / PAGE * PAGE, end = (uintptr_t)buff + size;
	ncclResult_t status = handle ? ckt_nccl_ready(comm, &own) : ncclInvalidArgument;
	if (status)
		return status;
	end = (end + PAGE - 1) / PAGE * PAGE;
	pthread_mutex_lock(&lock);
	struct registration *r = registration_of(own, begin, end);
	if (!r && (r = malloc(sizeof *r))) {
		*r = (struct registration){
			.next = registrations, .comm = own, .begin = begin, .end = end};
		registrations = r;
	}
	if (r) {
		r->refs++;
		*handle = r;
	}
	pthread_mutex_unlock(&lock);
	return r ? ncclSuccess : ncclSystemError;
}

CKT_LIB_EXPORT ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
	struct ckt_nccl_handle *own;
	ncclResult_t status = ckt_nccl_ready(comm, &own);
	if (status || !handle)
		return status;
	pthread_mutex_lock(&lock);
	struct registration **link = &registrations;
	while (*link && (*link != handle || (*link)->comm != own))
		link = &(*link)->next;
	struct registration *r = *link;
	if (r && !--r->refs) {
		*link = r->next;
		free(r);
	}
	pthread_mutex_unlock(&lock);
	return r ? ncclSuccess : ncclInvalidUsage;
}

void ckt_nccl_registrations_drop(const struct ckt_nccl_handle *comm)
{
	pthread_mutex_lock(&lock);
	for (struct registration **link = &registrations; *link;) {
		struct registration *r = *link;
		if (r->comm != comm) {
			link = &r->next;
			continue;
		}
		*link = r->next;
		free(r);
	}
	pthread_mutex_unlock(&lock);
}

/* No window is what NCCL gives where it has no use for one. */
CKT_LIB_EXPORT ncclResult_t ncclCommWindowRegister(
	ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags)
{
	struct ckt_nccl_handle *own;
	ncclResult_t status =
		win && buff && size ? ckt_nccl_ready(comm, &own) : ncclInvalidArgument;
	(void)winFlags;
	if (!status)
		*win = NULL;
	return ckt_nccl_note(status);
}

CKT_LIB_EXPORT ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
	struct ckt_nccl_handle *own;
	return ckt_nccl_note(win ? ncclInvalidArgument : ckt_nccl_ready(comm, &own));
}

/* ---- Operators: the numbers are ours */

static size_t type_bytes(ncclDataType_t type)
{
	switch (type) {
	case ncclInt64:
	case ncclUint64:
	case ncclFloat64:
		return 8;
	case ncclInt32:
	case ncclUint32:
	case ncclFloat32:
		return 4;
	case ncclFloat16:
	case ncclBfloat16:
		return 2;
	default:
		return 1;
	}
}

static ncclResult_t send_operator(
	const struct ckt_nccl_handle *comm, struct ckt_nccl_operator_args *args)
{
	const struct ckt_client_table *client;
	struct ckt_call call;
	int answer = 0;
	ncclResult_t status = ckt_nccl_enter(&client);
	if (status)
		return status;
	args->comm = comm->object.id;
	uint64_t before = client->context();
	client->use_context(comm->object.context);
	CUresult result = CKT_NCCL_BEGIN(
		client, &call, NCCL_OPERATOR, nccl_operator, args, CKT_CALL_F_BATCHED);
	if (!result) {
		call.p = ckt_nccl_operator_args_put(call.p, args);
		result = client->queue_status(&call, &answer);
	}
	client->use_context(before);
	return ckt_nccl_answer(result, answer);
}

CKT_LIB_EXPORT ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar,
	ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm)
{
	struct ckt_nccl_handle *handle;
	uint8_t value[8] = {0};
	uint64_t address = (uintptr_t)scalar;
	uint32_t number = 0;
	ncclResult_t status = ckt_nccl_ready(comm, &handle);
	if (status || !op || !scalar || (unsigned)datatype >= ncclNumTypes ||
		(unsigned)residence > ncclScalarHostImmediate)
		return status ? status : ncclInvalidArgument;
	while (number < CKT_NCCL_OPERATORS_MAX &&
		handle->operators[number / 64] & 1ull << number % 64)
		number++;
	if (number == CKT_NCCL_OPERATORS_MAX)
		return ncclSystemError;
	if (residence == ncclScalarDevice)
		memcpy(value, &address, sizeof address);
	else
		memcpy(value, scalar, type_bytes(datatype));
	struct ckt_nccl_operator_args args = {.operator= CKT_NCCL_OPERATORS + number,
		.type = (uint32_t)datatype,
		.residence = (uint32_t)residence,
		.scalar = value,
		.scalar_len = sizeof value};
	status = send_operator(handle, &args);
	if (status)
		return status;
	handle->operators[number / 64] |= 1ull << number % 64;
	*op = (ncclRedOp_t)(CKT_NCCL_OPERATORS + number);
	return ncclSuccess;
}

CKT_LIB_EXPORT ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
	struct ckt_nccl_handle *handle;
	uint32_t number = (uint32_t)op - CKT_NCCL_OPERATORS;
	ncclResult_t status = ckt_nccl_ready(comm, &handle);
	if (status || (uint32_t)op < CKT_NCCL_OPERATORS || number >= CKT_NCCL_OPERATORS_MAX ||
		!(handle->operators[number / 64] & 1ull << number % 64))
		return status ? status : ncclInvalidArgument;
	handle->operators[number / 64] &= ~(1ull << number % 64);
	struct ckt_nccl_operator_args args = {
		.operator=(uint32_t) op, .residence = CKT_NCCL_OPERATOR_ENDS};
	return send_operator(handle, &args);
}
