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
	{"CRICKET_FAULT", "number of a point that fails on purpose, for tests"},
	{"CRICKET_JOB",
		"the job whose part the program's session is, for cricketctl checkpoint --job; SLURM's job or torchrun's run unless given"},
	{"CRICKET_LIBDIR", "where cricket-run finds the client libraries"},
	{"CRICKET_LIBEXEC", "where cricket-server finds cricket-worker and the soft GPU"},
	{"CRICKET_LIBRARIES",
		"which libraries' shims take the genuine ones' place: names such as cublas,cufft, -NAME for all but one, none; all unless given"},
	{"CRICKET_LOG",
		"LEVEL[:FILE] with LEVEL quiet, error, warning, info or debug: what is logged, and where instead of stderr"},
	{"CRICKET_PARK_TIMEOUT",
		"seconds for which a session that was stopped on purpose is waited for; 0, without limit, unless given"},
	{"CRICKET_RECONNECT_TIMEOUT",
		"seconds for which a session whose connection broke is looked for; 60 unless given"},
	{"CRICKET_SHARE_MEMORY", "0: pinned memory is not shared with a server on this host"},
	{"CRICKET_SOFT_COMPILE",
		"the soft GPU's kernels as machine code: 0 never, 1 from the first launch; those that run a lot unless given"},
	{"CRICKET_SOFT_DEVICES",
		"the soft GPU's devices, capability:memory[,...]; 12.0:8G unless given"},
	{"CRICKET_SOFT_PTX",
		"1, which cricket-run --soft sets: NVRTC gives PTX where machine code is asked for, and nvJitLink is not found"},
	{"CRICKET_SOFT_TRACE",
		"file for the instructions of one thread on the soft GPU, with the registers that they name"},
	{"CRICKET_SOFT_TRACE_THREAD",
		"KERNEL[:BX,BY,BZ[:TX,TY,TZ]]: which thread; the first of the first block of any kernel unless given"},
	{"CRICKET_SOFT_WAITS",
		"where the soft GPU's calls wait for it by themselves, as NVIDIA's driver's may: load, launch; nowhere unless given"},
	{"CRICKET_SPIN",
		"microseconds for which a waiting thread polls before it sleeps; unless given, as the "
		"program's schedule flags (cudaSetDeviceFlags) say: up to 0.1 s where it has more than 4 processors "
		"and half of them are free of such threads, not with cudaDeviceScheduleBlockingSync"},
	{"CRICKET_STANDBY",
		"host:port,...: servers to look at when the session is not found at its own address"},
	{"CRICKET_STATE_DIR",
		"where cricketctl leaves the new address of a session that moved; ~/.local/state/cricket unless given"},
	{"CRICKET_SYNC",
		"1 waits for every call, so that an error is reported by the call that caused it"},
	{"CRICKET_TOKEN_FILE", "file with the token of a server that asks for one"},
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
