/* server/daemon/lend.c: lending an image's directory: to the workers' user and back, and nothing that a link or a second name points to. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"

enum { OWNER = 4001, BORROWER = 4002, STRANGER = 4003 };

static char message[256];

static int make(const char *name, uid_t owner)
{
	const char *path = path_in(name);
	IS(mkdir(path, 0700), 0);
	IS(chown(path, owner, owner), 0);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static uid_t owner_of(int fd, const char *name)
{
	struct stat st = {.st_uid = 99999};
	fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW);
	return st.st_uid;
}

static void add(int fd, const char *name, uid_t owner)
{
	int file = openat(fd, name, O_WRONLY | O_CREAT, 0600);
	IS(fchown(file, owner, owner), 0);
	close(file);
}

static void test_no_need(void)
{
	struct ckt_loan loan;
	int fd = open(directory, O_RDONLY | O_DIRECTORY), file;
	server.user.change = false;
	IS(ckt_loan_make(&server, fd, geteuid(), &loan, message, sizeof message), 0);
	IS(loan.fd, -1);
	ckt_loan_end(&loan);
	write_file(path_in("plain"), "x", 0600);
	file = open(path_in("plain"), O_RDONLY);
	IS(ckt_loan_make(&server, file, geteuid(), &loan, message, sizeof message), -ENOTDIR);
	IS(ckt_loan_make(&server, 999, geteuid(), &loan, message, sizeof message), -ENOTDIR);
	HAS(message, "no directory");
	close(file);
	close(fd);
}

static void test_lend(void)
{
	struct ckt_loan loan;
	if (geteuid() != 0)
		return;	/* only root lends */
	server.user = (struct ckt_worker_user){.change = true, .uid = BORROWER, .gid = BORROWER, .name = "borrower"};
	int fd = make("lent", OWNER);
	add(fd, "manifest", OWNER);
	IS(ckt_loan_make(&server, fd, STRANGER, &loan, message, sizeof message), -EPERM);
	HAS(message, "another user");
	MUST(ckt_loan_make(&server, fd, OWNER, &loan, message, sizeof message), 0);
	IS(owner_of(fd, "."), BORROWER);
	IS(owner_of(fd, "manifest"), BORROWER);
	add(fd, "data-0", BORROWER);	/* what the worker made goes back too */
	ckt_loan_end(&loan);
	IS(loan.fd, -1);
	IS(owner_of(fd, "."), OWNER);
	IS(owner_of(fd, "manifest"), OWNER);
	IS(owner_of(fd, "data-0"), OWNER);
	ckt_loan_end(&loan);
	close(fd);
	/* Their own already. */
	fd = make("theirs", BORROWER);
	IS(ckt_loan_make(&server, fd, STRANGER, &loan, message, sizeof message), 0);
	IS(loan.fd, -1);
	close(fd);
	server.user = (struct ckt_worker_user){0};
}

static void test_hostile(void)
{
	static const char *const kinds[] = {"link", "second name", "foreign", "pipe", "deep"};
	struct ckt_loan loan;
	if (geteuid() != 0)
		return;
	server.user = (struct ckt_worker_user){.change = true, .uid = BORROWER, .gid = BORROWER, .name = "borrower"};
	write_file(path_in("precious"), "x", 0600);
	IS(chown(path_in("precious"), OWNER, OWNER), 0);
	for (size_t i = 0; i < COUNT(kinds); i++) {
		char name[32], deep[64] = "d";
		snprintf(name, sizeof name, "hostile-%zu", i);
		int fd = make(name, OWNER);
		switch (i) {
		case 0:
			IS(symlinkat(path_in("precious"), fd, "x"), 0);
			break;
		case 1:
			IS(linkat(AT_FDCWD, path_in("precious"), fd, "x", 0), 0);
			break;
		case 2:
			add(fd, "x", STRANGER);
			break;
		case 3:
			IS(mkfifoat(fd, "x", 0600), 0);
			break;
		default:
			for (int depth = 0; depth < 6; depth++, strcat(deep, "/d")) {
				IS(mkdirat(fd, deep, 0700), 0);
				IS(fchownat(fd, deep, OWNER, OWNER, 0), 0);
			}
		}
		if (!IS(ckt_loan_make(&server, fd, OWNER, &loan, message, sizeof message) < 0, true))
			CU_FAIL("of a row of the table");
		IS(loan.fd, -1);
		IS(owner_of(fd, "."), OWNER);	/* given back */
		close(fd);
	}
	struct stat st;
	IS(stat(path_in("precious"), &st), 0);
	IS(st.st_uid, OWNER);
	server.user = (struct ckt_worker_user){0};
}

UNIT_SUITE(lend, {"no need", test_no_need}, {"lend", test_lend}, {"hostile", test_hostile})
