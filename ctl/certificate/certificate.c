/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl certificate init|issue|renew|revoke|show|trust: a small certificate authority in a
 * directory of this host, and the fingerprints of servers that have none.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/certificate/certificate_actions.h"
#include "ctl/certificate/certificate_authority.h"
#include "ctl/print.h"
#include "ctl/subcommands.h"
#include "rpc/transport/known_servers.h"

int ckt_ctl_certificate_failed(const struct ckt_ctl_problem *problem)
{
	char clean[sizeof problem->text];
	fprintf(stderr, "cricketctl: %s\n", ckt_ctl_clean(problem->text, clean, sizeof clean));
	return CKT_EXIT_REFUSED;
}

int ckt_ctl_certificate_bad(const char *option, const char *value, const char *remedy)
{
	char clean[256];
	fprintf(stderr, "cricketctl: %s: '%s': %s\n", option,
		ckt_ctl_clean(value, clean, sizeof clean), remedy);
	return CKT_EXIT_USAGE;
}

int ckt_ctl_certificate_directory(
	const struct ckt_ctl_args *args, char ret_path[4096], struct ckt_ctl_problem *problem)
{
	int result = 0;
	if (args->dir)
		result = snprintf(ret_path, 4096, "%s", args->dir) >= 4096 ? -ENAMETOOLONG : 0;
	else if (geteuid() == 0)
		snprintf(ret_path, 4096, "/etc/cricket/ca");
	else
		result = ckt_known_servers_configuration("ca", ret_path, 4096);
	return result ? ckt_ctl_problem_set(problem, -result,
				"no directory is known for the authority; give one with --dir")
		      : 0;
}

int ckt_ctl_certificate_days(const struct ckt_ctl_args *args, unsigned otherwise, unsigned *ret)
{
	char *end = NULL;
	unsigned long days = args->days ? strtoul(args->days, &end, 10) : otherwise;
	if (args->days &&
		(!isdigit((unsigned char)*args->days) || *end || !days || days > CKT_CTL_DAYS_MAX))
		return ckt_ctl_certificate_bad(
			"--days", args->days, "write a whole number from 1 to 7300");
	*ret = (unsigned)days;
	return CKT_EXIT_DONE;
}

static int make(const struct ckt_ctl_args *args)
{
	char path[4096];
	unsigned days;
	struct ckt_ctl_problem problem = {0};
	int status = ckt_ctl_certificate_days(args, CKT_CTL_AUTHORITY_DAYS, &days);
	if (status != CKT_EXIT_DONE)
		return status;
	if (ckt_ctl_certificate_directory(args, path, &problem) ||
		ckt_ctl_authority_make(path, args->permit, days, &problem))
		return ckt_ctl_certificate_failed(&problem);
	if (args->json)
		return ckt_ctl_json_print(json_pack(
			"{s:o, s:i}", "directory", ckt_ctl_json_text(path), "days", days));
	fprintf(stderr,
		"cricketctl: the authority is in %s, valid for %u days: keep ca-key.pem to "
		"yourself, and make certificates with cricketctl certificate issue\n",
		path, days);
	return CKT_EXIT_DONE;
}

int ckt_ctl_certificate(const struct ckt_ctl_args *args)
{
	static const struct {
		const char *name;
		int min_words, max_words;
		int (*run)(const struct ckt_ctl_args *args);
	} actions[] = {
		{"init", 1, 1, make},
		{"issue", 3, 2 + CKT_CTL_NAMES_MAX, ckt_ctl_certificate_issue},
		{"renew", 2, 3, ckt_ctl_certificate_renew},
		{"revoke", 1, 3, ckt_ctl_certificate_revoke},
		{"show", 1, 2, ckt_ctl_certificate_show},
		{"trust", 2, 2, ckt_ctl_certificate_trust},
	};
	for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
		if (strcmp(args->words[0], actions[i].name) == 0 &&
			args->word_count >= actions[i].min_words &&
			args->word_count <= actions[i].max_words)
			return actions[i].run(args);
	return ckt_ctl_certificate_bad("certificate", args->words[0],
		"write init, issue server NAME, issue client USER, renew NAME, revoke NAME, show or "
		"trust HOST: see cricketctl certificate --help");
}
