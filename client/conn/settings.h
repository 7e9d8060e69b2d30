/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings from the environment, read once when the program first needs a device.  cricket(7)
 * lists every variable.
 */
#pragma once

#include <stdbool.h>

#include "rpc/job.h"
#include "rpc/net.h"

enum { CKT_STANDBY_MAX = 16 };

/* CRICKET_TRANSPORT; AUTO: unset. */
enum ckt_transport_choice {
	CKT_TRANSPORT_AUTO,
	CKT_TRANSPORT_TCP,
	CKT_TRANSPORT_UNIX,
	CKT_TRANSPORT_SHM,
};

struct ckt_settings {
	/* REMOTE_GPU_ADDRESS, or the local server's socket */
	char address[CKT_ADDRESS_TEXT_MAX];
	/* the servers, if REMOTE_GPU_ADDRESS is a list */
	char addresses[CKT_SERVERS_MAX][CKT_ADDRESS_TEXT_MAX];
	unsigned address_count;  /* 1 if it is not a list */
	char address_error[512]; /* the error in the list */
	bool address_given;
	char standby[CKT_STANDBY_MAX][CKT_ADDRESS_TEXT_MAX]; /* CRICKET_STANDBY */
	unsigned standby_count;
	const char *token_file;       /* CRICKET_TOKEN_FILE or NULL */
	bool sync;                    /* CRICKET_SYNC=1 */
	bool durable;                 /* CRICKET_DURABLE=1, or 2: */
	bool durable_group;           /* also together with sessions that it shares memory with */
	uint64_t replay_memory_bytes; /* CRICKET_REPLAY_MEMORY */
	const char *replay_directory; /* TMPDIR, or /tmp */
	bool share_memory;            /* CRICKET_SHARE_MEMORY, unless it is 0 */
	enum ckt_transport_choice transport;
	char transport_error[128]; /* the error in CRICKET_TRANSPORT; empty: none */
	/* CRICKET_SPIN: how long a waiting thread polls before it sleeps */
	int spin_us;
	bool spin_given;        /* the user set CRICKET_SPIN */
	unsigned processors;    /* on which this program may run */
	unsigned lanes;         /* CRICKET_LANES: connections beside the first, for large copies */
	int connect_timeout_ms; /* until the server has greeted and taken the hello */
	int answer_timeout_ms;  /* from then until a new session has its worker */
	int64_t reconnect_timeout_ms;   /* CRICKET_RECONNECT_TIMEOUT, in seconds */
	int64_t park_timeout_ms;        /* CRICKET_PARK_TIMEOUT, in seconds; 0: no limit */
	char job[CKT_JOB_NAME_MAX + 1]; /* CRICKET_JOB, or the launcher's name; empty: none */
	/* CRICKET_STATE_DIR, or ~/.local/state/cricket; empty if there is no home */
	char state_dir[CKT_ADDRESS_TEXT_MAX];
};

extern struct ckt_settings ckt_settings;

void ckt_settings_load(void);
/* The address of that number, below address_count. */
const char *ckt_settings_address(unsigned number);
/* This program's name, as listings and the server's log show it. */
void ckt_program_name(char *ret_name, size_t size);
