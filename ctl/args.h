/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of cricketctl. */
#pragma once

#include "ctl/command.h"

/*
 * CKT_EXIT_DONE or CKT_EXIT_USAGE with the reason said. ret_command is NULL with --help or
 * --version alone.
 */
int ckt_ctl_parse(const struct ckt_ctl_command *commands, int argc, char **argv,
	struct ckt_ctl_args *ret_args, const struct ckt_ctl_command **ret_command);

/*
 * What --help prints about the options of that subcommand (NULL: none) and about those that all
 * have.
 */
void ckt_ctl_print_options(const struct ckt_ctl_command *command);
