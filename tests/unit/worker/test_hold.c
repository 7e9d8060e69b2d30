/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint/freeze/hold.h: standing still between commands: when that is, what is done by then,
 * steps, and replies that wait.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "checkpoint/freeze/hold.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/stream.h"
#include "server/worker/session/call.h"
#include "tests/unit/worker/inside.h"

static char message[CKT_MESSAGE_MAX];

static struct ckt_worker_hold_res look(void)
{
	struct ckt_worker_hold_res res = {0};
	*message = 0;
	ckt_hold_look(&ckt_worker, &res, message);
	return res;
}

static int set(uint32_t action, uint64_t commands, uint64_t issued)
{
	return ckt_hold_set(&ckt_worker, action, commands, issued, message, sizeof message);
}

/* The executor's part, which stands in this program. */
static void take(void)
{
	pthread_mutex_lock(&ckt_worker.mail_lock);
	ckt_hold_take(&ckt_worker);
	pthread_mutex_unlock(&ckt_worker.mail_lock);
}

/* In these tests nobody else is frozen: as the executor would see it. */
static bool is_drained(void)
{
	return ckt_worker.checkpoint.hold.drained == ckt_worker.checkpoint.hold.epoch;
}

static void test_steps(void)
{
	NO(look().held);
	IS(set(CKT_HOLD_STEP, 1, 0), -EINVAL);
	HAS(message, "is not held");
	NO(ckt_hold_stops(&ckt_worker));
	IS(set(CKT_HOLD_STOP, 9, 9), 0);
	YES(look().held);
	IS(look().commands, 0);
	NO(ckt_hold_stops(&ckt_worker)); /* not before the executor knows */
	take();
	YES(ckt_hold_stops(&ckt_worker));
	IS(set(CKT_HOLD_STOP, 0, 0), -EBUSY);
	HAS(message, "another checkpoint of its job holds the session");
	IS(set(CKT_HOLD_STEP, 2, 0), 0);
	take();
	for (int i = 0; i < 2; i++) {
		NO(ckt_hold_stops(&ckt_worker));
		ckt_hold_spend(&ckt_worker);
	}
	YES(ckt_hold_stops(&ckt_worker));
	ckt_hold_copied(&ckt_worker);
	YES(look().copied);
	IS(set(CKT_HOLD_END, 0, 0), 0);
	take();
	NO(ckt_hold_stops(&ckt_worker));
	NO(look().held);
	/* The next one begins anew. */
	IS(set(CKT_HOLD_STOP, 0, 0), 0);
	NO(look().copied);
	IS(set(CKT_HOLD_END, 0, 0), 0);
	take();
}

/* Until it goes on a session stands with those of a cut, whatever job it has. */
static void test_cut(void)
{
	static const uint8_t cut[CKT_WORKER_CUT_SIZE] = {0xab, [15] = 1};
	strcpy(ckt_worker.job, "train");
	IS(ckt_hold_name_cut(&ckt_worker, cut), -EINVAL);
	TEXT(ckt_hold_with(&ckt_worker), "train");
	IS(set(CKT_HOLD_STOP, 0, 0), 0);
	IS(ckt_hold_name_cut(&ckt_worker, cut), 0);
	TEXT(ckt_hold_with(&ckt_worker), "/ab000000000000000000000000000001");
	NO(ckt_job_name_good(ckt_hold_with(&ckt_worker)));
	IS(set(CKT_HOLD_STEP, 1, 0), 0);
	TEXT(ckt_hold_with(&ckt_worker), "/ab000000000000000000000000000001");
	IS(set(CKT_HOLD_END, 0, 0), 0);
	TEXT(ckt_hold_with(&ckt_worker), "train");
	IS(set(CKT_HOLD_STOP, 0, 0), 0);
	TEXT(ckt_hold_with(&ckt_worker), "train");
	IS(set(CKT_HOLD_END, 0, 0), 0);
	ckt_worker.job[0] = 0;
	take();
}

