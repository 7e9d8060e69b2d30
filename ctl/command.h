/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subcommand of cricketctl: a row of the table in main.c, and the arguments that it gets.
 *
 * It gives back the exit code; what went wrong has been said on stderr by then.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/option_table.h"

/* The contract with scripts. */
enum {
	CKT_EXIT_DONE = 0,
	CKT_EXIT_REFUSED = 1,
	/* 2: CKT_EXIT_USAGE */
	CKT_EXIT_NO_SERVER = 3,
	CKT_EXIT_NO_SESSION = 4,
};

enum { CKT_CTL_SERVERS_MAX = 16, CKT_CTL_KEYS_MAX = 16 };

struct ckt_ctl_args {
	/* the last --server; NULL: REMOTE_GPU_ADDRESS, then the local socket */
	const char *server;
	const char *servers[CKT_CTL_SERVERS_MAX]; /* every one, for jobs */
	unsigned server_count;
	const char *job; /* checkpoint, migrate --job NAME, restore --job DIR */
	bool json, help, version;
	bool stop;                     /* checkpoint --stop */
	bool with_client;              /* checkpoint, restore --with-client */
	const char *deadline;          /* checkpoint --deadline SECONDS */
	const char *gpu;               /* restore --gpu N; of a job N,N,... */
	const char *place;             /* restore --job --place N,N,...: numbers of --server */
	const char *to;                /* redirect, migrate, drain --to ADDRESS */
	const char *client_address;    /* migrate, restore --client-address ADDRESS */
	const char *incremental;       /* checkpoint --incremental BASE */
	const char *every, *keep;      /* checkpoint --every 30s --keep 3 */
	const char *server_side;       /* checkpoint, restore --server-side NAME */
	bool to_memory, compress;      /* checkpoint */
	const char *pause_for, *until; /* pause --for 30m --until 18:00 */
	bool follow;                   /* events --follow */
	const char *output, *seconds;  /* trace --output FILE --seconds N */
	bool once;                     /* top --once */
	const char *delay;             /* top --delay SECONDS */
	bool gpu_time;                 /* trace --gpu-time */
	const char *save, *jobs;       /* drain --save DIR --jobs N */
	bool undo;                     /* drain --undo */
	/* token */
	const char *tokens, *role, *project, *expires, *max_sessions, *session_memory,
		*session_host_memory;
	/* certificate */
	const char *dir, *out, *address, *days, *permit, *fingerprint;
	/* the last --image-key FILE, and every one */
	const char *image_key, *image_keys[CKT_CTL_KEYS_MAX];
	unsigned image_key_count;
	/* restore; checkpoint */
	bool fork, again, encrypt;
	const char *command; /* the subcommand */
	char *const *words;  /* the arguments after it; not owned */
	int word_count;
};

enum { CKT_CTL_VALUES_MAX = 18 };

struct ckt_ctl_command {
	const char *name;
	int min_words, max_words;
	/* the words from the first one on are a command of the user's, options included */
	bool rest;
	const char *options; /* space separated long options of its own */
	const char *synopsis;
	const char *help;
	int (*run)(const struct ckt_ctl_args *args);
	const char *note;                               /* for its own --help; NULL: none */
	enum ckt_value_kind values[CKT_CTL_VALUES_MAX]; /* what its words are, for completion */
	/* the values that its first word can have, separated by spaces; NULL: any */
	const char *first_words;
};

struct ckt_ctl_option {
	struct ckt_option option;
	bool everywhere; /* all subcommands take it; otherwise those whose options name it */
	size_t flag_offset, value_offset; /* in struct ckt_ctl_args; one of the two is SIZE_MAX */
};

/* option_table.c: all options and subcommands; a subcommand without a name ends them. */
extern const struct ckt_ctl_option ckt_ctl_options[];
extern const size_t ckt_ctl_option_count;
extern const struct ckt_ctl_command ckt_ctl_commands[];
