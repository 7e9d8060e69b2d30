/* SPDX-License-Identifier: Apache-2.0 */
/* client/conn/settings.h: what the environment says, and what is made of nonsense in it. */
#include <stdio.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/conn/settings.h"
#include "conn_parts.h"
#include "base/log.h"
#include "base/processors.h"
#include "rpc/greeting.h"
#include "tests/unit/suite.h"

static const char *const names[] = {"REMOTE_GPU_ADDRESS", "CRICKET_STANDBY", "CRICKET_TOKEN_FILE",
	"CRICKET_SYNC", "CRICKET_SPIN", "CRICKET_LOG", "CRICKET_RECONNECT_TIMEOUT",
	"CRICKET_TRANSPORT", "CRICKET_PARK_TIMEOUT", "CRICKET_STATE_DIR", "XDG_RUNTIME_DIR", "HOME",
	"CRICKET_JOB", "SLURM_JOB_ID", "SLURM_STEP_ID", "TORCHELASTIC_RUN_ID"};

/* What is said while these variables, and no others, are read. */
static const char *load(
	const char *name, const char *value, const char *name_2, const char *value_2)
{
	for (size_t i = 0; i < COUNT(names); i++)
		unsetenv(names[i]);
	if (name && value)
		setenv(name, value, 1);
	if (name_2 && value_2)
		setenv(name_2, value_2, 1);
	memset(&ckt_settings, 0, sizeof ckt_settings);
	parts_stderr_begin();
	ckt_settings_load();
	return parts_stderr_end();
}

static void test_numbers(void)
{
	static const struct {
		const char *name, *text, *says;
		int64_t sync, reconnect_ms, park_ms;
	} rows[] = {
		{NULL, NULL, "", 0, 60000, 0},
		{"CRICKET_SYNC", "1", "", 1, 60000, 0},
		{"CRICKET_SYNC", "0", "", 0, 60000, 0},
		{"CRICKET_SYNC", "", "", 0, 60000, 0},
		{"CRICKET_SYNC", "2", "CRICKET_SYNC=2: expected a number from 0 to 1; using 0", 0,
			60000, 0},
		{"CRICKET_SYNC", "yes", "CRICKET_SYNC=yes", 0, 60000, 0},
		{"CRICKET_RECONNECT_TIMEOUT", "0", "", 0, 0, 0},
		{"CRICKET_RECONNECT_TIMEOUT", "86400", "", 0, 86400000, 0},
		{"CRICKET_RECONNECT_TIMEOUT", "86401", "from 0 to 86400; using 60", 0, 60000, 0},
		{"CRICKET_RECONNECT_TIMEOUT", "-1", "using 60", 0, 60000, 0},
		{"CRICKET_RECONNECT_TIMEOUT", "5s", "using 60", 0, 60000, 0},
		{"CRICKET_RECONNECT_TIMEOUT", "99999999999999999999", "using 60", 0, 60000, 0},
		{"CRICKET_PARK_TIMEOUT", "31536000", "", 0, 60000, 31536000000},
		{"CRICKET_PARK_TIMEOUT", "31536001", "using 0", 0, 60000, 0},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *said = load(rows[i].name, rows[i].text, NULL, NULL);
		if (*rows[i].says)
			HAS(said, rows[i].says);
		else
			TEXT(said, "");
		IS(ckt_settings.sync, rows[i].sync);
		IS(ckt_settings.reconnect_timeout_ms, rows[i].reconnect_ms);
		IS(ckt_settings.park_timeout_ms, rows[i].park_ms);
		YES(ckt_settings.connect_timeout_ms > 0);
		/* The server gives up first, and says why. */
		YES(ckt_settings.answer_timeout_ms > CKT_HELLO_START_MS);
	}
}

static void test_spin(void)
{
	TEXT(load("CRICKET_SPIN", "100000", NULL, NULL), "");
	IS(ckt_settings.spin_us, 100000);
	YES(ckt_settings.spin_given);
	load(NULL, NULL, NULL, NULL);
	int otherwise = ckt_settings.spin_us;
	NO(ckt_settings.spin_given);
	cpu_set_t set;
	IS(sched_getaffinity(0, sizeof set, &set), 0);
	IS(ckt_settings.processors, CPU_COUNT(&set));
	IS(otherwise, CPU_COUNT(&set) > CKT_FEW_PROCESSORS ? 50 : 0);
	HAS(load("CRICKET_SPIN", "100001", NULL, NULL), "from 0 to 100000");
	IS(ckt_settings.spin_us, otherwise);
}

