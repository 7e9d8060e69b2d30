/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many instructions the soft GPU's interpreter runs: thread-instructions (one instruction of
 * one thread) a second of processor time, so that neither the number of cores nor what else the
 * machine does counts.
 *
 *	soft_speed [SECONDS [KERNEL]]
 *	soft_speed --both [SECONDS [KERNEL]]
 *
 * One line a kernel: its name, thread-instructions in millions, seconds of user time, millions a
 * second.  Each runs for SECONDS (default 1) of user time.  CRICKET_SOFT_COMPILE says whether the
 * interpreter or machine code runs them; --both runs each as both, and a line is its name, millions
 * a second interpreted, as machine code, and the ratio.  What the compiler takes is in neither.  A
 * kernel is a loop around a few instructions; the loop's own three are counted with them, what
 * stands before and behind it is not.  Precondition of every count: a warp is full where the text
 * does not part it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/ptx.h"

enum { BLOCK = 256, BLOCKS = 8, LOOPS = 256, WORDS = 1 << 20 };

struct kernel {
	const char *name, *body;
	unsigned n_body;
};

static const struct kernel kernels[] = {
	{"integers",
		"add.u32 r1, r1, r2; xor.b32 r2, r2, r1; mad.lo.s32 r3, r1, r2, r3; shl.b32 r4, r3, 3; sub.s32 r1, r1, r4;\n"
		"and.b32 r5, r1, 255; or.b32 r2, r2, r5; shr.u32 r6, r3, 5; add.s32 r3, r3, r6; mul.lo.u32 r4, r4, 13;\n"
		"max.s32 r5, r5, r4; selp.b32 r6, r5, r6, q; mov.u32 r7, r6; not.b32 r5, r5; add.u32 r7, r7, 1; min.u32 r2, r2, r7;\n",
		16},
	{"64-bit integers",
		"add.s64 d1, d1, d2; mul.wide.u32 d3, r1, 4; add.s64 d2, d2, d3; shl.b64 d4, d1, 2; xor.b64 d2, d2, d4;\n"
		"cvt.u64.u32 d5, r1; sub.s64 d1, d1, d5; and.b64 d3, d1, d2;\n",
		8},
	{"f32",
		"add.f32 f1, f1, f2; mul.f32 f3, f1, f4; sub.f32 f2, f3, f2; max.f32 f5, f1, f2; neg.f32 f6, f5; add.f32 f4, f4, f6;\n"
		"mul.f32 f1, f1, 0f3F7FFFFF; min.f32 f2, f2, f1;\n",
		8},
	{"f32 fma",
		"fma.rn.f32 f1, f1, f4, f3; fma.rn.f32 f2, f2, f4, f3; fma.rn.f32 f5, f5, f4, f3; fma.rn.f32 f6, f6, f4, f3;\n"
		"fma.rn.f32 f1, f1, f4, f2; fma.rn.f32 f2, f2, f4, f5; fma.rn.f32 f5, f5, f4, f6; fma.rn.f32 f6, f6, f4, f1;\n",
		8},
	{"f32 fma.ftz",
		"fma.rn.ftz.f32 f1, f1, f4, f3; fma.rn.ftz.f32 f2, f2, f4, f3; fma.rn.ftz.f32 f5, f5, f4, f3; fma.rn.ftz.f32 f6, f6, f4, f3;\n"
		"fma.rn.ftz.f32 f1, f1, f4, f2; fma.rn.ftz.f32 f2, f2, f4, f5; fma.rn.ftz.f32 f5, f5, f4, f6; fma.rn.ftz.f32 f6, f6, f4, f1;\n",
		8},
	{"f64 fma",
		"fma.rn.f64 e1, e1, e4, e3; fma.rn.f64 e2, e2, e4, e3; fma.rn.f64 e5, e5, e4, e3; add.f64 e6, e6, e1;\n"
		"mul.f64 e2, e2, e4; fma.rn.f64 e5, e5, e4, e2;\n",
		6},
	{"f16x2",
		"add.rn.f16x2 r1, r1, r2; mul.rn.f16x2 r3, r1, r4; fma.rn.f16x2 r2, r3, r4, r2; sub.rn.f16x2 r1, r1, r3;\n",
		4},
	{"conversions",
		"cvt.rn.f32.s32 f1, r1; cvt.rzi.s32.f32 r2, f2; cvt.u16.u32 h1, r1; cvt.s32.s16 r3, h1; cvt.rn.f16.f32 h2, f1;\n"
		"cvt.f32.f16 f2, h2;\n",
		6},
	{"comparisons",
		"setp.lt.s32 q, r1, r2; @q add.u32 r1, r1, 3; setp.gt.f32 q2, f1, f2; selp.f32 f3, f1, f2, q2; @!q add.u32 r2, r2, 5;\n",
		5},
	{"approximations",
		"ex2.approx.ftz.f32 f1, f2; lg2.approx.ftz.f32 f2, f1; rcp.approx.ftz.f32 f3, f4; sqrt.approx.f32 f4, f3; rsqrt.approx.f32 f5, f4;\n"
		"sin.approx.f32 f6, f4; div.full.f32 f1, f5, f4;\n",
		7},
	{"shared memory",
		"ld.shared.f32 f1, [s1]; add.f32 f2, f2, f1; st.shared.f32 [s1], f2; ld.shared.u32 r1, [s1+128]; xor.b32 r2, r2, r1;\n"
		"st.shared.u32 [s1+128], r2;\n",
		6},
	{"global memory",
		"ld.global.f32 f1, [g1]; fma.rn.f32 f2, f1, f4, f2; st.global.f32 [g1], f2; ld.global.u32 r1, [g1+16384]; add.u32 r2, r2, r1;\n"
		"st.global.u32 [g1+16384], r2;\n",
		6},
	{"global vectors",
		"ld.global.v4.f32 {f1, f2, f5, f6}, [g4]; add.f32 f1, f1, f4; add.f32 f2, f2, f4; add.f32 f5, f5, f4; add.f32 f6, f6, f4;\n"
		"st.global.v4.f32 [g4], {f1, f2, f5, f6};\n",
		6},
	{"global gather",
		"and.b32 r4, r1, 262143; mul.wide.u32 d3, r4, 4; add.s64 d4, d9, d3; ld.global.u32 r5, [d4]; mad.lo.u32 r1, r1, 1664525, r5;\n",
		5},
	{"shuffles",
		"shfl.sync.bfly.b32 r2, r1, 16, 31, -1; add.u32 r1, r1, r2; shfl.sync.down.b32 r2, r1, 1, 31, -1; add.u32 r1, r1, r2;\n",
		4},
	{"barriers", "bar.sync 0; add.u32 r1, r1, 1;\n", 2},
	/*
	 * Half of the lanes each way: 32 lanes run the first two, 16 each of what follows; counted
	 * by the lanes.
	 */
	{"divergent",
		"setp.ne.u32 q, r8, 0; @q bra $ODD; add.u32 r1, r1, 3; xor.b32 r2, r2, r1; add.u32 r3, r3, r2; mul.lo.u32 r4, r4, 5; bra.uni $JOIN;\n"
		"$ODD: sub.u32 r1, r1, 3; or.b32 r2, r2, r1; add.u32 r3, r3, r2; mul.lo.u32 r4, r4, 7; bra.uni $JOIN;\n$JOIN: add.u32 r1, r1, r4;\n",
		8},
	{"atomics, one address",
		"atom.global.add.u32 r1, [d9], 1; red.global.add.u32 [d9+64], 1;\n", 2},
	{"atomics, apart", "atom.global.add.u32 r1, [g1], 1; red.shared.add.u32 [s1], 1;\n", 2},
};

