/*
 * Restores, end to end on the soft GPU: from memory, on another GPU, too little memory, twice, damaged images, variables that moved.
 * argv[1] the worker, argv[2] the soft libcuda.so.1.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/store.h"
#include "rpc/handle.h"
#include "rpc/net.h"
#include "server/worker/blob.h"
#include "tests/unit/worker/wire_client.h"

enum { MIB = 1 << 20 };
static const char *worker_path, *driver_path;

#define STREAM(n) ckt_handle_make(CKT_KIND_STREAM, 1, 100 + (n))
#define MODULE(n) ckt_handle_make(CKT_KIND_MODULE, 1, 300 + (n))
#define FUNCTION(n) ckt_handle_make(CKT_KIND_FUNCTION, 1, 400 + (n))

static struct wire *session_new(void)
{
	struct wire *w = calloc(1, sizeof *w);
	CU_ASSERT_EQUAL_FATAL(wire_start(w, worker_path, driver_path, 0, -1, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_NEW, true), CKT_HELLO_OK);
	return w;
}

static void session_free(struct wire *w)
{
	CU_ASSERT_TRUE(wire_ended(w, 5000));
	free(w->log);
	free(w->printed);
	free(w);
}

static void session_end(struct wire *w)
{
	uint8_t bye[CKT_CALL_HEADER_SIZE];
	ckt_call_header_put(bye, &(struct ckt_call_header){
					 .xid = 1, .prog = CRICKET_SESSION_PROG, .vers = 1, .proc = CKT_SESSION_BYE, .acked = w->acked});
	CU_ASSERT_EQUAL(ckt_net_write_record(w->fd, bye, sizeof bye, -1, -1), 0);
	session_free(w);
}

static CUresult done(struct wire_reply reply)
{
	free(reply.data);
	return reply.accept_stat ? (CUresult)-1 : reply.result;
}

static uint64_t alloc(struct wire *w, uint64_t size)
{
	struct wire_reply reply = WIRE_CALL(w, mem_alloc, true, .size = size);
	struct ckt_mem_alloc_res res = {0};
	CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_mem_alloc_res_get(&reply.results, &res));
	free(reply.data);
	return res.address;
}

static void fill(struct wire *w, uint64_t at, uint32_t value, uint64_t bytes)
{
	WIRE_BATCH(w, memset, .dst = at, .element_size = 4, .value = value, .width = bytes / 4, .height = 1);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
}

static uint64_t get(struct wire *w, uint64_t src, uint32_t size)
{
	uint64_t value = 0;
	struct wire_reply reply = WIRE_CALL(w, memcpy_dtoh, true, .src = src, .size = size);
	struct ckt_memcpy_dtoh_res res = {0};
	CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_memcpy_dtoh_res_get(&reply.results, &res));
	if (res.data_len == size)
		memcpy(&value, res.data, size);
	free(reply.data);
	return value;
}

static uint32_t get_u32(struct wire *w, uint64_t src)
{
	return (uint32_t)get(w, src, 4);
}

static enum ckt_session_state state(struct wire *w)
{
	ckt_worker_status_res listed = wire_status(w);
	enum ckt_session_state state = listed.state;
	xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&listed);
	return state;
}

static void make_directory(char *template)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(template));
}

static void remove_directory(const char *directory)
{
	char command[256];
	snprintf(command, sizeof command, "rm -rf '%s'", directory);
	CU_ASSERT_EQUAL(system(command), 0);
}

/* Saves and ends the session. */
static void save_and_stop(struct wire *w, const char *directory)
{
	CU_ASSERT_EQUAL_FATAL(
		wire_save2(w, directory, (ckt_worker_save2_args){.deadline_ms = 5000, .hold = true, .to_memory = !directory}).status, 0);
	CU_ASSERT_EQUAL(wire_release(w, true, true, "", "").status, 0);
	CU_ASSERT_TRUE(wire_ended(w, 5000));
}

/* START's status; the worker of a refused one is gone. */
static int try_restore(struct wire *w, const char *directory, char ret_message[CKT_MESSAGE_MAX])
{
	int fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	ret_message[0] = 0;
	int status = wire_start(w, worker_path, driver_path, 0, fd, ret_message);
	if (fd >= 0)
		close(fd);
	if (status)
		CU_ASSERT_TRUE(wire_ended(w, 5000));
	return status;
}

static void restore(struct wire *w, const char *directory)
{
	char message[CKT_MESSAGE_MAX];
	int status = try_restore(w, directory, message);
	if (status)
		fprintf(stderr, "restore: %s\n", message);
	CU_ASSERT_EQUAL_FATAL(status, 0);
	/* We bear to be set back. */
	w->acked = 0;
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	w->seq = w->acked = w->executed;
}

/* ---- Images in memory */

static void make_files(int ret_fds[CKT_IMAGE_MEMORY_FILES])
{
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++)
		ret_fds[i] = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

static void close_files(const int fds[CKT_IMAGE_MEMORY_FILES])
{
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++)
		close(fds[i]);
}

