/* SPDX-License-Identifier: Apache-2.0 */
/* The environment; see settings.h. */
#include "client/conn/settings.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/greeting.h"
#include "rpc/identity.h"
#include "rpc/lane.h"
#include "base/log.h"
#include "base/processors.h"
#include "base/environment.h"
#include "base/size_text.h"

struct ckt_settings ckt_settings;

static void load_log(void)
{
	const char *text = getenv("CRICKET_LOG");
	static char level_name[16];
	enum ckt_log_level level = CKT_LOG_QUIET;
	const char *file = NULL;
	if (text && *text) {
		size_t length = strcspn(text, ":");
		snprintf(level_name, sizeof level_name, "%.*s", (int)length, text);
		if (text[length] == ':' && text[length + 1])
			file = text + length + 1;
		if (ckt_log_level_parse(level_name, &level)) {
			ckt_log_user("CRICKET_LOG=%s: '%s' is not a level; use error, "
				     "warning, info, debug or quiet",
				text, level_name);
			level = CKT_LOG_QUIET;
		}
	}
	int result = ckt_log_init("cricket-client", level, file);
	if (result)
		ckt_log_user("CRICKET_LOG: cannot open %s: %s", file, strerror(-result));
}

/*
 * 4 reach what NVIDIA's driver does with memory that is not pinned; of two, one sends while the other
 * receives.
 */
enum { LANES = 4, LANES_FEW = 2 };
/* The server gives up first, and says why. */
enum { ANSWER_TRAVELS_MS = 30000 };

/*
 * The value of a variable as a number within bounds.  If it is not such a number, this logs the
 * error and returns the default.
 */
static long load_number(const char *name, long minimum, long maximum, long otherwise)
{
	const char *text = getenv(name);
	if (!text || !*text)
		return otherwise;
	char *end;
	errno = 0;
	long value = strtol(text, &end, 10);
	if (errno || *end || value < minimum || value > maximum) {
		ckt_log_user("%s=%s: expected a number from %ld to %ld; using %ld", name, text,
			minimum, maximum, otherwise);
		return otherwise;
	}
	return value;
}

static void load_standby(void)
{
	const char *text = getenv("CRICKET_STANDBY");
	while (text && *text) {
		size_t length = strcspn(text, ",");
		struct ckt_address address;
		char one[CKT_ADDRESS_TEXT_MAX], message[256];
		snprintf(one, sizeof one, "%.*s", (int)length, text);
		if (*one && ckt_address_parse(one, &address, message, sizeof message))
			ckt_log_user("CRICKET_STANDBY: %s; ignoring it", message);
		else if (*one && ckt_settings.standby_count < CKT_STANDBY_MAX)
			strcpy(ckt_settings.standby[ckt_settings.standby_count++], one);
		text += length + (text[length] == ',');
	}
}

static void load_state_dir(void)
{
	const char *text = getenv("CRICKET_STATE_DIR"), *home = getenv("HOME");
	if (text && *text)
		snprintf(ckt_settings.state_dir, sizeof ckt_settings.state_dir, "%s", text);
	else if (home && *home)
		snprintf(ckt_settings.state_dir, sizeof ckt_settings.state_dir,
			"%s/.local/state/cricket", home);
}

/* Takes the variable's value as the job's name; false if it is unset. */
static bool take_job(const char *name, const char *text)
{
	if (!text || !*text)
		return false;
	if (ckt_job_name_good(text))
		snprintf(ckt_settings.job, sizeof ckt_settings.job, "%s", text);
	else
		ckt_log_user("%s=%.64s: a job name has at most %d letters, digits and . _ : "
			     "-, with a letter or digit first; the session belongs to no "
			     "job: set CRICKET_JOB to a valid name",
			name, text, CKT_JOB_NAME_MAX);
	return true;
}

/* The launcher's name of the run that this process belongs to, unless the user names a job. */
static void load_job(void)
{
	const char *slurm = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID"),
		   *torchrun = getenv("TORCHELASTIC_RUN_ID");
	char text[128];
	ckt_settings.job[0] = 0;
	if (take_job("CRICKET_JOB", getenv("CRICKET_JOB")))
		return;
	if (slurm && *slurm) {
		snprintf(text, sizeof text, "%.60s%s%.60s", slurm, step && *step ? "." : "",
			step ? step : "");
		take_job("SLURM_JOB_ID", text);
	} else if (torchrun && strcmp(torchrun, "none") != 0) {
		/* "none" is torchrun's default for a run without a name. */
		take_job("TORCHELASTIC_RUN_ID", torchrun);
	}
}

