/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/session_gpus.c: GPUs that a program leaves itself. */
#include <errno.h>
#include <stdio.h>

#include "inside.h"
#include "cudacommon/visible_devices.h"

static void test_visible(void)
{
	static const struct {
		const char *text;
		int result;
		const char *says;
	} cases[] = {{"", -ENODEV, "leaves none of the GPUs of here"},
		{"-1", -ENODEV, "leaves none"}, {"7", -ENODEV, "leaves none"},
		{"GPU-ffffffff", -ENODEV, "leaves none"},
		{"0,0", -EINVAL, "names a GPU of here twice"}};
	unsigned before = server.session_count;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char name[128], message[256] = "";
		ckt_capability capability = {.name = name};
		ckt_hello_args hello = hello_args(CKT_HELLO_NEW, "");
		struct ckt_session *session;
		snprintf(name, sizeof name, "%s%s", CKT_VISIBLE_CAPABILITY, cases[i].text);
		hello.capabilities.capabilities_len = 1;
		hello.capabilities.capabilities_val = &capability;
		struct ckt_session_spec spec = {.hello = &hello, .image_fd = -1, .gpu = -1};
		IS(ckt_session_create(&server, &spec, &session, message, sizeof message),
			cases[i].result);
		HAS(message, cases[i].says);
		IS(server.session_count, before);
	}
}

UNIT_SUITE(session_gpus, {"visible", test_visible})
