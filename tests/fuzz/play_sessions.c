/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays whole sessions of CUDA calls against a worker on the soft GPU, made up from a seed:
 *
 *	play_sessions WORKER LIBCUDA [SESSIONS [SEED]]
 *
 * A session begins with calls that make sense (memory, streams, events, a module, launches).  Then
 * come calls of every procedure with any arguments, in which ids, addresses and sizes of the
 * session stand more often than not.  Now and then the connection breaks and the session resumes,
 * bytes of a command are changed, and the daemon's side asks or sends any message of the worker's
 * control program, from a thread of its own.  At the end many sessions are saved, the image's
 * manifest is mutated, and another worker must restore it or refuse it with a sentence.
 *
 * A finding is a worker that a signal or a sanitizer ends, or that does not answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/format/store.h"
#include "rpc/handle.h"
#include "rpc/net.h"
#include "server/worker/module/blob.h"
#include "server/worker/session/call.h"
#include "tests/fuzz/mutate_xdr.h"
#include "tests/unit/rpcgen/messages.h"
#include "tests/unit/worker/wire_client.h"

#include "rpc/gen/codec_messages.inc"

enum { MESSAGES = sizeof messages / sizeof *messages, PROCS_MAX = 1024, OBJECTS = 6 };
enum { COMMANDS = 150, ADDRESSES = 16, ANSWER_MS = 60000, CONTROL_MS = 20000 };

static const char *worker_path, *driver_path;
/* Where both find their libraries, as tests/fuzz/hours packs them; empty: where the system has them. */
static char library_path[4096];
static unsigned seed, sessions_played, commands_played, broken, restored, refused;
static atomic_uint control_calls;

static const char ptx[] =
	".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .align 4 .u32 total = 5;\n"
	".visible .entry add(.param .u64 out, .param .u32 n)\n{\n"
	"\t.reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<8>;\n"
	"\tld.param.u64 %d1, [out]; ld.param.u32 %r1, [n];\n"
	"\tmov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;\n"
	"\tsetp.ge.u32 %p, %r5, %r1; @%p bra DONE;\n"
	"\tmul.wide.u32 %d3, %r5, 4; add.u64 %d4, %d1, %d3; atom.global.add.u32 %r6, [%d4], %r5;\n"
	"DONE:\n\tret;\n}\n";

static _Noreturn void finding(const char *what)
{
	fprintf(stderr, "play_sessions: session %u of this seed, command %u: %s\n", sessions_played,
		commands_played, what);
	exit(1);
}

static unsigned below(unsigned limit)
{
	return fuzz_random(&seed) % limit;
}

/* ---- What the session has */

static struct {
	struct wire wire;
	bool gone; /* the connection: the worker did not like a command */
	uint64_t addresses[ADDRESSES];
	unsigned address_count;
} s;

static uint64_t some_object(void)
{
	return ckt_handle_make((enum ckt_kind)(1 + below(CKT_KIND_LIB_CALL)), 1, below(OBJECTS));
}

static uint64_t some_address(void)
{
	uint64_t address = s.address_count ? s.addresses[below(s.address_count)] : 0;
	return below(4) ? address : address + below(1 << 14);
}

static uint64_t some_value(void)
{
	switch (below(8)) {
	case 0:
	case 1:
		return some_object();
	case 2:
	case 3:
		return some_address();
	case 4:
		return ckt_handle_primary(0);
	case 5:
		return below(5);
	case 6:
		return (uint64_t)1 << below(24);
	default:
		return (uint64_t)fuzz_number(below(64), &seed) << (below(4) ? 0 : 32);
	}
}

/* ---- The worker's end, and its answers */

/* A signal that no test sent is a finding; so is a sanitizer's status, which wire_ended looks at. */
static void worker_ends(bool killed)
{
	siginfo_t info = {0};
	int64_t until = ckt_net_now_ms() + ANSWER_MS;
	while (!info.si_pid && ckt_net_now_ms() < until) {
		waitid(P_PID, (id_t)s.wire.pid, &info, WEXITED | WNOHANG | WNOWAIT);
		usleep(1000);
	}
	if (!info.si_pid)
		finding("a worker that must end does not");
	if (info.si_code != CLD_EXITED && !(killed && info.si_status == SIGKILL))
		finding(strsignal(info.si_status));
	if (!wire_ended(&s.wire))
		finding("a worker that does not end");
	free(s.wire.printed);
	free(s.wire.log);
	memset(&s, 0, sizeof s);
}

