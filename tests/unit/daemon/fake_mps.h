/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A control program of MPS in the shell: its daemon says so in the file `daemon` of its pipes, and sleeps; its
 * server is 71, with the clients 5 and 1234567 and what the file `clients` of the test's directory has.  What it is
 * told is in the file `told` there.
 */
#pragma once

#include <stdio.h>

#include "inside.h"

static inline const char *fake_mps(void)
{
	static char path[128];
	char text[1024];
	snprintf(path, sizeof path, "%s", path_in("fake-mps"));
	snprintf(text, sizeof text,
		"#!/bin/sh\n"
		"cd %s || exit 1\n"
		"[ ! -e broken ] || exit 3\n"
		"if [ \"$1\" = -f ]; then echo $$ > $CUDA_MPS_PIPE_DIRECTORY/daemon; exec sleep 600; fi\n"
		"[ ! -e silent ] || exec sleep 600\n"
		"[ -e $CUDA_MPS_PIPE_DIRECTORY/daemon ] || exit 1\n"
		"while read -r line; do\n"
		"echo \"$line\" >> told\n"
		"case \"$line\" in\n"
		"get_server_list) echo 71;;\n"
		"'get_client_list 71') echo 5; echo 1234567; cat clients 2>/dev/null;;\n"
		"quit) kill `cat $CUDA_MPS_PIPE_DIRECTORY/daemon`;;\n"
		"esac\ndone\nexit 0\n",
		directory);
	write_file(path, text, 0755);
	unlink(path_in("told"));
	return path;
}
