/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actions of cricketctl certificate.  They give back exit codes, with the reason said.
 */
#pragma once

#include "ctl/certificate/certificate_files.h"
#include "ctl/command.h"

/* "cricketctl: TEXT" on stderr; CKT_EXIT_REFUSED. */
int ckt_ctl_certificate_failed(const struct ckt_ctl_problem *problem);
/* "cricketctl: OPTION: 'VALUE': REMEDY"; CKT_EXIT_USAGE. */
int ckt_ctl_certificate_bad(const char *option, const char *value, const char *remedy);
/* --dir, or the default: /etc/cricket/ca for root, else ca in the user's configuration. */
int ckt_ctl_certificate_directory(
	const struct ckt_ctl_args *args, char ret_path[4096], struct ckt_ctl_problem *problem);
/* --days, or that number. */
int ckt_ctl_certificate_days(const struct ckt_ctl_args *args, unsigned otherwise, unsigned *ret);

int ckt_ctl_certificate_issue(const struct ckt_ctl_args *args);
int ckt_ctl_certificate_renew(const struct ckt_ctl_args *args);
int ckt_ctl_certificate_revoke(const struct ckt_ctl_args *args);
int ckt_ctl_certificate_show(const struct ckt_ctl_args *args);
int ckt_ctl_certificate_trust(const struct ckt_ctl_args *args);
