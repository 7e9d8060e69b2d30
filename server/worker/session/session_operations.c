/* What checkpoint/ needs of a session, by the worker; see checkpoint/session.h. */
#include "checkpoint/session.h"

#include "server/worker/ipc/ipc.h"
#include "server/worker/libs/inside/inside.h"
#include "server/worker/libs/nccl/nccl_members.h"
#include "server/worker/memory/fixed_address.h"
#include "server/worker/memory/kernel_heap.h"
#include "server/worker/session/blocking_call.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/session/hostfunc.h"
#include "server/worker/session/long_call.h"

/* A build without NCCL's headers lacks these. */
uint64_t ckt_nccl_issued(struct ckt_worker *worker) __attribute__((weak));
bool ckt_nccl_has_peers(char *ret_text, size_t text_size) __attribute__((weak));

static uint64_t collectives_issued(struct ckt_worker *worker)
{
	return ckt_nccl_issued ? ckt_nccl_issued(worker) : 0;
}

static bool has_peers(char *ret_text, size_t text_size)
{
	return ckt_nccl_has_peers && ckt_nccl_has_peers(ret_text, text_size);
}

const struct ckt_session_operations ckt_session_operations = {
	.charge = ckt_budget_charge,
	.uncharge = ckt_budget_uncharge,
	.map_place = ckt_place_map,
	.waits_for_others = ckt_apart_is_busy,
	.finish_calls = ckt_aside_drain,
	.host_function_runs = ckt_hostcalls_waiting,
	.host_functions_ended = ckt_hostcalls_ended,
	.settle_notes = ckt_inside_notes_settle,
	.collectives_issued = collectives_issued,
	.is_shared = ckt_ipc_is_shared,
	.is_shared_with_running = ckt_ipc_obstacle,
	.close_sharing = ckt_ipc_close,
	.reopen_sharing = ckt_ipc_reopen,
	.has_peers = has_peers,
	.check_saved = ckt_heap_check,
};