static void test_transport(void)
{
	static const struct {
		const char *text;
		enum ckt_transport_choice choice;
	} rows[] = {{"tcp", CKT_TRANSPORT_TCP}, {"unix", CKT_TRANSPORT_UNIX},
		{"shm", CKT_TRANSPORT_SHM}, {"", CKT_TRANSPORT_AUTO}, {NULL, CKT_TRANSPORT_AUTO}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		TEXT(load("CRICKET_TRANSPORT", rows[i].text, NULL, NULL), "");
		IS(ckt_settings.transport, rows[i].choice);
		TEXT(ckt_settings.transport_error, "");
	}
	/* The program must not run over anything else by mistake: opening a session fails. */
	load("CRICKET_TRANSPORT", "Shm", NULL, NULL);
	TEXT(ckt_settings.transport_error,
		"CRICKET_TRANSPORT=Shm is no transport: use tcp, unix or shm, or unset it");
	load(NULL, NULL, NULL, NULL);
	TEXT(ckt_settings.transport_error, "");
}

static void test_standby(void)
{
	char long_name[600], many[CKT_STANDBY_MAX * 3 + 4] = "";
	memset(long_name, 'a', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = 0;
	for (int i = 0; i < CKT_STANDBY_MAX + 1; i++)
		sprintf(many + 3 * i, "h%c,", 'a' + i);
	const struct {
		const char *text, *says;
		unsigned count;
		const char *first, *last;
	} rows[] = {
		{"", "", 0, NULL, NULL},
		{",,", "", 0, NULL, NULL},
		{"one", "", 1, "one", "one"},
		{"one,two:7000,unix:/three", "", 3, "one", "unix:/three"},
		{",one,,two,", "", 2, "one", "two"},
		{"one,two:port,three", "ignoring it", 2, "one", "three"},
		{long_name, "ignoring it", 0, NULL, NULL},
		{many, "", CKT_STANDBY_MAX, "ha", "hp"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *said = load("CRICKET_STANDBY", rows[i].text, NULL, NULL);
		if (*rows[i].says)
			HAS(said, rows[i].says);
		else
			TEXT(said, "");
		MUST(ckt_settings.standby_count, rows[i].count);
		if (rows[i].count) {
			TEXT(ckt_settings.standby[0], rows[i].first);
			TEXT(ckt_settings.standby[rows[i].count - 1], rows[i].last);
		}
	}
}

static void test_paths(void)
{
	load("CRICKET_STATE_DIR", "/state", "HOME", "/home/me");
	TEXT(ckt_settings.state_dir, "/state");
	load("CRICKET_STATE_DIR", "", "HOME", "/home/me");
	TEXT(ckt_settings.state_dir, "/home/me/.local/state/cricket");
	load("HOME", "", NULL, NULL);
	TEXT(ckt_settings.state_dir, "");
	load("CRICKET_TOKEN_FILE", "/token", NULL, NULL);
	TEXT(ckt_settings.token_file, "/token");
	load("CRICKET_TOKEN_FILE", "", NULL, NULL);
	YES(ckt_settings.token_file == NULL);
}

static void test_address(void)
{
	char directory[] = "/tmp/ckt-settings-XXXXXX", path[128], expected[128];
	load("REMOTE_GPU_ADDRESS", "a,b:7351", NULL, NULL);
	IS(ckt_settings.address_count, 2);
	TEXT(ckt_settings_address(0), "a:7350");
	TEXT(ckt_settings_address(1), "b:7351");
	TEXT(ckt_settings.address_error, "");
	load("REMOTE_GPU_ADDRESS", "a,,b", NULL, NULL);
	HAS(ckt_settings.address_error, "address 2 of the list 'a,,b' is empty");
	load("REMOTE_GPU_ADDRESS", "host:1", NULL, NULL);
	IS(ckt_settings.address_count, 1);
	TEXT(ckt_settings_address(0), "host:1");
	TEXT(ckt_settings.address_error, "");
	TEXT(ckt_settings.address, "host:1");
	YES(ckt_settings.address_given);
	/* A user's own server is found where it has a socket, and only there. */
	MUST(mkdtemp(directory) != NULL, 1);
	bool became = geteuid() == 0 && seteuid(1000000000 + (uid_t)getpid()) == 0;
	load("REMOTE_GPU_ADDRESS", "", "XDG_RUNTIME_DIR", directory);
	TEXT(ckt_settings.address, "unix:/run/cricket/socket");
	NO(ckt_settings.address_given);
	if (became)
		IS(seteuid(0), 0);
	snprintf(path, sizeof path, "%s/cricket", directory);
	MUST(mkdir(path, 0755), 0);
	strcat(path, "/socket");
	FILE *file = fopen(path, "w");
	MUST(file != NULL, 1);
	fclose(file);
	became = geteuid() == 0 && seteuid(1000000000 + (uid_t)getpid()) == 0;
	load("XDG_RUNTIME_DIR", directory, NULL, NULL);
	snprintf(expected, sizeof expected, "unix:%s", path);
	TEXT(ckt_settings.address, expected);
	NO(ckt_settings.address_given);
	if (became)
		IS(seteuid(0), 0);
	unlink(path);
	*strrchr(path, '/') = 0;
	rmdir(path);
	rmdir(directory);
}

static void test_log(void)
{
	char path[64], value[80];
	enum ckt_log_level before = ckt_log_level;
	struct stat st;
	snprintf(path, sizeof path, "/tmp/ckt-settings-%d.log", (int)getpid());
	snprintf(value, sizeof value, "info:%s", path);
	TEXT(load("CRICKET_LOG", value, NULL, NULL), "");
	IS(ckt_log_level, CKT_LOG_INFO);
	IS(stat(path, &st), 0);
	unlink(path);
	load("CRICKET_LOG", "error", NULL, NULL);
	IS(ckt_log_level, CKT_LOG_ERROR);
	load("CRICKET_LOG", "warning:", NULL, NULL);
	IS(ckt_log_level, CKT_LOG_WARNING);
	HAS(load("CRICKET_LOG", "loud", NULL, NULL), "'loud' is not a level");
	IS(ckt_log_level, CKT_LOG_QUIET);
	HAS(load("CRICKET_LOG", "error:/nonexistent/file", NULL, NULL),
		"CRICKET_LOG: cannot open /nonexistent/file");
	load(NULL, NULL, NULL, NULL);
	IS(ckt_log_level, CKT_LOG_QUIET);
	ckt_log_init("cricket", before, NULL);
}

static void test_name(void)
{
	char name[64], small[4];
	ckt_program_name(name, sizeof name);
	TEXT(name, "test_conn_parts");
	memset(small, 'x', sizeof small);
	/* the name is cut, however long the path before it */
	ckt_program_name(small, sizeof small);
	TEXT(small, "tes");
}

static void test_job(void)
{
	static const struct {
		const char *name, *text, *name_2, *text_2, *job, *says;
	} rows[] = {
		{NULL, NULL, NULL, NULL, "", ""},
		{"CRICKET_JOB", "mine", "SLURM_JOB_ID", "7", "mine", ""},
		{"CRICKET_JOB", "", "SLURM_JOB_ID", "7", "7", ""},
		{"SLURM_JOB_ID", "7", "SLURM_STEP_ID", "0", "7.0", ""},
		{"SLURM_JOB_ID", "7", "TORCHELASTIC_RUN_ID", "run", "7", ""},
		{"SLURM_STEP_ID", "0", NULL, NULL, "", ""},
		{"TORCHELASTIC_RUN_ID", "none", NULL, NULL, "", ""},
		{"TORCHELASTIC_RUN_ID", "6f1b2c1e-0000-4000-8000-aaaaaaaaaaaa", NULL, NULL,
			"6f1b2c1e-0000-4000-8000-aaaaaaaaaaaa", ""},
		{"TORCHELASTIC_RUN_ID", "a b", NULL, NULL, "",
			"TORCHELASTIC_RUN_ID=a b: a job name has"},
		{"CRICKET_JOB", "a/b", "SLURM_JOB_ID", "7", "",
			"the session belongs to no job: set CRICKET_JOB"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *said = load(rows[i].name, rows[i].text, rows[i].name_2, rows[i].text_2);
		if (*rows[i].says)
			HAS(said, rows[i].says);
		else
			TEXT(said, "");
		TEXT(ckt_settings.job, rows[i].job);
	}
	load(NULL, NULL, NULL, NULL);
}

UNIT_SUITE(settings, {"job", test_job}, {"numbers", test_numbers}, {"spin", test_spin},
	{"transport", test_transport}, {"standby", test_standby}, {"paths", test_paths},
	{"address", test_address}, {"log", test_log}, {"name", test_name})
