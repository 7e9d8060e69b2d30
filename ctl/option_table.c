/* SPDX-License-Identifier: Apache-2.0 */
/* The options and subcommands of cricketctl; see command.h and base/option_table.h. */
#include <stddef.h>
#include <stdint.h>

#include "ctl/command.h"
#include "ctl/subcommands.h"

#define EVERYWHERE true
#define OF_SOME false
#define FLAG(member) offsetof(struct ckt_ctl_args, member), SIZE_MAX
#define VALUE(member) SIZE_MAX, offsetof(struct ckt_ctl_args, member)

const struct ckt_ctl_option ckt_ctl_options[] = {
	{{"server", "ADDRESS",
		 "host, host:port, unix:/path or file:PATH (default: REMOTE_GPU_ADDRESS, then the local socket)"},
		EVERYWHERE, VALUE(server)},
	{{"json", NULL, "print JSON"}, EVERYWHERE, FLAG(json)},
	{{"help", NULL, "print this, and end"}, EVERYWHERE, FLAG(help)},
	{{"version", NULL, "print the version, and end"}, EVERYWHERE, FLAG(version)},
	{{"stop", NULL,
		 "end the session once its image is complete; of drain: the server once it has no session"},
		OF_SOME, FLAG(stop)},
	{{"with-client", NULL, "the program's process too, by CRIU"}, OF_SOME, FLAG(with_client)},
	{{"job", "NAME",
		 "all sessions of a job together (restore: DIR that holds them); --server may be given several times"},
		OF_SOME, VALUE(job)},
	{{"deadline", "SECONDS",
		 "how long the GPU may take to finish what it is doing (default 60); of drain: how long all may take"},
		OF_SOME, VALUE(deadline)},
	{{"server-side", "NAME", "an image in the server's --image-dir instead of DIR"}, OF_SOME,
		VALUE(server_side)},
	{{"to-memory", NULL, "keep the image in the memory of the server's host"}, OF_SOME,
		FLAG(to_memory)},
	{{"compress", NULL, "compress the contents with zstd"}, OF_SOME, FLAG(compress)},
	{{"image-key", "FILE",
		 "a key of yours that vouches for images; may be given several times: the first one writes, all read",
		 CKT_VALUE_FILE},
		OF_SOME, VALUE(image_key)},
	{{"encrypt", NULL, "encrypt the image with the first --image-key"}, OF_SOME, FLAG(encrypt)},
	{{"fork", NULL, "a further copy of an image that a session was already restored from"},
		OF_SOME, FLAG(fork)},
	{{"again", NULL,
		 "the server that this image was restored at has lost the session: take it over"},
		OF_SOME, FLAG(again)},
	{{"incremental", "BASE", "write only what changed since that image of the session",
		 CKT_VALUE_DIRECTORY},
		OF_SOME, VALUE(incremental)},
	{{"every", "30s", "a chain of images in DIR, one each time, until the session ends"},
		OF_SOME, VALUE(every)},
	{{"keep", "N", "of --every: images of a chain before a new one begins (default 3)"},
		OF_SOME, VALUE(keep)},
	{{"to", "ADDRESS",
		 "the server where the session goes or is; of drain: several with commas, of which each session gets the least loaded"},
		OF_SOME, VALUE(to)},
	{{"save", "DIR", "of drain: where sessions are saved and ended that could not move",
		 CKT_VALUE_DIRECTORY},
		OF_SOME, VALUE(save)},
	{{"jobs", "N", "of drain: how many sessions move at one time (default 4)"}, OF_SOME,
		VALUE(jobs)},
	{{"undo", NULL, "of drain: the server takes new sessions again"}, OF_SOME, FLAG(undo)},
	{{"gpu", "N", "the GPU that the session's first one becomes"}, OF_SOME, VALUE(gpu)},
	{{"place", "N,N,...",
		 "of restore --job: the number of the --server, from 0, of each session in its order"},
		OF_SOME, VALUE(place)},
	{{"client-address", "ADDRESS", "where the client reaches that server, if elsewhere"},
		OF_SOME, VALUE(client_address)},
	{{"for", "30m", "let it go on by itself after a time (s, m, h, d)"}, OF_SOME,
		VALUE(pause_for)},
	{{"until", "18:00", "let it go on by itself at a time of this clock"}, OF_SOME,
		VALUE(until)},
	{{"follow", NULL, "go on printing what happens"}, OF_SOME, FLAG(follow)},
	{{"output", "FILE", "the file to write", CKT_VALUE_FILE, NULL, 'o'}, OF_SOME,
		VALUE(output)},
	{{"seconds", "N", "how long (default: until Ctrl-C, or the session's end)"}, OF_SOME,
		VALUE(seconds)},
	{{"gpu-time", NULL, "also when the GPU began and ended kernels and copies"}, OF_SOME,
		FLAG(gpu_time)},
	{{"once", NULL, "print one sample as a table, and end"}, OF_SOME, FLAG(once)},
	{{"delay", "SECONDS", "time from one sample to the next, from 0.1 to 3600 (default 1)"},
		OF_SOME, VALUE(delay)},
	{{"tokens", "FILE", "the server's file of tokens (default /etc/cricket/tokens)",
		 CKT_VALUE_FILE},
		OF_SOME, VALUE(tokens)},
	{{"role", "ROLE",
		 "user (the default): controls the own sessions; operator: those of the token's projects; administrator: all",
		 CKT_VALUE_TEXT, "user operator administrator"},
		OF_SOME, VALUE(role)},
	{{"project", "NAME,...",
		 "the token's projects; its sessions belong to the first, and an operator controls the sessions of all"},
		OF_SOME, VALUE(project)},
	{{"expires", "DAY", "the token is valid until that day begins (UTC), such as 2027-01-31"},
		OF_SOME, VALUE(expires)},
	{{"max-sessions", "N", "sessions that the token may have at one time"}, OF_SOME,
		VALUE(max_sessions)},
	{{"session-memory", "SIZE", "device memory that one of its sessions may take"}, OF_SOME,
		VALUE(session_memory)},
	{{"session-host-memory", "SIZE",
		 "memory of the server's host that one of its sessions may take"},
		OF_SOME, VALUE(session_host_memory)},
	{{"dir", "DIR",
		 "the authority's directory (default /etc/cricket/ca for root, else ~/.config/cricket/ca)",
		 CKT_VALUE_DIRECTORY},
		OF_SOME, VALUE(dir)},
	{{"out", "DIR", "where the files go (default: a new directory of that name)",
		 CKT_VALUE_DIRECTORY},
		OF_SOME, VALUE(out)},
	{{"address", "IP,...", "numeric addresses by which clients look for the server"}, OF_SOME,
		VALUE(address)},
	{{"days", "N", "how long it is valid (default 365; an authority 3650)"}, OF_SOME,
		VALUE(days)},
	{{"permit", "NAME,...",
		 "the only domains, addresses and networks for which the authority may sign"},
		OF_SOME, VALUE(permit)},
	{{"fingerprint", "FINGERPRINT", "of the server's key: SHA256: and 43 characters"}, OF_SOME,
		VALUE(fingerprint)},
};
const size_t ckt_ctl_option_count = sizeof ckt_ctl_options / sizeof *ckt_ctl_options;