static void test_memory(void)
{
	int fds[CKT_IMAGE_MEMORY_FILES], more[CKT_IMAGE_MEMORY_FILES];
	char message[CKT_MESSAGE_MAX], other[] = "/tmp/ckt-image-XXXXXX";
	make_directory(other);
	struct wire *w = session_new();
	uint64_t a = alloc(w, 6 * MIB), b = alloc(w, 2 * MIB);
	fill(w, a, 3, 6 * MIB);
	/* Without files it is refused, and so is an increment. */
	CU_ASSERT_EQUAL(wire_save2(w, NULL, (ckt_worker_save2_args){.deadline_ms = 5000, .to_memory = true}).status, -EINVAL);
	make_files(more);
	w->memory_fds = more;
	CU_ASSERT_EQUAL(wire_save2(w, NULL, (ckt_worker_save2_args){.deadline_ms = 5000, .to_memory = true, .incremental = true}).status,
			-EINVAL);
	CU_ASSERT_EQUAL(state(w), CKT_STATE_RUNNING);
	close_files(more);
	make_files(fds);
	w->memory_fds = fds;
	ckt_worker_save2_res saved = wire_save2(w, NULL, (ckt_worker_save2_args){.deadline_ms = 5000, .to_memory = true, .compress = true});
	CU_ASSERT_EQUAL_FATAL(saved.status, 0);
	CU_ASSERT_TRUE(saved.bytes > 0 && saved.bytes < MIB);
	/* It runs on, and what it does now is not in that image. */
	fill(w, a, 4, 4);
	fill(w, b, 5, 4);
	make_files(more);
	w->memory_fds = more;
	save_and_stop(w, NULL);
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++)
		CU_ASSERT_EQUAL(fcntl(more[i], F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK), 0);
	w->memory_fds = fds;
	restore(w, NULL);
	CU_ASSERT_EQUAL(get_u32(w, a), 3);
	CU_ASSERT_EQUAL(get_u32(w, b), 0);
	kill(w->pid, SIGKILL);
	CU_ASSERT_TRUE(wire_ended(w, 5000));
	/* From a sealed one, twice; from memory it goes on to a directory as ever. */
	w->memory_fds = more;
	for (int i = 0; i < 2; i++) {
		restore(w, NULL);
		CU_ASSERT_EQUAL(get_u32(w, a), 4);
		CU_ASSERT_EQUAL(get_u32(w, a + 4), 3);
		CU_ASSERT_EQUAL(get_u32(w, b), 5);
		if (i == 0) {
			kill(w->pid, SIGKILL);
			CU_ASSERT_TRUE(wire_ended(w, 5000));
		}
	}
	CU_ASSERT_EQUAL(wire_save2(w, other, (ckt_worker_save2_args){.deadline_ms = 5000, .keep_hashes = true}).status, 0);
	kill(w->pid, SIGKILL);
	CU_ASSERT_TRUE(wire_ended(w, 5000));
	/* Damaged, cut, and without a manifest. */
	uint8_t byte;
	CU_ASSERT_EQUAL(pread(fds[0], &byte, 1, 100), 1);
	byte ^= 1;
	CU_ASSERT_EQUAL(pwrite(fds[0], &byte, 1, 100), 1);
	w->memory_fds = fds;
	CU_ASSERT_EQUAL(try_restore(w, NULL, message), -EBADMSG);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "checksum"));
	byte ^= 1;
	CU_ASSERT_EQUAL(pwrite(fds[0], &byte, 1, 100), 1);
	for (unsigned i = 1; i < CKT_IMAGE_MEMORY_FILES; i++) {
		struct stat st;
		CU_ASSERT_EQUAL(fstat(fds[i], &st), 0);
		if (!st.st_size)
			continue;
		CU_ASSERT_EQUAL(ftruncate(fds[i], st.st_size - 1), 0);
		CU_ASSERT_EQUAL(try_restore(w, NULL, message), -EBADMSG);
		CU_ASSERT_PTR_NOT_NULL(strstr(message, "another size"));
		break;
	}
	CU_ASSERT_EQUAL(ftruncate(fds[0], 0), 0);
	CU_ASSERT_NOT_EQUAL(try_restore(w, NULL, message), 0);
	w->memory_fds = NULL;
	restore(w, other);
	CU_ASSERT_EQUAL(get_u32(w, b), 5);
	session_end(w);
	close_files(fds);
	close_files(more);
	remove_directory(other);
}

/* ---- Modules */

#define HEAD(target) ".version 8.0\n.target " target "\n.address_size 64\n"
#define BODY                                                                                                                               \
	".visible .global .align 4 .u32 total = 5;\n"                                                                                      \
	".global .align 4 .u32 hidden = 7;\n"                                                                                              \
	".global .align 8 .u64 place = 0;\n"                                                                                               \
	".visible .entry add(.param .u32 step)\n{\n"                                                                                       \
	"\t.reg .b32 %r<4>; .reg .b64 %d<4>;\n"                                                                                            \
	"\tld.param.u32 %r1, [step]; mov.u64 %d1, hidden; atom.global.add.u32 %r2, [%d1], %r1; ret;\n}\n"                                  \
	".visible .entry read(.param .u64 out)\n{\n"                                                                                       \
	"\t.reg .b32 %r<4>; .reg .b64 %d<4>;\n"                                                                                            \
	"\tld.param.u64 %d1, [out]; ld.global.u32 %r1, [hidden]; st.global.u32 [%d1], %r1; ret;\n}\n"                                      \
	".visible .entry point(.param .u64 out)\n{\n"                                                                                      \
	"\t.reg .b64 %d<4>;\n"                                                                                                             \
	"\tld.param.u64 %d1, [out]; mov.u64 %d2, hidden; st.global.u64 [%d1], %d2; ret;\n}\n"                                              \
	".visible .entry keep()\n{\n"                                                                                                      \
	"\t.reg .b64 %d<4>;\n"                                                                                                             \
	"\tmov.u64 %d1, place; mov.u64 %d2, hidden; st.global.u64 [%d1], %d2; ret;\n}\n"
static const char common[] = HEAD("sm_70") BODY, newer[] = HEAD("sm_120") BODY;
static const char *const kernels[] = {"add", "read", "point", "keep"};
enum { ADD, READ, POINT, KEEP, KERNELS };

