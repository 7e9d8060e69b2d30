/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: every decoder of peer bytes.  The first two bytes choose one, the rest is the
 * message.
 *
 *	0	the two fixed message headers
 *	1..	the messages of the CUDA program, flat coders; what is accepted must encode to the same bytes again and rpcgen's routine
 *		must accept it too
 *	then	the messages of the hand-written protocols through rpcgen's routines
 *	then	the messages of the forwarded libraries that the build has, as those of the CUDA program
 *
 * The seeds, one valid message of each kind, come from the target itself: see LLVMFuzzerInitialize.
 * The mutator knows every message by rpcgen's routine for it (mutate_xdr.h).
 */
#include <rpc/rpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/wire.h"
#include "rpc/session.h"
#include "rpc/worker.h"
#include "rpc/control.h"
#include "tests/fuzz/mutate_xdr.h"
#include "tests/unit/rpcgen/messages.h"

#include "rpc/gen/codec_messages.inc"

enum { CHOICE_BYTES = 2, MESSAGES = sizeof(messages) / sizeof(messages[0]) };

/* Each file calls its list "messages". */
#ifdef FUZZ_CUBLAS
#define messages cublas_messages
#include "cublas_messages.inc"
#undef messages
#endif
#ifdef FUZZ_CUBLASLT
#define messages cublasLt_messages
#include "cublasLt_messages.inc"
#undef messages
#endif
#ifdef FUZZ_CUFFT
#define messages cufft_messages
#include "cufft_messages.inc"
#undef messages
#endif
#ifdef FUZZ_NCCL
#define messages nccl_messages
#include "nccl_messages.inc"
#undef messages
#endif

#define SET(list)                                    \
	{                                            \
		list, sizeof(list) / sizeof(list[0]) \
	}
static const struct set {
	const struct message *list;
	unsigned count;
} libraries[] = {
#ifdef FUZZ_CUBLAS
	SET(cublas_messages),
#endif
#ifdef FUZZ_CUBLASLT
	SET(cublasLt_messages),
#endif
#ifdef FUZZ_CUFFT
	SET(cufft_messages),
#endif
#ifdef FUZZ_NCCL
	SET(nccl_messages),
#endif
	{NULL, 0},
};

