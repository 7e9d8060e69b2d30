/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker/wire_session.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rpc/net.h"

const char *worker_path, *driver_path;

int unit_setup(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "%s WORKER LIBCUDA\n", argv[0]);
		return 2;
	}
	worker_path = argv[1];
	driver_path = argv[2];
	signal(SIGPIPE, SIG_IGN);
	return 0;
}

struct wire *session_new(void)
{
	struct wire *w = calloc(1, sizeof *w);
	CU_ASSERT_EQUAL_FATAL(wire_start(w, worker_path, driver_path, 0, -1, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_NEW, true), CKT_HELLO_OK);
	return w;
}

void session_free(struct wire *w)
{
	CU_ASSERT_TRUE(wire_ended(w));
	free(w->log);
	free(w->printed);
	free(w);
}

void session_end(struct wire *w)
{
	uint8_t bye[CKT_CALL_HEADER_SIZE];
	ckt_call_header_put(bye,
		&(struct ckt_call_header){.xid = 1,
			.prog = CRICKET_SESSION_PROG,
			.vers = 1,
			.proc = CKT_SESSION_BYE,
			.acked = w->acked});
	CU_ASSERT_EQUAL(ckt_net_write_record(w->fd, bye, sizeof bye, -1, -1), 0);
	session_free(w);
}

CUresult done(struct wire_reply reply)
{
	free(reply.data);
	return reply.accept_stat ? (CUresult)-1 : reply.result;
}

uint64_t alloc(struct wire *w, uint64_t size)
{
	struct wire_reply reply = WIRE_CALL(w, mem_alloc, true, .size = size);
	struct ckt_mem_alloc_res res = {0};
	CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_mem_alloc_res_get(&reply.results, &res));
	free(reply.data);
	return res.address;
}

void fill(struct wire *w, uint64_t at, uint32_t value, uint64_t bytes)
{
	WIRE_BATCH(w, memset, .dst = at, .element_size = 4, .value = value, .width = bytes / 4,
		.height = 1);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
}

uint64_t get(struct wire *w, uint64_t src, uint32_t size)
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

uint32_t get_u32(struct wire *w, uint64_t src)
{
	return (uint32_t)get(w, src, 4);
}

enum ckt_session_state state(struct wire *w)
{
	ckt_worker_status_res listed = wire_status(w);
	enum ckt_session_state state = listed.state;
	xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&listed);
	return state;
}

void make_directory(char *template)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(template));
}

void remove_directory(const char *directory)
{
	char command[256];
	snprintf(command, sizeof command, "rm -rf '%s'", directory);
	CU_ASSERT_EQUAL(system(command), 0);
}

void save_and_stop(struct wire *w, const char *directory)
{
	CU_ASSERT_EQUAL_FATAL(wire_save2(w, directory,
				      (ckt_worker_save2_args){.deadline_ms = WIRE_GUARD_MS,
					      .hold = true,
					      .to_memory = !directory})
				      .status,
		0);
	CU_ASSERT_EQUAL(wire_release(w, true, true, "", "").status, 0);
	CU_ASSERT_TRUE(wire_ended(w));
}

int try_restore(struct wire *w, const char *directory, char ret_message[CKT_MESSAGE_MAX])
{
	int fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	ret_message[0] = 0;
	int status = wire_start(w, worker_path, driver_path, 0, fd, ret_message);
	if (fd >= 0)
		close(fd);
	if (status)
		CU_ASSERT_TRUE(wire_ended(w));
	return status;
}

void restore(struct wire *w, const char *directory)
{
	char message[CKT_MESSAGE_MAX];
	int status = try_restore(w, directory, message);
	if (status)
		fprintf(stderr, "restore: %s\n", message);
	CU_ASSERT_EQUAL_FATAL(status, 0);
	/* We bear to be set back. */
	w->acked = w->copy = 0;
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	w->seq = w->acked = w->executed;
}

void make_files(int ret_fds[CKT_IMAGE_MEMORY_FILES])
{
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++)
		ret_fds[i] = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

void close_files(const int fds[CKT_IMAGE_MEMORY_FILES])
{
	for (unsigned i = 0; i < CKT_IMAGE_MEMORY_FILES; i++)
		close(fds[i]);
}

ckt_stamped wire_stamped(struct wire *w)
{
	ckt_worker_stamped_res res = {0};
	wire_ask(w, CKT_WORKER_STAMPED, NULL, NULL, (xdrproc_t)xdr_ckt_worker_stamped_res, &res);
	return res.stamped;
}
