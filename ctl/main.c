/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl: controls the sessions of a cricket-server.  One process, one thread, one connection,
 * a call or two.
 */
#include <stdio.h>
#include <string.h>

#include "ctl/args.h"
#include "ctl/certificate/certificate_trust.h"
#include "ctl/command.h"
#include "ctl/print.h"
#include "ctl/subcommands.h"

static void print_help(const struct ckt_ctl_command *one)
{
	printf("usage: cricketctl [--server ADDRESS] [--json] %s\n",
		one ? one->synopsis : "SUBCOMMAND ...");
	if (one)
		printf("\n%s\n", one->help);
	for (const struct ckt_ctl_command *command = ckt_ctl_commands; !one && command->name;
		command++)
		printf("%s  %s\n        %s\n", command == ckt_ctl_commands ? "\n" : "",
			command->synopsis, command->help);
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
	int status = ckt_ctl_parse(ckt_ctl_commands, argc, argv, &args, &command);
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
	ckt_ctl_ask_fingerprint = ckt_ctl_ask_fingerprint_by_tls;
	return command->run(&args);
}
