/* SPDX-License-Identifier: Apache-2.0 */
/* The list of variables that travel; see library_environment.h. */
#include "rpc/library_environment.h"

#include <string.h>

static const struct {
	const char *name, *why;
} allowed[] = {
	{"CUBLAS_WORKSPACE_CONFIG",
		"size of cuBLAS's workspaces; PyTorch's deterministic mode asks for it"},
	{"CUBLAS_EMULATE_DOUBLE_PRECISION", "which products cuBLAS may emulate"},
	{"CUBLAS_EMULATE_SINGLE_PRECISION", "the same"},
	{"CUBLAS_EMULATION_STRATEGY", "and when"},
	{"CUBLASLT_LOG_LEVEL", "what cuBLASLt prints on stdout, which is the program's"},
	{"CUBLASLT_LOG_MASK", "the same"},
	{"NVIDIA_TF32_OVERRIDE", "whether TF32 is used at all"},
	{"CUDNN_CONV_WSCAP_DBG", "most workspace of a convolution, in MiB"},
	{"CUSPARSE_LOG_LEVEL", "what cuSPARSE prints on stdout"},
	{"CUSPARSE_LOG_MASK", "the same"},
	/*
	 * Without NCCL_SOCKET_IFNAME, NCCL_IB_HCA and NCCL_COMM_ID: these name devices of the
	 * program's machine; the operator sets NCCL_NVLS_ENABLE.  Without NCCL_CUMEM_ENABLE,
	 * because memory of cudaMalloc in a worker has no cudaIpcMemHandle_t, and without
	 * NCCL_LAUNCH_MODE, one of whose modes makes the ranks of a process wait for each other.
	 */
	{"NCCL_ALGO", "algorithms of collectives"},
	{"NCCL_PROTO", "protocols of collectives"},
	{"NCCL_BUFFSIZE", "bytes between two GPUs"},
	{"NCCL_NTHREADS", "threads of a block"},
	{"NCCL_MIN_NCHANNELS", "blocks of a collective, at least"},
	{"NCCL_MAX_NCHANNELS", "blocks of a collective, at most"},
	{"NCCL_MIN_CTAS", "the same, by its new name"},
	{"NCCL_MAX_CTAS", "the same"},
	{"NCCL_NCHANNELS_PER_NET_PEER", "channels of point-to-point transfers"},
	{"NCCL_HOSTID", "which ranks count as of one host"},
	{"NCCL_P2P_DISABLE", "no NVLink or PCIe between GPUs"},
	{"NCCL_P2P_LEVEL", "how near GPUs must be for it"},
	{"NCCL_SHM_DISABLE", "no shared memory between processes"},
	{"NCCL_NET_GDR_LEVEL", "how near GPU and adapter must be"},
	{"NCCL_IB_DISABLE", "no InfiniBand"},
	{"NCCL_IB_TIMEOUT", "of InfiniBand"},
	{"NCCL_IB_RETRY_CNT", "of InfiniBand"},
	{"NCCL_SOCKET_NTHREADS", "threads of a socket transfer"},
	{"NCCL_NSOCKS_PERTHREAD", "sockets of such a thread"},
	{"NCCL_CROSS_NIC", "whether a ring may change the adapter"},
	{"NCCL_COLLNET_ENABLE", "collectives in the network"},
	{"NCCL_CHECK_POINTERS", "whether it checks addresses"},
	{"NCCL_CHECKS_DISABLE", "whether it checks arguments"},
	{"NCCL_SET_THREAD_NAME", "names of its threads"},
	{"NCCL_DEBUG", "what it prints on stdout"},
	{"NCCL_DEBUG_SUBSYS", "of which parts"},
};

const char *ckt_library_environment_name(unsigned number)
{
	return number < sizeof allowed / sizeof *allowed ? allowed[number].name : NULL;
}

bool ckt_library_environment_allows(const char *name, const char *value)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,:;=+^-";
	size_t length = strlen(value);
	if (length > CKT_LIBRARY_VALUE_MAX || strspn(value, letters) != length)
		return false;
	for (unsigned i = 0; i < sizeof allowed / sizeof *allowed; i++)
		if (!strcmp(allowed[i].name, name))
			return true;
	return false;
}