/* As wire_send, but the connection may have ended. */
static uint32_t send_call(uint32_t proc, const uint8_t *args, size_t size, bool batched)
{
	bool numbered = ckt_cuda_procs[proc].flags & CKT_PROC_NUMBERED;
	struct ckt_call_header header = {.xid = ++s.wire.xid,
		.prog = CKT_CUDA_PROG,
		.vers = CKT_CUDA_VERS,
		.proc = proc,
		.seq = numbered ? ++s.wire.seq : 0,
		.acked = s.wire.acked,
		.thread = s.wire.thread ? s.wire.thread : 1,
		.flags = batched ? CKT_CALL_BATCHED : 0,
		.context = ckt_handle_primary(0)};
	uint8_t *record = malloc(CKT_CALL_HEADER_SIZE + size);
	memcpy(ckt_call_header_put(record, &header), args, size);
	int result = s.gone ? -EPIPE
			    : ckt_net_write_record(s.wire.fd, record, CKT_CALL_HEADER_SIZE + size,
				      ckt_net_now_ms() + ANSWER_MS, -1);
	free(record);
	if (result == -ETIMEDOUT)
		finding("the worker reads no commands");
	s.gone |= result != 0;
	return header.xid;
}

#define SEND(name, batched, ...)                                                     \
	({                                                                           \
		struct ckt_##name##_args args_ = {__VA_ARGS__};                      \
		size_t size_ = ckt_##name##_args_size(&args_);                       \
		uint8_t *bytes_ = malloc(size_ + 1);                                 \
		ckt_##name##_args_put(bytes_, &args_);                               \
		uint32_t xid_ = send_call(wire_proc(#name), bytes_, size_, batched); \
		free(bytes_);                                                        \
		xid_;                                                                \
	})

/* Its reply, or false where the connection ended. */
static bool read_reply(uint32_t xid, struct wire_reply *ret_reply)
{
	while (!s.gone) {
		uint8_t *data;
		size_t size;
		int result = ckt_net_read_record(s.wire.fd, CKT_RECORD_MAX,
			ckt_net_now_ms() + ANSWER_MS, &data, &size, NULL);
		if (result == -ETIMEDOUT)
			finding("no reply within a minute");
		s.gone = result != 0;
		if (result)
			break;
		struct ckt_cursor c = {.p = data, .end = data + size};
		struct ckt_reply_header header = {0};
		struct ckt_call_header call;
		if (ckt_call_header_get(&c, &call)) {
			free(data);
			continue;
		}
		c = (struct ckt_cursor){.p = data, .end = data + size};
		if (!ckt_reply_header_get(&c, &header))
			finding("a reply without a header");
		if (header.xid != xid) {
			free(data);
			continue;
		}
		*ret_reply = (struct wire_reply){.data = data,
			.xid = xid,
			.accept_stat = header.accept_stat,
			.result = header.accept_stat ? CUDA_ERROR_UNKNOWN
						     : (CUresult)ckt_get_u32(&c)};
		ret_reply->results = c;
		return true;
	}
	return false;
}

/* The client comes back: what was executed is known again. */
static void resume(void)
{
	broken++;
	s.gone = false;
	wire_disconnect(&s.wire);
	s.wire.acked = 0;
	if (wire_hello(&s.wire, CKT_HELLO_RESUME, true) != CKT_HELLO_OK)
		finding("a session cannot resume");
	s.wire.seq = s.wire.acked = s.wire.executed;
}

/* ---- Commands */

static const struct message *arguments[PROCS_MAX];

static void find_arguments(void)
{
	for (unsigned proc = 0; proc < ckt_cuda_proc_count && proc < PROCS_MAX; proc++) {
		char name[128];
		if (!ckt_cuda_procs[proc].name)
			continue;
		snprintf(name, sizeof name, "%s_args", ckt_cuda_procs[proc].name);
		for (unsigned i = 0; i < MESSAGES; i++)
			if (strstr(messages[i].name, name) &&
				!strcmp(strstr(messages[i].name, name), name) &&
				(messages[i].name == strstr(messages[i].name, name) ||
					strstr(messages[i].name, name)[-1] == '_'))
				arguments[proc] = &messages[i];
	}
}

/* Which wait for somebody who is not there: the client, or a value that nobody writes. */
static bool waits_for_nobody(const char *name)
{
	static const char *const names[] = {
		"host_func", "stream_mem_ops", "memory_rescue", "lib_capture"};
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Values of the session in the fields of fixed size; lengths and lists stay as they are. */
static void place_values(const struct message *message, uint8_t *bytes, size_t size)
{
	size_t at = 0;
	for (unsigned i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];
		if (!part->fixed_bytes) {
			struct ckt_cursor c = {.p = bytes + at, .end = bytes + size};
			at += 4 + ckt_padded(ckt_get_u32(&c) * part->element_bytes);
			continue;
		}
		for (size_t in = 0; in + 4 <= part->fixed_bytes; in += 4) {
			if (below(4) == 0)
				continue;
			if (in + 8 <= part->fixed_bytes && below(4)) {
				ckt_put_u64(bytes + at + in, some_value());
				in += 4;
			} else {
				ckt_put_u32(bytes + at + in, fuzz_number(below(16), &seed));
			}
		}
		at += part->fixed_bytes;
	}
}

/* Any procedure with any arguments.  False: the connection ended. */
static bool play_any(void)
{
	unsigned proc;
	do
		proc = below(ckt_cuda_proc_count < PROCS_MAX ? ckt_cuda_proc_count : PROCS_MAX);
	while (!ckt_cuda_procs[proc].name || waits_for_nobody(ckt_cuda_procs[proc].name));
	unsigned flags = ckt_cuda_procs[proc].flags;
	uint8_t *bytes = own(8);
	size_t size = 0;
	if (arguments[proc]) {
		void *flat = own(arguments[proc]->flat_bytes), *x = own(arguments[proc]->x_bytes);
		arguments[proc]->fill(flat, x);
		size = arguments[proc]->size(flat);
		bytes = own(size);
		arguments[proc]->put(bytes, flat);
		place_values(arguments[proc], bytes, size);
	}
	if (size && below(64) == 0)
		bytes[below((unsigned)size)] ^= (uint8_t)(1u << below(8));
	if (size && below(64) == 0)
		size = below((unsigned)size);
	bool batched = flags & CKT_PROC_BATCHED && below(8);
	uint32_t xid = send_call(proc, bytes, size, batched);
	free_owned();
	struct wire_reply reply = {0};
	if (batched)
		return !s.gone;
	if (!read_reply(xid, &reply))
		return false;
	free(reply.data);
	s.wire.acked = s.wire.seq;
	return true;
}

#define PLAY(name, ...)                                          \
	({                                                       \
		struct wire_reply reply_ = {0};                  \
		uint32_t sent_ = SEND(name, false, __VA_ARGS__); \
		bool came_ = read_reply(sent_, &reply_);         \
		s.wire.acked = s.wire.seq;                       \
		free(reply_.data);                               \
		came_;                                           \
	})

static bool play_allocation(void)
{
	struct ckt_mem_alloc_res res = {0};
	struct wire_reply reply = {0};
	uint32_t xid = SEND(mem_alloc, false, .size = 1 + below(1 << 22));
	if (!read_reply(xid, &reply))
		return false;
	s.wire.acked = s.wire.seq;
	if (!reply.accept_stat && !reply.result && ckt_mem_alloc_res_get(&reply.results, &res))
		s.addresses[s.address_count < ADDRESSES ? s.address_count++ : below(ADDRESSES)] =
			res.address;
	free(reply.data);
	return true;
}

static bool play_module(void)
{
	uint8_t hash[32];
	unsigned n = below(OBJECTS);
	ckt_blob_hash(ptx, sizeof ptx - 1, hash);
	SEND(blob_data, true, .hash = hash, .hash_len = 32, .total = sizeof ptx - 1,
		.data = (const uint8_t *)ptx, .data_len = sizeof ptx - 1);
	return PLAY(module_load, .id = ckt_handle_make(CKT_KIND_MODULE, 1, n), .hash = hash,
		       .hash_len = 32, .error_log_max = 100) &&
		PLAY(module_get_function, .module = ckt_handle_make(CKT_KIND_MODULE, 1, n),
			.id = ckt_handle_make(CKT_KIND_FUNCTION, 1, n), .name = "add",
			.name_len = 3);
}

static void play_launch(void)
{
	uint8_t params[16] = {0};
	uint64_t out = some_address();
	uint32_t n = below(256);
	memcpy(params, &out, 8);
	memcpy(params + 8, &n, 4);
	SEND(launch_kernel, true, .function = ckt_handle_make(CKT_KIND_FUNCTION, 1, below(OBJECTS)),
		.grid_x = 1 + below(3), .grid_y = 1, .grid_z = 1, .block_x = 1 + below(128),
		.block_y = 1, .block_z = 1, .params = params,
		.params_len = below(8) ? 12 : below(16),
		.stream = below(2) ? 0 : ckt_handle_make(CKT_KIND_STREAM, 1, below(OBJECTS)));
}

/* Of the calls that a program lives on.  False: the connection ended. */
static bool play_usual(void)
{
	uint8_t data[256] = {1, 2, 3};
	uint64_t stream = ckt_handle_make(CKT_KIND_STREAM, 1, below(OBJECTS)),
		 event = ckt_handle_make(CKT_KIND_EVENT, 1, below(OBJECTS));
	switch (below(10)) {
	case 0:
		return play_allocation();
	case 1:
		return play_module();
	case 2:
		play_launch();
		return true;
	case 3:
		SEND(memcpy_htod, true, .dst = some_address(), .data = data,
			.data_len = below(sizeof data));
		return true;
	case 4:
		return PLAY(memcpy_dtoh, .src = some_address(), .size = below(4096));
	case 5:
		SEND(stream_create, true, .id = stream, .flags = below(2));
		return true;
	case 6:
		SEND(event_create, true, .id = event, .flags = below(4));
		return true;
	case 7:
		SEND(event_record, true, .event = event, .stream = stream);
		return true;
	case 8:
		return PLAY(mem_free, .address = some_address());
	default:
		return PLAY(ctx_synchronize);
	}
}

/* ---- The daemon's side, in a thread of its own */

static const struct {
	uint32_t proc;
	xdrproc_t xdr;
	size_t bytes;
} asked[] = {
#define ASKED(proc, type)                                 \
	{                                                 \
		proc, (xdrproc_t)xdr_##type, sizeof(type) \
	}
	ASKED(CKT_WORKER_SAVE, ckt_worker_save_args),
	ASKED(CKT_WORKER_IMAGE, ckt_worker_image_args),
	ASKED(CKT_WORKER_SAVE2, ckt_worker_save2_args),
	ASKED(CKT_WORKER_RELEASE, ckt_worker_release_args),
	ASKED(CKT_WORKER_MEMORY, ckt_worker_image_args),
	ASKED(CKT_WORKER_PRELOAD, ckt_worker_start_args),
	ASKED(CKT_WORKER_START, ckt_worker_start_args),
	ASKED(CKT_WORKER_WARM, ckt_worker_start_args),
	ASKED(CKT_WORKER_BASE, ckt_worker_base_args),
	ASKED(CKT_WORKER_LEASE_WAITED, ckt_worker_waited_args),
	ASKED(CKT_WORKER_LEASE_PRESS, ckt_worker_press_args),
	ASKED(CKT_WORKER_OWNER, ckt_worker_owner_args),
	ASKED(CKT_WORKER_OWNER_GONE, ckt_worker_gone_args),
	ASKED(CKT_WORKER_HOLD, ckt_worker_hold_args),
	ASKED(CKT_WORKER_NCCL_MAKE, ckt_worker_nccl_make_args),
	ASKED(CKT_WORKER_NCCL_IDS, ckt_worker_nccl_ids_args),
	ASKED(CKT_WORKER_CLIENT, ckt_worker_client_args),
};
static const uint32_t questions[] = {CKT_WORKER_NULL, CKT_WORKER_STATUS, CKT_WORKER_STATS,
	CKT_WORKER_PROGRESS, CKT_WORKER_GPUS, CKT_WORKER_ORIGIN, CKT_WORKER_JOB, 99};

struct asker {
	pthread_t thread;
	struct sockaddr_un address;
	unsigned seed;
	atomic_bool stop;
};

static size_t make_question(uint8_t *record, size_t room, unsigned *random)
{
	size_t size = CKT_CALL_HEADER_SIZE;
	uint32_t proc = questions[fuzz_random(random) % (sizeof questions / sizeof *questions)];
	if (fuzz_random(random) % 2) {
		unsigned i = fuzz_random(random) % (sizeof asked / sizeof *asked);
		proc = asked[i].proc;
		size += fuzz_mutate_xdr(asked[i].xdr, asked[i].bytes, NULL, 0, record + size,
			room - size, fuzz_random(random));
	}
	ckt_call_header_put(record,
		&(struct ckt_call_header){
			.xid = 7, .prog = CRICKET_WORKER_PROG, .vers = 1, .proc = proc});
	return size;
}

/* One connection after the other; each ends whatever its call began. */
static void *ask(void *opaque)
{
	struct asker *asker = opaque;
	while (!atomic_load(&asker->stop)) {
		uint8_t record[4096], *data;
		size_t size;
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(fd, (struct sockaddr *)&asker->address, sizeof asker->address)) {
			close(fd);
			break;
		}
		size = make_question(record, sizeof record, &asker->seed);
		if (!ckt_net_write_record(fd, record, size, ckt_net_now_ms() + CONTROL_MS, -1) &&
			!ckt_net_read_record(fd, CKT_RECORD_MAX, ckt_net_now_ms() + CONTROL_MS,
				&data, &size, NULL))
			free(data);
		atomic_fetch_add(&control_calls, 1);
		close(fd);
		usleep(1000);
	}
	return NULL;
}

static void asker_start(struct asker *asker)
{
	*asker = (struct asker){.address = {.sun_family = AF_UNIX}, .seed = fuzz_random(&seed)};
	snprintf(asker->address.sun_path, sizeof asker->address.sun_path, "%s/sock",
		s.wire.directory);
	if (pthread_create(&asker->thread, NULL, ask, asker))
		finding("no thread");
}

static void asker_end(struct asker *asker)
{
	atomic_store(&asker->stop, true);
	pthread_join(asker->thread, NULL);
}

/* ---- Images */

static void remove_directory(const char *directory)
{
	char path[128];
	static const char *const names[] = {"manifest", "data-0", "data-1", "data-2", "data-3"};
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", directory, names[i]);
		unlink(path);
	}
	rmdir(directory);
}