static void load(struct wire *w, unsigned n, const char *ptx)
{
	uint8_t hash[32];
	size_t size = strlen(ptx) + 1;
	ckt_hash(ptx, size, hash);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, blob_data, true, .hash = hash, .hash_len = 32, .total = size, .data = (const uint8_t *)ptx,
				       .data_len = (uint32_t)size)),
			CUDA_SUCCESS);
	struct wire_reply reply = WIRE_CALL(w, module_load, true, .id = MODULE(n), .hash = hash, .hash_len = 32);
	struct ckt_module_load_res res = {.status = 1};
	CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_module_load_res_get(&reply.results, &res));
	CU_ASSERT_EQUAL_FATAL(res.status, CUDA_SUCCESS);
	free(reply.data);
	for (unsigned i = 0; i < KERNELS; i++)
		CU_ASSERT_EQUAL(done(WIRE_CALL(w, module_get_function, true, .module = MODULE(n), .id = FUNCTION(10 * n + i),
					       .name = kernels[i], .name_len = (uint32_t)strlen(kernels[i]))),
				CUDA_SUCCESS);
}

static void launch(struct wire *w, unsigned n, unsigned kernel, const void *params, uint32_t size)
{
	WIRE_BATCH(w, launch_kernel, .function = FUNCTION(10 * n + kernel), .grid_x = 1, .grid_y = 1, .grid_z = 1, .block_x = 1,
		   .block_y = 1, .block_z = 1, .params = params, .params_len = size);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
}

static uint64_t ask(struct wire *w, unsigned n, const char *name)
{
	struct wire_reply reply =
		WIRE_CALL(w, module_get_global, true, .module = MODULE(n), .name = name, .name_len = (uint32_t)strlen(name));
	struct ckt_module_get_global_res res = {0};
	CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_module_get_global_res_get(&reply.results, &res));
	free(reply.data);
	return res.address;
}

static uint32_t hidden(struct wire *w, unsigned n, uint64_t scratch)
{
	launch(w, n, READ, &scratch, 8);
	return get_u32(w, scratch);
}

static bool noted(struct wire *w, const char *words)
{
	ckt_worker_status_res listed = wire_status(w);
	bool found = strstr(listed.note, words) != NULL;
	if (!found && *words)
		fprintf(stderr, "note: '%s'\n", listed.note);
	xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&listed);
	return found;
}

static void moved_fault(struct wire *w, bool on)
{
	strcpy(w->fault, on ? "fail:14" : "");
}

/* Variables that come to lie elsewhere: no harm where nobody knows where they lay, and refused where somebody does. */
static void test_moved(void)
{
	char first[] = "/tmp/ckt-image-XXXXXX", second[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX];
	make_directory(first);
	make_directory(second);
	struct wire *w = session_new();
	load(w, 0, common);
	load(w, 1, common);
	uint64_t block = alloc(w, 4 * MIB), was[2], is[2];
	const uint32_t steps[] = {100, 1000};
	for (unsigned n = 0; n < 2; n++) {
		launch(w, n, ADD, &steps[n], 4);
		launch(w, n, POINT, &block, 8);
		was[n] = get(w, block, 8);
	}
	fill(w, block, 0, 4 * MIB);
	save_and_stop(w, first);
	moved_fault(w, true);
	restore(w, first);
	CU_ASSERT_TRUE(noted(w, "6 variables of modules lie elsewhere"));
	CU_ASSERT_TRUE(noted(w, "nothing points to where they lay"));
	for (unsigned n = 0; n < 2; n++) {
		CU_ASSERT_EQUAL(hidden(w, n, block), 7 + steps[n]);
		launch(w, n, POINT, &block, 8);
		is[n] = get(w, block, 8);
		CU_ASSERT_NOT_EQUAL(is[n], was[n]);
	}
	/* An increment on the image that it came from, and back to the old places: what points there is the new address now. */
	fill(w, block, 0, 8);
	save_and_stop(w, second);
	moved_fault(w, false);
	restore(w, second);
	CU_ASSERT_EQUAL(hidden(w, 0, block), 107);
	CU_ASSERT_EQUAL(hidden(w, 1, block), 1007);
	CU_ASSERT_TRUE(noted(w, "lie elsewhere"));
	launch(w, 1, POINT, &block, 8);
	CU_ASSERT_EQUAL(get(w, block, 8), was[1]);
	session_end(w);
	remove_directory(second);

	/* Words of memory, at the beginning and at the very end of it, and one behind the variable. */
	restore(w = calloc(1, sizeof *w), first);
	for (unsigned i = 0; i < 3; i++) {
		char words[32];
		uint64_t at = i == 0 ? block : i == 1 ? block + 4 * MIB - 8 : block + 2 * MIB;
		CU_ASSERT_EQUAL(mkdir(second, 0700), 0);
		launch(w, 1, POINT, &at, 8);
		if (i == 2)
			fill(w, at, (uint32_t)was[1] + 4, 4);
		save_and_stop(w, second);
		moved_fault(w, true);
		CU_ASSERT_EQUAL(try_restore(w, second, message), -EADDRNOTAVAIL);
		snprintf(words, sizeof words, "and %u words of the session", i + 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(message, words));
		CU_ASSERT_PTR_NOT_NULL(strstr(message, "variable hidden"));
		moved_fault(w, false);
		/* The same image, where nothing moved. */
		restore(w, second);
		CU_ASSERT_FALSE(noted(w, "") && noted(w, "elsewhere"));
		CU_ASSERT_EQUAL(get(w, block, 8), was[1]);
		remove_directory(second);
	}
	session_end(w);

	/* A word of another variable. */
	CU_ASSERT_EQUAL(mkdir(second, 0700), 0);
	restore(w = calloc(1, sizeof *w), first);
	launch(w, 0, KEEP, NULL, 0);
	save_and_stop(w, second);
	moved_fault(w, true);
	CU_ASSERT_EQUAL(try_restore(w, second, message), -EADDRNOTAVAIL);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "and 1 words of the session"));
	moved_fault(w, false);
	remove_directory(second);

	/* What the program was told. */
	CU_ASSERT_EQUAL(mkdir(second, 0700), 0);
	restore(w, first);
	uint64_t total = ask(w, 1, "total");
	save_and_stop(w, second);
	moved_fault(w, true);
	CU_ASSERT_EQUAL(try_restore(w, second, message), -EADDRNOTAVAIL);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "variable total"));
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "whose address the program knows"));
	moved_fault(w, false);
	restore(w, second);
	CU_ASSERT_EQUAL(ask(w, 1, "total"), total);
	/* And is still known after a restore. */
	remove_directory(second);
	CU_ASSERT_EQUAL(mkdir(second, 0700), 0);
	save_and_stop(w, second);
	moved_fault(w, true);
	CU_ASSERT_EQUAL(try_restore(w, second, message), -EADDRNOTAVAIL);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "variable total"));
	moved_fault(w, false);
	restore(w, second);
	session_end(w);
	remove_directory(first);
	remove_directory(second);
}

