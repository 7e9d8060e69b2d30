/* SPDX-License-Identifier: Apache-2.0 */
/* The process of a client; see process.h. */
#include "ctl/client/process.h"

#include "ctl/client_address.h"
#include "ctl/print.h"
#include "rpc/net.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_NS = 5000000 };

/* ---- /proc */

/* pid 0: ourselves, by our number in this /proc. */
static bool read_link(pid_t pid, const char *name, char *ret_text, size_t size)
{
	char path[64];
	if (pid)
		snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	else
		snprintf(path, sizeof path, "/proc/self/%s", name);
	ssize_t n = readlink(path, ret_text, size - 1);
	ret_text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* The parent of a process and its state; false if there is no such process. */
static bool read_parent(
	pid_t pid, pid_t *ret_parent, char *ret_state, char *ret_name, size_t name_size)
{
	char path[64], text[512] = "";
	int parent;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "re");
	bool good = file && fgets(text, sizeof text, file);
	if (file)
		fclose(file);
	char *open = strchr(text, '('), *close = strrchr(text, ')');
	if (!good || !open || !close || sscanf(close + 1, " %c %d", ret_state, &parent) != 2)
		return false;
	*ret_parent = parent;
	snprintf(ret_name, name_size, "%.*s", (int)(close - open - 1), open + 1);
	return true;
}

bool ckt_ctl_process_describe(pid_t pid, char *ret_text, size_t text_size)
{
	char state, name[64], clean[64], path[64];
	pid_t parent;
	struct stat st;
	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	if (stat(path, &st))
		return false;
	if (!read_parent(pid, &parent, &state, name, sizeof name))
		snprintf(ret_text, text_size, "another process");
	else if (state == 'Z')
		snprintf(ret_text, text_size,
			"%s, which has ended, but process %d has not noticed yet",
			ckt_ctl_clean(name, clean, sizeof clean), (int)parent);
	else
		snprintf(ret_text, text_size, "%s", ckt_ctl_clean(name, clean, sizeof clean));
	return true;
}

bool ckt_ctl_process_is_over(pid_t pid)
{
	char state, name[64];
	pid_t parent;
	return read_parent(pid, &parent, &state, name, sizeof name) && state == 'Z';
}

bool ckt_ctl_process_is_below(pid_t pid, pid_t ancestor)
{
	char state, name[64];
	for (unsigned depth = 0; pid > 1 && depth < CKT_PROCESS_TREE_MAX; depth++) {
		if (pid == ancestor)
			return true;
		if (!read_parent(pid, &pid, &state, name, sizeof name))
			return false;
	}
	return false;
}

static unsigned add_threads(pid_t pid, pid_t *ids, unsigned count)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	for (struct dirent *entry; dir && count < CKT_PROCESS_TREE_MAX && (entry = readdir(dir));)
		if (isdigit((unsigned char)entry->d_name[0]))
			ids[count++] = atoi(entry->d_name);
	if (dir)
		closedir(dir);
	return count;
}

unsigned ckt_ctl_process_tree(pid_t pid, pid_t ret_ids[CKT_PROCESS_TREE_MAX])
{
	unsigned count = 0;
	DIR *dir = opendir("/proc");
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		pid_t one = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
		if (one && ckt_ctl_process_is_below(one, pid))
			count = add_threads(one, ret_ids, count);
	}
	if (dir)
		closedir(dir);
	return count;
}

/* The value of a variable with which the process was started. */
static bool read_variable(
	const char *environment, size_t size, const char *name, char *ret_value, size_t value_size)
{
	size_t length = strlen(name);
	for (const char *p = environment; p < environment + size; p += strlen(p) + 1)
		if (strncmp(p, name, length) == 0 && p[length] == '=' && p[length + 1]) {
			snprintf(ret_value, value_size, "%s", p + length + 1);
			return true;
		}
	return false;
}

static bool read_state_dir(pid_t pid, char ret_path[CKT_PROCESS_PATH])
{
	char path[64], home[CKT_PROCESS_PATH];
	size_t size = 0, room = 4 << 20;
	char *environment = malloc(room + 1);
	snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	for (ssize_t n = 1;
		environment && fd >= 0 && n > 0 && size<room; size += n> 0 ? (size_t)n : 0)
		n = read(fd, environment + size, room - size);
	if (fd >= 0)
		close(fd);
	bool found = false;
	if (environment) {
		environment[size] = 0;
		found = read_variable(
			environment, size, "CRICKET_STATE_DIR", ret_path, CKT_PROCESS_PATH);
		if (!found && read_variable(environment, size, "HOME", home, sizeof home))
			found = snprintf(ret_path, CKT_PROCESS_PATH, "%s/.local/state/cricket",
					home) < CKT_PROCESS_PATH;
	}
	free(environment);
	return found;
}

/* Names of namespaces that are not ours; a process in them cannot be restored here. */
static bool find_foreign_namespace(pid_t pid, const char **ret_name)
{
	static const char *const names[] = {"pid", "mnt", "net", "user", "ipc", "uts"};
	char path[32], theirs[64], ours[64];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "ns/%s", names[i]);
		if (read_link(pid, path, theirs, sizeof theirs) &&
			read_link(0, path, ours, sizeof ours) && strcmp(theirs, ours) != 0) {
			*ret_name = names[i];
			return true;
		}
	}
	return false;
}

