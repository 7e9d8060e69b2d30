/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of a worker that misbehaves; see agent.h. */
#include "tests/escape/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "server/worker/session/control.h"
#include "server/worker/worker.h"
#include "tests/escape/attempts.h"

enum { PLAN_BYTES = 16384, LOOK_MS = 20, ABSTRACT_NAME = 32 };

static char plan[PLAN_BYTES];

/* The value of the line that begins with the key, from `at` on; NULL: there is none. */
static char *find(char *at, const char *key)
{
	size_t length = strlen(key);
	for (char *line = at; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) == 0 && line[length] == ' ')
			return line + length + 1;
	}
	return NULL;
}

const char *ckt_escape_told(const char *key)
{
	static char value[4096];
	const char *found = find(plan, key);
	snprintf(value, sizeof value, "%.*s", found ? (int)strcspn(found, "\n") : 0,
		found ? found : "");
	return value;
}

long ckt_escape_told_number(const char *key)
{
	return strtol(ckt_escape_told(key), NULL, 0);
}

static const struct ckt_escape_attempt *const tables[] = {ckt_escape_processes, ckt_escape_files,
	ckt_escape_network, ckt_escape_sockets, ckt_escape_kernel, ckt_escape_resources};
enum { TABLES = sizeof tables / sizeof *tables };

static void try(const char *name)
{
	for (size_t i = 0; i < TABLES; i++)
		for (const struct ckt_escape_attempt *attempt = tables[i]; attempt->name; attempt++)
			if (strcmp(attempt->name, name) == 0) {
				ckt_warning("escape: %s %d", name, -attempt->run());
				return;
			}
	ckt_warning("escape: %s unknown", name);
}

static int count_attempts(void)
{
	int count = 0;
	for (size_t i = 0; i < TABLES; i++)
		for (const struct ckt_escape_attempt *attempt = tables[i]; attempt->name; attempt++)
			count++;
	return count;
}

static bool read_file(const char *name, char *ret_text, size_t size)
{
	char path[4096];
	const char *inside = getenv("CRICKET_INSIDE"),
		   *slash = inside ? strrchr(inside, '/') : NULL;
	snprintf(path, sizeof path, "%.*s/%s", slash ? (int)(slash - inside) : 0,
		inside ? inside : "", name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, ret_text, size - 1) : -1;
	if (fd >= 0)
		close(fd);
	ret_text[n > 0 ? n : 0] = 0;
	return n > 0;
}

static bool read_plan(int number)
{
	char name[64];
	snprintf(name, sizeof name, "escape-plan-%d", number);
	return read_file(name, plan, sizeof plan);
}

bool ckt_escape_is_there(const char *name)
{
	char text[8];
	return read_file(name, text, sizeof text);
}

/* Once for each port. */
static void knock(void)
{
	static int last;
	char text[128];
	if (!read_file("escape-knock", text, sizeof text))
		return;
	const char *who = find(text, "knocker"), *where = find(text, "port");
	if (!who || !where || strtol(who, NULL, 10) != getpid() || strtol(where, NULL, 10) == last)
		return;
	last = (int)strtol(where, NULL, 10);
	ckt_warning(
		"escape: worker %d knocked at %d: %d", (int)getpid(), last, -ckt_escape_call(last));
}

/* A listening abstract socket, as ranks of NCCL have; the kernel chooses its name. */
static void listen_abstract(char ret_name[ABSTRACT_NAME])
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t size = sizeof(sa_family_t);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	*ret_name = 0;
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) || listen(fd, 16))
		return;
	size = sizeof address;
	getsockname(fd, (struct sockaddr *)&address, &size);
	snprintf(ret_name, ABSTRACT_NAME, "%.*s", (int)(size - sizeof(sa_family_t) - 1),
		address.sun_path + 1);
}

/* Another worker's attempt looks for it. */
static void leave_in_shm(void)
{
	char path[64];
	snprintf(path, sizeof path, "/dev/shm/escape-%d", (int)getpid());
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0)
		close(fd);
}

/* What the attempts of another worker need to know of this one, which without rights is secret. */
static void tell(void)
{
	static char secret[64] = "a secret in memory";
	char name[ABSTRACT_NAME];
	const char *cage = getenv("CRICKET_CAGE"), *driver = cage ? strchr(cage, '/') : NULL;
	const char *soft = getenv("XDG_CACHE_HOME"),
		   *cache = soft ? soft : getenv("CUDA_CACHE_PATH");
	listen_abstract(name);
	leave_in_shm();
	ckt_warning("escape: worker %d address %p abstract %s driver %s cache %s", (int)getpid(),
		(void *)secret, name, driver ? driver : "none", cache ? cache : "none");
}

static void *agent(void *opaque)
{
	tell();
	for (int number = 1;; number++) {
		/* Another's, also one of a run that was killed. */
		while (!read_plan(number) || ckt_escape_told_number("attacker") != getpid()) {
			knock();
			poll(NULL, 0, LOOK_MS);
		}
		ckt_escape_let_go();
		for (char *at = find(plan, "attempt"); at; at = find(at, "attempt")) {
			char name[64];
			snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "\n"), at);
			try(name);
		}
		ckt_warning("escape: plan %d done, of %d attempts", number, count_attempts());
	}
	return opaque;
}

/* The linker puts it in the place of ckt_worker_control_start() (--wrap). */
int __wrap_ckt_worker_control_start(struct ckt_worker *worker, int listen_fd);
int __real_ckt_worker_control_start(struct ckt_worker *worker, int listen_fd);

int __wrap_ckt_worker_control_start(struct ckt_worker *worker, int listen_fd)
{
	pthread_t thread;
	int result = __real_ckt_worker_control_start(worker, listen_fd);
	if (result)
		return result;
	int error = pthread_create(&thread, NULL, agent, NULL);
	if (!error)
		pthread_detach(thread);
	return -error;
}
