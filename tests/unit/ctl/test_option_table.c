/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/option_table.c: options and subcommands belong to each other. */
#include <stdint.h>
#include <string.h>

#include "ctl/command.h"
#include "tests/unit/suite.h"

static const struct ckt_ctl_option *find(const char *name, size_t length)
{
	for (size_t i = 0; i < ckt_ctl_option_count; i++)
		if (strlen(ckt_ctl_options[i].option.name) == length &&
			strncmp(ckt_ctl_options[i].option.name, name, length) == 0)
			return &ckt_ctl_options[i];
	return NULL;
}

static void test_options(void)
{
	/* The parser keeps those that it met in the bits of 64. */
	YES(ckt_ctl_option_count <= 64);
	for (size_t i = 0; i < ckt_ctl_option_count; i++) {
		const struct ckt_ctl_option *one = &ckt_ctl_options[i];
		YES(find(one->option.name, strlen(one->option.name)) == one);
		YES(*one->option.help != 0);
		IS(one->flag_offset == SIZE_MAX, one->option.argument != NULL);
		IS(one->value_offset == SIZE_MAX, one->option.argument == NULL);
	}
}

static void test_subcommands(void)
{
	uint64_t taken = 0;
	for (const struct ckt_ctl_command *command = ckt_ctl_commands; command->name; command++) {
		YES(command->max_words <= CKT_CTL_VALUES_MAX);
		YES(command->min_words <= command->max_words);
		YES(strncmp(command->synopsis, command->name, strlen(command->name)) == 0);
		for (const char *p = command->options; *p; p += strspn(p, " ")) {
			size_t length = strcspn(p, " ");
			const struct ckt_ctl_option *option = find(p, length);
			YES(option && !option->everywhere);
			if (option)
				taken |= UINT64_C(1) << (option - ckt_ctl_options);
			p += length;
		}
	}
	/* No option that nothing takes. */
	for (size_t i = 0; i < ckt_ctl_option_count; i++)
		IS((int)(taken >> i & 1), !ckt_ctl_options[i].everywhere);
}

UNIT_SUITE(option_table, {"options", test_options}, {"subcommands", test_subcommands})
