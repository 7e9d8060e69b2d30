/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of the target `control`; see control_steps.h. */
#include "tests/fuzz/control_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/control.h"
#include "rpc/identity.h"
#include "rpc/session.h"
#include "rpc/worker.h"

const char *const control_ids[SESSIONS] = {"0123456789ab", "0123456789cd", "abcdef012345"};
static const uint8_t nothing[1];

#define ROUTINE(type)                                \
	{                                            \
		(xdrproc_t) xdr_##type, sizeof(type) \
	}
#define WORKER(type)                                        \
	{                                                   \
		(xdrproc_t) xdr_##type, sizeof(struct type) \
	}

/* By procedure; those without a routine have no arguments. */
static const struct control_routine calls[] = {
	[CKT_CONTROL_LIST] = ROUTINE(ckt_control_list_args),
	[CKT_CONTROL_LIST2] = ROUTINE(ckt_control_list_args),
	[CKT_CONTROL_KILL] = ROUTINE(ckt_control_session_args),
	[CKT_CONTROL_STATS] = ROUTINE(ckt_control_session_args),
	[CKT_CONTROL_CHECKPOINT] = ROUTINE(ckt_control_checkpoint_args),
	[CKT_CONTROL_RESTORE] = ROUTINE(ckt_control_restore_args),
	[CKT_CONTROL_STAGE_LIST] = ROUTINE(ckt_control_stage_args),
	[CKT_CONTROL_STAGE_REMOVE] = ROUTINE(ckt_control_stage_args),
	[CKT_CONTROL_STAGE_DATA] = ROUTINE(ckt_control_stage_args),
	[CKT_CONTROL_SAVE] = ROUTINE(ckt_control_save_args),
	[CKT_CONTROL_BASE] = ROUTINE(ckt_control_base_args),
	[CKT_CONTROL_WAITS] = ROUTINE(ckt_control_waits_args),
	[CKT_CONTROL_RELEASE] = ROUTINE(ckt_control_release_args),
	[CKT_CONTROL_IMAGE] = ROUTINE(ckt_control_image_args),
	[CKT_CONTROL_PRELOAD] = ROUTINE(ckt_control_preload_args),
	[CKT_CONTROL_RESTORE2] = ROUTINE(ckt_control_restore2_args),
	[CKT_CONTROL_PAUSE] = ROUTINE(ckt_control_pause_args),
	[CKT_CONTROL_SWAP] = ROUTINE(ckt_control_swap_args),
	[CKT_CONTROL_SWAP_LOOK] = ROUTINE(ckt_control_session_args),
	[CKT_CONTROL_QUANTA] = ROUTINE(ckt_control_list_args),
	[CKT_CONTROL_SHARINGS] = ROUTINE(ckt_control_list_args),
	[CKT_CONTROL_SHARE_GROUPS] = ROUTINE(ckt_control_list_args),
	[CKT_CONTROL_UNPAUSE] = ROUTINE(ckt_control_session_args),
	[CKT_CONTROL_PROGRESS] = ROUTINE(ckt_control_session_args),
	[CKT_CONTROL_EVENTS] = ROUTINE(ckt_control_events_args),
	[CKT_CONTROL_STAGE_KEEP] = ROUTINE(ckt_control_keep_args),
	[CKT_CONTROL_KEPT_REMOVE] = ROUTINE(ckt_control_stage_args),
	[CKT_CONTROL_QUIESCE] = ROUTINE(ckt_control_session_args),
	[CKT_CONTROL_NVML] = ROUTINE(ckt_control_nvml_args),
	[CKT_CONTROL_GPU_USE] = ROUTINE(ckt_control_gpu_args),
	[CKT_CONTROL_OWNERS] = ROUTINE(ckt_control_owners_args),
	[CKT_CONTROL_OWNED_EVENTS] = ROUTINE(ckt_control_events_args),
	[CKT_CONTROL_DECIDE] = ROUTINE(ckt_control_decide_args),
	[CKT_CONTROL_FACTS] = ROUTINE(ckt_control_events_args),
	[CKT_CONTROL_JOBS] = ROUTINE(ckt_control_list_args),
	[CKT_CONTROL_CONNECTIONS] = ROUTINE(ckt_control_list_args),
	[CKT_CONTROL_WATCH] = ROUTINE(ckt_control_list_args),
	[CKT_CONTROL_DURABLE] = ROUTINE(ckt_control_list_args),
	[CKT_CONTROL_REPLICAS] = ROUTINE(ckt_control_replicas_args),
	[CKT_CONTROL_REPLICA_LOOK] = ROUTINE(ckt_control_replica_look_args),
	[CKT_CONTROL_REPLICA_IMAGE] = ROUTINE(ckt_control_replica_image_args),
	[CKT_CONTROL_REPLICA_KEEP] = ROUTINE(ckt_control_replica_keep_args),
	[CKT_CONTROL_REPLICA_LEASE] = ROUTINE(ckt_control_replica_lease_args),
	[CKT_CONTROL_REPLICA_DROP] = ROUTINE(ckt_control_session_args),
	[CKT_CONTROL_IMAGE_MAC] = ROUTINE(ckt_control_image_mac_args),
	[CKT_CONTROL_JOB_HOLD] = ROUTINE(ckt_control_job_args),
	[CKT_CONTROL_JOB_LOOK] = ROUTINE(ckt_control_job_look_args),
	[CKT_CONTROL_JOB_KEY_SHOW] = ROUTINE(ckt_control_job_key_args),
	[CKT_CONTROL_NCCL_MAKE] = ROUTINE(ckt_control_nccl_make_args),
	[CKT_CONTROL_DRAIN] = ROUTINE(ckt_control_drain_args),
	[CKT_CONTROL_NCCL_IDS] = ROUTINE(ckt_control_nccl_ids_args),
};
enum { CALLS = sizeof calls / sizeof *calls };

