/*
 * cricketctl: a table of subcommands, one file each: connect, call one procedure, print.
 *
 * A subcommand gets its parsed arguments and gives back the exit code; what went wrong has been
 * said on stderr by then.
 */
#pragma once

#include <jansson.h>
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "rpc/control.h"
#include "rpc/job.h"
#include "rpc/net.h"

/* The contract with scripts. */
enum {
	CKT_EXIT_DONE = 0,
	CKT_EXIT_REFUSED = 1,
	CKT_EXIT_USAGE = 2,
	CKT_EXIT_NO_SERVER = 3,
	CKT_EXIT_NO_SESSION = 4,
};

enum { CKT_CTL_SERVERS_MAX = 16 };

struct ckt_ctl_args {
	/* the last --server; NULL: REMOTE_GPU_ADDRESS, then the local socket */
	const char *server;
	const char *servers[CKT_CTL_SERVERS_MAX]; /* every one, for jobs */
	unsigned server_count;
	const char *job; /* checkpoint --job NAME, restore --job DIR */
	bool json, help, version;
	bool stop;                     /* checkpoint --stop */
	bool with_client;              /* checkpoint, restore --with-client */
	const char *deadline;          /* checkpoint --deadline SECONDS */
	const char *gpu;               /* restore --gpu N; of a job N,N,... */
	const char *place;             /* restore --job --place N,N,...: numbers of --server */
	const char *to;                /* redirect, migrate --to ADDRESS */
	const char *client_address;    /* migrate, restore --client-address ADDRESS */
	const char *incremental;       /* checkpoint --incremental BASE */
	const char *every, *keep;      /* checkpoint --every 30s --keep 3 */
	const char *server_side;       /* checkpoint, restore --server-side NAME */
	bool to_memory, compress;      /* checkpoint */
	const char *pause_for, *until; /* pause --for 30m --until 18:00 */
	bool follow;                   /* events --follow */
	const char *command;           /* the subcommand */
	char *const *words;            /* what follows it; not owned */
	int word_count;
};

struct ckt_ctl_command {
	const char *name;
	int min_words, max_words;
	/* everything from the first word on is a command of the user's, options included */
	bool rest;
	const char *options; /* space separated long options of its own */
	const char *synopsis;
	const char *help;
	int (*run)(const struct ckt_ctl_args *args);
	const char *note; /* for its own --help; NULL: none */
};

int ckt_ctl_ps(const struct ckt_ctl_args *args);
int ckt_ctl_info(const struct ckt_ctl_args *args);
int ckt_ctl_kill(const struct ckt_ctl_args *args);
int ckt_ctl_stats(const struct ckt_ctl_args *args);
int ckt_ctl_doctor(const struct ckt_ctl_args *args);
int ckt_ctl_checkpoint(const struct ckt_ctl_args *args);
int ckt_ctl_restore(const struct ckt_ctl_args *args);
int ckt_ctl_redirect(const struct ckt_ctl_args *args);
int ckt_ctl_pause(const struct ckt_ctl_args *args);
int ckt_ctl_resume(const struct ckt_ctl_args *args);
int ckt_ctl_events(const struct ckt_ctl_args *args);
int ckt_ctl_migrate(const struct ckt_ctl_args *args);
int ckt_ctl_image(const struct ckt_ctl_args *args);

/*
 * args.c: CKT_EXIT_DONE or CKT_EXIT_USAGE with the reason said. ret_command is NULL with --help or
 * --version alone.
 */
int ckt_ctl_parse(const struct ckt_ctl_command *commands, int argc, char **argv,
	struct ckt_ctl_args *ret_args, const struct ckt_ctl_command **ret_command);

/* What --help says of the options of that subcommand (NULL: none) and of those that all have. */
void ckt_ctl_print_options(const struct ckt_ctl_command *command);

/* ---- server.c */
struct ckt_ctl_server {
	int fd;
	bool is_unix;
	char address[CKT_ADDRESS_TEXT_MAX]; /* for messages */
};

/* An exit code, with the reason in ret_message (cause and remedy in one sentence). */
int ckt_ctl_try_connect(const struct ckt_ctl_args *args, struct ckt_ctl_server *ret_server,
	char *ret_message, size_t message_size);
/* The same, said. */
int ckt_ctl_connect(const struct ckt_ctl_args *args, struct ckt_ctl_server *ret_server);
/*
 * As above, and over the server's UNIX socket where it can be reached from here, so that
 * descriptors can travel.
 */
int ckt_ctl_connect_near(const struct ckt_ctl_args *args, struct ckt_ctl_server *ret_server);
void ckt_ctl_disconnect(struct ckt_ctl_server *server);
/* Ends the connection for whoever waits for an answer over it on another thread, whose it stays. */
void ckt_ctl_hang_up(struct ckt_ctl_server *server);
/*
 * One call; ret_result is zeroed by the caller and freed with xdr_free.  timeout_ms -1: as long as
 * it takes. An exit code; said.
 */