static void test_drained(void)
{
	struct ckt_object *stream;
	CUstream real;
	MUST(ckt_worker_stream_make(&ckt_worker, ID(STREAM, 1), CU_STREAM_NON_BLOCKING, 0),
		CUDA_SUCCESS);
	stream = ckt_objects_find(&ckt_worker.objects, ID(STREAM, 1));
	MUST(ckt_object_stream(&ckt_worker, stream->id, &real), CUDA_SUCCESS);
	NO(ckt_hold_check(&ckt_worker)); /* nobody asks */
	IS(set(CKT_HOLD_STOP, 0, 0), 0);
	inside_spin(real);
	take();
	YES(ckt_hold_check(&ckt_worker));
	NO(is_drained());
	HAS(ckt_worker.checkpoint.hold.message,
		"a kernel or copy on stream 0x200000001000bb9 does not finish");
	inside_stop();
	IS(ckt_driver.cuStreamSynchronize(real), CUDA_SUCCESS);
	NO(ckt_hold_check(&ckt_worker));
	YES(is_drained());
	YES(look().drained);
	/* A command, and it is to be found out again; so is a step that nobody used. */
	IS(set(CKT_HOLD_STEP, 1, 0), 0);
	NO(is_drained());
	take();
	NO(ckt_hold_check(&ckt_worker));
	YES(is_drained());
	ckt_hold_spend(&ckt_worker);
	NO(is_drained());
	/* The default stream has no name; a call that is open counts too. */
	ckt_context_primary(&ckt_worker, 0, &stream);
	struct ckt_wcall *call = ckt_wcall_new(&ckt_worker);
	call->header = (struct ckt_call_header){0};
	YES(ckt_hold_check(&ckt_worker));
	HAS(ckt_worker.checkpoint.hold.message, "a call of the program does not return");
	ckt_wcall_free(call);
	NO(ckt_hold_check(&ckt_worker));
	IS(set(CKT_HOLD_END, 0, 0), 0);
	take();
	ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(STREAM, 1)));
}

static void test_withheld(void)
{
	struct ckt_reply_header header = {.xid = 4711};
	uint8_t body[4] = {1, 2, 3, 4}, got[256];
	uint64_t epoch = ckt_output_epoch(&ckt_worker.output);
	inside_sent(got, sizeof got);
	NO(ckt_hold_keep(&ckt_worker, epoch, &header, body, sizeof body));
	ckt_worker.checkpoint.hold.withhold = true;
	YES(ckt_hold_keep(&ckt_worker, epoch, &header, body, sizeof body));
	/* of a connection that is gone */
	YES(ckt_hold_keep(&ckt_worker, epoch + 1, &header, body, sizeof body));
	IS(inside_sent(got, sizeof got), 0);
	ckt_hold_give(&ckt_worker);
	IS(inside_sent(got, sizeof got), CKT_MARK_SIZE + CKT_REPLY_HEADER_SIZE + sizeof body);
	IS(memcmp(got + CKT_MARK_SIZE + CKT_REPLY_HEADER_SIZE, body, sizeof body), 0);
	NO(ckt_hold_keep(&ckt_worker, epoch, &header, body, sizeof body));
	/* Without a host function nothing is withheld. */
	IS(set(CKT_HOLD_STOP, 0, 0), 0);
	take();
	ckt_hold_refresh(&ckt_worker);
	NO(ckt_worker.checkpoint.hold.withhold);
	ckt_worker.checkpoint.hold.host_seen = true;
	ckt_hold_refresh(&ckt_worker);
	YES(ckt_worker.checkpoint.hold.withhold);
	/* Not for ever, where none ends; after a long pause of this process it would begin again. */
	for (int i = 0; i < 100 && ckt_worker.checkpoint.hold.withhold; i++) {
		ckt_worker.checkpoint.hold.since_ns = ckt_now_ns();
		ckt_worker.checkpoint.hold.patience_ns = 1;
		nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
		ckt_hold_refresh(&ckt_worker);
	}
	NO(ckt_worker.checkpoint.hold.withhold);
	IS(set(CKT_HOLD_END, 0, 0), 0);
	take();
	NO(ckt_worker.checkpoint.hold.host_seen);
}

UNIT_SUITE(hold, {"steps", test_steps}, {"cut", test_cut}, {"drained", test_drained},
	{"withheld", test_withheld})