const struct control_routine control_answers[] = {WORKER(ckt_worker_status_res),
	WORKER(ckt_worker_stats_res), WORKER(ckt_worker_save_res), WORKER(ckt_worker_save2_res),
	WORKER(ckt_worker_result), WORKER(ckt_worker_gpus_res), WORKER(ckt_worker_hold_res),
	WORKER(ckt_worker_nccl_make_res), WORKER(ckt_worker_progress_res),
	WORKER(ckt_worker_job_res), WORKER(ckt_worker_automatic_res), ROUTINE(ckt_hello_status)};
enum { ANSWERS = sizeof control_answers / sizeof *control_answers };
const unsigned control_answer_count = ANSWERS;

static size_t mutate_body(uint8_t step, const uint8_t *old, size_t size, uint8_t *to, unsigned seed)
{
	static const struct control_routine hello = ROUTINE(ckt_hello_args);
	const struct control_routine *routine = &hello;
	size_t head = 0;
	if (step % STEPS == STEP_CALL || step % STEPS == STEP_ANSWER) {
		bool call = step % STEPS == STEP_CALL;
		unsigned count = call ? (unsigned)CALLS : (unsigned)ANSWERS;
		head = 1;
		*to = size && fuzz_random(&seed) % 8 ? *old : (uint8_t)(fuzz_random(&seed) % count);
		routine = call ? &calls[*to % CALLS] : &control_answers[*to % ANSWERS];
		if (!routine->xdr)
			return head;
	} else if (step % STEPS != STEP_HELLO) {
		memcpy(to, old, size);
		return size;
	}
	size_t skip = size < head ? size : head;
	return head +
		fuzz_mutate_xdr(routine->xdr, routine->bytes, old + skip, size - skip, to + head,
			BODY_MAX / 2, seed);
}

static size_t put_step(uint8_t *to, uint8_t step, uint8_t how, const uint8_t *body, size_t size)
{
	to[0] = step;
	to[1] = how;
	to[2] = (uint8_t)(size >> 8);
	to[3] = (uint8_t)size;
	memcpy(to + STEP_HEAD, body, size);
	return STEP_HEAD + size;
}

