/*
 * cricketctl: controls the sessions of a cricket-server.  One process, one thread, one connection,
 * a call or two.
 */
#include <stdio.h>
#include <string.h>

#include "ctl/args.h"
#include "ctl/command.h"
#include "ctl/print.h"
#include "ctl/subcommands.h"

static const struct ckt_ctl_command commands[] = {
	{"ps", 0, 0, false, "", "ps", "list sessions", ckt_ctl_ps},
	{"info", 0, 0, false, "", "info", "tell about the server, its driver and its GPUs",
		ckt_ctl_info},
	{"kill", 1, 1, false, "", "kill SESSION", "end a session", ckt_ctl_kill},
	{"stats", 1, 1, false, "", "stats SESSION", "calls of a session, by name", ckt_ctl_stats},
	{"checkpoint", 1, 2, false,
		"stop with-client deadline server-side compress incremental every keep to-memory job",
		"checkpoint SESSION DIR|--to-memory [NAME] [--stop] [--with-client] [--incremental BASE]\n"
		"             [--every 30s [--keep 3]] [--compress] [--server-side NAME] [--deadline SECONDS]\n"
		"       checkpoint --job NAME DIR [--server ADDRESS ...] [--stop] [--compress] [--deadline SECONDS]",
		"write a session to DIR; --stop ends it then", ckt_ctl_checkpoint,
		"Images, those of --every too, do not rescue a program that has gone on since: when its worker dies, an older image of its session\n"
		"is refused.  Use migrate, --stop or --with-client.\n"},
	{"restore", 0, 1, false, "gpu server-side client-address with-client job place",
		"restore DIR|memory:NAME|--server-side NAME [--with-client] [--gpu N] [--client-address ADDRESS]\n"
		"       restore --job DIR [--server ADDRESS ...] [--place N,N,...] [--gpu N,N,...] [--client-address ADDRESS]",
		"bring a session back from DIR", ckt_ctl_restore},
	{"redirect", 1, 1, false, "to", "redirect SESSION --to ADDRESS",
		"tell the client on this host where its session lives now", ckt_ctl_redirect},
	{"image", 1, 3, false, "",
		"image show|verify|diff|flatten DIR [DIR], image list, image remove memory:NAME",
		"look into images, check them, make one of a chain; those in memory",
		ckt_ctl_image},
	{"migrate", 1, 1, false, "to gpu client-address deadline",
		"migrate SESSION [--to ADDRESS] [--gpu N] [--client-address ADDRESS] [--deadline SECONDS]",
		"move a running session to another server or GPU", ckt_ctl_migrate},
	{"pause", 1, 1, false, "for until deadline",
		"pause SESSION [--for 30m | --until 18:00] [--deadline SECONDS]",
		"give up a session's GPU memory for a while", ckt_ctl_pause},
	{"resume", 1, 1, false, "", "resume SESSION", "let a paused session go on", ckt_ctl_resume},
	{"events", 0, 0, false, "follow", "events [--follow]", "what happens to sessions",
		ckt_ctl_events},
	{"doctor", 0, 1, true, "", "doctor [CMD [ARG...]]",
		"what on this host would stop CMD, or any program, and what helps", ckt_ctl_doctor},
	{0},
};

static void print_help(const struct ckt_ctl_command *one)
{
	printf("usage: cricketctl [--server ADDRESS] [--json] %s\n",
		one ? one->synopsis : "SUBCOMMAND ...");
	if (one)
		printf("\n%s\n", one->help);
	for (const struct ckt_ctl_command *command = commands; !one && command->name; command++)
		printf("%s  %s\n        %s\n", command == commands ? "\n" : "", command->synopsis,
			command->help);
	if (one && one->note)
		printf("\n%s", one->note);
	printf("\n");
	ckt_ctl_print_options(one);
	printf("\n%sSESSION may be any part of an id from its beginning that fits one session only.\n"
	       "Exit status: 0 done, 1 refused, 2 wrong usage, 3 no server, 4 no such session.  See cricketctl(1).\n",
		one ? "" : "cricketctl SUBCOMMAND --help tells its options.\n");
}

int main(int argc, char **argv)
{
	struct ckt_ctl_args args = {0};
	const struct ckt_ctl_command *command = NULL;
	int status = ckt_ctl_parse(commands, argc, argv, &args, &command);
	if (status != CKT_EXIT_DONE)
		return status;
	if (args.version) {
		printf("cricketctl %s\n", CKT_VERSION);
		return ckt_ctl_flush();
	}
	if (args.help) {
		print_help(command);
		return ckt_ctl_flush();
	}
	return command->run(&args);
}
