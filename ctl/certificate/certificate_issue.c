/* SPDX-License-Identifier: Apache-2.0 */
/* cricketctl certificate issue, renew and revoke. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <time.h>

#include "base/fault_point.h"
#include "ctl/certificate/certificate_actions.h"
#include "ctl/certificate/certificate_authority.h"
#include "ctl/certificate/certificate_names.h"
#include "ctl/print.h"

enum { PATH_SIZE = 4096 };

/* What of the command line is copied, because it is changed. */
struct words {
	char names[CKT_CTL_NAMES_MAX][CKT_CERTIFICATE_NAME_MAX + 1];
	char addresses[CKT_CTL_NAMES_MAX][64];
	char projects[CKT_TOKEN_PROJECTS_MAX][CKT_TOKEN_NAME_MAX + 1];
};

/* ---- The request */

/* The next item of a list with commas; false: it does not fit. */
static bool next_item(const char **p, char *ret_item, size_t size)
{
	size_t length = strcspn(*p, ",");
	if (length >= size)
		return false;
	memcpy(ret_item, *p, length);
	ret_item[length] = 0;
	*p += length + ((*p)[length] == ',');
	return true;
}

static int take_addresses(const char *text, struct words *words, struct ckt_ctl_request *request)
{
	uint8_t address[16];
	size_t size;
	for (const char *p = text; *p;) {
		char *to = words->addresses[request->address_count];
		if (request->address_count == CKT_CTL_NAMES_MAX ||
			!next_item(&p, to, sizeof words->addresses[0]) ||
			!ckt_ctl_address_parse(to, address, &size))
			return ckt_ctl_certificate_bad("--address", text,
				"write up to 8 numeric addresses such as 10.0.0.7,fd00::7");
		request->addresses[request->address_count++] = to;
	}
	return CKT_EXIT_DONE;
}

static int take_projects(const char *text, struct words *words, struct ckt_ctl_request *request)
{
	for (const char *p = text; *p;) {
		char *to = words->projects[request->project_count];
		if (request->project_count == CKT_TOKEN_PROJECTS_MAX ||
			!next_item(&p, to, sizeof words->projects[0]) ||
			!ckt_token_name_is_good(to))
			return ckt_ctl_certificate_bad("--project", text,
				"write up to 8 names of a-z, 0-9, '.', '_' and '-', with commas "
				"between them");
		request->projects[request->project_count++] = to;
	}
	return CKT_EXIT_DONE;
}

static int take_server(
	const struct ckt_ctl_args *args, struct words *words, struct ckt_ctl_request *request)
{
	if (args->role || args->project)
		return ckt_ctl_certificate_bad(args->role ? "--role" : "--project",
			args->role ? args->role : args->project,
			"a server has none; write issue client USER for a user");
	for (int i = 2; i < args->word_count; i++) {
		char *to = words->names[request->name_count];
		if (strlen(args->words[i]) > CKT_CERTIFICATE_NAME_MAX)
			return ckt_ctl_certificate_bad("certificate issue server", args->words[i],
				"a host name has at most 253 characters");
		for (size_t k = 0; args->words[i][k]; k++)
			to[k] = (char)tolower((unsigned char)args->words[i][k]);
		const char *remedy = ckt_ctl_host_check(to);
		if (remedy)
			return ckt_ctl_certificate_bad(
				"certificate issue server", args->words[i], remedy);
		request->names[request->name_count++] = to;
	}
	request->name = request->names[0];
	return args->address ? take_addresses(args->address, words, request) : CKT_EXIT_DONE;
}

static int take_client(
	const struct ckt_ctl_args *args, struct words *words, struct ckt_ctl_request *request)
{
	request->name = args->words[2];
	/* The name is that of a directory, too. */
	if (args->word_count != 3 || !ckt_token_name_is_good(request->name) ||
		*request->name == '.')
		return ckt_ctl_certificate_bad("certificate issue client",
			args->words[args->word_count - 1],
			"write one name of 1 to 32 of a-z, 0-9, '.', '_', '-', that begins with a letter "
			"or digit");
	if (args->address)
		return ckt_ctl_certificate_bad(
			"--address", args->address, "a user has none; it is for issue server");
	if (args->role && !ckt_role_parse(args->role, &request->role))
		return ckt_ctl_certificate_bad(
			"--role", args->role, "write user, operator or administrator");
	int status = args->project ? take_projects(args->project, words, request) : CKT_EXIT_DONE;
	if (status == CKT_EXIT_DONE && request->role == CKT_ROLE_OPERATOR &&
		!request->project_count)
		status = ckt_ctl_certificate_bad("--role", args->role,
			"an operator controls the sessions of projects: name them with --project");
	return status;
}