/* The steps of the input, one of them changed, left out, or followed by a new one. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	static uint8_t out[1 << 17], body[BODY_MAX];
	struct fuzz_input input = {data, data + size};
	if (size < HEAD || fuzz_random(&seed) % 16 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	size_t at = HEAD, have;
	memcpy(out, data, HEAD);
	if (fuzz_random(&seed) % 8 == 0)
		out[fuzz_random(&seed) % HEAD] = (uint8_t)fuzz_random(&seed);
	input.p += HEAD;
	unsigned odds = 1 + fuzz_random(&seed) % 8, n = 0;
	for (; input.p < input.end && n < STEPS_MAX; n++) {
		uint8_t step = fuzz_u8(&input), how = fuzz_u8(&input);
		size_t length = (size_t)fuzz_u8(&input) << 8;
		length |= fuzz_u8(&input);
		const uint8_t *old =
			fuzz_bytes(&input, length < BODY_MAX ? length : BODY_MAX, &have);
		memcpy(body, old, have);
		if (fuzz_random(&seed) % odds == 0) {
			if (fuzz_random(&seed) % 8 == 0)
				continue;
			if (fuzz_random(&seed) % 4 == 0)
				how = (uint8_t)fuzz_random(&seed);
			have = mutate_body(step, old, have, body, fuzz_random(&seed));
		}
		at += put_step(out + at, step, how, body, have);
	}
	if (n < STEPS_MAX && fuzz_random(&seed) % 2) {
		uint8_t step = (uint8_t)(fuzz_random(&seed) % STEPS);
		step = fuzz_random(&seed) % 2 ? STEP_CALL : step;
		have = mutate_body(step, nothing, 0, body, fuzz_random(&seed));
		at += put_step(out + at, step, (uint8_t)fuzz_random(&seed), body, have);
	}
	if (at > max_size)
		return LLVMFuzzerMutate(data, size, max_size);
	memcpy(data, out, at);
	return at;
}

static unsigned hello_pid;

static size_t seed_hello(uint8_t *to, ckt_hello_kind kind, const char *session, uint8_t how)
{
	uint8_t body[BODY_MAX];
	XDR xdr;
	ckt_hello_args args = {.protocol = CKT_PROTOCOL_VERSION,
		.kind = kind,
		.session = (char *)session,
		.program_name = (char *)"fuzz",
		.host = (char *)"there",
		.build = (char *)"0",
		.pid = hello_pid};
	xdrmem_create(&xdr, (char *)body, sizeof body, XDR_ENCODE);
	fuzz_insist(xdr_ckt_hello_args(&xdr, &args), "no seed");
	return put_step(to, STEP_HELLO, how, body, xdr_getpos(&xdr));
}

/* A short string in front is the name of a session: the first one's. */
static size_t name_session(uint8_t *args, size_t size)
{
	size_t length = size >= 4 ? args[3] : 0, old = 4 + (length + 3) / 4 * 4;
	if (size < 4 || args[0] || args[1] || args[2] || length > CKT_SESSION_ID_SIZE || old > size)
		return size;
	memmove(args + 4 + CKT_SESSION_ID_SIZE, args + old, size - old);
	args[3] = CKT_SESSION_ID_SIZE;
	memcpy(args + 4, control_ids[0], CKT_SESSION_ID_SIZE);
	return size - old + 4 + CKT_SESSION_ID_SIZE;
}

