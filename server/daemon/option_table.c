/* SPDX-License-Identifier: Apache-2.0 */
/* The options of cricket-server; see option_table.h. */
#include "server/daemon/option_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/size_text.h"
#include "rpc/net.h"
#include "server/daemon/audit/audit.h"
#include "server/daemon/durable/automatic_option.h"
#include "server/daemon/durable/replica.h"
#include "server/daemon/options.h"
#include "server/daemon/policy/ledger.h"
#include "server/daemon/policy/wait_policy.h"
#include "server/daemon/session/uid_range.h"
#include "server/daemon/session/warm_workers.h"

static int check_address(const char *value)
{
	struct ckt_address address;
	char message[CKT_OPTION_MESSAGE_MAX];
	if (strcmp(value, "none") == 0)
		return 0;
	if (ckt_address_parse(value, &address, message, sizeof message) ||
		address.type != CKT_ADDRESS_TCP)
		return -EINVAL;
	return 0;
}

static int check_path(const char *value)
{
	return *value ? 0 : -EINVAL;
}

static int check_absolute(const char *value)
{
	return *value == '/' ? 0 : -EINVAL;
}

static int check_on_term(const char *value)
{
	return strncmp(value, "checkpoint:/", 12) == 0 ? 0 : -EINVAL;
}

static int check_automatic(const char *value)
{
	unsigned seconds;
	bool asked;
	return ckt_automatic_parse(value, &seconds, &asked);
}

static int check_replicate(const char *value)
{
	struct ckt_address address;
	char problem[512];
	return ckt_address_parse(value, &address, problem, sizeof problem) ? -EINVAL : 0;
}

static int check_lease(const char *value)
{
	char *end;
	unsigned long number = strtoul(value, &end, 10);
	number *= *end == 'm' ? 60 : *end == 'h' ? 3600 : 1;
	return number >= CKT_REPLICA_LEASE_MIN_S && number <= CKT_REPLICA_LEASE_MAX_S ? 0 : -EINVAL;
}

static int check_positive(const char *value)
{
	return strspn(value, "0") == strlen(value) ? -EINVAL : 0;
}

static int check_driver(const char *value)
{
	return strcmp(value, "auto") == 0 || strcmp(value, "soft") == 0 ? 0 : check_absolute(value);
}

static int check_directories(const char *value)
{
	for (const char *p = value; *p; p += strcspn(p, ":") + (p[strcspn(p, ":")] == ':'))
		if (*p != '/')
			return -EINVAL;
	return *value ? 0 : -EINVAL;
}

static int check_gpus(const char *value)
{
	unsigned gpus[CKT_DEVICES_MAX], count;
	return ckt_options_gpus_parse(value, gpus, &count);
}

static int check_budgets(const char *value)
{
	uint64_t budgets[CKT_DEVICES_MAX];
	return ckt_ledger_budgets_parse(value, budgets);
}

static int check_when_full(const char *value)
{
	enum ckt_when_full when_full;
	return ckt_when_full_parse(value, &when_full);
}

static int check_share(const char *value)
{
	enum ckt_share_mode mode;
	return ckt_share_mode_parse(value, &mode);
}

static int check_wait_policy(const char *value)
{
	struct ckt_wait_external ignored;
	return ckt_wait_policy_find(value) || !ckt_wait_external_parse(value, &ignored) ? 0
											: -EINVAL;
}

static int check_mode(const char *value)
{
	static const char *const modes[] = {"auto", "on", "off"};
	for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
		if (strcmp(value, modes[i]) == 0)
			return 0;
	return -EINVAL;
}

static int check_network(const char *value)
{
	return strcmp(value, "group") == 0 ? 0 : check_mode(value);
}

static int check_level(const char *value)
{
	enum ckt_log_level level;
	return ckt_log_level_parse(value, &level);
}

static int check_audit(const char *value)
{
	return strcmp(value, CKT_AUDIT_JOURNAL) == 0 ? 0 : check_absolute(value);
}

