/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/libs/registry.c: which programs are served, and where their calls are counted. */
#include <string.h>

#include "server/worker/libs/libs.h"
#include "server/worker/libs/state.h"
#include "tests/unit/worker/inside.h"

static void test_programs(void)
{
	const struct ckt_library *cuda = ckt_library_of_prog(CKT_CUDA_PROG);
	MUST(cuda != NULL, true);
	TEXT(cuda->name, "cuda");
	YES(cuda->procs == ckt_cuda_procs);
	YES(ckt_library_named("cuda") == cuda);
	YES(ckt_library_named("cud") == NULL);
	YES(ckt_library_of(CKT_LIB_COUNT) == NULL);
	/* The session's, the callbacks', and one beyond the last. */
	YES(ckt_library_of_prog(CRICKET_SESSION_PROG) == NULL);
	YES(ckt_library_of_prog(CRICKET_CALLBACK_PROG) == NULL);
	YES(ckt_library_of_prog(CKT_LIB_PROG) == NULL);
	YES(ckt_library_of_prog(CKT_LIB_PROG + CKT_LIB_COUNT) == NULL);
	for (unsigned lib = 0; lib < CKT_LIB_COUNT; lib++) {
		const struct ckt_library *library = ckt_library_of((enum ckt_lib)lib);
		IS(ckt_lib_of_prog(ckt_lib_prog(lib)), lib);
		if (library) {
			IS(library->lib, lib);
			YES(ckt_library_of_prog(ckt_lib_prog(lib)) == library);
			YES(*library->proc_count - 1 <= CKT_LIB_PROC_MAX);
		}
	}
}

/*
 * What ends an object says so, or it could be captured, and the capture would go on with what is
 * gone.
 */
static void test_ends_are_marked(void)
{
	unsigned ends = 0;
	for (unsigned lib = CKT_LIB_CUDA + 1; lib < CKT_LIB_COUNT; lib++) {
		const struct ckt_library *library = ckt_library_of((enum ckt_lib)lib);
		for (unsigned i = 0; library && i < *library->proc_count; i++) {
			const struct ckt_proc *proc = &library->procs[i];
			if (!proc->name || !(proc->flags & CKT_PROC_BATCHED) ||
				!strstr(proc->name, "Destroy"))
				continue;
			CU_ASSERT_TRUE(proc->flags & CKT_PROC_DESTROYS);
			NO(ckt_worker_lib_is_work(proc));
			ends++;
		}
	}
	YES(ends > 0 || !ckt_library_named("cufft"));
}

static void test_statistics(void)
{
	IS(ckt_stat_index(CKT_CUDA_PROG, 5), 5);
	IS(ckt_stat_index(CKT_CUDA_PROG, CKT_STAT_SESSION), CKT_STATS);
	IS(ckt_stat_index(CRICKET_SESSION_PROG, 2), CKT_STAT_SESSION + 2);
	IS(ckt_stat_index(CRICKET_SESSION_PROG, 16), CKT_STATS);
	IS(ckt_stat_index(ckt_lib_prog(CKT_LIB_CUBLAS), 0), CKT_STAT_LIBRARIES);
	IS(ckt_stat_index(ckt_lib_prog(CKT_LIB_CUBLASLT), 1),
		CKT_STAT_LIBRARIES + CKT_LIB_PROC_MAX + 2);
	IS(ckt_stat_index(ckt_lib_prog(CKT_LIB_COUNT - 1), CKT_LIB_PROC_MAX), CKT_STATS - 1);
	IS(ckt_stat_index(ckt_lib_prog(CKT_LIB_CUBLAS), CKT_LIB_PROC_MAX + 1), CKT_STATS);
	IS(ckt_stat_index(0x20434bff, 1), CKT_STATS);
	TEXT(ckt_stat_name(CKT_STAT_SESSION + 2), "SESSION_DEVICES");
	TEXT(ckt_stat_name(CKT_STAT_SESSION + 8), "SESSION_GPU_TRACE");
	YES(ckt_stat_name(CKT_STAT_SESSION + 9) == NULL);
	YES(ckt_stat_name(CKT_STATS - 1) == NULL);
	for (uint32_t i = 0; i < ckt_cuda_proc_count; i++)
		YES(ckt_stat_name(i) == ckt_cuda_procs[i].name);
}

UNIT_SUITE(registry, {"programs", test_programs}, {"ends are marked", test_ends_are_marked},
	{"statistics", test_statistics})