static const struct {
	xdrproc_t xdr;
	size_t bytes;
} protocols[] = {
#define PROTOCOL(type)                               \
	{                                            \
		(xdrproc_t) xdr_##type, sizeof(type) \
	}
	PROTOCOL(ckt_greeting),
	PROTOCOL(ckt_hello_args),
	PROTOCOL(ckt_hello_res),
	PROTOCOL(ckt_devices_res),
	PROTOCOL(ckt_output_args),
	PROTOCOL(ckt_host_fill_args),
	PROTOCOL(ckt_moved_args),
	PROTOCOL(ckt_modules_args),
	PROTOCOL(ckt_worker_start_args),
	PROTOCOL(ckt_worker_start_res),
	PROTOCOL(ckt_worker_client_args),
	PROTOCOL(ckt_worker_status_res),
	PROTOCOL(ckt_worker_stats_res),
	PROTOCOL(ckt_worker_trace_args),
	PROTOCOL(ckt_gpu_trace_args),
	PROTOCOL(ckt_gpu_trace_res),
	PROTOCOL(ckt_worker_trace_res),
	PROTOCOL(ckt_worker_lease_args),
	PROTOCOL(ckt_worker_waited_args),
	PROTOCOL(ckt_worker_press_args),
	PROTOCOL(ckt_worker_durable_args),
	PROTOCOL(ckt_worker_fence_args),
	PROTOCOL(ckt_durable_args),
	PROTOCOL(ckt_sleep_args),
	PROTOCOL(ckt_impose_args),
	PROTOCOL(ckt_replay_args),
	PROTOCOL(ckt_replay_res),
	PROTOCOL(ckt_control_waits_args),
	PROTOCOL(ckt_control_waits_res),
	PROTOCOL(ckt_worker_lease_res),
	PROTOCOL(ckt_control_limit_args),
	PROTOCOL(ckt_control_limits_res),
	PROTOCOL(ckt_control_turns_res),
	PROTOCOL(ckt_control_sharings_res),
	PROTOCOL(ckt_control_share_groups_res),
	PROTOCOL(ckt_control_share_modes_res),
	PROTOCOL(ckt_control_quanta_res),
	PROTOCOL(ckt_control_trace_args),
	PROTOCOL(ckt_control_trace_res),
	PROTOCOL(ckt_worker_save_args),
	PROTOCOL(ckt_worker_save_res),
	PROTOCOL(ckt_control_result),
	PROTOCOL(ckt_control_info_res),
	PROTOCOL(ckt_control_list_args),
	PROTOCOL(ckt_control_list_res),
	PROTOCOL(ckt_control_session_args),
	PROTOCOL(ckt_control_stats_res),
	PROTOCOL(ckt_control_checkpoint_args),
	PROTOCOL(ckt_control_checkpoint_res),
	PROTOCOL(ckt_control_restore_args),
	PROTOCOL(ckt_control_restore_res),
	PROTOCOL(ckt_parked_args),
	PROTOCOL(ckt_host_call_args),
	PROTOCOL(ckt_hello_status),
	PROTOCOL(ckt_worker_image_args),
	PROTOCOL(ckt_worker_result),
	PROTOCOL(ckt_worker_save2_args),
	PROTOCOL(ckt_worker_save2_res),
	PROTOCOL(ckt_worker_release_args),
	PROTOCOL(ckt_worker_pause_args),
	PROTOCOL(ckt_worker_progress_res),
	PROTOCOL(ckt_control_stage_res),
	PROTOCOL(ckt_control_stage_args),
	PROTOCOL(ckt_control_files_res),
	PROTOCOL(ckt_control_read_args),
	PROTOCOL(ckt_control_read_res),
	PROTOCOL(ckt_control_write_args),
	PROTOCOL(ckt_control_save_args),
	PROTOCOL(ckt_control_save_res),
	PROTOCOL(ckt_control_release_args),
	PROTOCOL(ckt_control_image_args),
	PROTOCOL(ckt_control_restore2_args),
	PROTOCOL(ckt_control_pause_args),
	PROTOCOL(ckt_control_swap_args),
	PROTOCOL(ckt_control_swap_res),
	PROTOCOL(ckt_worker_swap_out_args),
	PROTOCOL(ckt_worker_swap_res),
	PROTOCOL(ckt_control_bytes_res),
	PROTOCOL(ckt_control_progress_res),
	PROTOCOL(ckt_control_events_args),
	PROTOCOL(ckt_control_events_res),
	PROTOCOL(ckt_control_keep_args),
	PROTOCOL(ckt_control_kept_res),
	PROTOCOL(ckt_control_preload_args),
	PROTOCOL(ckt_control_devices_res),
	PROTOCOL(ckt_control_nvml_args),
	PROTOCOL(ckt_control_nvml_res),
	PROTOCOL(ckt_control_gpu_args),
	PROTOCOL(ckt_control_gpu_use_res),
	PROTOCOL(ckt_worker_gpus_res),
	PROTOCOL(ckt_control_base_args),
	PROTOCOL(ckt_worker_base_args),
	PROTOCOL(ckt_worker_owner_args),
	PROTOCOL(ckt_worker_origin_res),
	PROTOCOL(ckt_worker_job_res),
	PROTOCOL(ckt_worker_hold_args),
	PROTOCOL(ckt_worker_hold_res),
	PROTOCOL(ckt_control_jobs_res),
	PROTOCOL(ckt_control_connections_res),
	PROTOCOL(ckt_control_job_args),
	PROTOCOL(ckt_control_job_key_args),
	PROTOCOL(ckt_control_job_look_args),
	PROTOCOL(ckt_control_nccl_ids_args),
	PROTOCOL(ckt_control_owned_events_res),
	PROTOCOL(ckt_control_owners_args),
	PROTOCOL(ckt_control_owners_res),
	PROTOCOL(ckt_control_warm_res),
	PROTOCOL(ckt_control_nccl_make_args),
	PROTOCOL(ckt_control_nccl_make_res),
	PROTOCOL(ckt_worker_nccl_ids_args),
	PROTOCOL(ckt_worker_owner_name_args),
	PROTOCOL(ckt_worker_nccl_make_args),
	PROTOCOL(ckt_worker_nccl_make_res),
	PROTOCOL(ckt_control_job_res),
	PROTOCOL(ckt_notify_args),
	PROTOCOL(ckt_lane_piece_args),
	PROTOCOL(ckt_window_args),
	PROTOCOL(ckt_window_res),
	PROTOCOL(ckt_setting),
	PROTOCOL(ckt_environment_args),
	PROTOCOL(ckt_environment_res),
	PROTOCOL(ckt_control_watch_res),
	PROTOCOL(ckt_control_drain_args),
	PROTOCOL(ckt_control_replica_look_args),
	PROTOCOL(ckt_control_replica_look_res),
	PROTOCOL(ckt_control_replica_image_args),
	PROTOCOL(ckt_control_replica_keep_args),
	PROTOCOL(ckt_control_replica_lease_args),
	PROTOCOL(ckt_control_drain_res),
	PROTOCOL(ckt_worker_durable_args),
	PROTOCOL(ckt_worker_automatic_args),
	PROTOCOL(ckt_worker_afresh_args),
	PROTOCOL(ckt_worker_cut_args),
	PROTOCOL(ckt_worker_stamps_args),
	PROTOCOL(ckt_worker_stamped_res),
	PROTOCOL(ckt_stamp_args),
	PROTOCOL(ckt_stamps_end_args),
	PROTOCOL(ckt_stamps_end_res),
	PROTOCOL(ckt_stamps_args),
	PROTOCOL(ckt_worker_together_args),
	PROTOCOL(ckt_worker_automatic_res),
	PROTOCOL(ckt_control_durable_res),
	PROTOCOL(ckt_control_replicas_args),
	PROTOCOL(ckt_control_replicas_res),
	PROTOCOL(ckt_control_image_mac_args),
	PROTOCOL(ckt_control_image_mac_res),
	PROTOCOL(ckt_worker_manifest_args),
	PROTOCOL(ckt_worker_manifest_res),
	PROTOCOL(ckt_control_decide_args),
	PROTOCOL(ckt_control_decide_res),
	PROTOCOL(ckt_control_facts_res),
	PROTOCOL(ckt_control_list2_res),
	PROTOCOL(ckt_worker_gone_args),
};