int ckt_ctl_process_look(pid_t pid, const char *program, struct ckt_process *ret_process,
	char *ret_message, size_t message_size)
{
	char path[64], exe[CKT_PROCESS_PATH], name[16];
	const char *foreign = NULL;
	struct stat st;
	*ret_process = (struct ckt_process){.pid = pid};
	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	if (stat(path, &st)) {
		snprintf(ret_message, message_size,
			"process %d does not exist here: the program runs on another "
			"host or in a container: run cricketctl there",
			(int)pid);
		return -ESRCH;
	}
	if (geteuid() && st.st_uid != geteuid()) {
		snprintf(ret_message, message_size,
			"process %d belongs to another user: run cricketctl as that "
			"user or as root",
			(int)pid);
		return -EPERM;
	}
	if (find_foreign_namespace(pid, &foreign)) {
		snprintf(ret_message, message_size,
			"process %d runs in a %s namespace of its own: run cricketctl "
			"and CRIU in its container",
			(int)pid, foreign);
		return -EXDEV;
	}
	const char *base = read_link(pid, "exe", exe, sizeof exe) ? strrchr(exe, '/') : NULL;
	if (!base || strcmp(base + 1, program) != 0) {
		snprintf(ret_message, message_size,
			"process %d here is not %s: the program runs on another host "
			"or in a container: run cricketctl there",
			(int)pid, program);
		return -ESRCH;
	}
	if (!read_state_dir(pid, ret_process->state_dir)) {
		snprintf(ret_message, message_size,
			"process %d was started with neither HOME nor "
			"CRICKET_STATE_DIR, so cricketctl has no directory in which to "
			"ask it to be quiet: start it with one of them",
			(int)pid);
		return -ENOENT;
	}
	if (ret_process->state_dir[0] != '/') {
		snprintf(ret_message, message_size,
			"process %d was started with CRICKET_STATE_DIR=%.200s, which "
			"is not an absolute path: start it with one",
			(int)pid, ret_process->state_dir);
		return -EINVAL;
	}
	ret_process->uid = st.st_uid;
	ret_process->gid = st.st_gid;
	snprintf(ret_process->program, sizeof ret_process->program, "%s", program);
	for (int fd = 0; fd < 3; fd++) {
		snprintf(name, sizeof name, "fd/%d", fd);
		read_link(pid, name, ret_process->stdio[fd], sizeof ret_process->stdio[fd]);
	}
	return 0;
}

/* ---- Files of the client's user */

struct task {
	const struct ckt_process *process;
	const char *session, *address;
	uint64_t generation;
	pid_t holder;
	unsigned timeout_ms;
};

static int as_user(const struct task *task, int (*work)(const struct task *task))
{
	uid_t uid = task->process->uid;
	gid_t gid = task->process->gid;
	pid_t pid = fork();
	if (pid == 0) {
		bool change = geteuid() == 0 && uid;
		if (change && (setgroups(0, NULL) || setgid(gid) || setuid(uid)))
			_exit(errno & 0xff);
		_exit(-work(task) & 0xff);
	}
	if (pid < 0)
		return -errno;
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int file_path(const struct task *task, const char *suffix, char ret_path[CKT_PROCESS_PATH])
{
	int n = snprintf(ret_path, CKT_PROCESS_PATH, "%s/%s%s", task->process->state_dir,
		task->session, suffix);
	return n < CKT_PROCESS_PATH ? 0 : -ENAMETOOLONG;
}

static int remove_files(const struct task *task)
{
	char path[CKT_PROCESS_PATH];
	if (file_path(task, ".hold", path) == 0)
		unlink(path);
	if (file_path(task, ".quiet", path) == 0)
		unlink(path);
	return 0;
}

static int make_hold(const struct task *task)
{
	char path[CKT_PROCESS_PATH], directory[CKT_PROCESS_PATH];
	snprintf(directory, sizeof directory, "%s", task->process->state_dir);
	int result = ckt_ctl_state_directory(directory);
	if (!result)
		result = file_path(task, ".hold", path);
	if (result)
		return result;
	remove_files(task);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	result = dprintf(fd, "%d\n", (int)task->holder) > 0 ? 0 : -EIO;
	close(fd);
	return result;
}

static bool is_quiet(const char *path, pid_t pid)
{
	char text[32];
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0 && atoi(text) == pid;
}

static int wait_quiet(const struct task *task)
{
	char path[CKT_PROCESS_PATH];
	int64_t deadline_ms = ckt_net_now_ms() + task->timeout_ms;
	int result = file_path(task, ".quiet", path);
	while (!result && !is_quiet(path, task->process->pid)) {
		if (ckt_net_now_ms() >= deadline_ms)
			return -ETIMEDOUT;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
	return result;
}

static int redirect(const struct task *task)
{
	char message[CKT_PROCESS_PATH + 128], text[CKT_ADDRESS_TEXT_MAX + 64];
	snprintf(text, sizeof text, "%s\ngeneration %llu", task->address,
		(unsigned long long)task->generation);
	return ckt_ctl_state_write_in(
		task->process->state_dir, task->session, text, message, sizeof message);
}

int ckt_ctl_hold_make(const struct ckt_process *process, const char *session)
{
	return as_user(&(struct task){.process = process, .session = session, .holder = getpid()},
		make_hold);
}

int ckt_ctl_hold_wait_quiet(
	const struct ckt_process *process, const char *session, unsigned timeout_ms)
{
	return as_user(
		&(struct task){.process = process, .session = session, .timeout_ms = timeout_ms},
		wait_quiet);
}

void ckt_ctl_hold_remove(const struct ckt_process *process, const char *session)
{
	as_user(&(struct task){.process = process, .session = session}, remove_files);
}

int ckt_ctl_hold_redirect(const struct ckt_process *process, const char *session,
	const char *address, uint64_t generation)
{
	return as_user(&(struct task){.process = process,
			       .session = session,
			       .address = address,
			       .generation = generation},
		redirect);
}
