/* SPDX-License-Identifier: Apache-2.0 */
/* cricketctl certificate show: one file, or what the authority issued. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/certificate/certificate_actions.h"
#include "ctl/certificate/certificate_authority.h"
#include "ctl/print.h"

enum { DAY_S = 86400 };

static int64_t days_left(int64_t not_after)
{
	int64_t left = not_after - (int64_t)time(NULL);
	return left < 0 ? -1 : left / DAY_S;
}

static void projects_text(const json_t *projects, char *ret_text, size_t size)
{
	size_t at = 0;
	snprintf(ret_text, size, "-");
	for (size_t i = 0; i < json_array_size(projects) && at < size; i++) {
		const char *project = json_string_value(json_array_get(projects, i));
		at += (size_t)snprintf(
			ret_text + at, size - at, "%s%s", i ? "," : "", project ? project : "?");
	}
}

static const char *state_of(const json_t *shown)
{
	if (json_is_true(json_object_get(shown, "revoked")))
		return "revoked";
	return json_integer_value(json_object_get(shown, "days_left")) < 0 ? "expired" : "valid";
}

static void print_one(const json_t *shown)
{
	char projects[512], name[300], until[32];
	projects_text(json_object_get(shown, "projects"), projects, sizeof projects);
	const char *role = ckt_ctl_ledger_text(shown, "role");
	printf("%-7s %-24s %-8s %9lld  %-20s  %-13s  %-16s  %s  %s\n",
		ckt_ctl_ledger_text(shown, "kind"),
		ckt_ctl_clean(ckt_ctl_ledger_text(shown, "name"), name, sizeof name),
		state_of(shown), (long long)json_integer_value(json_object_get(shown, "days_left")),
		ckt_ctl_time_text(ckt_ctl_ledger_not_after(shown), until, sizeof until),
		*role ? role : "-", projects, ckt_ctl_ledger_text(shown, "serial"),
		ckt_ctl_ledger_text(shown, "fingerprint"));
}

static int print_all(const struct ckt_ctl_args *args, json_t *list)
{
	if (args->json)
		return ckt_ctl_json_print(json_pack("{s:o}", "certificates", list));
	printf("%-7s %-24s %-8s %9s  %-20s  %-13s  %-16s  %-32s  %s\n", "KIND", "NAME", "STATE",
		"DAYS LEFT", "VALID UNTIL", "ROLE", "PROJECTS", "SERIAL", "FINGERPRINT");
	for (size_t i = 0; i < json_array_size(list); i++)
		print_one(json_array_get(list, i));
	json_decref(list);
	return ckt_ctl_flush();
}

/* ---- A file */

static json_t *shown_of_file(const struct ckt_certificate *certificate)
{
	char serial[2 * CKT_CERTIFICATE_SERIAL_MAX + 1], fingerprint[CKT_FINGERPRINT_TEXT];
	bool has_user = *certificate->user;
	json_t *projects = json_array();
	for (unsigned i = 0; i < certificate->project_count; i++)
		json_array_append_new(projects, json_string(certificate->projects[i]));
	ckt_certificate_serial_text(certificate, serial);
	ckt_fingerprint_text(certificate->fingerprint, fingerprint);
	json_t *shown = json_pack("{s:s, s:o, s:s, s:s, s:I, s:I, s:o}", "kind",
		certificate->authority        ? "ca"
			: certificate->server ? "server"
					      : "client",
		"name", ckt_ctl_json_text(has_user ? certificate->user : certificate->common_name),
		"serial", serial, "fingerprint", fingerprint, "not_after",
		(json_int_t)certificate->not_after, "days_left",
		(json_int_t)days_left(certificate->not_after), "projects", projects);
	if (has_user)
		json_object_set_new(shown, "role", json_string(ckt_role_name(certificate->role)));
	return shown;
}

static int show_file(const struct ckt_ctl_args *args, const char *path)
{
	struct ckt_certificate certificate;
	struct ckt_ctl_problem problem = {0};
	char message[512];
	json_t *list = json_array();
	if (ckt_certificate_file_read(path, &certificate, message, sizeof message)) {
		json_decref(list);
		ckt_ctl_problem_set(&problem, EINVAL, "%s; name a certificate in PEM", message);
		return ckt_ctl_certificate_failed(&problem);
	}
	json_array_append_new(list, shown_of_file(&certificate));
	return print_all(args, list);
}

/* ---- The ledger */

static json_t *shown_of_line(const struct ckt_ctl_ledger *ledger, const json_t *line)
{
	json_t *shown = json_deep_copy(line);
	json_object_set_new(
		shown, "days_left", json_integer(days_left(ckt_ctl_ledger_not_after(line))));
	json_object_set_new(shown, "revoked",
		json_boolean(
			ckt_ctl_ledger_revoked(ledger, ckt_ctl_ledger_text(line, "serial")) != 0));
	return shown;
}

int ckt_ctl_certificate_show(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_authority authority;
	struct ckt_ctl_problem problem = {0};
	char path[4096];
	json_t *list;
	const char *name = args->word_count > 1 ? args->words[1] : NULL;
	if (name && (strchr(name, '/') || access(name, F_OK) == 0))
		return show_file(args, name);
	if (ckt_ctl_certificate_directory(args, path, &problem) ||
		ckt_ctl_authority_open(path, &authority, &problem))
		return ckt_ctl_certificate_failed(&problem);
	list = json_array();
	for (size_t i = 0; i < json_array_size(authority.ledger.lines); i++) {
		const json_t *line = json_array_get(authority.ledger.lines, i);
		if (ckt_ctl_ledger_is_certificate(line) &&
			(!name || strcmp(ckt_ctl_ledger_text(line, "name"), name) == 0 ||
				strcmp(ckt_ctl_ledger_text(line, "serial"), name) == 0))
			json_array_append_new(list, shown_of_line(&authority.ledger, line));
	}
	int status = CKT_EXIT_REFUSED;
	if (name && !json_array_size(list)) {
		json_decref(list);
		ckt_ctl_problem_set(&problem, ENOENT,
			"%s: no certificate of '%.64s' was issued, and there is no file of that "
			"name; see cricketctl certificate show",
			authority.path, name);
		ckt_ctl_certificate_failed(&problem);
	} else {
		status = print_all(args, list);
	}
	ckt_ctl_authority_close(&authority);
	return status;
}