enum { PROTOCOLS = sizeof(protocols) / sizeof(protocols[0]) };

/* NULL behind the last one. */
static const struct message *find_message(unsigned choice)
{
	if (choice - 1 < MESSAGES)
		return &messages[choice - 1];
	choice -= 1 + MESSAGES + PROTOCOLS;
	for (const struct set *set = libraries; set->list; choice -= set->count, set++)
		if (choice < set->count)
			return &set->list[choice];
	return NULL;
}

static void try_headers(const uint8_t *bytes, size_t size_bytes)
{
	struct ckt_cursor cursor = {bytes, bytes + size_bytes, false};
	struct ckt_call_header call;
	uint8_t again[CKT_CALL_HEADER_SIZE];
	if (ckt_call_header_get(&cursor, &call)) {
		fuzz_insist(ckt_call_header_put(again, &call) == again + CKT_CALL_HEADER_SIZE,
			"a call header's length");
		fuzz_insist(memcmp(again, bytes, CKT_CALL_HEADER_SIZE) == 0,
			"a call header changes when encoded again");
	}
	struct ckt_reply_header reply;
	cursor = (struct ckt_cursor){bytes, bytes + size_bytes, false};
	if (ckt_reply_header_get(&cursor, &reply))
		fuzz_insist(ckt_reply_header_put(again, &reply) == again + CKT_REPLY_HEADER_SIZE,
			"a reply header's length");
}

static void try_message(const struct message *message, const uint8_t *bytes, size_t size_bytes)
{
	struct ckt_cursor cursor = {bytes, bytes + size_bytes, false};
	void *flat = own(message->flat_bytes);
	if (!message->get(&cursor, flat))
		return;
	message->own(flat);
	fuzz_insist(message->size(flat) == size_bytes, message->name);
	uint8_t *again = own(size_bytes);
	fuzz_insist(message->put(again, flat) == again + size_bytes &&
			memcmp(again, bytes, size_bytes) == 0,
		message->name);
	XDR xdrs;
	void *x = own(message->x_bytes);
	xdrmem_create(&xdrs, (char *)(uintptr_t)bytes, (unsigned)size_bytes, XDR_DECODE);
	fuzz_insist(message->xdr(&xdrs, x), message->name);
	xdr_destroy(&xdrs);
	xdr_free((xdrproc_t)message->xdr, x);
}

