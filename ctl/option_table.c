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
	{{"stop", NULL, "end the session once its image is complete"}, OF_SOME, FLAG(stop)},
	{{"with-client", NULL, "the program's process too, by CRIU"}, OF_SOME, FLAG(with_client)},
	{{"job", "NAME",
		 "all sessions of a job together (restore: DIR that holds them); --server may be given several times"},
		OF_SOME, VALUE(job)},
	{{"deadline", "SECONDS",
		 "how long the GPU may take to finish what it is doing (default 60)"},
		OF_SOME, VALUE(deadline)},
	{{"server-side", "NAME", "an image in the server's --image-dir instead of DIR"}, OF_SOME,
		VALUE(server_side)},
	{{"to-memory", NULL, "keep the image in the memory of the server's host"}, OF_SOME,
		FLAG(to_memory)},
	{{"compress", NULL, "compress the contents with zstd"}, OF_SOME, FLAG(compress)},
	{{"incremental", "BASE", "write only what changed since that image of the session",
		 CKT_VALUE_DIRECTORY},
		OF_SOME, VALUE(incremental)},
	{{"every", "30s", "a chain of images in DIR, one each time, until the session ends"},
		OF_SOME, VALUE(every)},
	{{"keep", "N", "of --every: images of a chain before a new one begins (default 3)"},
		OF_SOME, VALUE(keep)},
	{{"to", "ADDRESS", "the server where the session goes or is"}, OF_SOME, VALUE(to)},
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
	{"checkpoint", 1, 2, false,
		"stop with-client deadline server-side compress incremental every keep to-memory job",
		"checkpoint SESSION DIR|--to-memory [NAME] [--stop] [--with-client] [--incremental BASE]\n"
		"             [--every 30s [--keep 3]] [--compress] [--server-side NAME] [--deadline SECONDS]\n"
		"       checkpoint --job NAME DIR [--server ADDRESS ...] [--stop] [--compress] [--deadline SECONDS]",
		"write a session to DIR; --stop ends it then", ckt_ctl_checkpoint,
		"Images, those of --every too, do not rescue a program that has gone on since: when its worker dies, an older image of its session\n"
		"is refused.  Use migrate, --stop or --with-client.\n",
		.values = {CKT_VALUE_SESSION, CKT_VALUE_DIRECTORY}},
	{"restore", 0, 1, false, "gpu server-side client-address with-client job place",
		"restore DIR|memory:NAME|--server-side NAME [--with-client] [--gpu N] [--client-address ADDRESS]\n"
		"       restore --job DIR [--server ADDRESS ...] [--place N,N,...] [--gpu N,N,...] [--client-address ADDRESS]",
		"bring a session back from DIR", ckt_ctl_restore, .values = {CKT_VALUE_DIRECTORY}},
	{"redirect", 1, 1, false, "to", "redirect SESSION --to ADDRESS",
		"tell the client on this host where its session lives now", ckt_ctl_redirect,
		.values = {CKT_VALUE_SESSION}},
	{"image", 1, 3, false, "",
		"image show|verify|diff|flatten DIR [DIR], image list, image remove memory:NAME",
		"look into images, check them, make one of a chain; those in memory", ckt_ctl_image,
		.values = {CKT_VALUE_TEXT, CKT_VALUE_DIRECTORY, CKT_VALUE_DIRECTORY},
		.first_words = "show verify diff flatten list remove"},
	{"migrate", 1, 1, false, "to gpu client-address deadline",
		"migrate SESSION [--to ADDRESS] [--gpu N] [--client-address ADDRESS] [--deadline SECONDS]",
		"move a running session to another server or GPU", ckt_ctl_migrate,
		.values = {CKT_VALUE_SESSION}},
	{"pause", 1, 1, false, "for until deadline",
		"pause SESSION [--for 30m | --until 18:00] [--deadline SECONDS]",
		"give up a session's GPU memory for a while", ckt_ctl_pause,
		.values = {CKT_VALUE_SESSION}},
	{"resume", 1, 1, false, "", "resume SESSION", "let a paused session go on", ckt_ctl_resume,
		.values = {CKT_VALUE_SESSION}},
	{"events", 0, 0, false, "follow", "events [--follow]", "what happens to sessions",
		ckt_ctl_events},
	{"token", 1, 2, false,
		"tokens role project expires max-sessions session-memory session-host-memory",
		"token add NAME [--role ROLE] [--project NAME,...] [--expires DAY] [--max-sessions N]\n"
		"             [--session-memory SIZE] [--session-host-memory SIZE] [--tokens FILE]\n"
		"       token list|revoke NAME [--tokens FILE]",
		"the tokens of a server on this host", ckt_ctl_token,
		"The server reads its file of tokens again by itself.  'add' prints the token: it is kept nowhere else.\n",
		.values = {CKT_VALUE_TEXT, CKT_VALUE_TEXT}, .first_words = "add list revoke"},
	{"doctor", 0, 1, true, "", "doctor [CMD [ARG...]]",
		"what on this host would stop CMD, or any program, and what helps", ckt_ctl_doctor,
		.values = {CKT_VALUE_COMMAND}},
	{0},
};
