/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/mps_control.c: questions, their answers, and programs that give none. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fake_mps.h"
#include "server/daemon/session/mps_control.h"

static struct ckt_mps_control begin(void)
{
	static char pipes[128];
	static const char *environment[2];
	snprintf(pipes, sizeof pipes, "CUDA_MPS_PIPE_DIRECTORY=%s", directory);
	environment[0] = pipes;
	const struct ckt_mps_control control = {fake_mps(), environment};
	write_file(path_in("daemon"), "1\n", 0600);
	return control;
}

static void end(void)
{
	unlink(path_in("daemon"));
	unlink(path_in("told"));
}

static void test_ask(void)
{
	const struct ckt_mps_control control = begin();
	char answer[64];
	IS(ckt_mps_control_ask(&control, "get_server_list\n", answer, sizeof answer), 0);
	TEXT(answer, "71\n");
	/* Cut where there is no room. */
	IS(ckt_mps_control_ask(&control, "get_client_list 71\n", answer, 4), 0);
	TEXT(answer, "5\n1");
	IS(ckt_mps_control_ask(&control, "anything\n", answer, sizeof answer), 0);
	TEXT(answer, "");
	YES(ckt_mps_control_is_there(&control, 0));
	end();
}

static void test_no_answer(void)
{
	struct ckt_mps_control control = begin();
	char answer[64] = "before";
	unlink(path_in("daemon"));
	IS(ckt_mps_control_ask(&control, "get_server_list\n", answer, sizeof answer), -EIO);
	TEXT(answer, "");
	NO(ckt_mps_control_is_there(&control, 0));
	IS(ckt_mps_control_terminate(&control, 5), -EIO);
	control.program = "/nonexistent";
	YES(ckt_mps_control_ask(&control, "get_server_list\n", answer, sizeof answer) < 0);
	control.program = fake_mps();
	write_file(path_in("silent"), "", 0600);
	IS(ckt_mps_control_ask(&control, "get_server_list\n", answer, sizeof answer), -ETIMEDOUT);
	unlink(path_in("silent"));
	end();
}

static void test_terminate(void)
{
	const struct ckt_mps_control control = begin();
	IS(ckt_mps_control_terminate(&control, 1234567), 0);
	TEXT(read_file(path_in("told")),
		"get_server_list\nget_client_list 71\nterminate_client 71 1234567\n");
	unlink(path_in("told"));
	/* Not one whose number begins alike. */
	IS(ckt_mps_control_terminate(&control, 123456), -ESRCH);
	TEXT(read_file(path_in("told")), "get_server_list\nget_client_list 71\n");
	end();
}

UNIT_SUITE(mps_control, {"ask", test_ask}, {"no answer", test_no_answer},
	{"terminate", test_terminate})
