/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that were met before; see known_servers.h. */
#include "rpc/transport/known_servers.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

enum {
	FILE_MAX = 1 << 20,
	ANSWER_MS = 120000,
};

/* One look at the file, or a change of it. */
struct known {
	char path[CKT_KNOWN_SERVERS_PATH];
	char server[CKT_KNOWN_SERVER_MAX + 1]; /* in small letters */
	char *text;                            /* of the file; "" where there is none */
	int lock_fd;
	char *message;
	size_t message_size;
};

int ckt_known_servers_configuration(const char *name, char *ret_path, size_t path_size)
{
	const char *own = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n = own && *own == '/' ? snprintf(ret_path, path_size, "%s/cricket/%s", own, name)
		: home && *home == '/'
		? snprintf(ret_path, path_size, "%s/.config/cricket/%s", home, name)
		: -1;
	return n < 0 ? -ENOENT : (size_t)n >= path_size ? -ENAMETOOLONG : 0;
}

static int say(struct known *known, const char *what, int error)
{
	snprintf(known->message, known->message_size, "%s: %s: %s; look at its owner and mode",
		known->path, what, strerror(error));
	return -error;
}

/* A line must stay a line, and a field a field. */
static bool take_name(const char *from, char ret_name[CKT_KNOWN_SERVER_MAX + 1])
{
	size_t length = strlen(from);
	if (!length || length > CKT_KNOWN_SERVER_MAX || *from == '#')
		return false;
	for (size_t i = 0; i <= length; i++) {
		unsigned char c = (unsigned char)from[i];
		if (c && (c <= ' ' || c >= 127))
			return false;
		ret_name[i] = (char)tolower(c);
	}
	return true;
}

static int read_text(struct known *known)
{
	struct stat st;
	int fd = open(known->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT) {
		known->text = calloc(1, 1);
		return known->text ? 0 : say(known, "no memory", ENOMEM);
	}
	int error = fd < 0 || fstat(fd, &st)                                 ? errno
		: !S_ISREG(st.st_mode) || st.st_size > FILE_MAX              ? EFBIG
		: st.st_mode & 0022 || (st.st_uid && st.st_uid != geteuid()) ? EPERM
									     : 0;
	known->text = error ? NULL : malloc((size_t)st.st_size + 1);
	ssize_t n = known->text ? pread(fd, known->text, (size_t)st.st_size, 0) : -1;
	if (!error && n < 0)
		error = known->text ? errno : ENOMEM;
	if (known->text)
		known->text[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
	return error ? say(known, error == EPERM ? "others may write it" : "cannot read it", error)
		     : 0;
}

static int begin(struct known *known, const char *server, char *message, size_t message_size)
{
	*known = (struct known){.lock_fd = -1, .message = message, .message_size = message_size};
	if (!take_name(server, known->server)) {
		snprintf(message, message_size,
			"'%.64s' is no name of a server; write a host name or an address", server);
		return -EINVAL;
	}
	int result = ckt_known_servers_configuration(
		"known_servers", known->path, sizeof known->path - 8);
	if (result)
		snprintf(message, message_size,
			"no place is known for the file known_servers; set HOME");
	return result;
}

static void end(struct known *known)
{
	free(known->text);
	if (known->lock_fd >= 0)
		close(known->lock_fd);
}

/* ~/.config/cricket, for this user only. */
static int make_directories(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		int failed = mkdir(path, 0700) && errno != EEXIST ? errno : 0;
		*slash = '/';
		if (failed)
			return -failed;
	}
	return 0;
}

/* The lock is a file of its own, because the file itself is replaced. */
static int take_lock(struct known *known)
{
	char path[CKT_KNOWN_SERVERS_PATH + 8];
	int result = make_directories(known->path);
	if (result)
		return say(known, "cannot make its directory", -result);
	snprintf(path, sizeof path, "%s.lock", known->path);
	known->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (known->lock_fd < 0)
		return say(known, "cannot lock it", errno);
	while (flock(known->lock_fd, LOCK_EX))
		if (errno != EINTR)
			return say(known, "cannot lock it", errno);
	return 0;
}

