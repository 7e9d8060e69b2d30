/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints sample messages of every protocol, byte for byte, for comparison with golden/messages.txt
 * (test_golden.py).  Headers are read again by libtirpc's own routines, so that what stands in the
 * golden is ONC RPC and not only what our two ends agree on.
 */
#include <rpc/rpc.h>
#include <rpc/rpc_msg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/gen/cuda_codec.h"
#include "rpc/identity.h"
#include "rpc/net.h"
#include "rpc/session.h"
#include "rpc/worker.h"

static void require(bool good, const char *name, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s\n", name, what);
	exit(1);
}

/* The header as RFC 5531 has it, by code that is not ours. */
static void check_onc_rpc(const char *name, const uint8_t *message, size_t size_bytes)
{
	struct rpc_msg decoded;
	char cred[MAX_AUTH_BYTES], verf[MAX_AUTH_BYTES];
	memset(&decoded, 0, sizeof(decoded));
	uint32_t type;
	memcpy(&type, message + 4, 4);
	XDR xdr;
	xdrmem_create(&xdr, (char *)message, (u_int)size_bytes, XDR_DECODE);
	if (be32toh(type) == CALL) {
		decoded.rm_call.cb_cred.oa_base = cred;
		decoded.rm_call.cb_verf.oa_base = verf;
		require(xdr_callmsg(&xdr, &decoded), name, "libtirpc does not read it as a call");
		require(decoded.rm_call.cb_rpcvers == RPC_MSG_VERSION &&
				decoded.rm_call.cb_vers == 1,
			name, "wrong version");
	} else {
		decoded.acpted_rply.ar_verf.oa_base = verf;
		decoded.acpted_rply.ar_results.proc = (xdrproc_t)(void (*)(void))xdr_void;
		require(xdr_replymsg(&xdr, &decoded), name, "libtirpc does not read it as a reply");
		require(decoded.rm_reply.rp_stat == MSG_ACCEPTED, name, "not accepted");
	}
	xdr_destroy(&xdr);
}

/* One record: the mark, then the message. */
static void print(const char *name, const uint8_t *message, size_t size_bytes)
{
	check_onc_rpc(name, message, size_bytes);
	printf("%s\n", name);
	printf("  %08x\n", 0x80000000u | (unsigned)size_bytes);
	for (size_t i = 0; i < size_bytes; i++)
		printf("%s%02x%s", i % 32 ? "" : "  ", message[i],
			i % 32 == 31 || i + 1 == size_bytes ? "\n" : "");
}

static void print_owned(const char *name, int error, uint8_t *data, size_t size_bytes)
{
	require(!error, name, "cannot be encoded");
	print(name, data, size_bytes);
	free(data);
}

/* The client's first message: the only one whose credential is not AUTH_CRICKET. */
static void print_hello(const char *name, struct ckt_hello_args *hello,
	const struct ckt_token *token, const uint8_t *nonce)
{
	uint8_t args[CKT_HELLO_MAX], message[CKT_HELLO_MAX], hmac[CKT_AUTH_HMAC_SIZE];
	XDR xdr;
	xdrmem_create(&xdr, (char *)args, sizeof(args), XDR_ENCODE);
	require(xdr_ckt_hello_args(&xdr, hello), name, "arguments cannot be encoded");
	unsigned args_bytes = xdr_getpos(&xdr);
	struct rpc_msg call = {.rm_xid = 0, .rm_direction = CALL};
	call.rm_call.cb_rpcvers = RPC_MSG_VERSION;
	call.rm_call.cb_prog = CRICKET_SESSION_PROG;
	call.rm_call.cb_vers = CRICKET_SESSION_VERS;
	call.rm_call.cb_proc = CKT_SESSION_HELLO;
	if (token) {
		ckt_auth_hmac(token, nonce, args, args_bytes, hmac);
		call.rm_call.cb_cred = (struct opaque_auth){.oa_flavor = CKT_AUTH_CRICKET_TOKEN,
			.oa_base = (char *)hmac,
			.oa_length = sizeof(hmac)};
	}
	xdrmem_create(&xdr, (char *)message, sizeof(message), XDR_ENCODE);
	require(xdr_callmsg(&xdr, &call), name, "header cannot be encoded");
	unsigned header_bytes = xdr_getpos(&xdr);
	memcpy(message + header_bytes, args, args_bytes);
	print(name, message, header_bytes + args_bytes);
}

