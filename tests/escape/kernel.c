/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts on the kernel: more rights, other namespaces, interfaces with a history of holes.  Where
 * a call needs arguments, they ask for what changes nothing.
 */
#include <asm/ldt.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/reboot.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/escape/agent.h"
#include "tests/escape/attempts.h"

static int of_result(long result)
{
	return result < 0 ? -errno : 0;
}

static int of_descriptor(long fd)
{
	if (fd < 0)
		return -errno;
	close((int)fd);
	return 0;
}

static int use_io_uring(void)
{
	struct io_uring_params parameters = {0};
	return of_descriptor(syscall(SYS_io_uring_setup, 1, &parameters));
}

static int use_bpf(void)
{
	union bpf_attr attributes = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
	return of_descriptor(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes));
}

static int use_userfaultfd(void)
{
	return of_descriptor(syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */));
}

static int mount_memory(void)
{
	if (mount("none", "/tmp", "tmpfs", 0, NULL))
		return -errno;
	umount("/tmp");
	return 0;
}

static int unmount(void)
{
	return of_result(umount2("/tmp", MNT_EXPIRE));
}

/* The worker itself stays where it is. */
static int in_child(int flags)
{
	long pid = syscall(SYS_clone, (unsigned long)(flags | SIGCHLD), 0, 0, 0, 0);
	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return -errno;
	waitpid((pid_t)pid, NULL, 0);
	return 0;
}

static int make_process(void)
{
	return in_child(0);
}

static int make_user_namespace(void)
{
	return in_child(CLONE_NEWUSER);
}

static int make_mount_namespace(void)
{
	return in_child(CLONE_NEWNS);
}

static int unshare_files(void)
{
	return of_result(unshare(CLONE_SYSVSEM));
}

static int enter_namespace(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getppid(), 0);
	if (fd < 0)
		return -errno;
	int result = of_result(setns(fd, CLONE_NEWNS));
	close(fd);
	return result;
}

static int change_root(void)
{
	return of_result(chroot("/"));
}

static int use_keys(void)
{
	return of_result(
		syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0, 0, 0));
}

static int add_key(void)
{
	return of_result(
		syscall(SYS_add_key, "user", "cricket-escape", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}

static int become_root(void)
{
	return of_result(setuid(0));
}

static int become_group(void)
{
	return of_result(setgid(0));
}

static int take_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct all[2] = {{~0u, ~0u, ~0u}, {~0u, ~0u, ~0u}};
	return of_result(syscall(SYS_capset, &header, all));
}

/* The present one: not asking, for the worker asks as well. */
static int change_personality(void)
{
	return of_result(personality(ADDR_NO_RANDOMIZE));
}

static int change_ldt(void)
{
	struct user_desc entry = {.entry_number = 0, .seg_not_present = 1, .read_exec_only = 1};
	return of_result(syscall(SYS_modify_ldt, 1, &entry, sizeof entry));
}

static int use_ports(void)
{
	return of_result(iopl(3));
}

static int use_port(void)
{
	return of_result(ioperm(0x80, 1, 1));
}

static int swap_on(void)
{
	return of_result(swapon("/dev/null", 0));
}

/* Only tells whether Ctrl-Alt-Del restarts the host. */
static int restart(void)
{
	return of_result(syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
		LINUX_REBOOT_CMD_CAD_OFF, NULL));
}

static int load_module(void)
{
	return of_result(syscall(SYS_finit_module, -1, "", 0));
}

static int read_log(void)
{
	return of_result(syscall(SYS_syslog, 10 /* the size of its buffer */, NULL, 0));
}

static int set_clock(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return of_result(clock_settime(CLOCK_REALTIME, &now));
}

static int set_name(void)
{
	struct utsname name;
	uname(&name);
	return of_result(sethostname(name.nodename, strlen(name.nodename)));
}

static int watch_files(void)
{
	return of_descriptor(syscall(SYS_fanotify_init, 0x200 /* FAN_REPORT_FID */, O_RDONLY));
}

const struct ckt_escape_attempt ckt_escape_kernel[] = {
	{"io-uring", use_io_uring},
	{"bpf", use_bpf},
	{"userfaultfd", use_userfaultfd},
	{"mount", mount_memory},
	{"umount", unmount},
	{"fork", make_process},
	{"clone-newuser", make_user_namespace},
	{"clone-newns", make_mount_namespace},
	{"unshare", unshare_files},
	{"setns", enter_namespace},
	{"chroot", change_root},
	{"keyctl", use_keys},
	{"add-key", add_key},
	{"setuid", become_root},
	{"setgid", become_group},
	{"capset", take_capabilities},
	{"personality", change_personality},
	{"modify-ldt", change_ldt},
	{"iopl", use_ports},
	{"ioperm", use_port},
	{"swapon", swap_on},
	{"reboot", restart},
	{"finit-module", load_module},
	{"syslog", read_log},
	{"clock-settime", set_clock},
	{"sethostname", set_name},
	{"fanotify", watch_files},
	{NULL, NULL},
};
