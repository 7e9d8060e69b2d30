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
	ckt_call_header_put(bye, &(struct ckt_call_header){.xid = 1, .prog = CRICKET_SESSION_PROG, .vers = 1, .proc = CKT_SESSION_BYE, .acked = w->acked});
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
	CU_ASSERT_EQUAL_FATAL(wire_save2(w, directory, (ckt_worker_save2_args){.deadline_ms = 5000, .hold = true, .to_memory = !directory}).status, 0);
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
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	/* We bear to be set back. */
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
	CU_ASSERT_EQUAL(wire_save2(w, NULL, (ckt_worker_save2_args){.deadline_ms = 5000, .to_memory = true, .incremental = true}).status, -EINVAL);
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
		{"memory", test_memory},
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
