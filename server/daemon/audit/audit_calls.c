/* SPDX-License-Identifier: Apache-2.0 */
/* The control calls for the audit log; see audit_calls.h. */
#include "server/daemon/audit/audit_calls.h"

#include <stddef.h>
#include <stdio.h>

#include "rpc/control.h"

/* What an answer begins with. */
enum answer {
	ANSWER_DATA,   /* nothing that could say no */
	ANSWER_RESULT, /* a ckt_control_result */
	ANSWER_NUMBER, /* an int; 0: it went well */
};

/* Offsets of members that are strings, and 1; 0: there is none. */
#define AT(type, member) (offsetof(type, member) + 1)

struct procedure {
	const char *name;
	enum answer answer;
	size_t session, object; /* in the arguments */
	size_t answer_session;
};

/* tests/server/test_audit.py compares the names with rpc/control.x. */
static const struct procedure procedures[] = {
	[CKT_CONTROL_NULL] = {"null"},
	[CKT_CONTROL_INFO] = {"info"},
	[CKT_CONTROL_LIST] = {"list"},
	[CKT_CONTROL_LIST2] = {"list2"},
	[CKT_CONTROL_KILL] = {"kill", ANSWER_RESULT, AT(ckt_control_session_args, session)},
	[CKT_CONTROL_STATS] = {"stats", ANSWER_RESULT, AT(ckt_control_session_args, session)},
	[CKT_CONTROL_CHECKPOINT] = {"checkpoint", ANSWER_RESULT,
		AT(ckt_control_checkpoint_args, session), 0,
		AT(ckt_control_checkpoint_res, session)},
	[CKT_CONTROL_RESTORE] = {"restore", ANSWER_RESULT, 0, 0,
		AT(ckt_control_restore_res, session)},
	[CKT_CONTROL_STAGE_MAKE] = {"stage_make", ANSWER_RESULT},
	[CKT_CONTROL_STAGE_LIST] = {"stage_list", ANSWER_RESULT, 0,
		AT(ckt_control_stage_args, stage)},
	[CKT_CONTROL_STAGE_REMOVE] = {"stage_remove", ANSWER_RESULT, 0,
		AT(ckt_control_stage_args, stage)},
	[CKT_CONTROL_STAGE_DATA] = {"stage_data", ANSWER_RESULT, 0,
		AT(ckt_control_stage_args, stage)},
	[CKT_CONTROL_READ] = {"read", ANSWER_NUMBER},
	[CKT_CONTROL_WRITE] = {"write", ANSWER_NUMBER},
	[CKT_CONTROL_SAVE] = {"save", ANSWER_RESULT, AT(ckt_control_save_args, session),
		AT(ckt_control_save_args, stage), AT(ckt_control_save_res, session)},
	[CKT_CONTROL_RELEASE] = {"release", ANSWER_RESULT, AT(ckt_control_release_args, session)},
	[CKT_CONTROL_IMAGE] = {"image", ANSWER_RESULT},
	[CKT_CONTROL_RESTORE2] = {"restore2", ANSWER_RESULT, 0, 0,
		AT(ckt_control_restore_res, session)},
	[CKT_CONTROL_PAUSE] = {"pause", ANSWER_RESULT, AT(ckt_control_pause_args, session), 0,
		AT(ckt_control_bytes_res, session)},
	[CKT_CONTROL_UNPAUSE] = {"unpause", ANSWER_RESULT, AT(ckt_control_session_args, session), 0,
		AT(ckt_control_bytes_res, session)},
	[CKT_CONTROL_SWAP] = {"swap", ANSWER_RESULT, AT(ckt_control_swap_args, session), 0,
		AT(ckt_control_swap_res, session)},
	[CKT_CONTROL_SWAP_LOOK] = {"swap_look", ANSWER_RESULT,
		AT(ckt_control_session_args, session), 0, AT(ckt_control_swap_res, session)},
	[CKT_CONTROL_PROGRESS] = {"progress", ANSWER_RESULT, AT(ckt_control_session_args, session)},
	[CKT_CONTROL_EVENTS] = {"events"},
	[CKT_CONTROL_STAGE_KEEP] = {"stage_keep", ANSWER_RESULT, 0,
		AT(ckt_control_keep_args, name)},
	[CKT_CONTROL_KEPT_LIST] = {"kept_list"},
	[CKT_CONTROL_KEPT_REMOVE] = {"kept_remove", ANSWER_RESULT, 0,
		AT(ckt_control_stage_args, stage)},
	[CKT_CONTROL_PRELOAD] = {"preload", ANSWER_RESULT, AT(ckt_control_preload_args, copy), 0,
		AT(ckt_control_restore_res, session)},
	[CKT_CONTROL_QUIESCE] = {"quiesce", ANSWER_RESULT, AT(ckt_control_session_args, session)},
	[CKT_CONTROL_DEVICES] = {"devices"},
	[CKT_CONTROL_NVML] = {"nvml", ANSWER_NUMBER},
	[CKT_CONTROL_GPU_USE] = {"gpu_use", ANSWER_NUMBER},
	[CKT_CONTROL_BASE] = {"base", ANSWER_RESULT, AT(ckt_control_base_args, session)},
	[CKT_CONTROL_JOBS] = {"jobs"},
	[CKT_CONTROL_CONNECTIONS] = {"connections"},
	[CKT_CONTROL_REPLACE] = {"replace", ANSWER_RESULT},
	[CKT_CONTROL_DRAIN] = {"drain", ANSWER_RESULT},
	[CKT_CONTROL_TURNS] = {"turns"},
	[CKT_CONTROL_SHARINGS] = {"sharings"},
	[CKT_CONTROL_SHARE_GROUPS] = {"share_groups"},
	[CKT_CONTROL_SHARE_MODES] = {"share_modes"},
	[CKT_CONTROL_QUANTA] = {"quanta"},
	[CKT_CONTROL_DECIDE] = {"decide", ANSWER_RESULT, AT(ckt_control_decide_args, session), 0,
		AT(ckt_control_decide_res, session)},
	[CKT_CONTROL_FACTS] = {"facts"},
	[CKT_CONTROL_OWNERS] = {"owners"},
	[CKT_CONTROL_WARM] = {"warm"},
	[CKT_CONTROL_WAITS] = {"waits"},
	[CKT_CONTROL_WATCH] = {"watch"},
	[CKT_CONTROL_DURABLE] = {"durable"},
	[CKT_CONTROL_REPLICAS] = {"replicas"},
	[CKT_CONTROL_REPLICA_LOOK] = {"replica_look", ANSWER_RESULT,
		AT(ckt_control_replica_look_args, session)},
	[CKT_CONTROL_REPLICA_IMAGE] = {"replica_image", ANSWER_RESULT,
		AT(ckt_control_replica_image_args, session)},
	[CKT_CONTROL_REPLICA_KEEP] = {"replica_keep", ANSWER_RESULT,
		AT(ckt_control_replica_keep_args, session)},
	[CKT_CONTROL_REPLICA_LEASE] = {"replica_lease", ANSWER_RESULT,
		AT(ckt_control_replica_lease_args, session)},
	[CKT_CONTROL_REPLICA_DROP] = {"replica_drop", ANSWER_RESULT,
		AT(ckt_control_session_args, session)},
	[CKT_CONTROL_IMAGE_MAC] = {"image_mac", ANSWER_RESULT,
		AT(ckt_control_image_mac_args, session)},
	[CKT_CONTROL_OWNED_EVENTS] = {"owned_events"},
	[CKT_CONTROL_JOB_HOLD] = {"job_hold", ANSWER_RESULT, 0, AT(ckt_control_job_args, job)},
	[CKT_CONTROL_JOB_LOOK] = {"job_look", ANSWER_RESULT},
	[CKT_CONTROL_JOB_END] = {"job_end", ANSWER_RESULT},
	[CKT_CONTROL_JOB_KEY_SHOW] = {"job_key_show", ANSWER_RESULT},
	[CKT_CONTROL_NCCL_MAKE] = {"nccl_make", ANSWER_RESULT,
		AT(ckt_control_nccl_make_args, copy)},
	[CKT_CONTROL_TRACE] = {"trace", ANSWER_RESULT, AT(ckt_control_trace_args, session)},
	[CKT_CONTROL_TRACE_READ] = {"trace_read", ANSWER_RESULT,
		AT(ckt_control_trace_args, session)},
	[CKT_CONTROL_LIMIT_SET] = {"limit_set", ANSWER_RESULT, 0, AT(ckt_control_limit_args, rule)},
	[CKT_CONTROL_LIMIT_SHOW] = {"limit_show"},
	[CKT_CONTROL_LIMIT_CLEAR] = {"limit_clear", ANSWER_RESULT, 0,
		AT(ckt_control_limit_args, rule)},
	[CKT_CONTROL_NCCL_IDS] = {"nccl_ids", ANSWER_RESULT, AT(ckt_control_nccl_ids_args, copy)},
};