static int check_metrics(const char *value)
{
	struct ckt_address address;
	char message[CKT_OPTION_MESSAGE_MAX];
	if (ckt_address_parse(value, &address, message, sizeof message))
		return -EINVAL;
	return address.type == CKT_ADDRESS_TCP || address.type == CKT_ADDRESS_UNIX ? 0 : -EINVAL;
}

static int check_log(const char *value)
{
	static const char *const places[] = {"auto", "stderr", "journal"};
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
		if (strcmp(value, places[i]) == 0)
			return 0;
	return -EINVAL;
}

static int check_module_cache(const char *value)
{
	return strcmp(value, "off") == 0 ? 0 : check_absolute(value);
}

static int check_image_key(const char *value)
{
	return strcmp(value, "server-key") == 0 ? 0 : check_absolute(value);
}

static int check_uid_range(const char *value)
{
	struct ckt_uid_range range;
	return ckt_uid_range_parse(value, &range);
}

/* Below, copies of two directions would wait for each other's pieces; above, they gain nothing. */
static int check_staging(const char *value)
{
	uint64_t bytes;
	return ckt_size_parse(value, &bytes) || bytes < (uint64_t)8 << 20 ||
			bytes > (uint64_t)4 << 30
		? -EINVAL
		: 0;
}

static int check_warm(const char *value)
{
	size_t digits = strspn(value, "0123456789");
	return !digits || digits > 2 || value[digits] || atoi(value) > CKT_WARM_MAX ? -EINVAL : 0;
}

#define AT(member) offsetof(struct ckt_options, member)

