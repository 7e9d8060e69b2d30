/* Looking ahead: host functions end whose host_func_done lies in the input, but for those behind commands of their own thread. */
#include "server/worker/lookahead.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/worker/hostfunc.h"
#include "tests/unit/worker/inside.h"

static uint8_t bytes[4096];
static size_t size;
static int peer;

/* A call of that thread with one number as its arguments. */
static void add(uint32_t prog, uint32_t proc, uint64_t seq, uint32_t thread, uint64_t argument)
{
	uint8_t *p = ckt_put_u32(bytes + size, 0x80000000u | (CKT_CALL_HEADER_SIZE + 8));
	p = ckt_call_header_put(p, &(struct ckt_call_header){.prog = prog, .vers = 1, .proc = proc, .seq = seq, .thread = thread, .flags = CKT_CALL_BATCHED});
	p = ckt_put_u64(p, argument);
	size = (size_t)(p - bytes);
}

static void done(uint64_t seq, uint32_t thread, uint64_t instance)
{
	add(CKT_CUDA_PROG, CKT_PROC_HOST_FUNC_DONE, seq, thread, instance);
}

/* Begins a host function on the stream: its instance, as the client is told it. */
static uint64_t begin(uint64_t stream)
{
	uint8_t told[256];
	IS(ASK(host_func, .stream = stream, .number = 7), CUDA_SUCCESS);
	for (int i = 0; i < 60000; i++) {
		/* Sends it, too. */
		ckt_lookahead_look(&ckt_worker);
		if (inside_sent(told, sizeof told) >= CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE + 28) {
			struct ckt_cursor c = {.p = told + CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE, .end = told + sizeof told};
			return ckt_get_u64(&c);
		}
		poll(NULL, 0, 1);
	}
	return 0;
}

/* A connection with those records and no executor; whether the host function has ended after a look. */
static bool ends(void)
{
	int pair[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	peer = pair[0];
	ckt_input_connect(&ckt_worker.input, pair[1]);
	IS(send(peer, bytes, size, 0), size);
	size = 0;
	ckt_lookahead_look(&ckt_worker);
	bool ended = !ckt_hostcalls_waiting(&ckt_worker);
	/* The executor has every byte in its turn. */
	IS(ckt_input_receive(&ckt_worker.input), 1);
	ckt_input_connect(&ckt_worker.input, -1);
	close(pair[0]);
	close(pair[1]);
	return ended;
}

static void test_ahead(void)
{
	CUstream real;
	uint64_t stream = ID(STREAM, 70), now = 100;
	uint64_t before = atomic_exchange(&ckt_worker.replies.executed, now);
	MUST(ckt_stream_make(&ckt_worker, stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
	MUST(ckt_object_stream(&ckt_worker, stream, &real), CUDA_SUCCESS);
	/* Behind calls of other threads, and of its own that are done. */
	uint64_t instance = begin(stream);
	add(CKT_CUDA_PROG, CKT_PROC_CTX_SYNCHRONIZE, now - 1, 2, 0);
	add(CKT_CUDA_PROG, CKT_PROC_CTX_SYNCHRONIZE, now, 1, 0);
	add(CKT_CUDA_PROG, CKT_PROC_CTX_SYNCHRONIZE, now + 1, 3, 0);
	done(now + 2, 2, instance);
	YES(ends());
	IS(ckt_driver.cuStreamSynchronize(real), CUDA_SUCCESS);
	/* In its turn it finds nothing. */
	IS(ASK(host_func_done, .instance = instance), CUDA_SUCCESS);
	/* Two of one thread, one behind the other. */
	MUST(ckt_stream_make(&ckt_worker, ID(STREAM, 71), CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
	uint64_t other = begin(ID(STREAM, 71));
	instance = begin(stream);
	done(now + 1, 2, other);
	done(now + 2, 2, instance);
	YES(ends());
	IS(ckt_driver.cuStreamSynchronize(real), CUDA_SUCCESS);
	atomic_store(&ckt_worker.replies.executed, before);
}

/* Left to the executor. */
static void test_behind(void)
{
	uint64_t now = 100, before = atomic_exchange(&ckt_worker.replies.executed, now);
	uint64_t instance = begin(ID(STREAM, 70));
	/* What the function wrote is on its way; in the second case the executor may be inside of it. */
	add(CKT_CUDA_PROG, CKT_PROC_CTX_SYNCHRONIZE, now + 1, 2, 0);
	done(now + 2, 2, instance);
	NO(ends());
	add(CKT_CUDA_PROG, CKT_PROC_CTX_SYNCHRONIZE, now, 2, 0);
	done(now + 1, 2, instance);
	NO(ends());
	/* Contents of pinned memory, and more threads than it keeps in mind. */
	add(CRICKET_SESSION_PROG, CKT_SESSION_HOST_FILL, 0, 9, 0);
	done(now + 1, 2, instance);
	NO(ends());
	/* Another's, and cut short. */
	done(now + 1, 2, instance + 1);
	NO(ends());
	done(now + 1, 2, instance);
	size -= 8;
	ckt_put_u32(bytes, 0x80000000u | CKT_CALL_HEADER_SIZE);
	NO(ends());
	IS(ASK(host_func_done, .instance = instance), CUDA_SUCCESS);
	NO(ckt_hostcalls_waiting(&ckt_worker));
	for (unsigned i = 0; i < 2; i++)
		ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(STREAM, 70 + i)));
	atomic_store(&ckt_worker.replies.executed, before);
}

/* Beats are the executor's, which is frozen here: its thread leaves this to us. */
static void test_beats(void)
{
	struct ckt_lookahead lookahead = {0};
	ckt_lookahead_beat(&lookahead);
	ckt_lookahead_beat(&lookahead);
	IS(lookahead.beats, 2);
	ckt_lookahead_asleep(&lookahead, true);
	YES(lookahead.asleep);
	YES(ckt_worker.lookahead.asleep);
}

UNIT_SUITE(worker/lookahead, {"ahead", test_ahead}, {"behind", test_behind}, {"beats", test_beats})
