/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of cricket-server and what they share.  One thread; see main.c for the process model.
 */
#pragma once

#include <limits.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>

#include "rpc/identity.h"
#include "rpc/net.h"
#include "rpc/session.h"
#include "rpc/worker.h"
#include "server/daemon/log_limited.h"
#include "server/daemon/loop.h"
#include "server/daemon/nvml/driver_probe.h"
#include "server/daemon/options.h"
#include "server/daemon/peer/drain.h"
#include "server/daemon/peer/record_stream.h"
#include "server/daemon/policy/certificates.h"
#include "server/daemon/policy/ledger.h"
#include "server/daemon/policy/quantum.h"
#include "server/daemon/policy/tokens.h"
#include "server/daemon/policy/wait_queue.h"
#include "server/daemon/peer/replace.h"
#include "server/daemon/decision_events.h"
#include "server/daemon/session/scheduler.h"
#include "server/daemon/session/spawn_proc.h"
#include "server/daemon/session/worker_bounds.h"

struct ckt_admission;
struct ckt_audit;
struct ckt_automatic;
struct ckt_replicator;
struct ckt_compiler;
struct ckt_gpu_health;
struct ckt_image_keys;
struct ckt_policy;
struct ckt_peer;
struct ckt_session;
struct ckt_memory_image;
struct ckt_metrics_server;
struct ckt_module_cache;
struct ckt_mps;
struct ckt_nvml;
struct ckt_stage;
struct ckt_tls_process;
struct ckt_uid_groups;
struct ckt_warm_workers;

enum {
	CKT_PATH_MAX = 4096,
	CKT_USER_GROUPS_MAX = 256,
};

/* Who the workers run as. */
struct ckt_worker_user {
	bool change; /* false: as the server itself */
	char name[64];
	uid_t uid;
	gid_t gid;
	gid_t groups[CKT_USER_GROUPS_MAX];
	int group_count;
	int user_namespace; /* in which it is; 0: the server's (user_namespace.h) */
	bool keeps_groups;  /* the server's, which that namespace cannot name */
};

enum { CKT_LIBRARY_VARIABLES = 8 };

struct ckt_listener {
	struct ckt_source source;
	struct ckt_server *server;
	char asked[CKT_ADDRESS_TEXT_MAX]; /* as the option says */
	char text[CKT_ADDRESS_TEXT_MAX];  /* as bound */
};

struct ckt_server {
	struct ckt_options options;
	struct ckt_loop loop;
	struct ckt_token token; /* of --token-file */
	struct ckt_tokens tokens;
	/* of peers; without TLS there are none */
	struct ckt_certificates certificates;
	struct ckt_token key; /* see server_key.h */
	time_t key_made;
	uint8_t key_name[CKT_KEY_NAME_SIZE];
	struct ckt_image_keys *image_keys; /* of --image-key, see image_mac.h; NULL: none */
	struct ckt_driver_info driver;
	unsigned gpus[CKT_DEVICES_MAX]; /* as --gpus; none: all */
	unsigned gpu_count;
	/* of a worker's environment; owned; see libraries.c */
	char *library_variables[CKT_LIBRARY_VARIABLES];
	unsigned library_variable_count;
	char inside_variable[CKT_PATH_MAX + 16];
	/* the libcuda.so.1 of workers' libraries; empty: none */
	char inside_path[CKT_PATH_MAX];
	struct ckt_worker_user user; /* with --uid-range: an example of them */
	/* as --user says: of the process that compiles, which is no owner's */
	struct ckt_worker_user compiler_user;
	struct ckt_uid_groups *uid_groups; /* see uid_group.h */
	bool mounts;                       /* workers get a mount namespace; see spawn_mounts.h */
	struct ckt_spawn_proc proc;        /* workers get a /proc of their own; see spawn_proc.h */
	bool own_network, own_sockets;     /* what a group's workers get; see group_domain.h */
	bool hosts_network; /* auto: this host offers groups no network of their own */
	struct ckt_group_domain *group_domains;
	char worker_path[CKT_PATH_MAX];
	char cgroup_dir[CKT_PATH_MAX]; /* empty: none, see worker_cgroup.h */
	char cgroup_text[CKT_PATH_MAX + 128];
	char socket_path[CKT_PATH_MAX];
	char socket_dir[CKT_PATH_MAX]; /* socket_path + ".d" */
	char host[256];
	time_t started;

