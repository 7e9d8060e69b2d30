/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRIU, through `criu swrk`: one process of it for each request, a socket between, messages in
 * protocol buffers (criu_message.h).
 *
 * Errors: -errno with a sentence, cause and remedy, in ret_message.  Threading: the main thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	CKT_CRIU_VERSION_MIN = 40100, /* 4.1.0 */
	CKT_CRIU_TEXT = 32,
	CKT_CRIU_INHERIT_MAX = 3,
	CKT_CRIU_STALL_MS = 60000,
};

struct ckt_criu {
	char path[4096];
	unsigned version;  /* major * 10000 + minor * 100 + sublevel */
	bool unprivileged; /* with CAP_CHECKPOINT_RESTORE instead of root's rights */
	/*
	 * how long a dump or restore may make no progress before it is ended; 0: CKT_CRIU_STALL_MS
	 */
	unsigned stall_ms;
};

/*
 * The facts that decide whether CRIU can work for us; separate from looking them up, for the tests.
 */
struct ckt_criu_rights {
	bool root;
	uint64_t effective, ambient; /* as in /proc/self/status */
	bool file_capabilities;      /* of criu itself */
};

struct ckt_criu_inherit {
	/* what readlink() returned for the descriptor in the process that was saved */
	char key[64];
	int fd; /* our descriptor that replaces it */
};

/* Checks what CRIU needs: present, new enough, allowed, and supported by the kernel. */
int ckt_ctl_criu_find(struct ckt_criu *ret_criu, char *ret_message, size_t message_size);

/* The pieces of find. */
int ckt_ctl_criu_version_check(
	unsigned version, const char *path, char *ret_message, size_t message_size);
int ckt_ctl_criu_rights_check(const struct ckt_criu_rights *rights, const char *path,
	bool *ret_unprivileged, char *ret_message, size_t message_size);
const char *ckt_ctl_criu_version_text(unsigned version, char ret_text[CKT_CRIU_TEXT]);
/* The first error in a log of CRIU's, without time and place; empty if there is none. */
void ckt_ctl_criu_log_error(const char *path, char *ret_text, size_t text_size);

/* Of the files in a directory. */
uint64_t ckt_ctl_criu_image_bytes(int directory);

/* Called now and then, while CRIU works, with how much it has moved. */
struct ckt_criu_progress {
	void (*moved)(uint64_t bytes, void *data);
	void *data;
};

/*
 * Saves the process and all its descendants into the directory.  keep_running: they continue
 * afterwards. Otherwise they are killed. Before that, with the image complete and all of them
 * stopped, written(data) is called: if it returns an error, they continue after all.
 */
int ckt_ctl_criu_dump(const struct ckt_criu *criu, pid_t pid, int images_fd, bool keep_running,
	int (*written)(void *data), void *data, const struct ckt_criu_progress *progress,
	char *ret_message, size_t message_size);
/* Removes what a failed restore had made. At most CKT_CRIU_INHERIT_MAX descriptors. */
int ckt_ctl_criu_restore(const struct ckt_criu *criu, int images_fd,
	const struct ckt_criu_inherit *inherit, unsigned inherit_count,
	const struct ckt_criu_progress *progress, pid_t *ret_pid, char *ret_message,
	size_t message_size);