/* ---- The journal */

static void read_image(const char *directory, ckt_image *ret_image)
{
	char message[512];
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(ckt_image_read(fd, ret_image, message, sizeof message), 0);
	close(fd);
}

struct step {
	unsigned kind;
	uint64_t id;
	unsigned flags;
};

static void expect_journal(const char *directory, const struct step *steps, unsigned count)
{
	ckt_image image;
	read_image(directory, &image);
	CU_ASSERT_EQUAL(image.journal.journal_len, count);
	for (unsigned i = 0; i < count && i < image.journal.journal_len; i++) {
		const ckt_image_journal *entry = &image.journal.journal_val[i];
		CU_ASSERT_EQUAL(entry->kind, steps[i].kind);
		CU_ASSERT_EQUAL(entry->id, steps[i].id);
		CU_ASSERT_EQUAL(entry->flags, steps[i].flags);
		if (entry->kind != steps[i].kind || entry->id != steps[i].id)
			fprintf(stderr, "step %u: kind %u id %llu flags %u\n", i, entry->kind, (unsigned long long)entry->id, entry->flags);
	}
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
}

static void make_streams(struct wire *w, unsigned from, unsigned count)
{
	for (unsigned i = from; i < from + count; i++)
		WIRE_BATCH(w, stream_create, .id = STREAM(i), .flags = CU_STREAM_NON_BLOCKING);
	/* A freeze stops where the worker stands, whatever has been sent. */
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
}

#define EVENT(n) ckt_handle_make(CKT_KIND_EVENT, 1, 1000 + (n))

/* What moves addresses is done again in its order, dead modules included; what only repeats is one entry, and what was given back none. */
static void test_journal(void)
{
	enum { LOAD = 1, UNLOAD = 2, LIMIT = 6, STREAMS = 7, EVENTS = 8, BEYOND = 8, POOL = 32 };
	char directory[] = "/tmp/ckt-image-XXXXXX";
	make_directory(directory);
	struct wire *w = session_new();
	uint64_t block = alloc(w, 2 * MIB);
	const uint32_t step = 100;
	make_streams(w, 0, POOL);
	load(w, 0, common);
	make_streams(w, POOL, BEYOND);
	for (unsigned i = 0; i < 100; i++)
		WIRE_BATCH(w, event_create, .id = EVENT(i), .flags = CU_EVENT_DISABLE_TIMING);
	load(w, 1, common);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, module_unload, true, .id = MODULE(0))), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, cuCtxSetLimit, true, .limit = CU_LIMIT_STACK_SIZE, .value = 4096)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, cuCtxSetLimit, true, .limit = CU_LIMIT_STACK_SIZE, .value = 8192)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, cuCtxSetLimit, true, .limit = CU_LIMIT_MALLOC_HEAP_SIZE, .value = 16 * MIB)), CUDA_SUCCESS);
	/* Gone and made again: no more of them at once than before. */
	for (unsigned i = POOL; i < POOL + BEYOND; i++)
		WIRE_BATCH(w, stream_destroy, .id = STREAM(i));
	for (unsigned i = 0; i < 90; i++)
		WIRE_BATCH(w, event_destroy, .id = EVENT(i));
	make_streams(w, 100, BEYOND - 3);
	for (unsigned i = 200; i < 250; i++)
		WIRE_BATCH(w, event_create, .id = EVENT(i), .flags = CU_EVENT_DISABLE_TIMING);
	load(w, 2, common);
	launch(w, 2, ADD, &step, 4);
	const struct step want[] = {{LOAD, MODULE(0), 0},
				    {STREAMS, BEYOND, CU_STREAM_NON_BLOCKING},
				    {EVENTS, 100, CU_EVENT_DISABLE_TIMING},
				    {LOAD, MODULE(1), 0},
				    {UNLOAD, MODULE(0), 0},
				    {LIMIT, 8192, CU_LIMIT_STACK_SIZE},
				    {LIMIT, 16 * MIB, CU_LIMIT_MALLOC_HEAP_SIZE},
				    {LOAD, MODULE(2), 0}};
	enum { COUNT = sizeof want / sizeof *want };
	for (int i = 0; i < 3; i++) {
		save_and_stop(w, directory);
		expect_journal(directory, want, COUNT);
		restore(w, directory);
		remove_directory(directory);
		CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
		CU_ASSERT_EQUAL(hidden(w, 2, block), 107);
		struct wire_reply reply = WIRE_CALL(w, cuCtxGetLimit, false, .limit = CU_LIMIT_STACK_SIZE);
		struct ckt_cuCtxGetLimit_res res = {0};
		CU_ASSERT_EQUAL(reply.result, CUDA_SUCCESS);
		CU_ASSERT_TRUE(ckt_cuCtxGetLimit_res_get(&reply.results, &res));
		CU_ASSERT_EQUAL(res.pvalue, 8192);
		free(reply.data);
		CU_ASSERT_EQUAL(done(WIRE_CALL(w, stream_query, false, .stream = STREAM(100))), CUDA_SUCCESS);
		CU_ASSERT_EQUAL(done(WIRE_CALL(w, stream_query, false, .stream = STREAM(POOL))), CUDA_ERROR_INVALID_HANDLE);
		CU_ASSERT_EQUAL(done(WIRE_CALL(w, event_query, false, .event = EVENT(249))), CUDA_SUCCESS);
		CU_ASSERT_EQUAL(done(WIRE_CALL(w, event_query, false, .event = EVENT(0))), CUDA_ERROR_INVALID_HANDLE);
	}
	/* What was at once before has its place still; one more is one more. */
	make_streams(w, 150, 3);
	CU_ASSERT_EQUAL_FATAL(wire_save2(w, directory, (ckt_worker_save2_args){.deadline_ms = 5000}).status, 0);
	expect_journal(directory, want, COUNT);
	make_streams(w, 160, 1);
	remove_directory(directory);
	CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
	CU_ASSERT_EQUAL_FATAL(wire_save2(w, directory, (ckt_worker_save2_args){.deadline_ms = 5000}).status, 0);
	ckt_image image;
	read_image(directory, &image);
	CU_ASSERT_EQUAL(image.journal.journal_len, COUNT + 1);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	session_end(w);
	remove_directory(directory);
}