static const struct procedure *procedure_of(uint32_t proc)
{
	static const struct procedure none;
	return proc < sizeof procedures / sizeof *procedures ? &procedures[proc] : &none;
}

static const char *text_at(const void *structure, size_t at)
{
	return structure && at ? *(char *const *)((const char *)structure + at - 1) : NULL;
}

const char *ckt_audit_call_name(uint32_t proc)
{
	return procedure_of(proc)->name;
}

void ckt_audit_call_arguments(uint32_t proc, const void *args, struct ckt_audit_record *ret_record)
{
	ret_record->session = text_at(args, procedure_of(proc)->session);
	ret_record->object = text_at(args, procedure_of(proc)->object);
}

void ckt_audit_call_answer(uint32_t proc, const void *res, struct ckt_audit_record *ret_record)
{
	const struct procedure *procedure = procedure_of(proc);
	const ckt_control_result *result = res;
	const int *number = res;
	const char *session = text_at(res, procedure->answer_session);
	ret_record->result = "ok";
	if (session && *session)
		ret_record->session = session;
	if (res && procedure->answer == ANSWER_RESULT && result->status) {
		ret_record->result = "refused";
		ret_record->reason = result->message;
	} else if (res && procedure->answer == ANSWER_NUMBER && *number) {
		ret_record->result = "failed";
	}
}
