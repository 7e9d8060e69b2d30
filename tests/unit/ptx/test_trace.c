/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/trace.c: the text of a traced thread.  The variables are read once in a
 * process, so this program runs itself again ("trace FILE KERNEL...") with them set.
 */
#include <unistd.h>

#include "harness.h"
#include "softgpu/ptx/execution/trace.h"
#include "softgpu/ptx/program.h"

static const char *ptx_run;

static const char traced[] = UNIT_HEAD
	".visible .entry kern(.param .u64 a, .param .u64 b)\n{\n.reg .b32 r<9>;\n"
	".reg .b64 x<3>; .reg .pred p; .shared .b32 s;\n"
	"mov.u32 r1, %tid.x;\nadd.u32 r2,\n  r1, 5;\nsetp.gt.u32 p, r1, 3;\n@p bra L;\n@!p mov.b32 r3, 0x10;\n"
	"L: mov.b64 x1, {r2, r1};\nst.shared.u32 [s], r1;\nret;\n}\n";

/* The first argument is ptx-run's path (test_ptx_run.c). */
int unit_setup(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "trace")) {
		const char *text = traced;
		struct ckt_ptx_module *module = unit_load(&text, 1, NULL);
		struct unit_launch u = {.kernel = "kern", .grid = 3, .block = 40};
		unit_run(module, &u);
		ckt_ptx_module_destroy(module);
		exit(0);
	}
	ptx_run = argc > 1 ? argv[1] : NULL;
	if (ptx_run)
		setenv("UNIT_PTX_RUN", ptx_run, 1);
	return 0;
}

/* What the file has after a run with that thread. */
static const char *trace(const char *thread)
{
	static char text[8192];
	char program[256], path[] = "/tmp/cricket-trace-XXXXXX", command[1024];
	ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
	program[n > 0 ? n : 0] = 0;
	close(mkstemp(path));
	snprintf(command, sizeof command,
		"CRICKET_SOFT_TRACE=%s CRICKET_SOFT_TRACE_THREAD='%s' '%s' trace 2>&1", path,
		thread, program);
	FILE *pipe = popen(command, "r");
	size_t said = fread(text, 1, sizeof text - 1, pipe);
	IS(pclose(pipe), 0);
	FILE *file = fopen(path, "r");
	text[said + fread(text + said, 1, sizeof text - 1 - said, file)] = 0;
	fclose(file);
	remove(path);
	return text;
}

static void test_text(void)
{
	/*
	 * Each instruction with its line and the registers that it names, as they are after it; one
	 * whose guard was false is marked.
	 */
	TEXT(trace("kern"),
		"kern 8  mov.u32 r1, %tid.x;  r1=0x0\nkern 9  add.u32 r2,   r1, 5;  r2=0x5 r1=0x0\n"
		"kern 11  setp.gt.u32 p, r1, 3;  p=0 r1=0x0\n- kern 12  @p bra L;\nkern 13  @!p mov.b32 r3, 0x10;  r3=0x10\n"
		"kern 14  mov.b64 x1, {r2, r1};  x1=0x5 r2=0x5 r1=0x0\nkern 15  st.shared.u32 [s], r1;  r1=0x0\n"
		"kern 16  ret;\n");
	TEXT(trace("ke:2,0,0:33,0,0"),
		"kern 8  mov.u32 r1, %tid.x;  r1=0x21\nkern 9  add.u32 r2,   r1, 5;  r2=0x26 r1=0x21\n"
		"kern 11  setp.gt.u32 p, r1, 3;  p=1 r1=0x21\nkern 12  @p bra L;\n"
		"kern 14  mov.b64 x1, {r2, r1};  x1=0x2100000026 r2=0x26 r1=0x21\n"
		"kern 15  st.shared.u32 [s], r1;  r1=0x21\nkern 16  ret;\n");
}

static void test_other(void)
{
	TEXT(trace("another"), "");
	TEXT(trace("kern:0,0,0:40,0,0"), ""); /* a thread that there is not */
	TEXT(trace("kern:7,0,0"), "");
	HAS(trace("kern:x"), "CRICKET_SOFT_TRACE_THREAD=kern:x is not KERNEL:BX,BY,BZ:TX,TY,TZ");
	/* Here nobody asked for one. */
	NO(ckt_ptx_trace_wanted());
	char program[256], command[512], said[512];
	ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
	program[n > 0 ? n : 0] = 0;
	snprintf(command, sizeof command, "CRICKET_SOFT_TRACE=/nonexistent/t '%s' trace 2>&1",
		program);
	FILE *pipe = popen(command, "r");
	said[fread(said, 1, sizeof said - 1, pipe)] = 0;
	IS(pclose(pipe), 0);
	HAS(said, "CRICKET_SOFT_TRACE=/nonexistent/t: No such file");
}

UNIT_SUITE(softgpu / ptx / execution / trace, {"text", test_text}, {"other", test_other})
