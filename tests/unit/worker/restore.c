/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker/restore.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/worker/module/blob.h"

#define HEAD(target) ".version 8.0\n.target " target "\n.address_size 64\n"
#define BODY                                                                                              \
	".visible .global .align 4 .u32 total = 5;\n"                                                     \
	".global .align 4 .u32 hidden = 7;\n"                                                             \
	".global .align 8 .u64 place = 0;\n"                                                              \
	".visible .entry add(.param .u32 step)\n{\n"                                                      \
	"\t.reg .b32 %r<4>; .reg .b64 %d<4>;\n"                                                           \
	"\tld.param.u32 %r1, [step]; mov.u64 %d1, hidden; atom.global.add.u32 %r2, [%d1], %r1; ret;\n}\n" \
	".visible .entry read(.param .u64 out)\n{\n"                                                      \
	"\t.reg .b32 %r<4>; .reg .b64 %d<4>;\n"                                                           \
	"\tld.param.u64 %d1, [out]; ld.global.u32 %r1, [hidden]; st.global.u32 [%d1], %r1; ret;\n}\n"     \
	".visible .entry point(.param .u64 out)\n{\n"                                                     \
	"\t.reg .b64 %d<4>;\n"                                                                            \
	"\tld.param.u64 %d1, [out]; mov.u64 %d2, hidden; st.global.u64 [%d1], %d2; ret;\n}\n"             \
	".visible .entry keep()\n{\n"                                                                     \
	"\t.reg .b64 %d<4>;\n"                                                                            \
	"\tmov.u64 %d1, place; mov.u64 %d2, hidden; st.global.u64 [%d1], %d2; ret;\n}\n"
const char common[] = HEAD("sm_70") BODY, newer[] = HEAD("sm_120") BODY;
static const char *const kernels[] = {"add", "read", "point", "keep"};

void load(struct wire *w, unsigned n, const char *ptx)
{
	uint8_t hash[32];
	size_t size = strlen(ptx) + 1;
	ckt_blob_hash(ptx, size, hash);
	CU_ASSERT_EQUAL(
		done(WIRE_CALL(w, blob_data, true, .hash = hash, .hash_len = 32, .total = size,
			.data = (const uint8_t *)ptx, .data_len = (uint32_t)size)),
		CUDA_SUCCESS);
	struct wire_reply reply =
		WIRE_CALL(w, module_load, true, .id = MODULE(n), .hash = hash, .hash_len = 32);
	struct ckt_module_load_res res = {.status = 1};
	CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_module_load_res_get(&reply.results, &res));
	CU_ASSERT_EQUAL_FATAL(res.status, CUDA_SUCCESS);
	free(reply.data);
	for (unsigned i = 0; i < KERNELS; i++)
		CU_ASSERT_EQUAL(done(WIRE_CALL(w, module_get_function, true, .module = MODULE(n),
					.id = FUNCTION(10 * n + i), .name = kernels[i],
					.name_len = (uint32_t)strlen(kernels[i]))),
			CUDA_SUCCESS);
}

void launch(struct wire *w, unsigned n, unsigned kernel, const void *params, uint32_t size)
{
	WIRE_BATCH(w, launch_kernel, .function = FUNCTION(10 * n + kernel), .grid_x = 1,
		.grid_y = 1, .grid_z = 1, .block_x = 1, .block_y = 1, .block_z = 1,
		.params = params, .params_len = size);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
}

uint64_t ask(struct wire *w, unsigned n, const char *name)
{
	struct wire_reply reply = WIRE_CALL(w, module_get_global, true, .module = MODULE(n),
		.name = name, .name_len = (uint32_t)strlen(name));
	struct ckt_module_get_global_res res = {0};
	CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
	CU_ASSERT_TRUE(ckt_module_get_global_res_get(&reply.results, &res));
	free(reply.data);
	return res.address;
}

uint32_t hidden(struct wire *w, unsigned n, uint64_t scratch)
{
	launch(w, n, READ, &scratch, 8);
	return get_u32(w, scratch);
}

bool noted(struct wire *w, const char *words)
{
	ckt_worker_status_res listed = wire_status(w);
	bool found = strstr(listed.note, words) != NULL;
	if (!found && *words)
		fprintf(stderr, "note: '%s'\n", listed.note);
	xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&listed);
	return found;
}

void read_image(const char *directory, ckt_image *ret_image)
{
	char message[512];
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(ckt_image_read(fd, ret_image, message, sizeof message), 0);
	close(fd);
}

void make_streams(struct wire *w, unsigned from, unsigned count)
{
	for (unsigned i = from; i < from + count; i++)
		WIRE_BATCH(w, stream_create, .id = STREAM(i), .flags = CU_STREAM_NON_BLOCKING);
	/* A freeze stops where the worker stands, whatever has been sent. */
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, ctx_synchronize, false)), CUDA_SUCCESS);
}