static const char head[] =
	".version 8.8\n.target sm_90\n.address_size 64\n.extern .shared .align 16 .b8 dynamic[];\n"
	".visible .entry run(.param .u64 memory, .param .u32 loops)\n{\n"
	".reg .b32 r<12>; .reg .b64 d<12>; .reg .f32 f<8>; .reg .f64 e<8>; .reg .b16 h<4>; .reg .pred p, q, q2;\n"
	".reg .b32 n, s1, t; .reg .b64 g1, g4, g;\n"
	"ld.param.u64 g, [memory]; ld.param.u32 n, [loops]; mov.u32 t, %tid.x; mov.u32 r0, %ctaid.x;\n"
	"cvta.to.global.u64 g, g; mov.u64 d9, g; mad.lo.u32 r10, r0, 8192, t; mul.wide.u32 d1, r10, 4; add.s64 g1, g, d1;\n"
	"mul.wide.u32 d1, r10, 16; add.s64 g4, g, d1; mov.u32 s1, dynamic; shl.b32 r9, t, 2; add.u32 s1, s1, r9; and.b32 r8, t, 1;\n"
	"mov.u32 r1, t; add.u32 r2, t, 77; mov.u32 r3, 5; mov.u32 r4, 9; mov.u32 r5, 1; mov.u32 r6, 2; mov.u32 r7, 3;\n"
	"cvt.u64.u32 d1, t; mov.u64 d2, 3; mov.u64 d3, 1; mov.u64 d4, 1; mov.u64 d5, 0;\n"
	"cvt.rn.f32.u32 f1, t; mov.f32 f2, 0f3F800000; mov.f32 f3, 0f3F000000; mov.f32 f4, 0f3F000000; mov.f32 f5, f1; mov.f32 f6, f1;\n"
	"cvt.rn.f64.u32 e1, t; mov.f64 e2, e1; mov.f64 e3, 0d3FE0000000000000; mov.f64 e4, 0d3FE0000000000000; mov.f64 e5, e1; mov.f64 e6, e1;\n"
	"setp.ne.u32 q, r8, 0;\n$LOOP:\n";