/* A hello as administrator, the call, all answers, and the end of a session that it made. */
static size_t seed_call(uint8_t *seed, unsigned proc, unsigned variant)
{
	static uint8_t body[BODY_MAX];
	size_t at = HEAD, size = 1;
	memcpy(seed, (uint8_t[HEAD]){WITH_TOKENS | ON_DISK, 0, 7, 1}, HEAD);
	at += seed_hello(seed + at, CKT_HELLO_CONTROL, "", 4 << 4);
	/* From the fourth on, memory runs out. */
	if (variant > 3)
		at += put_step(seed + at, STEP_POOR, (uint8_t)(variant - 3), nothing, 0);
	body[0] = (uint8_t)proc;
	if (proc < CALLS && calls[proc].xdr)
		size += fuzz_mutate_xdr(calls[proc].xdr, calls[proc].bytes, nothing, 0, body + 1,
			BODY_MAX / 2, proc + 100 * variant);
	size = 1 + name_session(body + 1, size - 1);
	if (proc == CKT_CONTROL_CHECKPOINT && variant & 1)
		body[4 + 1 + CKT_SESSION_ID_SIZE + 3] = 1;
	if (proc == CKT_CONTROL_RESTORE)
		memcpy(body + 1, (uint8_t[4]){0, 0, 0, variant & 1}, 4);
	at += put_step(seed + at, STEP_CALL, 1, body, size);
	for (unsigned kind = 0; kind < ANSWERS && variant < 8; kind++) {
		body[0] = (uint8_t)kind;
		size = 1 +
			fuzz_mutate_xdr(control_answers[kind].xdr, control_answers[kind].bytes,
				nothing, 0, body + 1, BODY_MAX / 2, kind + 100 * variant);
		/* A status in front says whether it went well. */
		if (variant & 2)
			memset(body + 1, 0, size < 5 ? size - 1 : 4);
		at += put_step(seed + at, STEP_ANSWER, 0, body, size);
	}
	at += put_step(seed + at, variant & 1 ? STEP_GONE : STEP_LIVE, 0, nothing, 0);
	return at + put_step(seed + at, STEP_LATE, 0, nothing, 0);
}

/* The worker's status with the hash of a hello's secret, which is zero. */
static size_t seed_secret(uint8_t *seed)
{
	static const uint8_t secret[CKT_SECRET_SIZE];
	static uint8_t body[BODY_MAX];
	struct ckt_worker_status_res status = {.session = (char *)control_ids[0],
		.program_name = (char *)"program",
		.client = (char *)"",
		.note = (char *)""};
	XDR xdr;
	ckt_auth_hash(secret, sizeof secret, (uint8_t *)status.secret_hash);
	size_t at = HEAD;
	memcpy(seed, (uint8_t[HEAD]){WITH_TOKENS, 0, 7, 1}, HEAD);
	at += seed_hello(seed + at, CKT_HELLO_CONTROL, control_ids[0], 0);
	xdrmem_create(&xdr, (char *)body + 1, sizeof body - 1, XDR_ENCODE);
	fuzz_insist(xdr_ckt_worker_status_res(&xdr, &status), "no status");
	body[0] = 0;
	return at + put_step(seed + at, STEP_ANSWER, 0, body, 1 + xdr_getpos(&xdr));
}

/* One that guesses tokens, one that says nothing, one that comes while a session ends. */
static size_t seed_story(uint8_t *seed, unsigned number)
{
	static const uint8_t kill_body[] = {CKT_CONTROL_KILL, 0, 0, 0, 0};
	size_t at = HEAD;
	memcpy(seed, (uint8_t[HEAD]){WITH_TOKENS, 0, 7, 1}, HEAD);
	switch (number) {
	case 0:
		for (unsigned i = 0; i < 10; i++) {
			/* From afar: PROVE_WRONG is what remains of it. */
			at += seed_hello(seed + at, CKT_HELLO_CONTROL, "", 51);
			at += put_step(seed + at, i < 9 ? STEP_HANG_UP : STEP_LATE, 0, nothing, 0);
		}
		return at;
	case 1:
		at += put_step(seed + at, STEP_RAW, 0, nothing, 0);
		return at + put_step(seed + at, STEP_LATE, 0, nothing, 0);
	case 2:
		at += seed_hello(seed + at, CKT_HELLO_CONTROL, "", 4 << 4);
		at += put_step(seed + at, STEP_CALL, 0, kill_body, sizeof kill_body);
		return at + seed_hello(seed + at, CKT_HELLO_RESUME, control_ids[0], 4 << 4);
	case 3:
		seed[1] = 0x80;
		return at + put_step(seed + at, STEP_RAW, 15, nothing, 0);
	case 4:
		return at + put_step(seed + at, STEP_RAW, 15, nothing, 0);
	default:
		seed[0] |= MARKED;
		seed[2] = 0;
		return at +
			seed_hello(seed + at, CKT_HELLO_RESUME, control_ids[number % SESSIONS],
				4 << 4);
	}
}

