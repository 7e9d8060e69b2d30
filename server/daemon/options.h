/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of cricket-server: command line and INI file, one table for both.
 *
 * Errors: -EINVAL with a sentence that names the option, the value and the remedy.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bounds.h"

enum { CKT_LISTEN_MAX = 64, CKT_OPTION_MESSAGE_MAX = 512 };

struct ckt_list {
	char *items[CKT_LISTEN_MAX];
	unsigned count;
};

struct ckt_options {
	struct ckt_list listen; /* "none" alone: no TCP */
	char *address_file;
	char *socket;                      /* NULL: ckt_options_default_socket */
	char *driver;                      /* "auto", "soft" or a path */
	char *library_path;                /* DIR:DIR; NULL: none */
	char *gpus;                        /* "all" or a list such as 0,2-3 */
	char *limits;                      /* a file; NULL: none */
	char *gpu_memory;                  /* see ckt_ledger_budgets_parse; NULL: no budget */
	char *when_full;                   /* "fail", "wait" or "swap"; NULL: fail */
	char *share;                       /* "time" or "space"; NULL: time */
	char *wait_policy;                 /* see wait_policy.h; NULL: fifo */
	unsigned wait_timeout;             /* seconds; 0: none */
	uint64_t swap_memory;              /* bytes; 0: none */
	char *swap;                        /* a directory; NULL: none */
	unsigned max_wait;                 /* seconds, in a round of sessions that swap */
	unsigned idle_context;             /* seconds; 0: no session sleeps */
	unsigned idle_memory;              /* seconds; 0: no session leaves for being idle */
	uint64_t session_memory;           /* bytes; 0: no limit */
	uint64_t session_host_memory;      /* bytes; 0: no limit */
	uint64_t worker_memory;            /* bytes that a worker may map for itself; 0: no limit */
	uint64_t staging;                  /* bytes of each session */
	char *warm;                        /* a number; NULL: as the driver is */
	uint64_t module_cache_size;        /* bytes of one owner */
	unsigned max_sessions;             /* 0: no limit */
	unsigned max_sessions_per_user;    /* 0: three quarters of them */
	unsigned max_waiting;              /* connections before their hello */
	unsigned max_waiting_per_peer;     /* 0: half of them */
	unsigned max_connections_per_user; /* control connections; 0: no limit */
	unsigned max_stages_per_user;      /* 0: no limit */
	uint64_t image_space;              /* bytes; 0: half of the file system */
	unsigned max_delay;                /* seconds */
	unsigned log_burst;
	char *audit; /* a path or "journal"; NULL: none */
	char *token_file;
	char *tokens;                             /* the file of named tokens; NULL: none */
	char *tls_certificate, *tls_key, *tls_ca; /* PEM files; NULL: tls_process.h has a default */
	bool insecure;
	/* of the workers, when started by root; NULL: cricket, else nobody */
	char *user;
	char *uid_range;        /* FIRST-LAST; NULL: all workers share a user */
	char *cage;             /* "on" or "off" */
	char *worker_network;   /* "auto", "on", "off" or "group" */
	unsigned grace;         /* seconds */
	unsigned claim_timeout; /* seconds */
	unsigned drain;         /* seconds */
	bool replace;
	char *image_dir;         /* NULL: SOCKET.images */
	uint64_t image_memory;   /* bytes; 0: half of the host's */
	char *module_cache;      /* a directory or "off"; NULL: module_cache.h */
	char *hooks;             /* a directory; NULL: none */
	char *on_term;           /* NULL or "checkpoint:DIR" */
	char *auto_checkpoint;   /* see ckt_automatic_parse; NULL: none */
	char *auto_dir;          /* NULL: automatic below --image-dir */
	char *metrics;           /* HOST:PORT or unix:PATH; NULL: none */
	bool insecure_plaintext; /* metrics, and without TLS sessions, may leave the host */
	char *log;               /* "auto", "stderr" or "journal" */
	char *log_level;
	char *config;
	/* files, or "server-key"; the first one writes */
	struct ckt_list image_key;
	bool print_config, version, help;
	char *replicate;          /* HOST[:PORT]; NULL: no replicas */
	char *replicate_token;    /* a file; NULL: none */
	unsigned replicate_lease; /* seconds */
	bool auto_encrypt;        /* with image_key */
};

void ckt_options_init(struct ckt_options *options);
void ckt_options_fini(struct ckt_options *options);
/*
 * Command line over --config FILE over defaults.  Zeroed or initialised options; free them with
 * _fini in every case.
 */
int ckt_options_parse(struct ckt_options *options, int argc, char *const *argv, char *ret_message,
	size_t message_size);
/* One INI file; its values replace those in options. */
int ckt_options_load(
	struct ckt_options *options, const char *path, char *ret_message, size_t message_size);
/* Writes an INI file that ckt_options_load reads back to the same values. */
void ckt_options_print(const struct ckt_options *options, FILE *file);
void ckt_options_help(FILE *file);

/* "all" gives no entries; otherwise ascending driver ordinals without repetition. */
int ckt_options_gpus_parse(
	const char *text, unsigned ret_gpus[CKT_DEVICES_MAX], unsigned *ret_count);