int ckt_ctl_call(struct ckt_ctl_server *server, uint32_t proc, xdrproc_t xdr_args, void *args,
	xdrproc_t xdr_result, void *ret_result, int timeout_ms, int pass_fd);
/* The exit code for what the server answered; a refusal is said. */
int ckt_ctl_result(const ckt_control_result *result);
/*
 * Whether the text has the form of a session or of a prefix of one; CKT_EXIT_NO_SESSION with the
 * reason said.
 */
int ckt_ctl_check_session(const char *text);
/* Connects and checks. */
int ckt_ctl_connect_for(
	const struct ckt_ctl_args *args, const char *session, struct ckt_ctl_server *ret_server);
/*
 * One call over a connection of its own; session: checked as above, NULL for none.  The rest as
 * ckt_ctl_call.
 */
int ckt_ctl_ask(const struct ckt_ctl_args *args, const char *session, uint32_t proc,
	xdrproc_t xdr_args, void *call, xdrproc_t xdr_result, void *ret_result, int timeout_ms);

/* ---- print.c */
const char *ckt_ctl_state_name(unsigned state);
/* "1.5 GiB", "0 B" */
const char *ckt_ctl_size_text(uint64_t bytes, char *buffer, size_t size);
/* "2026-11-21T04:55:00Z" */
const char *ckt_ctl_time_text(int64_t seconds, char *buffer, size_t size);
/* Text of a peer's, with control characters replaced: it goes to a terminal. */
const char *ckt_ctl_clean(const char *text, char *buffer, size_t size);
/* JSON strings must be UTF-8; what is not is replaced. */
json_t *ckt_ctl_json_text(const char *text);
/* Prints and frees; CKT_EXIT_DONE, or CKT_EXIT_REFUSED where stdout is full. */
int ckt_ctl_json_print(json_t *value);
int ckt_ctl_flush(void);

/* ---- memory_images.c: image list, image remove memory:NAME */
int ckt_ctl_kept_list(const struct ckt_ctl_args *args);
int ckt_ctl_kept_remove(const struct ckt_ctl_args *args);

/*
 * ---- client_address.c: writes the file in which the client of the session looks for its address;
 * 0, or -errno with the reason.
 */
int ckt_ctl_state_write(
	const char *session, const char *address, char *ret_message, size_t message_size);
int ckt_ctl_state_write_in(const char *state_directory, const char *session, const char *text,
	char *ret_message, size_t message_size);
/* Makes it and what is above it, for this user alone. */
int ckt_ctl_state_directory(char *path);

/* ---- files.c: directories of images on this host.  Exit codes, said. */
enum { CKT_CTL_PATH_SIZE = 4096 };

int ckt_ctl_refuse(const char *path, const char *why);
/* Either a directory here or a good --server-side NAME. */
int ckt_ctl_check_place(const struct ckt_ctl_args *args, bool here);
/* The name of an image in the server's memory, without "memory:". */
int ckt_ctl_check_kept(const char *name);
/* "memory:NAME" -> NAME, else NULL. */
const char *ckt_ctl_kept_name(const char *place);
/* Without the slashes at the end. */
int ckt_ctl_path_copy(const char *text, char ret_path[CKT_CTL_PATH_SIZE]);
/* Gives back where the last name begins. */
int ckt_ctl_path_parent(const char *path, char ret_parent[CKT_CTL_PATH_SIZE]);
/*
 * Removes what killed processes of ours left under this prefix in a directory; those that live hold
 * a lock.
 */
void ckt_ctl_stale_remove(const char *parent, const char *prefix);
/*
 * A new directory, open and locked, which goes when a signal ends us.  path: ends with six
 * characters, which it changes.  0 or -errno: then there is none.
 */
int ckt_ctl_directory_make(char *path, int *ret_fd);
/* Best effort: what is left over is named to the user. */
void ckt_ctl_tree_remove(int parent, const char *name, unsigned depth);

/*
 * cleanup.c: the directory that SIGINT, SIGTERM and SIGHUP remove before they end us; NULL: none
 * any more.
 */
void ckt_ctl_cleanup_set(const char *path);

/*
 * An image in the making: a directory beside its place, locked as long as we live, which takes the
 * name once all is on the disk.
 */
struct ckt_ctl_partial {
	char path[CKT_CTL_PATH_SIZE], temporary[CKT_CTL_PATH_SIZE + 32];
	int fd;
};
int ckt_ctl_partial_make(const char *path, struct ckt_ctl_partial *ret_partial);
int ckt_ctl_partial_keep(struct ckt_ctl_partial *partial);
void ckt_ctl_partial_drop(struct ckt_ctl_partial *partial);

/* The file `base` of an incremental image names the directory that it builds on.  0 or -errno. */
int ckt_ctl_base_write(int dir_fd, const char *from, const char *base);
bool ckt_ctl_base_read(const char *path, char ret_base[CKT_CTL_PATH_SIZE]);

/*
 * ---- progress.c: a bar on stderr; NULL where that is no terminal, and the others take that.  The
 * server is asked what the session's worker does; an empty session: what is being restored; NULL:
 * there is no server.
 */