static void load_address(void)
{
	const char *text = getenv("REMOTE_GPU_ADDRESS");
	ckt_settings.address_count = 1;
	ckt_settings.address_error[0] = 0;
	if (text && *text) {
		snprintf(ckt_settings.address, sizeof ckt_settings.address, "%s", text);
		ckt_settings.address_given = true;
		if (strchr(text, ','))
			ckt_address_split(text, ckt_settings.addresses, &ckt_settings.address_count,
				ckt_settings.address_error, sizeof ckt_settings.address_error);
		return;
	}
	/* The default is the socket of this user's or the system's server on this host. */
	char path[400], message[256];
	if (ckt_local_socket_path(path, sizeof path, message, sizeof message) == 0 &&
		access(path, R_OK | W_OK) == 0)
		snprintf(ckt_settings.address, sizeof ckt_settings.address, "unix:%s", path);
	else
		strcpy(ckt_settings.address, "unix:/run/cricket/socket");
}

static void load_transport(void)
{
	static const char *const names[] = {[CKT_TRANSPORT_TCP] = "tcp",
		[CKT_TRANSPORT_UNIX] = "unix",
		[CKT_TRANSPORT_SHM] = "shm"};
	const char *text = getenv("CRICKET_TRANSPORT");
	ckt_settings.transport = CKT_TRANSPORT_AUTO;
	ckt_settings.transport_error[0] = 0;
	if (!text || !*text)
		return;
	for (unsigned i = CKT_TRANSPORT_TCP; i <= CKT_TRANSPORT_SHM; i++)
		if (strcmp(text, names[i]) == 0)
			ckt_settings.transport = i;
	if (ckt_settings.transport == CKT_TRANSPORT_AUTO)
		snprintf(ckt_settings.transport_error, sizeof ckt_settings.transport_error,
			"CRICKET_TRANSPORT=%.32s is no transport: use tcp, unix or shm, or unset it",
			text);
}

static void load_spin(void)
{
	ckt_settings.processors = ckt_processors();
	const char *given = getenv("CRICKET_SPIN");
	ckt_settings.spin_given = given && *given;
	ckt_settings.spin_us = (int)load_number(
		"CRICKET_SPIN", 0, 100000, ckt_settings.processors > CKT_FEW_PROCESSORS ? 50 : 0);
}

static void load_durable(void)
{
	const char *text = getenv("CRICKET_REPLAY_MEMORY"), *directory = getenv("TMPDIR");
	uint64_t bytes = (uint64_t)2 << 30;
	long durable = load_number("CRICKET_DURABLE", 0, 2, 0);
	ckt_settings.durable = durable;
	ckt_settings.durable_group = durable == 2;
	if (text && *text && ckt_size_parse(text, &bytes))
		ckt_log_user(
			"CRICKET_REPLAY_MEMORY=%.32s is no size: give bytes, or a number with K, M "
			"or G; taking 2G",
			text);
	ckt_settings.replay_memory_bytes = bytes;
	ckt_settings.replay_directory = directory && *directory ? directory : "/tmp";
}

void ckt_settings_load(void)
{
	load_log();
	ckt_environment_check();
	load_address();
	load_standby();
	load_job();
	const char *token = getenv("CRICKET_TOKEN_FILE");
	ckt_settings.token_file = token && *token ? token : NULL;
	ckt_settings.sync = load_number("CRICKET_SYNC", 0, 1, 0);
	load_durable();
	/* All that commands read must be in commands, to be sent again. */
	ckt_settings.share_memory =
		load_number("CRICKET_SHARE_MEMORY", 0, 1, 1) && !ckt_settings.durable;
	load_spin();
	load_transport();
	ckt_settings.lanes = (unsigned)load_number("CRICKET_LANES", 0, CKT_LANES_MAX,
		ckt_settings.processors > CKT_FEW_PROCESSORS ? LANES : LANES_FEW);
	if (ckt_settings.durable)
		ckt_settings.lanes = 0;
	ckt_settings.connect_timeout_ms = 10000;
	ckt_settings.answer_timeout_ms = CKT_HELLO_START_MS + ANSWER_TRAVELS_MS;
	ckt_settings.reconnect_timeout_ms =
		load_number("CRICKET_RECONNECT_TIMEOUT", 0, 86400, 60) * 1000;
	ckt_settings.park_timeout_ms =
		load_number("CRICKET_PARK_TIMEOUT", 0, 365 * 86400, 0) * 1000;
	load_state_dir();
}

void ckt_program_name(char *ret_name, size_t size)
{
	char path[PATH_MAX] = "";
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	path[n > 0 ? n : 0] = 0;
	const char *slash = strrchr(path, '/');
	snprintf(ret_name, size, "%s", slash ? slash + 1 : path);
}

const char *ckt_settings_address(unsigned number)
{
	return ckt_settings.address_count > 1 ? ckt_settings.addresses[number]
					      : ckt_settings.address;
}