/* The next line from *p on that has this server's name; NULL: none. */
static const char *find_line(const struct known *known, const char *p)
{
	size_t length = strlen(known->server);
	for (; *p; p += strcspn(p, "\n"), p += *p == '\n')
		if (strncasecmp(p, known->server, length) == 0 && p[length] == ' ')
			return p;
	return NULL;
}

/* The fingerprint of a line; a line that was spoiled counts as another key. */
static void read_line(const char *line, uint8_t ret_fingerprint[CKT_FINGERPRINT_SIZE])
{
	char word[CKT_FINGERPRINT_TEXT] = "";
	const char *from = line + strcspn(line, " ");
	from += *from == ' ';
	size_t length = strcspn(from, " \n");
	if (length < sizeof word)
		memcpy(word, from, length);
	if (!ckt_fingerprint_parse(word, ret_fingerprint))
		memset(ret_fingerprint, 0, CKT_FINGERPRINT_SIZE);
}

static enum ckt_known_server look(const struct known *known,
	const uint8_t fingerprint[CKT_FINGERPRINT_SIZE], uint8_t ret_kept[CKT_FINGERPRINT_SIZE])
{
	const char *line = find_line(known, known->text);
	if (!line)
		return CKT_KNOWN_NOT;
	read_line(line, ret_kept);
	return memcmp(ret_kept, fingerprint, CKT_FINGERPRINT_SIZE) == 0 ? CKT_KNOWN_SAME
									: CKT_KNOWN_OTHER;
}

int ckt_known_servers_look(const char *server, const uint8_t fingerprint[CKT_FINGERPRINT_SIZE],
	enum ckt_known_server *ret_known, uint8_t ret_kept[CKT_FINGERPRINT_SIZE], char *ret_message,
	size_t message_size)
{
	struct known known;
	int result = begin(&known, server, ret_message, message_size);
	if (!result)
		result = read_text(&known);
	if (!result)
		*ret_known = look(&known, fingerprint, ret_kept);
	end(&known);
	return result;
}

/* ---- Remembering.  Precondition: locked, the text is read. */

static bool write_lines(
	const struct known *known, const uint8_t fingerprint[CKT_FINGERPRINT_SIZE], FILE *file)
{
	char text[CKT_FINGERPRINT_TEXT], day[16];
	struct tm tm;
	time_t now = time(NULL);
	const char *p = known->text;
	for (const char *line; (line = find_line(known, p));) {
		fwrite(p, 1, (size_t)(line - p), file);
		p = line + strcspn(line, "\n");
		p += *p == '\n';
	}
	fputs(p, file);
	if (*p && p[strlen(p) - 1] != '\n')
		fputc('\n', file);
	ckt_fingerprint_text(fingerprint, text);
	strftime(day, sizeof day, "%Y-%m-%d", gmtime_r(&now, &tm));
	fprintf(file, "%s %s %s\n", known->server, text, day);
	return fflush(file) == 0 && !ferror(file) && fsync(fileno(file)) == 0;
}

static int keep(struct known *known, const uint8_t fingerprint[CKT_FINGERPRINT_SIZE])
{
	char path[CKT_KNOWN_SERVERS_PATH + 8];
	snprintf(path, sizeof path, "%s.new", known->path);
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	int error = file ? 0 : errno;
	if (!file && fd >= 0)
		close(fd);
	errno = 0;
	if (file && !write_lines(known, fingerprint, file))
		error = errno ? errno : EIO;
	if (file && fclose(file) && !error)
		error = errno;
	if (!error && rename(path, known->path))
		error = errno;
	if (error && fd >= 0)
		unlink(path);
	return error ? say(known, "cannot write it", error) : 0;
}

int ckt_known_servers_keep(const char *server, const uint8_t fingerprint[CKT_FINGERPRINT_SIZE],
	char *ret_message, size_t message_size)
{
	struct known known;
	int result = begin(&known, server, ret_message, message_size);
	if (!result)
		result = take_lock(&known);
	if (!result)
		result = read_text(&known);
	if (!result)
		result = keep(&known, fingerprint);
	end(&known);
	return result;
}