/* The manifest's body is mutated as the grammar of images says; its checksum fits again. */
static void mutate_manifest(int place)
{
	static uint8_t body[1 << 20], mutated[1 << 20];
	ckt_image image = {0};
	char message[512];
	XDR xdr;
	if (ckt_image_read(place, &image, message, sizeof message))
		finding("what was saved cannot be read");
	xdrmem_create(&xdr, (char *)body, sizeof body, XDR_ENCODE);
	bool encoded = xdr_ckt_image(&xdr, &image);
	size_t size = xdr_getpos(&xdr);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	if (!encoded)
		return;
	memset(&image, 0, sizeof image);
	size = fuzz_mutate_xdr((xdrproc_t)xdr_ckt_image, sizeof image, body, size, mutated,
		sizeof mutated, fuzz_random(&seed));
	xdrmem_create(&xdr, (char *)mutated, (u_int)size, XDR_DECODE);
	if (xdr_ckt_image(&xdr, &image)) {
		unlinkat(place, "manifest", 0);
		ckt_image_write(place, &image, message, sizeof message);
	}
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
}

/* As wire_start, for a worker with the same libraries. */
static int start_worker(uint64_t memory_limit, int image_fd, char *ret_message)
{
	s.wire.env[0] = library_path[0] ? library_path : NULL;
	return wire_start(&s.wire, worker_path, driver_path, memory_limit, image_fd, ret_message);
}