static void take_words(
	const json_t *list, unsigned max, const char **ret_words, unsigned *ret_count)
{
	for (size_t i = 0; i < json_array_size(list) && *ret_count < max; i++) {
		const char *word = json_string_value(json_array_get(list, i));
		if (word)
			ret_words[(*ret_count)++] = word;
	}
}

/* The same again, from the ledger.  Its words live as long as that is open. */
static void request_of_line(const json_t *line, struct ckt_ctl_request *ret_request)
{
	struct ckt_ctl_request request = {
		.server = strcmp(ckt_ctl_ledger_text(line, "kind"), "server") == 0,
		.name = ckt_ctl_ledger_text(line, "name")};
	ckt_role_parse(ckt_ctl_ledger_text(line, "role"), &request.role);
	take_words(json_object_get(line, "projects"), CKT_TOKEN_PROJECTS_MAX, request.projects,
		&request.project_count);
	take_words(json_object_get(line, "names"), CKT_CTL_NAMES_MAX, request.names,
		&request.name_count);
	take_words(json_object_get(line, "addresses"), CKT_CTL_NAMES_MAX, request.addresses,
		&request.address_count);
	*ret_request = request;
}

/* ---- Signing, the ledger, the files */

static json_t *list_of(const char *const *words, unsigned count)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < count; i++)
		json_array_append_new(list, json_string(words[i]));
	return list;
}

static json_t *line_of(const char *event, const struct ckt_ctl_request *request,
	const struct ckt_certificate *facts)
{
	char serial[2 * CKT_CERTIFICATE_SERIAL_MAX + 1], fingerprint[CKT_FINGERPRINT_TEXT];
	ckt_certificate_serial_text(facts, serial);
	ckt_fingerprint_text(facts->fingerprint, fingerprint);
	json_t *line = json_pack("{s:s, s:s, s:s, s:s, s:I, s:s}", "event", event, "kind",
		request->server ? "server" : "client", "name", request->name, "serial", serial,
		"not_after", (json_int_t)facts->not_after, "fingerprint", fingerprint);
	if (request->server) {
		json_object_set_new(line, "names", list_of(request->names, request->name_count));
		json_object_set_new(
			line, "addresses", list_of(request->addresses, request->address_count));
	} else {
		json_object_set_new(line, "role", json_string(ckt_role_name(request->role)));
		json_object_set_new(
			line, "projects", list_of(request->projects, request->project_count));
	}
	return line;
}

/* The authority's own certificate, which goes along. */
static int put_authority(const struct ckt_ctl_authority *authority, struct ckt_ctl_staged *staged,
	struct ckt_ctl_problem *problem)
{
	char data[CKT_CERTIFICATE_MAX], path[PATH_SIZE + 16];
	snprintf(path, sizeof path, "%s/ca.pem", authority->path);
	FILE *file = fopen(path, "re");
	size_t size = file ? fread(data, 1, sizeof data, file) : 0;
	bool good = file && !ferror(file) && size && size < sizeof data;
	if (file)
		fclose(file);
	return good ? ckt_ctl_staged_put(staged, "ca.pem", 0644, data, size, problem)
		    : ckt_ctl_problem_set(
			      problem, EIO, "%s: cannot read it; look at its owner and mode", path);
}

static int check_empty(const struct ckt_ctl_staged *staged, struct ckt_ctl_problem *problem)
{
	static const char *const names[] = {"cert.pem", "key.pem"};
	char path[PATH_SIZE + 16];
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", staged->path, names[i]);
		if (!staged->fresh && access(path, F_OK) == 0)
			return ckt_ctl_problem_set(problem, EEXIST,
				"%s: it is there already; choose another directory with --out, or "
				"use cricketctl certificate renew",
				path);
	}
	return 0;
}

/* The key comes first: a reader that sees the old certificate beside it goes on with what it has. */
static int put_all(const struct ckt_ctl_authority *authority, struct ckt_ctl_staged *staged,
	const struct ckt_ctl_issued *issued, struct ckt_ctl_problem *problem)
{
	int result = put_authority(authority, staged, problem);
	if (!result)
		result = ckt_ctl_staged_put(
			staged, "key.pem", 0600, issued->key, issued->key_size, problem);
	if (!result)
		result = ckt_ctl_staged_put(staged, "cert.pem", 0644, issued->certificate,
			issued->certificate_size, problem);
	return result;
}

static int print_issued(const struct ckt_ctl_args *args, const char *directory, json_t *line)
{
	if (args->json) {
		json_object_set_new(line, "directory", ckt_ctl_json_text(directory));
		return ckt_ctl_json_print(line);
	}
	char until[32];
	fprintf(stderr,
		"cricketctl: cert.pem, key.pem and ca.pem of %s '%s' are in %s, valid until %s; "
		"key.pem is secret\n",
		ckt_ctl_ledger_text(line, "kind"), ckt_ctl_ledger_text(line, "name"), directory,
		ckt_ctl_time_text(ckt_ctl_ledger_not_after(line), until, sizeof until));
	printf("%s\n", ckt_ctl_ledger_text(line, "fingerprint"));
	json_decref(line);
	return ckt_ctl_flush();
}