/* ---- Deciding */

static int refuse_unknown(struct known *known, const char *fingerprint)
{
	snprintf(known->message, known->message_size,
		"server '%s' is not known and no authority is given: its key has the fingerprint "
		"%s; compare it with 'cricketctl certificate show cert.pem' on the server, then "
		"run cricketctl certificate trust %s --fingerprint %s",
		known->server, fingerprint, known->server, fingerprint);
	return -EACCES;
}

static int refuse_other(
	struct known *known, const char *fingerprint, const uint8_t kept[CKT_FINGERPRINT_SIZE])
{
	char before[CKT_FINGERPRINT_TEXT];
	ckt_fingerprint_text(kept, before);
	snprintf(known->message, known->message_size,
		"server '%s' HAS ANOTHER KEY than before: now %s, in %s it is %s: somebody may be "
		"between, or its key was renewed; ask its administrator, then run cricketctl "
		"certificate trust %s --fingerprint %s",
		known->server, fingerprint, known->path, before, known->server, fingerprint);
	return -EACCES;
}

/* The terminal, if this process may read it now: else it would be stopped. */
static int open_terminal(void)
{
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (fd >= 0 && tcgetpgrp(fd) == getpgrp())
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Whether the user wrote "yes" within the time. */
static bool ask(int terminal, const struct known *known, const char *fingerprint)
{
	char answer[16] = "";
	struct pollfd event = {.fd = terminal, .events = POLLIN};
	dprintf(terminal,
		"Server '%s' is not known.  Its key has the fingerprint %s.\n"
		"Compare it with 'cricketctl certificate show cert.pem' on the server.\n"
		"Trust it from now on (yes/no)? ",
		known->server, fingerprint);
	ssize_t n = poll(&event, 1, ANSWER_MS) == 1 ? read(terminal, answer, sizeof answer - 1) : 0;
	answer[n > 0 ? n : 0] = 0;
	return strcmp(answer, "yes\n") == 0;
}

static int meet(struct known *known, const uint8_t fingerprint[CKT_FINGERPRINT_SIZE])
{
	char text[CKT_FINGERPRINT_TEXT];
	const char *first = getenv("CRICKET_TLS_FIRST");
	ckt_fingerprint_text(fingerprint, text);
	if (first && strcmp(first, "accept") == 0) {
		ckt_info("server '%s' is remembered with the fingerprint %s", known->server, text);
		return keep(known, fingerprint);
	}
	/* A word that is not known refuses: it may be a "refuse" with a mistake in it. */
	int terminal = first && *first && strcmp(first, "ask") != 0 ? -1 : open_terminal();
	bool trusted = terminal >= 0 && ask(terminal, known, text);
	if (terminal >= 0)
		close(terminal);
	return trusted ? keep(known, fingerprint) : refuse_unknown(known, text);
}

int ckt_known_servers_decide(const char *server, const uint8_t fingerprint[CKT_FINGERPRINT_SIZE],
	const uint8_t *certificate, size_t certificate_size, char *ret_message, size_t message_size)
{
	struct known known;
	uint8_t kept[CKT_FINGERPRINT_SIZE];
	char text[CKT_FINGERPRINT_TEXT];
	enum ckt_known_server is = CKT_KNOWN_NOT;
	(void)certificate, (void)certificate_size;
	int saved = errno, result = begin(&known, server, ret_message, message_size);
	if (!result)
		result = read_text(&known);
	if (!result)
		is = look(&known, fingerprint, kept);
	if (!result && is == CKT_KNOWN_NOT) {
		/* Again, because another process may have asked meanwhile. */
		result = take_lock(&known);
		free(known.text);
		known.text = NULL;
		if (!result)
			result = read_text(&known);
		if (!result)
			is = look(&known, fingerprint, kept);
		if (!result && is == CKT_KNOWN_NOT)
			result = meet(&known, fingerprint);
	}
	ckt_fingerprint_text(fingerprint, text);
	if (!result && is == CKT_KNOWN_OTHER)
		result = refuse_other(&known, text, kept);
	end(&known);
	errno = saved;
	return result;
}