/* ---- Other GPUs */

static void test_other_model(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX", again[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX];
	make_directory(directory);
	make_directory(again);
	struct wire *w = session_new();
	load(w, 0, common);
	uint64_t block = alloc(w, 4 * MIB);
	const uint32_t step = 100;
	launch(w, 0, ADD, &step, 4);
	fill(w, block, 9, 4 * MIB);
	WIRE_BATCH(w, stream_create, .id = STREAM(0), .flags = CU_STREAM_NON_BLOCKING);
	save_and_stop(w, directory);
	w->devices = "9.0:2G";
	restore(w, directory);
	CU_ASSERT_TRUE(noted(w, "(capability 12.0) and goes on on Cricket Soft GPU"));
	CU_ASSERT_EQUAL(get_u32(w, block + 4 * MIB - 4), 9);
	launch(w, 0, ADD, &step, 4);
	CU_ASSERT_EQUAL(hidden(w, 0, block), 207);
	/* A module for newer GPUs, dead, does no harm on the way back and forth. */
	save_and_stop(w, again);
	w->devices = "12.0:8G";
	restore(w, again);
	CU_ASSERT_EQUAL(hidden(w, 0, block), 207);
	load(w, 1, newer);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, module_unload, true, .id = MODULE(1))), CUDA_SUCCESS);
	remove_directory(again);
	CU_ASSERT_EQUAL(mkdir(again, 0700), 0);
	CU_ASSERT_EQUAL_FATAL(wire_save2(w, again, (ckt_worker_save2_args){.deadline_ms = 5000}).status, 0);
	load(w, 1, newer);
	remove_directory(directory);
	CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
	save_and_stop(w, directory);
	w->devices = "9.0:2G";
	CU_ASSERT_EQUAL(try_restore(w, directory, message), -ENODEV);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "has PTX for newer GPUs only"));
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "(add)"));
	restore(w, again);
	CU_ASSERT_EQUAL(hidden(w, 0, block), 207);
	kill(w->pid, SIGKILL);
	CU_ASSERT_TRUE(wire_ended(w, 5000));
	/* The refused one restores where it fits. */
	w->devices = NULL;
	restore(w, directory);
	launch(w, 1, ADD, &step, 4);
	CU_ASSERT_EQUAL(hidden(w, 1, block), 107);
	session_end(w);
	remove_directory(directory);
	remove_directory(again);
}

/* Too little memory is said before anything is made, and the next attempt, with enough, succeeds. */
static void test_too_little(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX];
	make_directory(directory);
	struct wire *w = session_new();
	uint64_t block = alloc(w, 64 * MIB);
	fill(w, block, 9, 64 * MIB);
	save_and_stop(w, directory);
	for (int i = 0; i < 2; i++) {
		w->devices = "12.0:32M";
		CU_ASSERT_EQUAL(try_restore(w, directory, message), -ENOMEM);
		CU_ASSERT_PTR_NOT_NULL(strstr(message, "needs 64 MiB"));
		CU_ASSERT_PTR_NOT_NULL(strstr(message, "32 MiB are missing"));
		w->devices = NULL;
		int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CU_ASSERT_EQUAL(wire_start(w, worker_path, driver_path, 32 * MIB, fd, message), -ENOMEM);
		CU_ASSERT_PTR_NOT_NULL(strstr(message, "--session-memory"));
		CU_ASSERT_TRUE(wire_ended(w, 5000));
		close(fd);
	}
	/* In the middle of it: the last extent finds no memory. */
	strcpy(w->fault, "fail:15");
	CU_ASSERT_EQUAL(try_restore(w, directory, message), -ENOMEM);
	w->fault[0] = 0;
	restore(w, directory);
	CU_ASSERT_EQUAL(get_u32(w, block + 64 * MIB - 4), 9);
	session_end(w);
	remove_directory(directory);
}

/* ---- Hashes made on the GPU */

static void flip_a_byte(const char *directory)
{
	char path[64], byte;
	struct stat st;
	for (unsigned i = 0; i < CKT_IMAGE_FILES; i++) {
		snprintf(path, sizeof path, "%s/data-%u", directory, i);
		int fd = open(path, O_RDWR | O_CLOEXEC);
		CU_ASSERT_TRUE_FATAL(fd >= 0);
		if (fstat(fd, &st) == 0 && st.st_size >= 2 * MIB) {
			CU_ASSERT_EQUAL(pread(fd, &byte, 1, st.st_size - 77), 1);
			byte ^= 4;
			CU_ASSERT_EQUAL(pwrite(fd, &byte, 1, st.st_size - 77), 1);
			close(fd);
			return;
		}
		close(fd);
	}
	CU_FAIL("no data file holds a chunk");
}