void control_write_seeds(const char *to)
{
	static uint8_t seed[1 << 17];
	char name[32];
	for (unsigned proc = 0; proc < CALLS + 1; proc++)
		for (unsigned variant = 0; variant < 12; variant++) {
			snprintf(name, sizeof name, "call-%u-%u", proc, variant);
			fuzz_write_seed(to, name, seed, seed_call(seed, proc, variant));
		}
	for (unsigned kind = 0; kind < 5; kind++)
		for (unsigned proof = 0; proof < PROOFS; proof++) {
			size_t at = HEAD;
			memcpy(seed, (uint8_t[HEAD]){WITH_TOKENS, 0, 0x47, 1}, HEAD);
			at += seed_hello(seed + at, (ckt_hello_kind)kind,
				kind ? control_ids[0] : "",
				(uint8_t)(proof + (proof & 1) * PROOFS * 3));
			at += put_step(seed + at, STEP_LIVE, 2, nothing, 0);
			at += put_step(seed + at, STEP_LATE, 0, nothing, 0);
			at += put_step(seed + at, STEP_FAIL, 0, nothing, 0);
			snprintf(name, sizeof name, "hello-%u-%u", kind, proof);
			fuzz_write_seed(to, name, seed, at);
		}
	/* A server that drains, a certificate that is none, and TLS that the peer does not begin. */
	for (unsigned flag = 8; flag <= 32; flag *= 2)
		for (unsigned how = 0x20; how < 0x20 + 2 * PROOFS; how++) {
			size_t at = HEAD;
			memcpy(seed,
				(uint8_t[HEAD]){
					WITH_TOKENS | INSECURE, 0, 0x47, (uint8_t)(1 | flag)},
				HEAD);
			at += seed_hello(seed + at, how & 1 ? CKT_HELLO_NEW : CKT_HELLO_RESUME,
				how & 1 ? "" : "ffffffffffff", (uint8_t)how);
			at += seed_hello(seed + at, CKT_HELLO_NEW, "", (uint8_t)(how % PROOFS));
			snprintf(name, sizeof name, "beside-%u-%u", flag, how);
			fuzz_write_seed(to, name, seed, at);
		}
	/* Sessions that come back, or do not (__wrap_ckt_automatic_resume). */
	for (hello_pid = 1; hello_pid < 8; hello_pid++) {
		size_t at = HEAD;
		memcpy(seed, (uint8_t[HEAD]){INSECURE, 0, 0x77, 1}, HEAD);
		at += seed_hello(seed + at, CKT_HELLO_RESUME, "ffffffffffff", 0);
		snprintf(name, sizeof name, "back-%u", hello_pid);
		fuzz_write_seed(to, name, seed, at);
	}
	hello_pid = 0;
	/* Programs that wait until a session has ended. */
	for (unsigned phases = 0; phases < 16; phases++) {
		size_t at = HEAD;
		memcpy(seed, (uint8_t[HEAD]){FULL | INSECURE, 0, (uint8_t)(phases << 4 | 15), 1},
			HEAD);
		at += seed_hello(seed + at, CKT_HELLO_NEW, "", 0);
		at += seed_hello(seed + at, CKT_HELLO_NEW, "", 0x80);
		for (unsigned i = 0; i < 3; i++)
			at += put_step(seed + at, STEP_GONE, (uint8_t)i, nothing, 0);
		snprintf(name, sizeof name, "full-%u", phases);
		fuzz_write_seed(to, name, seed, at);
	}
	fuzz_write_seed(to, "secret", seed, seed_secret(seed));
	for (unsigned number = 0; number < 8; number++) {
		snprintf(name, sizeof name, "story-%u", number);
		fuzz_write_seed(to, name, seed, seed_story(seed, number));
	}
}
