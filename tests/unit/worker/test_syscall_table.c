/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/cage/syscall_table.c: names that exist, each once, and none both ways. */
#include "server/worker/cage/syscall_table.h"

#include <seccomp.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"

enum { NAMES_MAX = 512 };

struct names {
	char list[NAMES_MAX][48];
	unsigned count;
};

static bool has(const struct names *names, const char *name)
{
	for (unsigned i = 0; i < names->count; i++)
		if (strcmp(names->list[i], name) == 0)
			return true;
	return false;
}

static void collect(const struct ckt_syscall_group *groups, struct names *ret)
{
	for (; groups->names; groups++) {
		char text[4096];
		YES(groups->why && strlen(groups->why) > 3);
		NO(strstr(groups->names, "  "));
		MUST(strlen(groups->names) < sizeof text, 1);
		strcpy(text, groups->names);
		for (char *save, *name = strtok_r(text, " ", &save); name;
			name = strtok_r(NULL, " ", &save)) {
			MUST(ret->count < NAMES_MAX && strlen(name) < 48, 1);
			if (has(ret, name))
				printf("twice: %s\n", name);
			NO(has(ret, name));
			strcpy(ret->list[ret->count++], name);
		}
	}
}

static void test_names(void)
{
	static struct names soft, denied, compiler;
	collect(ckt_syscalls_soft, &soft);
	collect(ckt_syscalls_denied, &denied);
	YES(soft.count > 100 && denied.count > 50);
	for (unsigned i = 0; i < denied.count; i++)
		NO(has(&soft, denied.list[i]));
	collect(ckt_syscalls_compiler, &compiler);
	for (unsigned i = 0; i < denied.count; i++)
		NO(has(&compiler, denied.list[i]));
	/* A compilation stays in its process group, and reaches nobody. */
	static const char *const escapes[] = {"kill", "tgkill", "rt_sigqueueinfo", "setsid",
		"setpgid", "socket", "socketpair", "connect", "bind", "sendmsg", "clone", "fork",
		"seccomp"};
	for (unsigned i = 0; i < COUNT(escapes); i++)
		NO(has(&compiler, escapes[i]));
	/* What starts it has more; no name is in both tables. */
	collect(ckt_syscalls_compiling, &compiler);
	NO(has(&compiler, "socket") || has(&compiler, "connect"));
	/* Those that the filter restricts by their arguments. */
	NO(has(&soft, "clone") || has(&soft, "clone3") || has(&soft, "socket") ||
		has(&soft, "socketpair") || has(&soft, "fork"));
	unsigned known = 0;
	for (unsigned i = 0; i < soft.count; i++) {
		int number = seccomp_syscall_resolve_name(soft.list[i]);
		known += number >= 0;
		/* A name with a typing error is one that libseccomp knows for no architecture. */
		if (number == __NR_SCMP_ERROR)
			printf("not known to this libseccomp: %s\n", soft.list[i]);
	}
	YES(known > 100);
}

UNIT_SUITE(syscall_table, {"names", test_names})