static void try_protocol(unsigned i, const uint8_t *bytes, size_t size_bytes)
{
	void *value = own(protocols[i].bytes);
	XDR xdrs;
	xdrmem_create(&xdrs, (char *)(uintptr_t)bytes, (unsigned)size_bytes, XDR_DECODE);
	(void)((bool_t(*)(XDR *, void *))protocols[i].xdr)(&xdrs, value);
	xdr_destroy(&xdrs);
	xdr_free(protocols[i].xdr, value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	if (size_bytes < CHOICE_BYTES)
		return 0;
	unsigned kind = (unsigned)data[0] << 8 | data[1];
	size_bytes -= CHOICE_BYTES;
	/*
	 * A buffer of the exact size, so that a byte read too many is seen; XDR wants it aligned.
	 */
	uint8_t *bytes = own(size_bytes);
	memcpy(bytes, data + CHOICE_BYTES, size_bytes);
	if (kind == 0)
		try_headers(bytes, size_bytes);
	else if (kind > MESSAGES && kind - 1 - MESSAGES < PROTOCOLS)
		try_protocol(kind - 1 - MESSAGES, bytes, size_bytes);
	else if (find_message(kind))
		try_message(find_message(kind), bytes, size_bytes);
	free_owned();
	return 0;
}

static unsigned last_choice(void)
{
	unsigned last = MESSAGES + PROTOCOLS;
	for (const struct set *set = libraries; set->list; set++)
		last += set->count;
	return last;
}

/* Mostly the same message with other contents; now and then another kind, or any bytes at all. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	static uint8_t out[1 << 16];
	if (size < CHOICE_BYTES || max_size > sizeof out || fuzz_random(&seed) % 8 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	bool fresh = fuzz_random(&seed) % 8 == 0;
	unsigned kind =
		fresh ? fuzz_random(&seed) % (last_choice() + 1) : (unsigned)data[0] << 8 | data[1];
	const struct message *message = kind ? find_message(kind) : NULL;
	bool protocol = kind > MESSAGES && kind - 1 - MESSAGES < PROTOCOLS;
	if (!message && !protocol)
		return LLVMFuzzerMutate(data, size, max_size);
	out[0] = (uint8_t)(kind >> 8);
	out[1] = (uint8_t)kind;
	size = CHOICE_BYTES +
		fuzz_mutate_xdr(
			message ? (xdrproc_t)message->xdr : protocols[kind - 1 - MESSAGES].xdr,
			message ? message->x_bytes : protocols[kind - 1 - MESSAGES].bytes,
			data + CHOICE_BYTES, fresh ? 0 : size - CHOICE_BYTES, out + CHOICE_BYTES,
			max_size - CHOICE_BYTES, seed);
	memcpy(data, out, size);
	return size;
}

static void write_seed(const char *directory, unsigned choice, const struct message *message)
{
	void *flat = own(message->flat_bytes), *x = own(message->x_bytes);
	message->fill(flat, x);
	size_t size = message->size(flat);
	uint8_t *bytes = own(CHOICE_BYTES + size);
	bytes[0] = (uint8_t)(choice >> 8);
	bytes[1] = (uint8_t)choice;
	message->put(bytes + CHOICE_BYTES, flat);
	fuzz_write_seed(directory, message->name, bytes, CHOICE_BYTES + size);
}

/* Called once: with CKT_FUZZ_SEEDS=DIR, writes one valid message of every kind there and ends. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	unsigned last = last_choice();
	fuzz_insist(last < 65536, "two bytes choose the decoder");
	const char *directory = getenv("CKT_FUZZ_SEEDS");
	if (!directory)
		return 0;
	for (unsigned choice = 1; choice <= last; choice++) {
		if (find_message(choice))
			write_seed(directory, choice, find_message(choice));
		free_owned();
	}
	uint8_t call[CHOICE_BYTES + CKT_CALL_HEADER_SIZE] = {0},
				    reply[CHOICE_BYTES + CKT_REPLY_HEADER_SIZE] = {0};
	ckt_call_header_put(call + CHOICE_BYTES, &(struct ckt_call_header){.xid = 1, .seq = 2});
	ckt_reply_header_put(reply + CHOICE_BYTES, &(struct ckt_reply_header){.xid = 1});
	fuzz_write_seed(directory, "header-of-call", call, sizeof call);
	fuzz_write_seed(directory, "header-of-reply", reply, sizeof reply);
	exit(0);
}