/* The ledger comes between: what is not in it was never given to anybody. */
static int deliver(const struct ckt_ctl_args *args, struct ckt_ctl_authority *authority,
	const char *event, const struct ckt_ctl_request *request)
{
	struct ckt_ctl_problem problem = {0};
	struct ckt_ctl_issued issued = {0};
	struct ckt_ctl_staged staged;
	json_t *line = NULL;
	bool renews = strcmp(event, "renew") == 0;
	const char *directory = args->out ? args->out : request->name;
	int result = ckt_ctl_staged_begin(directory, &staged, &problem);
	if (!result && !renews)
		result = check_empty(&staged, &problem);
	if (!result)
		result = ckt_ctl_authority_sign(authority, request, &issued, &problem);
	if (!result)
		result = put_all(authority, &staged, &issued, &problem);
	if (!result && ckt_fault_reached(CKT_FAULT_CTL_CERTIFICATE_WRITTEN))
		result = ckt_ctl_problem_set(&problem, EIO, "stopped by CRICKET_FAULT");
	if (!result) {
		line = line_of(event, request, &issued.facts);
		result = ckt_ctl_ledger_add(&authority->ledger, json_incref(line), &problem);
	}
	if (!result)
		result = ckt_ctl_staged_keep(&staged, &problem);
	ckt_ctl_staged_end(&staged);
	ckt_ctl_issued_free(&issued);
	if (!result)
		return print_issued(args, directory, line);
	json_decref(line);
	return ckt_ctl_certificate_failed(&problem);
}

static int open_authority(const struct ckt_ctl_args *args, struct ckt_ctl_authority *ret_authority)
{
	char path[PATH_SIZE];
	struct ckt_ctl_problem problem = {0};
	return ckt_ctl_certificate_directory(args, path, &problem) ||
			ckt_ctl_authority_open(path, ret_authority, &problem)
		? ckt_ctl_certificate_failed(&problem)
		: CKT_EXIT_DONE;
}

/* Whether the last certificate of that name is still good. */
static int check_new(
	const struct ckt_ctl_authority *authority, const struct ckt_ctl_request *request)
{
	struct ckt_ctl_problem problem = {0};
	char until[32];
	const json_t *line = ckt_ctl_ledger_find(
		&authority->ledger, request->server ? "server" : "client", request->name);
	if (!line || ckt_ctl_ledger_not_after(line) < (int64_t)time(NULL) ||
		ckt_ctl_ledger_revoked(&authority->ledger, ckt_ctl_ledger_text(line, "serial")))
		return CKT_EXIT_DONE;
	ckt_ctl_problem_set(&problem, EEXIST,
		"%s '%s' has a certificate, valid until %s; use cricketctl certificate renew, or "
		"revoke that one first",
		ckt_ctl_ledger_text(line, "kind"), request->name,
		ckt_ctl_time_text(ckt_ctl_ledger_not_after(line), until, sizeof until));
	return ckt_ctl_certificate_failed(&problem);
}

int ckt_ctl_certificate_issue(const struct ckt_ctl_args *args)
{
	struct words words;
	struct ckt_ctl_authority authority;
	struct ckt_ctl_request request = {.server = strcmp(args->words[1], "server") == 0};
	if (!request.server && strcmp(args->words[1], "client") != 0)
		return ckt_ctl_certificate_bad("certificate issue", args->words[1],
			"write issue server NAME... or issue client USER");
	int status = ckt_ctl_certificate_days(args, CKT_CTL_LEAF_DAYS, &request.days);
	if (status == CKT_EXIT_DONE)
		status = request.server ? take_server(args, &words, &request)
					: take_client(args, &words, &request);
	if (status == CKT_EXIT_DONE)
		status = open_authority(args, &authority);
	if (status != CKT_EXIT_DONE)
		return status;
	status = check_new(&authority, &request);
	if (status == CKT_EXIT_DONE)
		status = deliver(args, &authority, "issue", &request);
	ckt_ctl_authority_close(&authority);
	return status;
}

/* ---- renew and revoke */

