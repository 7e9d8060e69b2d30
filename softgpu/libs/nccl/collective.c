/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives, messages and operators: checks the arguments and adds the operation to the group. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/libs/common/driver.h"
#include "softgpu/libs/nccl/api.h"
#include "softgpu/libs/nccl/group.h"

static ncclResult_t invalid(const char *what)
{
	ckt_soft_nccl_comm_say("invalid argument: %s", what);
	return ncclInvalidArgument;
}

static ncclResult_t find_op(struct ncclComm *comm, ncclRedOp_t op, ncclDataType_t type,
	struct ckt_reduction *ret_reduction)
{
	ncclResult_t result = ncclSuccess;
	if ((unsigned)op < ncclNumOps) {
		*ret_reduction = (struct ckt_reduction){.op = op};
		return result;
	}
	size_t index = (size_t)(unsigned)op - ncclNumOps;
	pthread_mutex_lock(&comm->lock);
	if (index >= comm->op_count || !comm->ops[index].used)
		result = invalid("no such reduction operation");
	else if (comm->ops[index].type != type)
		result = invalid("the reduction operation was made for another type");
	else
		*ret_reduction = comm->ops[index].reduction;
	pthread_mutex_unlock(&comm->lock);
	return result;
}

/* Work accesses memory of this process directly, so every address must be memory of the GPU. */
static bool is_memory(const void *address, size_t bytes)
{
	const struct ckt_softlib_driver *d = ckt_softlib_driver();
	unsigned type;
	CUdeviceptr at = (CUdeviceptr)address;
	return !bytes ||
		(address &&
			d->pointer_get_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) ==
				CUDA_SUCCESS &&
			d->pointer_get_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				at + bytes - 1) == CUDA_SUCCESS);
}

/* The counts of blocks of `count` numbers in a rank's two buffers. */
static void blocks_of(
	const struct ncclComm *comm, const struct ckt_op *op, size_t *ret_from, size_t *ret_to)
{
	size_t n = (size_t)comm->size;
	bool root = op->peer == comm->rank;
	size_t from = 1, to = 1;
	switch (op->kind) {
	case CKT_OP_ALL_REDUCE:
		break;
	case CKT_OP_REDUCE:
		to = root;
		break;
	case CKT_OP_BROADCAST:
		from = root;
		break;
	case CKT_OP_ALL_GATHER:
		to = n;
		break;
	case CKT_OP_REDUCE_SCATTER:
		from = n;
		break;
	case CKT_OP_ALL_TO_ALL:
		from = to = n;
		break;
	case CKT_OP_GATHER:
		to = root ? n : 0;
		break;
	case CKT_OP_SCATTER:
		from = root ? n : 0;
		break;
	case CKT_OP_SEND:
		to = 0;
		break;
	case CKT_OP_RECEIVE:
		from = 0;
		break;
	}
	*ret_from = from;
	*ret_to = to;
}

static ncclResult_t check(struct ncclComm *comm, struct ckt_op *op, const ncclRedOp_t *reduction)
{
	size_t from, to, size = ckt_soft_nccl_type_size(op->type);
	ncclResult_t result = ckt_soft_nccl_comm_usable(comm);
	if (result != ncclSuccess)
		return result;
	if (!size)
		return invalid("no such type");
	if (op->peer < 0 || op->peer >= comm->size)
		return invalid("no such root or peer");
	if (reduction)
		result = find_op(comm, *reduction, op->type, &op->reduction);
	if (result != ncclSuccess)
		return result;
	blocks_of(comm, op, &from, &to);
	if (op->count > SIZE_MAX / 2 / size / (size_t)comm->size)
		return invalid("a count beyond all memory");
	if (!is_memory(op->from, from * op->count * size) ||
		!is_memory(op->to, to * op->count * size))
		return invalid("a buffer is not the GPU's memory, or too small");
	return ncclSuccess;
}

static ncclResult_t add(
	ncclComm_t handle, cudaStream_t stream, struct ckt_op *op, const ncclRedOp_t *reduction)
{
	ckt_soft_nccl_group_enter();
	struct ncclComm *comm = ckt_softlib_driver() ? ckt_soft_nccl_comm_get(handle) : NULL;
	if (!comm)
		return ckt_soft_nccl_group_leave(invalid("no such communicator"));
	ncclResult_t result = check(comm, op, reduction);
	if (result == ncclSuccess && op->count)
		result = ckt_soft_nccl_group_work(comm, (CUstream)stream, op);
	else
		ckt_soft_nccl_comm_put(comm);
	return ckt_soft_nccl_group_leave(result);
}

ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
	ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
	return add(comm, stream,
		&(struct ckt_op){.kind = CKT_OP_REDUCE,
			.type = datatype,
			.peer = root,
			.from = sendbuff,
			.to = recvbuff,
			.count = count},
		&op);
}
CKT_ALIAS(Reduce);

ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
	return add(comm, stream,
		&(struct ckt_op){.kind = CKT_OP_BROADCAST,
			.type = datatype,
			.peer = root,
			.from = sendbuff,
			.to = recvbuff,
			.count = count},
		NULL);
}
CKT_ALIAS(Broadcast);

ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
	cudaStream_t stream)
{
	return ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}