struct ckt_ctl_progress;
struct ckt_ctl_progress *ckt_ctl_progress_begin(
	const struct ckt_ctl_args *args, const struct ckt_ctl_server *server, const char *session);
/*
 * From here on it counts what ckt_ctl_progress_add says instead of asking the worker, until the
 * phase is empty again.
 */
void ckt_ctl_progress_phase(
	struct ckt_ctl_progress *progress, const char *phase, uint64_t total_bytes);
void ckt_ctl_progress_add(struct ckt_ctl_progress *progress, uint64_t bytes);
void ckt_ctl_progress_end(struct ckt_ctl_progress *progress);

/*
 * ---- brokers.c: who opens the files of images for workers, we, with our user's rights
 * (checkpoint/format/broker.h).  The directories go to the server as a chain, for the RESTORE2 or
 * PRELOAD that follows; the broker ends with ckt_broker_stop, after that call's answer.
 */
struct ckt_broker;
int ckt_ctl_chain_pass(struct ckt_ctl_server *server, const int *directories, unsigned count,
	struct ckt_broker **ret_broker);

/* ---- transfer.c: images that travel.  Exit codes, said. */
bool ckt_ctl_name_good(const char *name);
int ckt_ctl_stage_make(struct ckt_ctl_server *server, char ret_stage[CKT_CONTROL_NAME_MAX + 1]);
int ckt_ctl_stage_remove(struct ckt_ctl_server *server, const char *stage);
int ckt_ctl_stage_keep(struct ckt_ctl_server *server, const char *stage, const char *name);
/*
 * Between a stage of the server and a directory here; with sync, fetched files are on the disk
 * afterwards.
 */
int ckt_ctl_fetch(const struct ckt_ctl_args *args, struct ckt_ctl_server *server, const char *stage,
	int dir_fd, bool sync, struct ckt_ctl_progress *progress);
int ckt_ctl_send(const struct ckt_ctl_args *args, struct ckt_ctl_server *server, const char *stage,
	int dir_fd, struct ckt_ctl_progress *progress);

/* An image to build on. */
struct ckt_ctl_base {
	char path[CKT_CTL_PATH_SIZE];
	char id[CKT_CONTROL_IMAGE_ID];
};

/* ---- checkpoint.c, restore.c: the parts that others use.  Exit codes, said. */
int ckt_ctl_save_next(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const struct ckt_ctl_base *base, const char *path, char ret_id[CKT_CONTROL_IMAGE_ID]);
/* checkpoint_every.c: checkpoint --every */
int ckt_ctl_every(const struct ckt_ctl_args *args);
int ckt_ctl_parse_deadline(const char *text, unsigned *ret_ms);
/* pause.c: "90", "30m", "2h" */
bool ckt_ctl_parse_duration(const char *text, int64_t *ret_seconds);
int ckt_ctl_parse_gpu(const char *text, int *ret_gpu);
/*
 * directory: where the image's files are made, with this user's rights; -1: call->stage or memory.
 * base_fd: the directory of the image that call->base names, whose manifest goes along where the
 * worker does not remember it; or -1.
 */
int ckt_ctl_save(struct ckt_ctl_server *server, ckt_control_save_args *call, int directory,
	int base_fd, ckt_control_save_res *ret_res);
int ckt_ctl_release(struct ckt_ctl_server *server, const char *session, bool end, bool parked,
	const char *moved_to);
int ckt_ctl_restore_stages(struct ckt_ctl_server *server, int gpu, ckt_control_stage_args *stages,
	unsigned count, char ret_session[CKT_SESSION_ID_SIZE + 1]);
/* The session of an image in a directory here; progress: NULL for none.  Any thread. */
int ckt_ctl_restore_image(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const char *path, int gpu, struct ckt_ctl_progress *progress,
	char ret_session[CKT_SESSION_ID_SIZE + 1]);
/*
 * The same in parts, where something comes between the taking of an image and its becoming a
 * session: after PRELOAD there is a copy, which is the connection's until with `last` it is the
 * session.  path: read here; sent to a server that takes no descriptors.
 */
struct ckt_ctl_passing;
int ckt_ctl_passing_open(const struct ckt_ctl_args *args, struct ckt_ctl_server *server,
	const char *path, struct ckt_ctl_progress *progress, struct ckt_ctl_passing **ret_passing);
void ckt_ctl_passing_close(struct ckt_ctl_passing *passing);
/* copy: empty at first; gets the name of the copy, with `last` the session's. */
int ckt_ctl_passing_preload(struct ckt_ctl_passing *passing, struct ckt_ctl_server *server, int gpu,
	bool last, char copy[CKT_SESSION_ID_SIZE + 1]);
/*
 * What a restore or a move means to the client: its file is written where it is ours to write, else
 * the line to run there is printed.
 */
void ckt_ctl_tell_client(
	const struct ckt_ctl_args *args, struct ckt_ctl_server *server, const char *session);
/* The text of the address at which clients on other hosts reach the server. */
int ckt_ctl_public_address(struct ckt_ctl_server *server, char *ret_text, size_t text_size);