/* [server|client] NAME: NULL: said. */
static const json_t *find(
	const struct ckt_ctl_args *args, const struct ckt_ctl_authority *authority)
{
	struct ckt_ctl_problem problem = {0};
	const char *name = args->words[args->word_count - 1];
	const char *kind = args->word_count == 3 ? args->words[1] : NULL;
	const json_t *line = ckt_ctl_ledger_find(&authority->ledger, kind, name);
	if (line && !kind && ckt_ctl_ledger_is_ambiguous(&authority->ledger, name)) {
		ckt_ctl_problem_set(&problem, EINVAL,
			"'%.64s' is a server and a client; write which, as in cricketctl "
			"certificate %s server %.64s",
			name, args->words[0], name);
		line = NULL;
	} else if (!line) {
		ckt_ctl_problem_set(&problem, ENOENT,
			"%s: no certificate of '%.64s' was issued; see cricketctl certificate show",
			authority->path, name);
	}
	if (!line)
		ckt_ctl_certificate_failed(&problem);
	return line;
}

static int check_kind(const struct ckt_ctl_args *args)
{
	return args->word_count < 3 || strcmp(args->words[1], "server") == 0 ||
			strcmp(args->words[1], "client") == 0
		? CKT_EXIT_DONE
		: ckt_ctl_certificate_bad(
			  "certificate", args->words[1], "write server NAME or client NAME");
}

int ckt_ctl_certificate_renew(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_authority authority;
	struct ckt_ctl_request request;
	unsigned days = 0;
	int status = check_kind(args);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_certificate_days(args, CKT_CTL_LEAF_DAYS, &days);
	if (status == CKT_EXIT_DONE)
		status = open_authority(args, &authority);
	if (status != CKT_EXIT_DONE)
		return status;
	const json_t *line = find(args, &authority);
	status = CKT_EXIT_REFUSED;
	if (line) {
		request_of_line(line, &request);
		request.days = days;
		status = deliver(args, &authority, "renew", &request);
	}
	ckt_ctl_authority_close(&authority);
	return status;
}

/* All certificates of the name and kind of that line, or that one serial. */
static int revoke_lines(struct ckt_ctl_authority *authority, const json_t *found, const char *name,
	unsigned *ret_count, struct ckt_ctl_problem *problem)
{
	int64_t now = (int64_t)time(NULL);
	bool one = strcmp(name, ckt_ctl_ledger_text(found, "serial")) == 0;
	const char *kind = ckt_ctl_ledger_text(found, "kind");
	int result = 0;
	for (size_t i = 0; i < json_array_size(authority->ledger.lines) && !result; i++) {
		const json_t *line = json_array_get(authority->ledger.lines, i);
		const char *serial = ckt_ctl_ledger_text(line, "serial");
		if (!ckt_ctl_ledger_is_certificate(line) ||
			strcmp(ckt_ctl_ledger_text(line, "kind"), kind) != 0 ||
			strcmp(one ? serial : ckt_ctl_ledger_text(line, "name"), name) != 0 ||
			ckt_ctl_ledger_not_after(line) < now ||
			ckt_ctl_ledger_revoked(&authority->ledger, serial))
			continue;
		++*ret_count;
		result = ckt_ctl_ledger_add(&authority->ledger,
			json_pack("{s:s, s:s, s:s, s:s, s:I}", "event", "revoke", "kind", kind,
				"name", ckt_ctl_ledger_text(line, "name"), "serial", serial,
				"revoked", (json_int_t)now),
			problem);
	}
	return result;
}

static int print_revoked(
	const struct ckt_ctl_args *args, const struct ckt_ctl_authority *authority, unsigned count)
{
	if (args->json)
		return ckt_ctl_json_print(json_pack("{s:i, s:o}", "revoked", count, "directory",
			ckt_ctl_json_text(authority->path)));
	fprintf(stderr,
		"cricketctl: %u certificate%s revoked now; copy %s/crl.pem to the servers' "
		"/etc/cricket/tls, which read it again by themselves\n",
		count, count == 1 ? " is" : "s are", authority->path);
	return CKT_EXIT_DONE;
}

int ckt_ctl_certificate_revoke(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_authority authority;
	struct ckt_ctl_problem problem = {0};
	unsigned days = 0, count = 0;
	int status = check_kind(args), result = 0;
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_certificate_days(args, CKT_CTL_LIST_DAYS, &days);
	if (status == CKT_EXIT_DONE)
		status = open_authority(args, &authority);
	if (status != CKT_EXIT_DONE)
		return status;
	/* Without a name the list is made again, with a later next update. */
	const json_t *line = args->word_count > 1 ? find(args, &authority) : NULL;
	if (args->word_count > 1 && !line) {
		ckt_ctl_authority_close(&authority);
		return CKT_EXIT_REFUSED;
	}
	if (line)
		result = revoke_lines(
			&authority, line, args->words[args->word_count - 1], &count, &problem);
	if (!result)
		result = ckt_ctl_authority_publish(&authority, days, args->out, &problem);
	status = result ? ckt_ctl_certificate_failed(&problem)
			: print_revoked(args, &authority, count);
	ckt_ctl_authority_close(&authority);
	return status;
}
