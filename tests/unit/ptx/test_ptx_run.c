/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/ptx_run.c: the program by its command line; its path is this program's first argument
 * (test_trace.c keeps it).
 */
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static char path[] = "/tmp/cricket-ptx-run-XXXXXX";

/* Its output, both descriptors; what it exits with comes in *ret_status. */
static const char *run(const char *arguments, int *ret_status)
{
	static char text[4096];
	char command[1024];
	const char *program = getenv("UNIT_PTX_RUN");
	snprintf(command, sizeof command, "'%s' %s 2>&1",
		program ? program : "(the first argument should be ptx-run)", arguments);
	FILE *pipe = popen(command, "r");
	text[fread(text, 1, sizeof text - 1, pipe)] = 0;
	int status = pclose(pipe);
	*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	return text;
}

static void test_program(void)
{
	static const char text[] = UNIT_HEAD
		".visible .entry add(.param .u64 p, .param .u32 v)\n"
		"{ .reg .b64 x<3>; .reg .b32 r<4>; ld.param.u64 x1, [p]; ld.param.u32 r1, [v]; mov.u32 r2, %tid.x; "
		"mad.lo.u32 r2, %ctaid.x, 4, r2;\n"
		"mul.wide.u32 x2, r2, 4; add.u64 x1, x1, x2; ld.global.u32 r3, [x1]; add.u32 r3, r3, r1; "
		"st.global.u32 [x1], r3; ret; }\n"
		".visible .entry half(.param .u64 p, .param .f32 v)\n"
		"{ .reg .b64 x; .reg .f32 f<3>; .shared .b8 s[12]; .reg .b32 r; mov.u32 r, s; "
		"ld.param.u64 x, [p]; ld.param.f32 f1, [v]; mul.f32 f1, f1, 0.5; st.global.f32 [x], f1; ret; "
		"}\n"
		".visible .entry bad()\n{ trap; }\n";
	int fd = mkstemp(path), status;
	IS(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	char arguments[512];
#define RUN(...) (snprintf(arguments, sizeof arguments, __VA_ARGS__), run(arguments, &status))
	const char *said = RUN("%s", path);
	IS(status, 0);
	HAS(said, "add: 2 parameters, 0 bytes shared");
	HAS(said, "half: 2 parameters, 12 bytes shared");
	said = RUN("-k add -g 2 -b 4 %s -- pri:9 i:10", path);
	IS(status, 0);
	HAS(said, "10 11 12 13 14 15 16 17 8 \n");
	HAS(said, "add: fault 0");
	said = RUN("-k add -b 4,1,1 %s -- pzi:4 i:-1", path);
	HAS(said, "-1 -1 -1 -1 \n");
	said = RUN("-k half %s -- pzf:2 f:3", path);
	HAS(said, "1.5 0 \n");
	said = RUN("-k bad %s --", path);
	IS(status, 1);
	HAS(said, "fault 7");
	HAS(said, "trap");
	said = RUN("-k nothing %s --", path);
	IS(status, 1);
	HAS(said, "no kernel nothing");
	said = RUN("-k add %s -- i:1", path);
	IS(status, 2);
	HAS(said, "add has 2 parameters");
	said = RUN("-k add %s -- x i:1", path);
	IS(status, 2);
	HAS(said, "invalid argument x");
	said = RUN("-t 80 %s", path);
	IS(status, 1);
	HAS(said, "9.0"); /* made for that */
	said = RUN("/nonexistent.ptx");
	IS(status, 1);
	HAS(said, "No such file");
	RUN("-z");
	IS(status, 2);
	remove(path);
}

UNIT_SUITE(softgpu / ptx / ptx_run, {"program", test_program})
