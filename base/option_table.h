/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program's options are, as data. Each program has one table of them: its parser reads the table, --help is printed from
 * it, the completions of the shells are generated from it (completion/), and a test compares the manual pages with it.
 *
 *	ctl/option_table.c              cricketctl, with its subcommands
 *	server/daemon/option_table.c    cricket-server
 *	client/run/option_table.c       cricket-run
 *
 * Threading: constants; printing uses the given stream only.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* The exit status of every program whose command line is wrong. */
enum { CKT_EXIT_USAGE = 2 };

/* What a shell offers when a value is completed. */
enum ckt_value_kind {
	CKT_VALUE_TEXT, /* nothing: a number, a size, a name that does not exist yet */
	CKT_VALUE_FILE,
	CKT_VALUE_DIRECTORY,
	CKT_VALUE_USER,    /* a user of this machine */
	CKT_VALUE_SESSION, /* the ID of a session, from cricketctl ps */
	CKT_VALUE_COMMAND, /* a program and its own arguments */
	CKT_VALUE_KINDS,
};

struct ckt_option {
	const char *name;     /* without the dashes */
	const char *argument; /* what --help calls the value; NULL: the option is a flag */
	const char *help;     /* one line; it is wrapped when it is printed */
	enum ckt_value_kind value;
	const char *words; /* values with a name, separated by spaces; NULL: none */
	char letter;       /* the short form; 0: none */
};

/* The word in JSON and in completion/generate.py. */
const char *ckt_value_kind_name(enum ckt_value_kind kind);

/* The lines of --help about one option. with_letters: the program has options with a letter, and the others are indented as far. */
void ckt_option_print(const struct ckt_option *option, bool with_letters, FILE *file);