/* The session ends with an image, which a new worker restores, or refuses with a sentence. */
static void play_image(void)
{
	char directory[] = "/tmp/ckt-play-XXXXXX", message[CKT_MESSAGE_MAX] = "";
	if (!mkdtemp(directory))
		finding("no directory");
	ckt_worker_save2_res saved = wire_save2(
		&s.wire, directory, (ckt_worker_save2_args){.deadline_ms = 30000, .hold = true});
	if (!saved.status) {
		ckt_worker_result released = wire_release(&s.wire, true, true, "", "");
		if (released.status)
			finding("a held session cannot be released");
		free(released.message);
	} else {
		kill(s.wire.pid, SIGKILL);
	}
	uint64_t generation = s.wire.generation;
	worker_ends(saved.status);
	if (!saved.status) {
		int place = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (below(4))
			mutate_manifest(place);
		s.wire.may_die = true;
		int status = start_worker(0, place, message);
		close(place);
		if (status && !message[0] && !s.wire.died)
			finding("a restore is refused without a word");
		status ? refused++ : restored++;
		s.wire.generation = generation;
		if (!status)
			kill(s.wire.pid, SIGKILL);
		worker_ends(!status);
	}
	remove_directory(directory);
}

/* ---- Sessions */

static void end_session(void)
{
	uint8_t bye[CKT_CALL_HEADER_SIZE];
	ckt_call_header_put(bye,
		&(struct ckt_call_header){.xid = 1,
			.prog = CRICKET_SESSION_PROG,
			.vers = 1,
			.proc = CKT_SESSION_BYE,
			.acked = s.wire.acked});
	/* A command that the worker does not like ends the connection, and no bye is read. */
	bool said = PLAY(ctx_synchronize) &&
		!ckt_net_write_record(s.wire.fd, bye, sizeof bye, ckt_net_now_ms() + ANSWER_MS, -1);
	if (!said)
		kill(s.wire.pid, SIGKILL);
	worker_ends(!said);
}