const struct ckt_ctl_command ckt_ctl_commands[] = {
	{"ps", 0, 0, false, "", "ps", "list sessions", ckt_ctl_ps},
	{"info", 0, 0, false, "", "info", "tell about the server, its driver and its GPUs",
		ckt_ctl_info},
	{"kill", 1, 1, false, "", "kill SESSION", "end a session", ckt_ctl_kill,
		.values = {CKT_VALUE_SESSION}},
	{"stats", 1, 1, false, "", "stats SESSION", "calls of a session, by name", ckt_ctl_stats,
		.values = {CKT_VALUE_SESSION}},
	{"top", 0, 0, false, "once delay", "top [--once] [--delay SECONDS]",
		"watch sessions: what they hold, move, call and wait for", ckt_ctl_top,
		"Keys sort the columns, pause and show details; h tells them.  --json prints one sample, too.\n"},
	{"trace", 1, 1, false, "output seconds gpu-time",
		"trace SESSION -o|--output FILE [--seconds N] [--gpu-time]",
		"record a running session's calls for Perfetto", ckt_ctl_trace,
		.values = {CKT_VALUE_SESSION}},
	{"checkpoint", 1, 2, false,
		"stop with-client deadline server-side compress incremental every keep to-memory job image-key encrypt",
		"checkpoint SESSION DIR|--to-memory [NAME] [--stop] [--with-client] [--incremental BASE]\n"
		"             [--every 30s [--keep 3]] [--compress] [--server-side NAME] [--deadline SECONDS]\n"
		"             [--image-key FILE [--encrypt]]\n"
		"       checkpoint --job NAME DIR [--server ADDRESS ...] [--stop] [--compress] [--deadline SECONDS]\n"
		"             [--image-key FILE [--encrypt]]",
		"write a session to DIR; --stop ends it then", ckt_ctl_checkpoint,
		"Images, those of --every too, do not rescue a program that has gone on since: when its worker dies, an older image of its session\n"
		"is refused.  Use migrate, --stop or --with-client.\n",
		.values = {CKT_VALUE_SESSION, CKT_VALUE_DIRECTORY}},
	{"restore", 0, 1, false,
		"gpu server-side client-address with-client job place image-key fork again",
		"restore DIR|memory:NAME|--server-side NAME [--with-client] [--gpu N] [--client-address ADDRESS]\n"
		"             [--image-key FILE ...] [--again | --fork]\n"
		"       restore --job DIR [--server ADDRESS ...] [--place N,N,...] [--gpu N,N,...] [--client-address ADDRESS]\n"
		"             [--image-key FILE ...] [--again | --fork]",
		"bring a session back from DIR", ckt_ctl_restore, .values = {CKT_VALUE_DIRECTORY}},
	{"redirect", 1, 1, false, "to", "redirect SESSION --to ADDRESS",
		"tell the client on this host where its session lives now", ckt_ctl_redirect,
		.values = {CKT_VALUE_SESSION}},
	{"image", 1, 3, false, "image-key",
		"image show|verify|diff|flatten DIR [DIR], image list, image remove memory:NAME\n"
		"       image show|verify DIR --image-key FILE, image decrypt DIR NEW --image-key FILE",
		"look into images, check them, make one of a chain; those in memory", ckt_ctl_image,
		.values = {CKT_VALUE_TEXT, CKT_VALUE_DIRECTORY, CKT_VALUE_DIRECTORY},
		.first_words = "show verify diff flatten decrypt list remove"},
	{"image-key", 2, 2, false, "image-key",
		"image-key make|show FILE, image-key sign DIR --image-key FILE",
		"keys that vouch for images", ckt_ctl_image_key,
		.values = {CKT_VALUE_TEXT, CKT_VALUE_FILE}, .first_words = "make show sign"},
	{"migrate", 0, 1, false, "to gpu client-address deadline job image-key",
		"migrate SESSION [--to ADDRESS] [--gpu N] [--client-address ADDRESS] [--deadline SECONDS]\n"
		"             [--image-key FILE]\n"
		"       migrate --job NAME --to ADDRESS [--gpu N,N,...] [--client-address ADDRESS] [--deadline SECONDS]",
		"move a running session to another server or GPU", ckt_ctl_migrate,
		.values = {CKT_VALUE_SESSION}},
	{"drain", 0, 0, false, "to deadline stop save jobs undo client-address",
		"drain [--to ADDRESS,...] [--client-address ADDRESS] [--save DIR] [--jobs N] [--deadline SECONDS] [--stop]\n"
		"       drain --undo",
		"move all sessions away and take no new ones, before maintenance", ckt_ctl_drain,
		"Exit status: 0 if no session is left; if some are, 10 and their number, at most 99.\n"},
	{"pause", 1, 1, false, "for until deadline",
		"pause SESSION [--for 30m | --until 18:00] [--deadline SECONDS]",
		"give up a session's GPU memory for a while", ckt_ctl_pause,
		.values = {CKT_VALUE_SESSION}},
	{"resume", 1, 1, false, "", "resume SESSION", "let a paused session go on", ckt_ctl_resume,
		.values = {CKT_VALUE_SESSION}},
	{"swap", 2, 2, false, "deadline", "swap out|in|show SESSION [--deadline SECONDS]",
		"take a session's memory off the GPU until its next command", ckt_ctl_swap,
		.values = {CKT_VALUE_TEXT, CKT_VALUE_SESSION}, .first_words = "out in show"},
	{"events", 0, 0, false, "follow", "events [--follow]", "what happens to sessions",
		ckt_ctl_events},
	{"decide", 1, 3, false, "",
		"decide EVENT grant|refuse REQUEST\n"
		"       decide EVENT wait\n"
		"       decide session=SESSION grant|refuse|swap-out|swap-in|turn|end-turn\n"
		"       decide -",
		"decide, as a scheduler, who gets memory or leaves the GPU", ckt_ctl_decide,
		"EVENT is the number of an event 'choose' of a server with --wait-policy external; its candidates name the REQUESTs.\n"
		"With - it reads one decision a line, and answers each with 'done' or 'refused'.\n",
		.values = {CKT_VALUE_TEXT, CKT_VALUE_TEXT, CKT_VALUE_TEXT}},
	{"place", 1, 1, false, "",
		"place least-loaded|pack|spread --server ADDRESS --server ADDRESS ...",
		"print which of the servers a new program should use, by what they report",
		ckt_ctl_place,
		"least-loaded: the most free memory on a GPU.  pack: the least that still has room.  spread: the fewest sessions for each GPU.\n",
		.first_words = "least-loaded pack spread"},
	{"limit", 1, 13, false, "",
		"limit set session=ID|user=NAME|container=CGROUP|job=NAME|token=NAME [memory=SIZE] [swap=SIZE]\n"
		"             [share=PERCENT] [cap=PERCENT] [class=latency|best-effort] [priority=N] [sessions=N]\n"
		"             [gpus=LIST] [when-full=fail|wait|swap] [share-mode=time|space]\n"
		"             [share-group=NAME|none]\n"
		"       limit show\n"
		"       limit clear session=ID|user=NAME|container=CGROUP|job=NAME|token=NAME",
		"what sessions of one owner may have together", ckt_ctl_limit,
		"What is set lasts over a restart of the server, beside what its files say.\n",
		.values = {CKT_VALUE_TEXT, CKT_VALUE_TEXT, CKT_VALUE_TEXT},
		.first_words = "set show clear"},
	{"token", 1, 2, false,
		"tokens role project expires max-sessions session-memory session-host-memory",
		"token add NAME [--role ROLE] [--project NAME,...] [--expires DAY] [--max-sessions N]\n"
		"             [--session-memory SIZE] [--session-host-memory SIZE] [--tokens FILE]\n"
		"       token list|revoke NAME [--tokens FILE]",
		"the tokens of a server on this host", ckt_ctl_token,
		"The server reads its file of tokens again by itself.  'add' prints the token: it is kept nowhere else.\n",
		.values = {CKT_VALUE_TEXT, CKT_VALUE_TEXT}, .first_words = "add list revoke"},
	{"certificate", 1, 10, false, "dir out address days permit fingerprint role project",
		"certificate init [--dir DIR] [--days N] [--permit NAME,...]\n"
		"       certificate issue server NAME... [--address IP,...] [--days N] [--out DIR] [--dir DIR]\n"
		"       certificate issue client USER [--role ROLE] [--project NAME,...] [--days N] [--out DIR] [--dir DIR]\n"
		"       certificate renew [server|client] NAME [--days N] [--out DIR] [--dir DIR]\n"
		"       certificate revoke [[server|client] NAME|SERIAL] [--days N] [--out DIR] [--dir DIR]\n"
		"       certificate show [NAME|FILE] [--dir DIR]\n"
		"       certificate trust HOST[:PORT] [--fingerprint FINGERPRINT]",
		"a small certificate authority on this host, and servers without one",
		ckt_ctl_certificate,
		"'issue' writes cert.pem, key.pem and ca.pem.  'revoke' writes crl.pem; without a name it writes it again, valid for longer.\n",
		.values = {CKT_VALUE_TEXT, CKT_VALUE_TEXT, CKT_VALUE_TEXT},
		.first_words = "init issue renew revoke show trust"},
	{"cdi", 0, 0, false, "output", "cdi [-o|--output FILE]",
		"describe the client and the server for containers (CDI)", ckt_ctl_cdi,
		"Write it to /etc/cdi/cricket.json; containers then take --device cricket/gpu=all, or =0, =1, ... for one GPU.\n"},
	{"doctor", 0, 1, true, "", "doctor [CMD [ARG...]]",
		"what on this host would stop CMD, or any program, and what helps", ckt_ctl_doctor,
		.values = {CKT_VALUE_COMMAND}},
	{0},
};