const struct ckt_server_option ckt_server_options[CKT_SERVER_OPTIONS] = {
	{{"listen", "HOST:PORT",
		 "TCP address to listen on, port 0 for any free one; may be given several times; none, the default: no TCP, the UNIX socket alone",
		 CKT_VALUE_TEXT, "none"},
		CKT_SERVER_OPTION_LIST, AT(listen), check_address,
		"write host:port, [v6-address]:port, 0.0.0.0:port for every interface, or none"},
	{{"address-file", "PATH", "write the addresses that clients can use to PATH, one a line",
		 CKT_VALUE_FILE},
		CKT_SERVER_OPTION_TEXT, AT(address_file), check_path,
		"give the path of a file to write"},
	{{"socket", "PATH",
		 "UNIX socket; sessions keep theirs in PATH.d (default /run/cricket/socket for root, else $XDG_RUNTIME_DIR/cricket/socket)",
		 CKT_VALUE_FILE},
		CKT_SERVER_OPTION_TEXT, AT(socket), check_absolute, "give an absolute path"},
	{{"driver", "soft|auto|PATH",
		 "CUDA driver of the sessions (default auto: the machine's libcuda.so.1 if it finds a GPU, else the soft GPU)",
		 CKT_VALUE_FILE, "auto soft"},
		CKT_SERVER_OPTION_TEXT, AT(driver), check_driver,
		"write soft, auto or the absolute path of a libcuda.so.1"},
	{{"library-path", "DIR:DIR",
		 "where the genuine libraries (cuBLAS, cuFFT ...) are looked for before CUDA toolkits, Python's packages and the loader's directories",
		 CKT_VALUE_DIRECTORY},
		CKT_SERVER_OPTION_TEXT, AT(library_path), check_directories,
		"give absolute paths, with colons between them"},
	{{"gpus", "LIST", "GPUs that sessions get (default all)", CKT_VALUE_TEXT, "all"},
		CKT_SERVER_OPTION_TEXT, AT(gpus), check_gpus,
		"write all, or the driver's numbers such as 0,2-3"},
	{{"gpu-memory", "SIZE",
		 "what all sessions may take of a GPU together, their contexts included; or GPU=SIZE,... (default: what the card has)"},
		CKT_SERVER_OPTION_TEXT, AT(gpu_memory), check_budgets,
		"write a size of 2M or more, or GPUs with their sizes such as 0=40G,1=16G"},
	{{"limits", "FILE",
		 "limits of users, containers, jobs and tokens, after those in /etc/cricket/limits.d/*.conf; read again at SIGHUP",
		 CKT_VALUE_FILE},
		CKT_SERVER_OPTION_TEXT, AT(limits), check_absolute, "give an absolute path"},
	{{"when-full", "MODE",
		 "what becomes of an allocation for which its GPU has no room now: fail, the default: out of memory; wait: it waits until others free memory; swap: the same, and sessions that need the GPU least are swapped out for it",
		 CKT_VALUE_TEXT, "fail wait swap"},
		CKT_SERVER_OPTION_TEXT, AT(when_full), check_when_full, "write fail, wait or swap"},
	{{"share", "MODE",
		 "how sessions of one owner share a GPU: time, the default: one after the other; space: at the same time, by an MPS of their own",
		 CKT_VALUE_TEXT, "time space"},
		CKT_SERVER_OPTION_TEXT, AT(share), check_share, "write time or space"},
	{{"wait-policy", "NAME",
		 "which allocation that waits is next: fifo, the default; best-fit, recent-use or random; external[:NAME][,SECONDS]: a scheduler decides, and policy NAME where it does not within SECONDS (default fifo and 1)",
		 CKT_VALUE_TEXT, "fifo best-fit recent-use random external"},
		CKT_SERVER_OPTION_TEXT, AT(wait_policy), check_wait_policy,
		"write fifo, best-fit, recent-use, random, or external such as external:fifo,0.5"},
	{{"wait-timeout", "SECONDS",
		 "an allocation that waits so long is out of memory (default 0: none is)"},
		CKT_SERVER_OPTION_COUNT, AT(wait_timeout), NULL,
		"write a whole number of seconds, or 0 for no limit"},
	{{"swap-memory", "SIZE",
		 "host memory that swapped sessions may take together (default 0: none)"},
		CKT_SERVER_OPTION_SIZE, AT(swap_memory), NULL,
		"write a size such as 512M or 64G, or 0 for none"},
	{{"swap", "DIR", "where sessions are swapped to when --swap-memory is full",
		 CKT_VALUE_DIRECTORY},
		CKT_SERVER_OPTION_TEXT, AT(swap), check_absolute, "give an absolute path"},
	{{"max-wait", "SECONDS",
		 "with when-full swap, the longest wait for the GPU's memory in a round of sessions that do not fit together (default 60)"},
		CKT_SERVER_OPTION_COUNT, AT(max_wait), check_positive,
		"write a whole number of seconds above 0"},
	{{"idle-context", "TIME",
		 "a session that has nothing to do for so long gives up its worker, and comes back from an image with its next command (default 0: none does)"},
		CKT_SERVER_OPTION_SECONDS, AT(idle_context), NULL,
		"write a time such as 30s, 10m or 1h, or 0 for never"},
	{{"idle-memory", "TIME",
		 "a session that has nothing to do for so long is swapped out until its next command (default 0: none is)"},
		CKT_SERVER_OPTION_SECONDS, AT(idle_memory), NULL,
		"write a time such as 30s, 10m or 1h, or 0 for never"},
	{{"session-memory", "SIZE",
		 "device memory that one session may take (default 0: no limit)"},
		CKT_SERVER_OPTION_SIZE, AT(session_memory), NULL,
		"write a size such as 512M or 8G, or 0 for no limit"},
	{{"session-host-memory", "SIZE",
		 "memory of this host that one session may take for modules, graphs, replies and the like (default a quarter of the host's, 8G at least; 0: no limit)"},
		CKT_SERVER_OPTION_SIZE, AT(session_host_memory), NULL,
		"write a size such as 512M or 8G, or 0 for no limit"},
	{{"worker-memory", "SIZE",
		 "private memory of this host that one worker may map, whatever it does (default 0: no limit)"},
		CKT_SERVER_OPTION_SIZE, AT(worker_memory), NULL,
		"write a size such as 16G, or 0 for no limit"},
	{{"staging", "SIZE",
		 "pinned memory of this host that large copies of one session pass through (default 40M)"},
		CKT_SERVER_OPTION_SIZE, AT(staging), check_staging, "write a size from 8M to 4G"},
	{{"warm", "N",
		 "workers of each GPU that are started before anybody asks for a session (default 1 with NVIDIA's driver, 0 on the soft GPU)"},
		CKT_SERVER_OPTION_TEXT, AT(warm), check_warm, "write a number from 0 to 64"},
	{{"max-sessions", "N", "sessions at one time (default 256; 0: no limit)"},
		CKT_SERVER_OPTION_COUNT, AT(max_sessions), NULL,
		"write a whole number, or 0 for no limit"},
	{{"max-sessions-per-user", "N",
		 "sessions of one user, of the token or of one anonymous address (default 0: three quarters of --max-sessions)"},
		CKT_SERVER_OPTION_COUNT, AT(max_sessions_per_user), NULL,
		"write a whole number, or 0 for three quarters of --max-sessions"},
	{{"max-waiting", "N", "connections that have not said hello (default 1024)"},
		CKT_SERVER_OPTION_COUNT, AT(max_waiting), check_positive,
		"write a whole number above 0"},
	{{"max-waiting-per-peer", "N",
		 "of those, from one address or user (default 0: half of them)"},
		CKT_SERVER_OPTION_COUNT, AT(max_waiting_per_peer), NULL,
		"write a whole number, or 0 for half of --max-waiting"},
	{{"max-connections-per-user", "N",
		 "connections of cricketctl, and of images' files, of one user; half of them may wait for events (default 128; 0: no limit)"},
		CKT_SERVER_OPTION_COUNT, AT(max_connections_per_user), NULL,
		"write a whole number, or 0 for no limit"},
	{{"max-stages-per-user", "N",
		 "images of one user that travel at one time (default 128; 0: no limit)"},
		CKT_SERVER_OPTION_COUNT, AT(max_stages_per_user), NULL,
		"write a whole number, or 0 for no limit"},
	{{"image-space", "SIZE",
		 "bytes of one user's images in --image-dir (default 0: half of the file system)"},
		CKT_SERVER_OPTION_SIZE, AT(image_space), NULL,
		"write a size such as 500G, or 0 for half of the file system"},
	{{"max-delay", "SECONDS", "longest wait for the answer to a wrong token (default 10)"},
		CKT_SERVER_OPTION_COUNT, AT(max_delay), NULL, "write a whole number of seconds"},
	{{"log-burst", "N",
		 "messages of one kind about strangers at once, then one a second (default 10)"},
		CKT_SERVER_OPTION_COUNT, AT(log_burst), check_positive,
		"write a whole number above 0"},
	{{"audit", "FILE|journal",
		 "append a JSON line to FILE, or to systemd's journal, for each control call, refusal and session",
		 CKT_VALUE_FILE, "journal"},
		CKT_SERVER_OPTION_TEXT, AT(audit), check_audit,
		"give an absolute path, or write journal"},
	{{"token-file", "FILE", "TCP clients must know this token (CRICKET_TOKEN_FILE)",
		 CKT_VALUE_FILE},
		CKT_SERVER_OPTION_TEXT, AT(token_file), check_path,
		"give the path of a file with at least 16 random characters, mode 0600"},
	{{"tokens", "FILE",
		 "TCP clients may show one of the named tokens in FILE, which 'cricketctl token' edits; read again when it changes",
		 CKT_VALUE_FILE},
		CKT_SERVER_OPTION_TEXT, AT(tokens), check_absolute, "give an absolute path"},
	{{"tls-certificate", "FILE",
		 "talk TLS with TCP clients, with this certificate and its chain (PEM); read again when it changes (default: cert.pem, key.pem and ca.pem in /etc/cricket/tls, where they are)",
		 CKT_VALUE_FILE},
		CKT_SERVER_OPTION_TEXT, AT(tls_certificate), check_absolute,
		"give an absolute path"},
	{{"tls-key", "FILE", "the key of that certificate (PEM), mode 0600", CKT_VALUE_FILE},
		CKT_SERVER_OPTION_TEXT, AT(tls_key), check_absolute, "give an absolute path"},
	{{"tls-ca", "FILE", "TCP clients must show a certificate of one of these authorities (PEM)",
		 CKT_VALUE_FILE},
		CKT_SERVER_OPTION_TEXT, AT(tls_ca), check_absolute, "give an absolute path"},
	{{"insecure", NULL, "let TCP clients in that show no token"}, CKT_SERVER_OPTION_FLAG,
		AT(insecure), NULL, "write yes or no"},
	{{"user", "NAME",
		 "user of the workers when started by root (default cricket, or nobody where there is no such user)",
		 CKT_VALUE_USER},
		CKT_SERVER_OPTION_TEXT, AT(user), check_path, "give the name of a user"},
	{{"uid-range", "FIRST-LAST",
		 "user ids for workers, one for each owner of sessions, none of them anybody's; without root, subordinate ids of the server's user"},
		CKT_SERVER_OPTION_TEXT, AT(uid_range), check_uid_range,
		"write two numbers from 1000 on, the smaller one first, such as 200000-265535"},
	{{"cage", "MODE", "on, the default: workers may do only what they need; off: for debuggers",
		 CKT_VALUE_TEXT, "on off"},
		CKT_SERVER_OPTION_TEXT, AT(cage), check_mode, "write auto, on or off"},
	{{"worker-network", "MODE",
		 "group, the default with NVIDIA's driver: the workers of one owner have a network of their own, for NCCL; on: workers in a cage may use the host's, as NCCL between servers must; off, the default on the soft GPU: none",
		 CKT_VALUE_TEXT, "on off group"},
		CKT_SERVER_OPTION_TEXT, AT(worker_network), check_network,
		"write auto, on, off or group"},
	{{"grace", "SECONDS", "time that running sessions get after SIGTERM (default 10)"},
		CKT_SERVER_OPTION_COUNT, AT(grace), NULL, "write a whole number of seconds"},
	{{"claim-timeout", "SECONDS",
		 "time that a restored session waits for its client (default 300)"},
		CKT_SERVER_OPTION_COUNT, AT(claim_timeout), NULL,
		"write a whole number of seconds"},
	{{"drain", "TIME",
		 "time that a kernel may run on after its session's turn on a shared GPU (default 5s)"},
		CKT_SERVER_OPTION_SECONDS, AT(drain), NULL, "write a time such as 5s, 10m or 1h"},
	{{"image-dir", "DIR",
		 "images that travel or stay here (default: the socket's name with .images), mode 0700",
		 CKT_VALUE_DIRECTORY},
		CKT_SERVER_OPTION_TEXT, AT(image_dir), check_absolute, "give an absolute path"},
	{{"image-key", "FILE",
		 "vouch for images that are saved here, and restore no others; may be given several times: the first key writes, all read; server-key: the key that the server has anyway",
		 CKT_VALUE_FILE, "server-key"},
		CKT_SERVER_OPTION_LIST, AT(image_key), check_image_key,
		"give the absolute path of a file from 'cricketctl image-key make', or write server-key"},
	{{"image-memory", "SIZE",
		 "host memory that images kept there may take together (default 0: half of the host's)"},
		CKT_SERVER_OPTION_SIZE, AT(image_memory), NULL,
		"write a size such as 512M or 8G, or 0 for half of the host's memory"},
	{{"module-cache", "DIR",
		 "modules of programs are kept here, apart by owner, and not sent again (default: modules in /var/cache/cricket for root, else in ~/.cache/cricket); off: nowhere",
		 CKT_VALUE_DIRECTORY, "off"},
		CKT_SERVER_OPTION_TEXT, AT(module_cache), check_module_cache,
		"give an absolute path, or write off"},
	{{"module-cache-size", "SIZE", "bytes of one owner's modules there (default 1G)"},
		CKT_SERVER_OPTION_SIZE, AT(module_cache_size), check_positive,
		"write a size such as 512M or 8G; --module-cache off keeps none"},
	{{"hooks", "DIR", "executables that are run for every event of a session",
		 CKT_VALUE_DIRECTORY},
		CKT_SERVER_OPTION_TEXT, AT(hooks), check_absolute, "give an absolute path"},
	{{"on-term", "ACTION", "checkpoint:DIR writes every session to DIR/SESSION at SIGTERM"},
		CKT_SERVER_OPTION_TEXT, AT(on_term), check_on_term,
		"write checkpoint: and the absolute path of a directory"},
	{{"auto-checkpoint", "TIME",
		 "an image of each session that has done something, every TIME, from which the session comes back when its worker died; TIME,asked: of sessions whose client has CRICKET_DURABLE=1 alone"},
		CKT_SERVER_OPTION_TEXT, AT(auto_checkpoint), check_automatic,
		"write a time such as 30s or 5m, and ,asked behind it if clients are to ask"},
	{{"auto-dir", "DIR",
		 "where these images lie, which several servers may share (default: below --image-dir), mode 0700",
		 CKT_VALUE_DIRECTORY},
		CKT_SERVER_OPTION_TEXT, AT(auto_dir), check_absolute, "give an absolute path"},
	{{"auto-encrypt", NULL, "encrypt these images by the first --image-key"},
		CKT_SERVER_OPTION_FLAG, AT(auto_encrypt), NULL, "write yes or no"},
	{{"replicate", "HOST",
		 "send these images to that server, too, from which a session comes back when this server is lost"},
		CKT_SERVER_OPTION_TEXT, AT(replicate), check_replicate,
		"write an address such as gpu2 or gpu2:7350"},
	{{"replicate-token", "FILE", "the token of an administrator there", CKT_VALUE_FILE},
		CKT_SERVER_OPTION_TEXT, AT(replicate_token), check_absolute,
		"give an absolute path"},
	{{"replicate-lease", "TIME",
		 "a session that has not reached its replica for so long ends here, and may start there (default 20s)"},
		CKT_SERVER_OPTION_SECONDS, AT(replicate_lease), check_lease,
		"write a time from 2s to 1h"},
	{{"metrics", "ADDRESS",
		 "serve OpenMetrics for Prometheus at /metrics, and /healthz and /readyz, over HTTP: HOST:PORT or unix:PATH"},
		CKT_SERVER_OPTION_TEXT, AT(metrics), check_metrics,
		"write an address such as 127.0.0.1:9435 or unix:/run/cricket/metrics"},
	{{"insecure-plaintext", NULL,
		 "without --tls-certificate, let --listen be where other hosts can reach it; and let --metrics be there"},
		CKT_SERVER_OPTION_FLAG, AT(insecure_plaintext), NULL, "write yes or no"},
	{{"log", "WHERE",
		 "stderr; journal: systemd's, with sessions and owners as fields; auto, the default: the journal if stderr leads there",
		 CKT_VALUE_TEXT, "auto stderr journal"},
		CKT_SERVER_OPTION_TEXT, AT(log), check_log, "write auto, stderr or journal"},
	{{"log-level", "LEVEL", "error, warning, info, debug or quiet (default info)",
		 CKT_VALUE_TEXT, "error warning info debug quiet"},
		CKT_SERVER_OPTION_TEXT, AT(log_level), check_level,
		"write error, warning, info, debug or quiet"},
	{{"config", "FILE", "read options from FILE; the command line goes before it",
		 CKT_VALUE_FILE},
		CKT_SERVER_OPTION_TEXT, AT(config), check_path, "give the path of an INI file",
		true},
	{{"replace", NULL,
		 "take the place of the server that runs on the same socket, with its sessions; no connection is refused"},
		CKT_SERVER_OPTION_FLAG, AT(replace), NULL, "", true},
	{{"print-config", NULL, "print the options in effect as such a file, and end"},
		CKT_SERVER_OPTION_FLAG, AT(print_config), NULL, "", true},
	{{"version", NULL, "print the version, and end"}, CKT_SERVER_OPTION_FLAG, AT(version), NULL,
		"", true},
	{{"help", NULL, "print this, and end"}, CKT_SERVER_OPTION_FLAG, AT(help), NULL, "", true},
};
