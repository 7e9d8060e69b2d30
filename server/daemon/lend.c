/* Lending image directories; see lend.h. */
#include "lend.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/log.h"

enum { DEPTH_MAX = 4 };

struct change {
	uid_t from, to;
	gid_t group;
	bool back;	/* what belongs to `to` already is right: lending may have stopped half way */
};

static int change_directory(int fd, const struct change *change, unsigned depth);

/* One entry of a directory, opened so that neither a link nor a device nor a pipe is followed or waited for. */
static int change_entry(int directory, const char *name, const struct change *change, unsigned depth)
{
	struct stat st;
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int result = fstat(fd, &st) ? -errno : 0;
	if (!result && S_ISDIR(st.st_mode))
		result = depth < DEPTH_MAX ? change_directory(fd, change, depth + 1) : -ELOOP;
	else if (!result && (!change->back || st.st_uid != change->to)) {
		if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_uid != change->from)
			result = -EPERM;
		else if (fchown(fd, change->to, change->group))
			result = -errno;
	}
	close(fd);
	return result;
}

/* Goes on after a failure, so that giving back gives back all it can; the first failure counts. */
static int change_directory(int fd, const struct change *change, unsigned depth)
{
	struct stat st;
	if (fstat(fd, &st))
		return -errno;
	if (st.st_uid != change->from && (!change->back || st.st_uid != change->to))
		return -EPERM;
	int result = 0;
	int list = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = list >= 0 ? fdopendir(list) : NULL;
	if (!dir) {
		result = -errno;
		if (list >= 0)
			close(list);
		return result;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		int changed = change_entry(fd, entry->d_name, change, depth);
		if (changed && !result)
			result = changed;
	}
	closedir(dir);
	if (fchown(fd, change->to, change->group) && !result)
		result = -errno;
	return result;
}

int ckt_loan_make(const struct ckt_server *server, int fd, uint32_t peer_uid, struct ckt_loan *ret_loan, char *ret_message,
		  size_t message_size)
{
	const struct ckt_worker_user *user = &server->user;
	struct stat st;
	ret_loan->fd = -1;
	if (fstat(fd, &st) || !S_ISDIR(st.st_mode)) {
		snprintf(ret_message, message_size, "what came along is no directory");
		return -ENOTDIR;
	}
	if (!user->change || st.st_uid == user->uid)
		return 0;
	if (st.st_uid != peer_uid && peer_uid != 0) {
		snprintf(ret_message, message_size,
			 "the directory belongs to another user: only its owner or root may use it (or it is in use now)");
		return -EPERM;
	}
	struct ckt_loan loan = {.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3), .owner = st.st_uid, .group = st.st_gid, .borrower = user->uid};
	struct change change = {.from = loan.owner, .to = loan.borrower, .group = user->gid};
	int result = loan.fd < 0 ? -errno : change_directory(loan.fd, &change, 0);
	if (!result) {
		*ret_loan = loan;
		return 0;
	}
	if (loan.fd >= 0)
		ckt_loan_end(&loan);
	snprintf(ret_message, message_size, "the directory cannot be handed to user '%s', whom the workers run as: %s%s", user->name,
		 strerror(-result), result == -EPERM ? "; it must be on a local file system and hold nothing but an image" : "");
	return result;
}

void ckt_loan_end(struct ckt_loan *loan)
{
	if (loan->fd < 0)
		return;
	struct change change = {.from = loan->borrower, .to = loan->owner, .group = loan->group, .back = true};
	int result = change_directory(loan->fd, &change, 0);
	if (result)
		ckt_warning("an image's directory could not be given back whole to user %u: %s", (unsigned)loan->owner, strerror(-result));
	close(loan->fd);
	loan->fd = -1;
}
