/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of a certificate authority; see certificate_ledger.h. */
#include "ctl/certificate/certificate_ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fault_point.h"
#include "ctl/print.h"

enum { LEDGER_MAX = 64 << 20 };

static int failed(const struct ckt_ctl_ledger *ledger, int error, struct ckt_ctl_problem *problem)
{
	return ckt_ctl_problem_set(problem, error, "%s/ledger.jsonl: %s; %s", ledger->path,
		strerror(error),
		error == ENOSPC || error == EDQUOT ? "make room there"
						   : "look at its owner and mode");
}

static int read_text(
	const struct ckt_ctl_ledger *ledger, char **ret_text, struct ckt_ctl_problem *problem)
{
	struct stat st;
	if (fstat(ledger->fd, &st))
		return failed(ledger, errno, problem);
	if (!S_ISREG(st.st_mode) || st.st_size > LEDGER_MAX)
		return failed(ledger, EFBIG, problem);
	char *text = malloc((size_t)st.st_size + 1);
	ssize_t n = text ? pread(ledger->fd, text, (size_t)st.st_size, 0) : -1;
	if (n < 0) {
		int error = text ? errno : ENOMEM;
		free(text);
		return failed(ledger, error, problem);
	}
	text[n] = 0;
	*ret_text = text;
	return 0;
}

static int parse(struct ckt_ctl_ledger *ledger, char *text, struct ckt_ctl_problem *problem)
{
	unsigned number = 1;
	for (char *end; (end = strchr(text, '\n')); text = end + 1, number++) {
		json_t *line = json_loadb(text, (size_t)(end - text), JSON_REJECT_DUPLICATES, NULL);
		if (!json_is_object(line) || json_array_append_new(ledger->lines, line)) {
			json_decref(line);
			return ckt_ctl_problem_set(problem, EINVAL,
				"%s/ledger.jsonl:%u: the line is not a JSON object; mend it, or "
				"bring the file back from a copy",
				ledger->path, number);
		}
	}
	return 0;
}

int ckt_ctl_ledger_open(int directory, const char *path, struct ckt_ctl_ledger *ret_ledger,
	struct ckt_ctl_problem *problem)
{
	struct ckt_ctl_ledger ledger = {.path = path, .lines = json_array()};
	char *text = NULL;
	ledger.fd = openat(directory, "ledger.jsonl", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	int result = ledger.fd < 0 ? failed(&ledger, errno, problem)
				   : read_text(&ledger, &text, problem);
	if (!result)
		result = parse(&ledger, text, problem);
	free(text);
	if (result)
		ckt_ctl_ledger_close(&ledger);
	else
		*ret_ledger = ledger;
	return result;
}

void ckt_ctl_ledger_close(struct ckt_ctl_ledger *ledger)
{
	json_decref(ledger->lines);
	if (ledger->fd >= 0)
		close(ledger->fd);
	*ledger = (struct ckt_ctl_ledger){.fd = -1};
}

/* Where the last whole line ends; -errno. */
static off_t end_of_lines(int fd)
{
	char byte;
	off_t end = lseek(fd, 0, SEEK_END);
	for (; end > 0; end--) {
		if (pread(fd, &byte, 1, end - 1) != 1)
			return -EIO;
		if (byte == '\n')
			break;
	}
	return end;
}

static int write_line(int fd, const char *text, size_t size)
{
	off_t end = end_of_lines(fd);
	if (end < 0 || ftruncate(fd, end))
		return end < 0 ? (int)end : -errno;
	ssize_t n = pwrite(fd, text, size, end);
	int result = n < 0 ? -errno : (size_t)n != size ? -ENOSPC : fsync(fd) ? -errno : 0;
	/* Half a line would count as not written anyway. */
	if (result && ftruncate(fd, end))
		return result;
	return result;
}

int ckt_ctl_ledger_add(struct ckt_ctl_ledger *ledger, json_t *line, struct ckt_ctl_problem *problem)
{
	char when[32];
	json_t *whole = json_pack(
		"{s:s}", "time", ckt_ctl_time_text((int64_t)time(NULL), when, sizeof when));
	char *text = whole && line && !json_object_update(whole, line)
		? json_dumps(whole, JSON_COMPACT)
		: NULL;
	json_decref(line);
	size_t size = text ? strlen(text) : 0;
	int result = text ? 0 : -ENOMEM;
	if (!result) {
		/* The place of the end. */
		text[size] = '\n';
		result = write_line(ledger->fd, text, size + 1);
	}
	if (!result && ckt_fault_reached(CKT_FAULT_CTL_CERTIFICATE_LEDGER))
		result = -EIO;
	if (!result && json_array_append(ledger->lines, whole))
		result = -ENOMEM;
	free(text);
	json_decref(whole);
	return result ? failed(ledger, -result, problem) : 0;
}

/* ---- Look-up */

const char *ckt_ctl_ledger_text(const json_t *line, const char *member)
{
	const char *text = json_string_value(json_object_get(line, member));
	return text ? text : "";
}

bool ckt_ctl_ledger_is_certificate(const json_t *line)
{
	const char *event = ckt_ctl_ledger_text(line, "event");
	return strcmp(event, "issue") == 0 || strcmp(event, "renew") == 0;
}

int64_t ckt_ctl_ledger_not_after(const json_t *line)
{
	return (int64_t)json_integer_value(json_object_get(line, "not_after"));
}

int64_t ckt_ctl_ledger_revoked(const struct ckt_ctl_ledger *ledger, const char *serial)
{
	for (size_t i = 0; i < json_array_size(ledger->lines); i++) {
		const json_t *line = json_array_get(ledger->lines, i);
		if (strcmp(ckt_ctl_ledger_text(line, "event"), "revoke") == 0 &&
			strcmp(ckt_ctl_ledger_text(line, "serial"), serial) == 0)
			return (int64_t)json_integer_value(json_object_get(line, "revoked"));
	}
	return 0;
}

static bool is_of(const json_t *line, const char *kind, const char *name)
{
	return ckt_ctl_ledger_is_certificate(line) &&
		(!kind || strcmp(ckt_ctl_ledger_text(line, "kind"), kind) == 0) &&
		(strcmp(ckt_ctl_ledger_text(line, "name"), name) == 0 ||
			strcmp(ckt_ctl_ledger_text(line, "serial"), name) == 0);
}

const json_t *ckt_ctl_ledger_find(
	const struct ckt_ctl_ledger *ledger, const char *kind, const char *name)
{
	for (size_t i = json_array_size(ledger->lines); i-- > 0;) {
		const json_t *line = json_array_get(ledger->lines, i);
		if (is_of(line, kind, name))
			return line;
	}
	return NULL;
}

bool ckt_ctl_ledger_is_ambiguous(const struct ckt_ctl_ledger *ledger, const char *name)
{
	return ckt_ctl_ledger_find(ledger, "server", name) &&
		ckt_ctl_ledger_find(ledger, "client", name);
}