static void play_session(void)
{
	struct asker asker;
	bool asks = below(3) == 0;
	memset(&s, 0, sizeof s);
	s.wire.no_log = true;
	if (start_worker((uint64_t)1 << 30, -1, NULL) ||
		wire_hello(&s.wire, CKT_HELLO_NEW, true) != CKT_HELLO_OK)
		finding("no session");
	/* Before the first call may wait for a freeze of the other side's. */
	for (unsigned i = 0; i < 12; i++)
		play_usual();
	if (asks)
		asker_start(&asker);
	unsigned count = below(COMMANDS);
	bool open = true;
	for (commands_played = 0; open && commands_played < count; commands_played++) {
		s.wire.thread = 1 + below(3);
		open = below(2) ? play_usual() : play_any();
		if (!open && !asks) {
			resume();
			open = true;
		}
	}
	if (asks) {
		/* Whatever the other side began, the session may be held or gone. */
		asker_end(&asker);
		kill(s.wire.pid, SIGKILL);
		worker_ends(true);
	} else if (below(2)) {
		play_image();
	} else {
		end_session();
	}
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "%s WORKER LIBCUDA [SESSIONS [SEED]]\n", argv[0]);
		return 2;
	}
	const char *more = getenv("CRICKET_PLAY_SESSIONS"), *begin = getenv("CRICKET_PLAY_SEED");
	unsigned count = (unsigned)atoi(argc > 3 ? argv[3] : more ? more : "12");
	unsigned first = (unsigned)atoi(argc > 4 ? argv[4] : begin ? begin : "1");
	worker_path = argv[1];
	driver_path = argv[2];
	if (getenv("LD_LIBRARY_PATH"))
		snprintf(library_path, sizeof library_path, "LD_LIBRARY_PATH=%s",
			getenv("LD_LIBRARY_PATH"));
	signal(SIGPIPE, SIG_IGN);
	find_arguments();
	unsigned known = 0, calls = 0;
	for (unsigned i = 0; i < PROCS_MAX; i++)
		known += arguments[i] != NULL;
	if (known < 60)
		finding("the arguments of hardly a procedure are known");
	/* Each session has a seed of its own, so that one can be played again alone. */
	for (sessions_played = first; sessions_played < first + count; sessions_played++) {
		seed = sessions_played * 2654435761u;
		srandom(sessions_played);
		play_session();
		calls += commands_played;
	}
	printf("%u sessions, %u calls, %u connections that ended, %u restores and %u refused ones, "
	       "%u calls of the other side\n",
		count, calls, broken, restored, refused, atomic_load(&control_calls));
	return 0;
}
