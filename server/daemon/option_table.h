/* SPDX-License-Identifier: Apache-2.0 */
/* The options of cricket-server, for its parser (options.c) and for those who describe them (base/option_table.h). Constants. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/option_table.h"

/* The type of the member of struct ckt_options. */
enum ckt_server_option_type {
	CKT_SERVER_OPTION_TEXT,
	CKT_SERVER_OPTION_LIST,
	CKT_SERVER_OPTION_SIZE,
	CKT_SERVER_OPTION_COUNT,
	CKT_SERVER_OPTION_SECONDS, /* "90", "90s", "10m", "1h" */
	CKT_SERVER_OPTION_FLAG
};

struct ckt_server_option {
	struct ckt_option option;
	enum ckt_server_option_type type;
	size_t offset;                   /* of the member in struct ckt_options */
	int (*check)(const char *value); /* 0 or -EINVAL; NULL: what the type allows */
	const char *remedy;              /* completes "NAME: 'VALUE' is not valid: " */
	bool command_line_only;
};

enum { CKT_SERVER_OPTIONS = 67 };
extern const struct ckt_server_option ckt_server_options[CKT_SERVER_OPTIONS];
