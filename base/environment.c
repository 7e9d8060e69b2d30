/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See environment.h.
 */
#include "base/environment.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static const char prefix[] = "CRICKET_";

const struct ckt_environment_variable ckt_environment_variables[] = {
	{"CRICKET_DURABLE",
		"1: the session can be restored from an image that is older than what the program "
		"has seen; 2: also together with sessions that it shares memory or "
		"communicators with"},
	{"CRICKET_FAULT", "number of a point that fails on purpose, for tests"},
	{"CRICKET_JOB",
		"the job of the program's session, for cricketctl checkpoint --job; by "
		"default SLURM's job or torchrun's run"},
	{"CRICKET_LANES",
		"how many further connections to each server carry large copies, up to 8; 0: "
		"none; default: 4, or 2 on a host with few processors"},
	{"CRICKET_LIBDIR", "where cricket-run finds the client libraries"},
	{"CRICKET_LIBEXEC", "where cricket-server finds cricket-worker and the soft GPU"},
	{"CRICKET_LIBRARIES",
		"the libraries that shims replace: names such as cublas,cufft, -NAME "
		"for all but one, none; by default all"},
	{"CRICKET_LOG",
		"what is logged, and where instead of stderr: LEVEL[:FILE] with LEVEL "
		"quiet, error, warning, info or debug"},
	{"CRICKET_MPS_CONTROL",
		"where cricket-server finds nvidia-cuda-mps-control; by default "
		"/usr/bin/nvidia-cuda-mps-control"},
	{"CRICKET_PARK_TIMEOUT",
		"how many seconds a client waits for a session that was stopped on "
		"purpose; by default 0, without limit"},
	{"CRICKET_RECONNECT_TIMEOUT",
		"how many seconds a client looks for a session after its connection "
		"broke; by default 60"},
	{"CRICKET_REFUSALS",
		"file to which each process adds a line for what was refused or not executed"},
	{"CRICKET_REPLAY_MEMORY",
		"how much memory a durable session's commands take before they go to a file in "
		"TMPDIR; by default 2G"},
	{"CRICKET_SHARE_MEMORY", "0: pinned memory is not shared with a server on this host"},
	{"CRICKET_SOFT_COMPILE",
		"the soft GPU's kernels as machine code: 0 never, 1 from the first "
		"launch; by default those that run a lot"},
	{"CRICKET_SOFT_DEVICES",
		"the soft GPU's devices, capability:memory[,...]; by default 12.0:8G"},
	{"CRICKET_SOFT_PTX",
		"1, which cricket-run --soft sets: NVRTC gives PTX in place of machine "
		"code, and nvJitLink is not found"},
	{"CRICKET_SOFT_TRACE",
		"file for the instructions of one thread on the soft GPU, with their "
		"registers"},
	{"CRICKET_SOFT_TRACE_THREAD",
		"which thread: KERNEL[:BX,BY,BZ[:TX,TY,TZ]]; by default the first of "
		"the first block of any kernel"},
	{"CRICKET_SOFT_WAITS",
		"where the soft GPU's calls wait for it by themselves, as NVIDIA's "
		"driver's may: load, launch; by default nowhere"},
	{"CRICKET_SPIN",
		"how many microseconds a waiting thread polls before it sleeps; by "
		"default as the program's schedule flags (cudaSetDeviceFlags) say: up "
		"to 0.1 s if there are more than 4 processors and half of them are "
		"free of such threads, not with cudaDeviceScheduleBlockingSync"},
	{"CRICKET_STANDBY",
		"host:port,...: servers to try if the session is not at its own address"},
	{"CRICKET_STATE_DIR",
		"where cricketctl writes the new address of a moved session; by "
		"default ~/.local/state/cricket"},
	{"CRICKET_STATS",
		"1 prints at the program's end its calls and waits, and the ten functions "
		"that cost most"},
	{"CRICKET_SYNC",
		"1 waits for every call, so that the call that caused an error reports "
		"it"},
	{"CRICKET_TLS_CA",
		"file (PEM) with the authorities of servers: over TCP the client then talks "
		"TLS alone; by default ~/.config/cricket/tls/ca.pem, if it is there"},
	{"CRICKET_TLS_CERTIFICATE",
		"file (PEM) with the certificate that the client shows a server, and its "
		"chain; by default cert.pem beside it"},
	{"CRICKET_TLS_FIRST",
		"what happens to a server that is met for the first time and whose certificate "
		"comes from no known authority: ask (the default), accept or refuse"},
	{"CRICKET_TLS_KEY",
		"file (PEM) with the key of that certificate, which others must not be able "
		"to read; by default key.pem beside it"},
	{"CRICKET_TOKEN_FILE", "file with the token of a server that requires one"},
	{"CRICKET_TRACE",
		"file for a record of every call, which Perfetto and chrome://tracing "
		"open; %p stands for the process's ID"},
	{"CRICKET_TRACE_GPU",
		"1 adds to the file of CRICKET_TRACE how long the GPU took for each "
		"launch, copy and set of memory"},
	{"CRICKET_TRANSPORT",
		"tcp, unix or shm: what the connection to the server must run over; by "
		"default shared memory (shm) beside a UNIX socket, and else what the "
		"address says"},
	{"CRICKET_WHOLE_MODULES",
		"1 sends fat binaries whole, also the machine code for other GPUs than the "
		"program's; an image can then go on at those without PTX"},
};
const size_t ckt_environment_variables_count =
	sizeof(ckt_environment_variables) / sizeof(ckt_environment_variables[0]);

static int is_known(const char *entry, size_t length)
{
	for (size_t i = 0; i < ckt_environment_variables_count; i++)
		if (strlen(ckt_environment_variables[i].name) == length &&
			strncmp(ckt_environment_variables[i].name, entry, length) == 0)
			return 1;
	return 0;
}

const char *ckt_environment_unknown(char *const *environment, size_t *cursor)
{
	while (environment && environment[*cursor]) {
		const char *entry = environment[(*cursor)++];

		if (strncmp(entry, prefix, sizeof(prefix) - 1) == 0 &&
			!is_known(entry, strcspn(entry, "=")))
			return entry;
	}
	return NULL;
}

void ckt_environment_check(void)
{
	static atomic_flag checked = ATOMIC_FLAG_INIT;
	const char *entry;
	size_t cursor = 0;

	if (atomic_flag_test_and_set(&checked))
		return;
	while ((entry = ckt_environment_unknown(environ, &cursor)) != NULL)
		ckt_log_user("environment variable %.*s is unknown; ignoring it",
			(int)strcspn(entry, "="), entry);
}
