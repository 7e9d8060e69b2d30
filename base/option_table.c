/* SPDX-License-Identifier: Apache-2.0 */
/* Options as text; see option_table.h. */
#include "base/option_table.h"

#include <string.h>

enum { HELP_COLUMN = 27, HELP_WIDTH = 88 };

const char *ckt_value_kind_name(enum ckt_value_kind kind)
{
	static const char *const names[CKT_VALUE_KINDS] = {
		[CKT_VALUE_TEXT] = "text",
		[CKT_VALUE_FILE] = "file",
		[CKT_VALUE_DIRECTORY] = "directory",
		[CKT_VALUE_USER] = "user",
		[CKT_VALUE_SESSION] = "session",
		[CKT_VALUE_COMMAND] = "command",
	};
	return kind < CKT_VALUE_KINDS ? names[kind] : names[CKT_VALUE_TEXT];
}

/* How many characters of the text stand on a line of that width: whole words, and at least one. */
static size_t line_length(const char *text, size_t width)
{
	size_t length = strcspn(text, " ");
	while (text[length]) {
		size_t next = length + 1 + strcspn(text + length + 1, " ");
		if (next > width)
			break;
		length = next;
	}
	return length;
}

void ckt_option_print(const struct ckt_option *option, bool with_letters, FILE *file)
{
	char head[96], letter[8] = "";
	if (with_letters && option->letter)
		snprintf(letter, sizeof letter, "-%c, ", option->letter);
	else if (with_letters)
		snprintf(letter, sizeof letter, "    ");
	snprintf(head, sizeof head, "  %s--%s%s%s", letter, option->name,
		option->argument ? " " : "", option->argument ? option->argument : "");
	fprintf(file, "%-*s ", HELP_COLUMN - 1, head);
	/* The first line is shorter where the option itself reaches into the column of the text. */
	size_t used = strlen(head) + 1 > HELP_COLUMN ? strlen(head) + 1 : HELP_COLUMN;
	for (const char *text = option->help; *text;) {
		size_t length = line_length(text, HELP_WIDTH - used);
		fprintf(file, "%s%.*s\n", text == option->help ? "" : "                           ",
			(int)length, text);
		text += length + strspn(text + length, " ");
		used = HELP_COLUMN;
	}
}