static const char tail[] =
	"add.u32 n, n, -1; setp.ne.u32 p, n, 0; @p bra $LOOP;\n"
	"add.u32 r1, r1, r2; add.u32 r3, r3, r4; add.u32 r1, r1, r3; add.u32 r1, r1, r5; add.u32 r1, r1, r6; add.u32 r1, r1, r7;\n"
	"st.global.u32 [g1], r1; ret;\n}\n";

static double user_seconds(void)
{
	struct rusage use;
	getrusage(RUSAGE_SELF, &use);
	return (double)use.ru_utime.tv_sec + (double)use.ru_utime.tv_usec / 1e6;
}

static void *device_alloc(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED ||
		ckt_soft_memmap_set((uint64_t)(uintptr_t)memory, size,
			CKT_SOFT_PAGE_READ | CKT_SOFT_PAGE_WRITE)) {
		fprintf(stderr, "soft_speed: out of memory\n");
		exit(1);
	}
	return memory;
}

static int run(const struct kernel *kernel, double seconds, void *memory)
{
	char text[8192], log[512];
	int size = snprintf(text, sizeof text, "%s%s%s", head, kernel->body, tail);
	struct ckt_ptx_text texts = {
		.text = text, .size_bytes = (size_t)size, .name = kernel->name};
	struct ckt_ptx_load_options options = {.target = 120};
	struct ckt_ptx_module *module;
	if (ckt_ptx_module_load(&texts, 1, &options, log, sizeof log, &module) != CKT_PTX_OK) {
		fprintf(stderr, "soft_speed: %s\n", log);
		return 1;
	}
	ckt_ptx_module_bind(module);
	struct ckt_ptx_device device = {.n_sm = 16, .capability = 120};
	struct {
		uint64_t memory;
		uint32_t loops;
	} params = {(uint64_t)(uintptr_t)memory, LOOPS};
	struct ckt_ptx_launch launch = {.grid = {BLOCKS, 1, 1},
		.block = {BLOCK, 1, 1},
		.dynamic_shared_bytes = BLOCK * 4 + 128,
		.params = &params,
		.device = &device};
	const struct ckt_ptx_function *f = ckt_ptx_module_find_function(module, "run");
	double from = user_seconds(), used = 0, count = 0;
	for (memset(memory, 0, WORDS * 4); used < seconds; used = user_seconds() - from) {
		if (ckt_ptx_launch(f, &launch, log, sizeof log) != CKT_PTX_FAULT_NONE) {
			fprintf(stderr, "soft_speed: %s\n", log);
			ckt_ptx_module_destroy(module);
			return 1;
		}
		count += (double)BLOCK * BLOCKS * LOOPS * (kernel->n_body + 3);
	}
	printf("%-22s %9.1f %7.2f %8.0f\n", kernel->name, count / 1e6, used, count / 1e6 / used);
	fflush(stdout);
	ckt_ptx_module_destroy(module);
	return 0;
}

/* Millions a second of a kernel, from a run of this program. */
static double measure(const char *self, int compile, const char *seconds, const char *kernel)
{
	char command[1024], line[256] = "";
	double speed = 0;
	snprintf(command, sizeof command, "CRICKET_SOFT_COMPILE=%d '%s' %s '%s'", compile, self,
		seconds, kernel);
	FILE *ran = popen(command, "r");
	if (ran && fgets(line, sizeof line, ran))
		speed = atof(strrchr(line, ' ') ? strrchr(line, ' ') : "0");
	return ran && !pclose(ran) ? speed : 0;
}

static int both(const char *self, const char *seconds, const char *only)
{
	int status = 0;
	for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
		if (only && strcmp(only, kernels[k].name))
			continue;
		double interpreted = measure(self, 0, seconds, kernels[k].name),
		       compiled = measure(self, 1, seconds, kernels[k].name);
		printf("%-22s %8.0f %8.0f %6.1f\n", kernels[k].name, interpreted, compiled,
			interpreted > 0 ? compiled / interpreted : 0);
		fflush(stdout);
		status |= interpreted <= 0 || compiled <= 0;
	}
	return status;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--both"))
		return both(argv[0], argc > 2 ? argv[2] : "1", argc > 3 ? argv[3] : NULL);
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	void *memory = device_alloc(WORDS * 4);
	int status = 0;
	for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
		if (argc < 3 || !strcmp(argv[2], kernels[k].name))
			status |= run(&kernels[k], seconds, memory);
	return status;
}