/* The GPU writes what the CPU verifies, the other way round, and both find what is damaged. */
static void test_digests(void)
{
#ifdef __SANITIZE_THREAD__
	/* Minutes of hashing on the interpreter. */
	return;
#endif
	char directory[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX];
	make_directory(directory);
	struct wire *w = calloc(1, sizeof *w);
	w->env[0] = "CKT_DIGEST_ANY=1";
	CU_ASSERT_EQUAL_FATAL(wire_start(w, worker_path, driver_path, 0, -1, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_NEW, true), CKT_HELLO_OK);
	uint64_t block = alloc(w, 6 * MIB);
	fill(w, block, 0x01020304, 3 * MIB);
	fill(w, block + 5 * MIB, 5, 4096);
	save_and_stop(w, directory);
	w->env[0] = NULL;
	restore(w, directory);
	CU_ASSERT_EQUAL(get_u32(w, block + 3 * MIB - 4), 0x01020304);
	remove_directory(directory);
	CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
	save_and_stop(w, directory);
	w->env[0] = "CKT_DIGEST_ANY=1";
	restore(w, directory);
	CU_ASSERT_EQUAL(get_u32(w, block + 5 * MIB), 5);
	remove_directory(directory);
	CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
	save_and_stop(w, directory);
	flip_a_byte(directory);
	CU_ASSERT_EQUAL(try_restore(w, directory, message), -EBADMSG);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "damaged: contents of the GPU's memory at 0x"));
	w->env[0] = NULL;
	CU_ASSERT_EQUAL(try_restore(w, directory, message), -EBADMSG);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "damaged"));
	remove_directory(directory);
	free(w->log);
	free(w->printed);
	free(w);
}

/* ---- What has no contents */

#define POOL_ID ckt_handle_make(CKT_KIND_POOL, 1, 2000)

#define ANSWER(w, name, field, ...)                                                                                                        \
	({                                                                                                                                 \
		struct wire_reply reply_ = WIRE_CALL(w, name, false, __VA_ARGS__);                                                         \
		struct ckt_##name##_res res_ = {0};                                                                                        \
		CU_ASSERT_EQUAL(reply_.result, CUDA_SUCCESS);                                                                              \
		CU_ASSERT_TRUE(ckt_##name##_res_get(&reply_.results, &res_));                                                              \
		free(reply_.data);                                                                                                         \
		res_.field;                                                                                                                \
	})

static void wait_executed(struct wire *w)
{
	uint64_t executed = 0;
	while (executed < w->seq) {
		ckt_worker_status_res listed = wire_status(w);
		executed = listed.executed;
		xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&listed);
	}
}

/* Settings, priorities, marks of pools, and an error that nobody has heard of yet. */
static void test_settings(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	make_directory(directory);
	struct wire *w = session_new();
	load(w, 0, common);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, cuCtxSetLimit, true, .limit = CU_LIMIT_PRINTF_FIFO_SIZE, .value = 2 * MIB)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, cuCtxSetCacheConfig, true, .config = CU_FUNC_CACHE_PREFER_L1)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, function_set_attribute, true, .function = FUNCTION(ADD),
				       .attribute = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, .value = 50)),
			CUDA_SUCCESS);
	WIRE_BATCH(w, function_set_cache_config, .function = FUNCTION(ADD), .config = CU_FUNC_CACHE_PREFER_SHARED);
	WIRE_BATCH(w, stream_create, .id = STREAM(0), .flags = CU_STREAM_NON_BLOCKING, .priority = -1);
	WIRE_BATCH(w, pool_create, .id = POOL_ID, .device = 0, .max_bytes = 64 * MIB);
	WIRE_BATCH(w, pool_set_attribute, .pool = POOL_ID, .attribute = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, .value = 5 * MIB);
	WIRE_BATCH(w, pool_set_attribute, .pool = POOL_ID, .attribute = CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, .value = 0);
	struct wire_reply reply = WIRE_CALL(w, mem_alloc_async, true, .size = 3 * MIB, .stream = STREAM(0), .pool = POOL_ID);
	struct ckt_mem_alloc_async_res block = {0};
	CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_mem_alloc_async_res_get(&reply.results, &block));
	free(reply.data);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	uint64_t used = ANSWER(w, pool_get_attribute, value, .pool = POOL_ID, .attribute = CU_MEMPOOL_ATTR_USED_MEM_HIGH);
	CU_ASSERT_TRUE(used >= 3 * MIB);
	WIRE_BATCH(w, memset, .dst = 16, .element_size = 4, .value = 1, .width = 1, .height = 1);
	for (int i = 0; i < 2; i++) {
		wait_executed(w);
		save_and_stop(w, directory);
		ckt_image image;
		read_image(directory, &image);
		CU_ASSERT_EQUAL(image.deferred, i ? 0 : CUDA_ERROR_INVALID_VALUE);
		CU_ASSERT_EQUAL(image.contexts.contexts_val[0].cache_config, CU_FUNC_CACHE_PREFER_L1);
		CU_ASSERT_EQUAL(image.streams.streams_val[0].priority, -1);
		CU_ASSERT_EQUAL(image.functions.functions_val[ADD].cache_config, CU_FUNC_CACHE_PREFER_SHARED);
		xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
		w->deferred = 0;
		restore(w, directory);
		remove_directory(directory);
		CU_ASSERT_EQUAL(mkdir(directory, 0700), 0);
		CU_ASSERT_EQUAL(ANSWER(w, cuCtxGetLimit, pvalue, .limit = CU_LIMIT_PRINTF_FIFO_SIZE), 2 * MIB);
		/* Heard of once, with the first answer. */
		CU_ASSERT_EQUAL(w->deferred, i ? 0 : CUDA_ERROR_INVALID_VALUE);
		w->deferred = 0;
		CU_ASSERT_EQUAL(ANSWER(w, function_get_attribute, value, .function = FUNCTION(ADD),
				       .attribute = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT),
				50);
		CU_ASSERT_EQUAL(ANSWER(w, pool_get_attribute, value, .pool = POOL_ID, .attribute = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD),
				5 * MIB);
		CU_ASSERT_EQUAL(
			ANSWER(w, pool_get_attribute, value, .pool = POOL_ID, .attribute = CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC), 0);
		CU_ASSERT_EQUAL(
			ANSWER(w, pool_get_attribute, value, .pool = POOL_ID, .attribute = CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES),
			1);
		CU_ASSERT_EQUAL(ANSWER(w, pool_get_attribute, value, .pool = POOL_ID, .attribute = CU_MEMPOOL_ATTR_USED_MEM_HIGH), used);
		CU_ASSERT_TRUE(ANSWER(w, pool_get_attribute, value, .pool = POOL_ID, .attribute = CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >=
			       3 * MIB);
		CU_ASSERT_EQUAL(w->deferred, 0);
		/* The limit of the pool still holds. */
		CU_ASSERT_EQUAL(done(WIRE_CALL(w, mem_alloc_async, true, .size = 63 * MIB, .stream = STREAM(0), .pool = POOL_ID)),
				CUDA_ERROR_OUT_OF_MEMORY);
	}
	WIRE_BATCH(w, mem_free_async, .address = block.address, .stream = STREAM(0));
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(ANSWER(w, pool_get_attribute, value, .pool = POOL_ID, .attribute = CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	session_end(w);
	remove_directory(directory);
}

/* ---- Images of somebody else's making */

enum { HEADER = 3 * 4 + 8 + 32 };

static uint8_t *read_whole(const char *path, size_t *ret_size)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(fstat(fd, &st), 0);
	uint8_t *data = malloc((size_t)st.st_size);
	*ret_size = (size_t)st.st_size;
	CU_ASSERT_EQUAL_FATAL(read(fd, data, *ret_size), st.st_size);
	close(fd);
	return data;
}

static void write_whole(const char *path, const void *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);
	CU_ASSERT_EQUAL_FATAL(write(fd, data, size), (ssize_t)size);
	close(fd);
}