static void print_session(void)
{
	uint8_t *data;
	size_t size;
	unsigned flavours[] = {CKT_AUTH_NONE, CKT_AUTH_CRICKET_TOKEN};
	struct ckt_greeting greeting = {
		.protocol = CKT_PROTOCOL_VERSION, .flavours = {2, flavours}};
	for (unsigned i = 0; i < CKT_NONCE_SIZE; i++)
		greeting.nonce[i] = (char)(0x40 + i);
	int error = ckt_net_encode_call(0, CRICKET_CALLBACK_PROG, CKT_CALLBACK_GREETING,
		(xdrproc_t)xdr_ckt_greeting, &greeting, &data, &size);
	print_owned("greeting", error, data, size);

	struct ckt_capability capability = {.name = "example", .value = 0x0102030405060708};
	struct ckt_hello_args hello = {.protocol = CKT_PROTOCOL_VERSION,
		.kind = CKT_HELLO_NEW,
		.session = "",
		.program_name = "app",
		.host = "laptop",
		.pid = 4711,
		.uid = 1000,
		.build = "0.1.0",
		.capabilities = {1, &capability}};
	memset(hello.secret, 0x5a, sizeof(hello.secret));
	print_hello("hello: a new session, no credential", &hello, NULL, NULL);
	hello.kind = CKT_HELLO_RESUME;
	hello.session = "0123456789ab";
	hello.generation = 2;
	hello.acked = 0x100000005;
	struct ckt_token token = {.bytes = "a token of tests", .size_bytes = 16};
	print_hello("hello: a session resumed, with a token", &hello, &token,
		(uint8_t *)greeting.nonce);

	struct ckt_hello_res res = {.status = CKT_HELLO_OK};
	res.ckt_hello_res_u.ok = (struct ckt_hello_ok){.protocol = CKT_PROTOCOL_VERSION,
		.session = "0123456789ab",
		.generation = 3,
		.executed = 0x100000007,
		.server = "node",
		.build = "0.1.0"};
	error = ckt_net_encode_reply(0, 0, (xdrproc_t)xdr_ckt_hello_res, &res, &data, &size);
	print_owned("hello accepted", error, data, size);
	res.status = CKT_HELLO_MOVED;
	res.ckt_hello_res_u.refused = (struct ckt_hello_refused){
		.message = "the session moved", .moved_to = "other:7350"};
	error = ckt_net_encode_reply(0, 0, (xdrproc_t)xdr_ckt_hello_res, &res, &data, &size);
	print_owned("hello: moved to", error, data, size);

	struct ckt_output_args output = {.fd = 1, .data = {6, "hello\n"}};
	error = ckt_net_encode_call(0, CRICKET_CALLBACK_PROG, CKT_CALLBACK_OUTPUT,
		(xdrproc_t)xdr_ckt_output_args, &output, &data, &size);
	print_owned("output of a kernel", error, data, size);
}

static const struct ckt_call_header call_header = {.xid = 0x01020304,
	.prog = CKT_CUDA_PROG,
	.vers = CKT_CUDA_VERS,
	.seq = 0x100000008,
	.acked = 0x100000007,
	.thread = 3,
	.context = 0x0100000000000001};
static const struct ckt_reply_header reply_header = {.xid = 0x01020304, .executed = 0x100000008};