	struct ckt_listener listeners[CKT_LISTEN_MAX + 1];
	unsigned listener_count;
	struct ckt_replace replace;                        /* see replace.h */
	struct ckt_listener inherited[CKT_LISTEN_MAX + 1]; /* from the server before */
	unsigned inherited_count;
	struct ckt_drain drain; /* see drain.h */
	int lock_fd;
	struct rlimit descriptors; /* as we were started: the workers' */
	bool socket_bound, address_file_written;

	struct ckt_session *sessions; /* sorted by id */
	unsigned session_count;
	uint64_t session_serial;                   /* the last one used */
	struct ckt_peer *peers_first, *peers_last; /* oldest first */
	unsigned peers_waiting;
	struct ckt_ledger ledger;
	struct ckt_limit_table limits_set; /* by cricketctl, see limit_store.h */
	uint64_t lease_questions;          /* asked so far, see lease.h */
	struct ckt_turn_gpu *turns;        /* see turn.h; NULL: none yet */
	struct ckt_mps *mps;               /* see mps.h; NULL: out of memory */
	struct ckt_wait_queue waits;       /* see memory_wait.h */
	struct ckt_timer wait_timer;
	struct ckt_scheduler scheduler;             /* see scheduler.h */
	struct ckt_decision_events decision_events; /* see decision_events.h */
	enum ckt_when_full when_full;               /* --when-full */
	bool swap_told;
	bool swaps;                 /* there is swap memory, so that sessions can be swapped out */
	struct ckt_quantum quantum; /* see session/quanta.h */
	struct ckt_together *togethers; /* see session/together.h */
	struct ckt_timer quantum_timer;
	const struct ckt_policy *policy; /* chosen in main.c; see policy.h */
	struct ckt_admission *admission; /* see admission.c; NULL until somebody connects */
	unsigned descriptor_count;       /* that the server may have open; 0: not known */
	struct ckt_log_bucket log_buckets[CKT_LIMITS];
	struct ckt_timer log_timer;
	struct ckt_audit *audit;            /* NULL without --audit */
	struct ckt_metrics_server *metrics; /* NULL without --metrics */

	struct ckt_stage *stages;
	char image_dir[CKT_PATH_MAX];
	int image_dir_fd;
	struct ckt_memory_image *kept; /* images in memory */
	struct ckt_nvml *nvml;         /* see nvml.c; NULL until somebody asks */
	struct ckt_gpu_health *health; /* see nvml/gpu_health.h; NULL: nobody samples it */
	struct ckt_warm_workers *warm; /* see warm_workers.h; NULL: none */
	struct ckt_tls_process *tls;   /* see tls/tls_process.h; NULL: no TLS */
	struct ckt_compiler *compiler; /* see compiler_process.h; NULL: workers do it */

	struct ckt_module_cache *module_cache; /* NULL: none */
	struct ckt_automatic *automatic;       /* see durable/automatic.h; NULL: no images */
	struct ckt_replicator *replicator;     /* see durable/replica.h; NULL: no replicas */

	struct ckt_source signals;
	struct ckt_worker_bounds bounds; /* see worker_bounds.h */
	struct ckt_timer marks_timer, memory_timer;
	bool memory_low[CKT_DEVICES_MAX]; /* was told */
	struct ckt_timer stop_timer, lonely_timer;
	bool stopping, killing;
	unsigned term_saves; /* images that are being written because of SIGTERM */
};

/* main.c: the number of sessions changed while stopping. */
void ckt_server_session_gone(struct ckt_server *server);