/* With a checksum that is right. */
static void write_manifest(const char *path, uint8_t *data, size_t size)
{
	uint8_t sum[32];
	ckt_hash(data + HEADER, size - HEADER, sum);
	memcpy(data + HEADER - sizeof sum, sum, sizeof sum);
	write_whole(path, data, size);
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* A session with something of most kinds. */
static void make_busy(struct wire *w)
{
	uint64_t block = alloc(w, 4 * MIB);
	const uint32_t step = 100;
	load(w, 0, common);
	load(w, 1, common);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, module_unload, true, .id = MODULE(1))), CUDA_SUCCESS);
	ask(w, 0, "total");
	launch(w, 0, ADD, &step, 4);
	fill(w, block, 7, 4 * MIB);
	make_streams(w, 0, 34);
	WIRE_BATCH(w, event_create, .id = EVENT(0), .flags = 0);
	WIRE_BATCH(w, event_record, .event = EVENT(0), .stream = STREAM(0));
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, cuCtxSetLimit, true, .limit = CU_LIMIT_STACK_SIZE, .value = 4096)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, pool_create, true, .id = ckt_handle_make(CKT_KIND_POOL, 1, 2000), .device = 0)), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(
		done(WIRE_CALL(w, physical_create, true, .id = ckt_handle_make(CKT_KIND_PHYSICAL, 1, 2001), .device = 0, .size = 2 * MIB)),
		CUDA_SUCCESS);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
}

/* Any word of a manifest may be anything: what comes of it is a refusal or a session, and never a dead worker. */
static void test_hostile(void)
{
	static const uint32_t words[] = {0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 0x2000, 0x10000};
	char directory[] = "/tmp/ckt-image-XXXXXX", path[64], message[CKT_MESSAGE_MAX];
	const char *text = getenv("CKT_TEST_HOSTILE");
	unsigned count = text ? (unsigned)atoi(text) : 60, refusals = 0;
	uint32_t seed = getenv("CKT_TEST_SEED") ? (uint32_t)atoi(getenv("CKT_TEST_SEED")) : 1;
	make_directory(directory);
	snprintf(path, sizeof path, "%s/manifest", directory);
	struct wire *w = session_new();
	make_busy(w);
	save_and_stop(w, directory);
	size_t size;
	uint8_t *good = read_whole(path, &size), *bad = malloc(size);
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 0; i < count; i++) {
		memcpy(bad, good, size);
		uint32_t at = HEADER + next_random(&seed) % (uint32_t)((size - HEADER) / 4) * 4, what = next_random(&seed);
		if (what % 3 == 0)
			bad[at + what / 3 % 4] ^= (uint8_t)(1 << what / 16 % 8);
		else
			for (unsigned k = 0; k < 4; k++)
				bad[at + k] = (uint8_t)(words[what / 3 % (sizeof words / sizeof *words)] >> (24 - 8 * k));
		write_manifest(path, bad, size);
		w->may_die = true;
		int status = wire_start(w, worker_path, driver_path, 0, fd, message);
		CU_ASSERT_FALSE(w->died);
		if (w->died)
			fprintf(stderr, "word at %u of %zu, case %u: the worker died\n", at, size, what);
		refusals += status != 0;
		if (!status)
			kill(w->pid, SIGKILL);
		CU_ASSERT_TRUE(wire_ended(w, 20000));
		w->may_die = w->died = false;
	}
	/* Many words may be anything, but not all of them. */
	CU_ASSERT_TRUE(refusals > 0 || count < 20);
	write_whole(path, good, size);
	restore(w, directory);
	session_end(w);
	close(fd);
	free(good);
	free(bad);
	remove_directory(directory);
}