static void print_cuda(void)
{
	uint8_t message[1024];
	struct ckt_call_header header = call_header;
	header.proc = CKT_PROC_LAUNCH_KERNEL;
	header.flags = CKT_CALL_BATCHED;
	struct ckt_launch_kernel_args launch = {.function = 0x0500000001000042,
		.grid_x = 16,
		.grid_y = 2,
		.grid_z = 1,
		.block_x = 256,
		.block_y = 1,
		.block_z = 1,
		.shared_bytes = 1024,
		.stream = 0x0200000002000041,
		.params = (const uint8_t *)"parameters",
		.params_len = 10};
	print("launch_kernel, batched", message,
		(size_t)(ckt_launch_kernel_args_put(
				 ckt_call_header_put(message, &header), &launch) -
			message));

	header = call_header;
	header.proc = CKT_PROC_MEM_ALLOC;
	struct ckt_mem_alloc_args alloc = {.device = 1, .size = 1 << 20};
	print("mem_alloc, numbered", message,
		(size_t)(ckt_mem_alloc_args_put(ckt_call_header_put(message, &header), &alloc) -
			message));
	struct ckt_mem_alloc_res address = {.address = 0x200000000000};
	uint8_t *p = ckt_put_u32(ckt_reply_header_put(message, &reply_header), 0);
	print("mem_alloc answered", message,
		(size_t)(ckt_mem_alloc_res_put(p, &address) - message));
	p = ckt_put_u32(ckt_reply_header_put(message, &reply_header), 2);
	print("mem_alloc failed", message, (size_t)(p - message));

	header.proc = CKT_PROC_STREAM_SYNCHRONIZE;
	header.seq = 0;
	struct ckt_stream_synchronize_args synchronize = {.stream = 0};
	p = ckt_stream_synchronize_args_put(ckt_call_header_put(message, &header), &synchronize);
	print("stream_synchronize, not numbered", message, (size_t)(p - message));
	struct ckt_reply_header late = reply_header;
	late.deferred = 400;
	p = ckt_put_u32(ckt_reply_header_put(message, &late), 0);
	print("stream_synchronize answered, with the error of an earlier batched call", message,
		(size_t)(p - message));
	late.accept_stat = 3;
	print("a procedure that the worker does not know", message,
		(size_t)(ckt_reply_header_put(message, &late) - message));

	header = call_header;
	header.proc = CKT_PROC_MODULE_LOAD;
	struct ckt_module_load_args load = {.id = 0x0400000001000040,
		.hash = (const uint8_t *)"0123456789abcdef0123456789abcdef",
		.hash_len = 32,
		.option_keys = (const uint32_t[]){0, 7},
		.option_keys_len = 2,
		.option_values = (const uint64_t[]){32, 1ull << 40},
		.option_values_len = 2,
		.info_log_max = 64,
		.error_log_max = 65};
	print("module_load, numbered", message,
		(size_t)(ckt_module_load_args_put(ckt_call_header_put(message, &header), &load) -
			message));
	struct ckt_module_load_res loaded = {.status = 0,
		.info_log = "fine",
		.info_log_len = 4,
		.error_log = "",
		.error_log_len = 0};
	p = ckt_put_u32(ckt_reply_header_put(message, &reply_header), 0);
	print("module_load answered", message,
		(size_t)(ckt_module_load_res_put(p, &loaded) - message));
}

static void print_worker(void)
{
	uint8_t *data;
	size_t size;
	unsigned gpus[] = {0, 3};
	struct ckt_worker_start_args start = {.session = "0123456789ab",
		.socket = "/run/cricket/socket",
		.driver = "libcuda.so.1",
		.gpus = {2, gpus},
		.memory_limit_bytes = 1ull << 30,
		.claim_timeout_ms = 10000,
		.disconnect_timeout_ms = 60000,
		.restore = FALSE,
		.host_memory_bytes = 2ull << 30};
	int error = ckt_net_encode_call(1, CRICKET_WORKER_PROG, CKT_WORKER_START,
		(xdrproc_t)xdr_ckt_worker_start_args, &start, &data, &size);
	print_owned("worker: start", error, data, size);
}

int main(void)
{
	print_session();
	print_cuda();
	print_worker();
	return 0;
}