CKT_ALIAS(Bcast);

ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return add(comm, stream,
		&(struct ckt_op){.kind = CKT_OP_ALL_REDUCE,
			.type = datatype,
			.from = sendbuff,
			.to = recvbuff,
			.count = count},
		&op);
}
CKT_ALIAS(AllReduce);

ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return add(comm, stream,
		&(struct ckt_op){.kind = CKT_OP_REDUCE_SCATTER,
			.type = datatype,
			.from = sendbuff,
			.to = recvbuff,
			.count = recvcount},
		&op);
}
CKT_ALIAS(ReduceScatter);

ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
	return add(comm, stream,
		&(struct ckt_op){.kind = CKT_OP_ALL_GATHER,
			.type = datatype,
			.from = sendbuff,
			.to = recvbuff,
			.count = sendcount},
		NULL);
}
CKT_ALIAS(AllGather);

ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
	return add(comm, stream,
		&(struct ckt_op){.kind = CKT_OP_ALL_TO_ALL,
			.type = datatype,
			.from = sendbuff,
			.to = recvbuff,
			.count = count},
		NULL);
}
CKT_ALIAS(AlltoAll);

ncclResult_t ncclGather(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
	int root, ncclComm_t comm, cudaStream_t stream)
{
	return add(comm, stream,
		&(struct ckt_op){.kind = CKT_OP_GATHER,
			.type = datatype,
			.peer = root,
			.from = sendbuff,
			.to = recvbuff,
			.count = count},
		NULL);
}
CKT_ALIAS(Gather);

ncclResult_t ncclScatter(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream)
{
	return add(comm, stream,
		&(struct ckt_op){.kind = CKT_OP_SCATTER,
			.type = datatype,
			.peer = root,
			.from = sendbuff,
			.to = recvbuff,
			.count = count},
		NULL);
}
CKT_ALIAS(Scatter);

ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
	ncclComm_t comm, cudaStream_t stream)
{
	return add(comm, stream,
		&(struct ckt_op){.kind = CKT_OP_SEND,
			.type = datatype,
			.peer = peer,
			.from = sendbuff,
			.count = count},
		NULL);
}
CKT_ALIAS(Send);

ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
	ncclComm_t comm, cudaStream_t stream)
{
	return add(comm, stream,
		&(struct ckt_op){.kind = CKT_OP_RECEIVE,
			.type = datatype,
			.peer = peer,
			.to = recvbuff,
			.count = count},
		NULL);
}
CKT_ALIAS(Recv);

/* ---- Operators that the program makes */

/* Finds an unused place; op_count if there is none.  Precondition: comm->lock is held. */
static size_t free_op(struct ncclComm *comm)
{
	for (size_t i = 0; i < comm->op_count; i++)
		if (!comm->ops[i].used)
			return i;
	size_t room = comm->op_count ? 2 * comm->op_count : 4;
	struct ckt_user_op *grown = reallocarray(comm->ops, room, sizeof *grown);
	if (!grown)
		return comm->op_count;
	memset(grown + comm->op_count, 0, (room - comm->op_count) * sizeof *grown);
	size_t index = comm->op_count;
	comm->ops = grown;
	comm->op_count = room;
	return index;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t datatype,
	ncclScalarResidence_t residence, ncclComm_t handle)
{
	size_t size = ckt_soft_nccl_type_size(datatype);
	struct ncclComm *comm = op && scalar && size ? ckt_soft_nccl_comm_get(handle) : NULL;
	if (!comm)
		return invalid(
			"no such communicator or type, no scalar, or no place for the operation");
	ncclResult_t result = ckt_soft_nccl_comm_usable(comm);
	struct ckt_user_op made = {
		.type = datatype, .reduction = {.op = ncclSum, .premultiply = true}, .used = true};
	if (residence == ncclScalarHostImmediate)
		memcpy(made.reduction.immediate, scalar, size);
	else if (residence == ncclScalarDevice && ckt_softlib_driver() && is_memory(scalar, size))
		made.reduction.scalar = scalar;
	else
		result = invalid("a scalar that is neither the host's nor the device's");
	if (result == ncclSuccess) {
		pthread_mutex_lock(&comm->lock);
		size_t index = free_op(comm);
		if (index < comm->op_count) {
			comm->ops[index] = made;
			*op = (ncclRedOp_t)(ncclNumOps + index);
		} else {
			result = ncclSystemError;
		}
		pthread_mutex_unlock(&comm->lock);
	}
	ckt_soft_nccl_comm_put(comm);
	return result;
}
CKT_ALIAS(RedOpCreatePreMulSum);

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t handle)
{
	struct ncclComm *comm = ckt_soft_nccl_comm_get(handle);
	ncclResult_t result = ncclInvalidArgument;
	if (!comm)
		return invalid("no such communicator");
	size_t index = (size_t)(unsigned)op - ncclNumOps;
	pthread_mutex_lock(&comm->lock);
	if ((unsigned)op >= ncclNumOps && index < comm->op_count && comm->ops[index].used) {
		comm->ops[index].used = false;
		result = ncclSuccess;
	}
	pthread_mutex_unlock(&comm->lock);
	ckt_soft_nccl_comm_put(comm);
	return result == ncclSuccess
		? result
		: invalid("the operation is none of ncclRedOpCreatePreMulSum's");
}
CKT_ALIAS(RedOpDestroy);