/* A contents' byte, at the beginning, in the middle and at the end of each file, and each file cut: refused, and nothing stays. */
static void test_damaged(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX", path[64], message[CKT_MESSAGE_MAX];
	make_directory(directory);
	struct wire *w = session_new();
	make_busy(w);
	save_and_stop(w, directory);
	unsigned files = 0;
	for (unsigned i = 0; i < 16; i++) {
		struct stat st;
		snprintf(path, sizeof path, "%s/data-%u", directory, i);
		if (stat(path, &st) || !st.st_size)
			continue;
		files++;
		size_t size;
		uint8_t *good = read_whole(path, &size), *bad = malloc(size);
		for (unsigned k = 0; k < 3; k++) {
			memcpy(bad, good, size);
			bad[k == 0 ? 0 : k == 1 ? size / 2 : size - 1] ^= 0x10;
			write_whole(path, bad, size);
			CU_ASSERT_EQUAL(try_restore(w, directory, message), -EBADMSG);
			CU_ASSERT_PTR_NOT_NULL(strstr(message, "damaged"));
		}
		write_whole(path, good, size - 1);
		CU_ASSERT_EQUAL(try_restore(w, directory, message), -EBADMSG);
		CU_ASSERT_EQUAL(unlink(path), 0);
		CU_ASSERT_EQUAL(try_restore(w, directory, message), -EBADMSG);
		write_whole(path, good, size);
		free(good);
		free(bad);
	}
	CU_ASSERT_TRUE(files > 0);
	/* The manifest: of another major version, of none, cut, gone. */
	size_t size;
	snprintf(path, sizeof path, "%s/manifest", directory);
	uint8_t *good = read_whole(path, &size);
	good[7] = 2;
	write_manifest(path, good, size);
	CU_ASSERT_EQUAL(try_restore(w, directory, message), -EPROTONOSUPPORT);
	CU_ASSERT_PTR_NOT_NULL(strstr(message, "version 2."));
	good[7] = 1;
	for (unsigned k = 0; k < 3; k++) {
		write_whole(path, good, k == 0 ? size - 4 : k == 1 ? HEADER : 0);
		CU_ASSERT_EQUAL(try_restore(w, directory, message), -EBADMSG);
	}
	CU_ASSERT_EQUAL(unlink(path), 0);
	CU_ASSERT_EQUAL(try_restore(w, directory, message), -ENOENT);
	write_whole(path, good, size);
	free(good);
	restore(w, directory);
	session_end(w);
	remove_directory(directory);
}

/* ---- Copies of a session */

static void test_twice(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	make_directory(directory);
	struct wire *w = session_new(), *other = calloc(1, sizeof *other);
	uint64_t block = alloc(w, 2 * MIB);
	fill(w, block, 1, 2 * MIB);
	uint64_t generation = w->generation;
	save_and_stop(w, directory);
	char message[CKT_MESSAGE_MAX];
	CU_ASSERT_EQUAL_FATAL(try_restore(w, directory, message), 0);
	CU_ASSERT_EQUAL_FATAL(try_restore(other, directory, message), 0);
	CU_ASSERT_EQUAL(state(w), CKT_STATE_RESTORED);
	CU_ASSERT_EQUAL(state(other), CKT_STATE_RESTORED);
	/* The first one is claimed and goes on; the other one is behind from its first answer on. */
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	CU_ASSERT_EQUAL(w->generation, generation + 1);
	fill(w, block, 2, 4);
	CU_ASSERT_EQUAL(get_u32(w, block), 2);
	free(WIRE_CALL(w, ctx_synchronize, false).data);
	w->acked = w->seq;
	other->generation = w->generation;
	other->acked = w->acked;
	CU_ASSERT_EQUAL(wire_hello(other, CKT_HELLO_RESUME, true), CKT_HELLO_STALE);
	CU_ASSERT_EQUAL(state(other), CKT_STATE_RESTORED);
	/* One of an older generation is refused whatever it has executed. */
	char next[] = "/tmp/ckt-image-XXXXXX";
	make_directory(next);
	save_and_stop(w, next);
	restore(w, next);
	CU_ASSERT_EQUAL(w->generation, generation + 2);
	other->generation = w->generation;
	other->acked = 0;
	CU_ASSERT_EQUAL(wire_hello(other, CKT_HELLO_RESUME, true), CKT_HELLO_STALE);
	session_end(w);
	kill(other->pid, SIGKILL);
	session_free(other);
	remove_directory(directory);
	remove_directory(next);
}

static void test_unclaimed(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX", message[CKT_MESSAGE_MAX];
	make_directory(directory);
	struct wire *w = session_new();
	uint64_t block = alloc(w, 2 * MIB);
	fill(w, block, 1, 2 * MIB);
	save_and_stop(w, directory);
	w->claim_timeout_ms = 300;
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(wire_start(w, worker_path, driver_path, 0, fd, message), 0);
	close(fd);
	CU_ASSERT_TRUE(wire_ended(w, 5000));
	/* The image stays. */
	w->claim_timeout_ms = 0;
	restore(w, directory);
	CU_ASSERT_EQUAL(get_u32(w, block), 1);
	session_end(w);
	remove_directory(directory);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fputs("test_restore WORKER LIBCUDA [TEST]\n", stderr);
		return 2;
	}
	worker_path = argv[1];
	driver_path = argv[2];
	signal(SIGPIPE, SIG_IGN);
	static const struct {
		const char *name;
		void (*function)(void);
	} tests[] = {
		{"memory", test_memory},           {"moved", test_moved},           {"journal", test_journal},
		{"other model", test_other_model}, {"too little", test_too_little}, {"settings", test_settings},
		{"hostile", test_hostile},         {"damaged", test_damaged},       {"twice", test_twice},
		{"unclaimed", test_unclaimed},     {"digests", test_digests},
	};
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("restore", NULL, NULL);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		if (argc < 4 || !strcmp(argv[3], tests[i].name))
			CU_add_test(suite, tests[i].name, tests[i].function);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
