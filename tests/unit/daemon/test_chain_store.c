/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/durable/chain_store.c: states that are damaged, locks, and what is no part of a chain. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/durable/chain_store.h"

#define SESSION "0123456789ab"

static int parent = -1;

/* A fresh directory; its descriptor. */
static int make(void)
{
	if (parent < 0) {
		MUST(mkdir(path_in("chains"), 0700), 0);
		parent = open(path_in("chains"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	int fd = ckt_chain_open(parent, SESSION, true);
	CU_ASSERT_FATAL(fd >= 0);
	return fd;
}

static void unmake(int fd)
{
	ckt_chain_remove(parent, fd, SESSION);
	close(fd);
	IS(faccessat(parent, SESSION, F_OK, AT_SYMLINK_NOFOLLOW), -1);
}

static struct ckt_chain_state a_state(void)
{
	struct ckt_chain_state state = {.session = SESSION,
		.owner = 1000,
		.generation = 3,
		.copy = UINT64_MAX,
		.executed = 77,
		.when = 1234,
		.restores = 2,
		.acked = UINT64_MAX - 1,
		.gpu = -1,
		.asked = true,
		.asleep = true,
		.replica_ms = 2000,
		.replicated = true,
		.count = 2,
		.images = {{4, 1000}, {7, 20}}};
	memset(state.secret_hash, 0xa5, sizeof state.secret_hash);
	memset(state.last, 0x5a, sizeof state.last);
	return state;
}

static void test_state(void)
{
	struct ckt_chain_state state = a_state(), back;
	int fd = make();
	IS(ckt_chain_read(fd, SESSION, &back), -ENOENT);
	MUST(ckt_chain_write(fd, &state), 0);
	MUST(ckt_chain_read(fd, SESSION, &back), 0);
	IS(memcmp(back.secret_hash, state.secret_hash, sizeof back.secret_hash), 0);
	IS(memcmp(back.last, state.last, sizeof back.last), 0);
	YES(back.owner == 1000 && back.generation == 3 && back.copy == UINT64_MAX &&
		back.executed == 77 && back.when == 1234 && back.restores == 2 &&
		back.acked == UINT64_MAX - 1 && back.gpu == -1 && back.asked && back.asleep &&
		back.replica_ms == 2000 && back.replicated && back.count == 2 &&
		back.images[1].number == 7 && back.images[1].bytes == 20);
	/* Under another session's name it is none. */
	IS(ckt_chain_read(fd, "0123456789ac", &back), -EBADMSG);
	/* As many images as there can be. */
	for (state.count = 0; state.count < CKT_CHAIN_IMAGES_MAX; state.count++)
		state.images[state.count] = (struct ckt_chain_image){
			(uint64_t)INT64_MAX - 100 + state.count, INT64_MAX / CKT_CHAIN_IMAGES_MAX};
	MUST(ckt_chain_write(fd, &state), 0);
	IS(ckt_chain_read(fd, SESSION, &back), 0);
	IS(back.count, CKT_CHAIN_IMAGES_MAX);
	unmake(fd);
}

/* What a state says of a group; the next one does not count before it is settled. */
static void test_group(void)
{
	struct ckt_chain_state state = a_state(), back;
	char text[4096];
	int fd = make();
	memset(state.cut, 0xc1, sizeof state.cut);
	state.member_count = CKT_CHAIN_MEMBERS_MAX;
	for (unsigned i = 0; i < CKT_CHAIN_MEMBERS_MAX; i++)
		snprintf(state.members[i], sizeof state.members[i], "0123456789%02x",
			0xab - CKT_CHAIN_MEMBERS_MAX + 1 + i);
	MUST(ckt_chain_write(fd, &state), 0);
	MUST(ckt_chain_read(fd, SESSION, &back), 0);
	YES(ckt_chain_same_cut(&state, &back) && ckt_chain_has_member(&back, SESSION));
	NO(ckt_chain_has_member(&back, "0123456789ff"));
	back.cut[0] ^= 1;
	NO(ckt_chain_same_cut(&state, &back));
	back.cut[0] ^= 1;
	back.members[0][0] = '1';
	NO(ckt_chain_same_cut(&state, &back));
	back = state;
	back.owner++;
	NO(ckt_chain_same_cut(&state, &back));
	back = state;
	back.member_count--;
	NO(ckt_chain_same_cut(&state, &back));
	back.member_count = 0;
	NO(ckt_chain_same_cut(&back, &back));
	/* The next one. */
	IS(ckt_chain_next_read(fd, SESSION, &back), -ENOENT);
	IS(ckt_chain_next_settle(fd, true), -ENOENT);
	IS(ckt_chain_next_settle(fd, false), 0);
	state.executed = 78;
	MUST(ckt_chain_next_write(fd, &state), 0);
	MUST(ckt_chain_read(fd, SESSION, &back), 0);
	IS(back.executed, 77);
	MUST(ckt_chain_next_read(fd, SESSION, &back), 0);
	IS(back.executed, 78);
	IS(ckt_chain_next_settle(fd, false), 0);
	IS(ckt_chain_next_read(fd, SESSION, &back), -ENOENT);
	MUST(ckt_chain_next_write(fd, &state), 0);
	IS(ckt_chain_next_settle(fd, true), 0);
	IS(ckt_chain_next_read(fd, SESSION, &back), -ENOENT);
	MUST(ckt_chain_read(fd, SESSION, &back), 0);
	IS(back.executed, 78);
	MUST(ckt_chain_next_write(fd, &state), 0);
	/* A cut without members, members without a cut, alone, twice, not sorted, without this one, too many. */
	static const char cut[] = "session " SESSION "\ncut c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1\n";
	static const char *const wrong[] = {"", "member " SESSION "\n",
		"member " SESSION "\nmember " SESSION "\n",
		"member " SESSION "\nmember 0123456789aa\n",
		"member 0123456789aa\nmember 0123456789ac\n", "member 0123\nmember " SESSION "\n"};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		snprintf(text, sizeof text, "%s%send\n", cut, wrong[i]);
		IS(ckt_chain_state_parse(text, &back), -EBADMSG);
	}
	snprintf(text, sizeof text,
		"session " SESSION "\nmember 0123456789aa\nmember " SESSION "\nend\n");
	IS(ckt_chain_state_parse(text, &back), -EBADMSG);
	snprintf(text, sizeof text, "%smember 0123456789aa\nmember " SESSION "\nend\n", cut);
	IS(ckt_chain_state_parse(text, &back), 0);
	int used = snprintf(text, sizeof text, "%s", cut);
	for (unsigned i = 0; i <= CKT_CHAIN_MEMBERS_MAX; i++)
		used += snprintf(text + used, sizeof text - (size_t)used, "member 0123456789%02x\n",
			0xab - CKT_CHAIN_MEMBERS_MAX + i);
	snprintf(text + used, sizeof text - (size_t)used, "end\n");
	IS(ckt_chain_state_parse(text, &back), -EBADMSG);
	unmake(fd);
}

/* Each beginning of a state, and a state with each byte wrong, is another state or none. */
static void test_damaged(void)
{
	struct ckt_chain_state state = a_state(), back;
	char text[4096], copy[4096];
	int fd = make();
	MUST(ckt_chain_write(fd, &state), 0);
	int file = openat(fd, "state", O_RDONLY | O_CLOEXEC);
	ssize_t size = read(file, text, sizeof text - 1);
	close(file);
	CU_ASSERT_FATAL(size > 100);
	text[size] = 0;
	for (ssize_t cut = 0; cut < size; cut++) {
		snprintf(copy, sizeof copy, "%.*s", (int)cut, text);
		IS(ckt_chain_state_parse(copy, &back), -EBADMSG);
	}
	for (ssize_t at = 0; at < size; at++)
		for (unsigned value = 1; value < 256; value += 50) {
			memcpy(copy, text, (size_t)size + 1);
			copy[at] = (char)value;
			back.count = 0;
			YES(ckt_chain_state_parse(copy, &back) == 0 ||
				back.count <= CKT_CHAIN_IMAGES_MAX);
		}
	static const char *const wrong[] = {"version 2\nsession 0123456789ab\nend\n",
		"version 1\nend\n", "version 1\nsession 0123456789a/\nend\n",
		"session 0123456789ab\nimage 2 1\nimage 1 1\nend\n",
		"session 0123456789ab\nimage ../.. 1\nend\n", "session 0123456789ab\nwhat 1\nend\n",
		"session 0123456789ab\nowner 4294967296\nend\n",
		"session 0123456789ab\nimage 0 1\nend\n",
		"session 0123456789ab\nimage 9223372036854775808 1\nend\n",
		"session 0123456789ab\nimage 1 192153584101141163\nend\n",
		"session 0123456789ab\nend\nend\n", "session 0123456789ab\nlast 00\nend\n"};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		snprintf(copy, sizeof copy, "%s", wrong[i]);
		IS(ckt_chain_state_parse(copy, &back), -EBADMSG);
	}
	unmake(fd);
}

/* What stands behind a state in its file makes it none. */
static void test_more(void)
{
	struct ckt_chain_state state = a_state(), back;
	static const char line[4097];
	int fd = make();
	for (unsigned i = 0; i < 3; i++) {
		MUST(ckt_chain_write(fd, &state), 0);
		IS(ckt_chain_read(fd, SESSION, &back), 0);
		int file = openat(fd, "state", O_WRONLY | O_APPEND | O_CLOEXEC);
		/* A zero, a zero and a text, and more than is read. */
		for (unsigned k = 0; k <= (i == 2) * 2; k++)
			MUST(write(file, i == 1 ? "\0end\n" : line,
				     i == 0           ? 1
					     : i == 1 ? 5
						      : 4096),
				i == 0           ? 1
					: i == 1 ? 5
						 : 4096);
		close(file);
		IS(ckt_chain_read(fd, SESSION, &back), -EBADMSG);
	}
	unmake(fd);
}

static void test_lock(void)
{
	int fd = make(), own = ckt_chain_lock(fd, false);
	CU_ASSERT_FATAL(own >= 0);
	/* Nobody else starts the session; who serves it already may stand beside. */
	IS(ckt_chain_lock(fd, false), -EBUSY);
	int beside = ckt_chain_lock(fd, true);
	YES(beside >= 0);
	/* It is free once all have let it go, a worker's copy included, which can say its end. */
	int copy = dup(own);
	NO(ckt_chain_is_over(fd));
	IS(write(copy, "e", 1), 1);
	YES(ckt_chain_is_over(fd));
	close(own);
	close(beside);
	IS(ckt_chain_lock(fd, false), -EBUSY);
	close(copy);
	own = ckt_chain_lock(fd, false);
	YES(own >= 0);
	NO(ckt_chain_is_over(fd));
	close(own);
	/* A link in its place leads nowhere. */
	IS(unlinkat(fd, "lock", 0), 0);
	write_file(path_in("victim"), "precious", 0600);
	IS(symlinkat(path_in("victim"), fd, "lock"), 0);
	IS(ckt_chain_lock(fd, false), -EPERM);
	IS(unlinkat(fd, "lock", 0), 0);
	char victim[128];
	snprintf(victim, sizeof victim, "%s", path_in("victim"));
	IS(linkat(AT_FDCWD, victim, fd, "lock", 0), 0);
	IS(ckt_chain_lock(fd, false), -EPERM);
	IS(unlinkat(fd, "lock", 0), 0);
	TEXT(read_file(path_in("victim")), "precious");
	unmake(fd);
}

static void test_directories(void)
{
	struct ckt_chain_state state = a_state();
	int fd = make();
	IS(ckt_chain_open(parent, "../../etc", false), -EINVAL);
	IS(ckt_chain_open(parent, "fedcba987654", false), -ENOENT);
	IS(symlinkat(SESSION, parent, "fedcba987654"), 0);
	IS(ckt_chain_open(parent, "fedcba987654", true), -EPERM);
	IS(unlinkat(parent, "fedcba987654", 0), 0);
	IS(mkdirat(parent, "fedcba987654", 0755), 0);
	IS(ckt_chain_open(parent, "fedcba987654", true), -EPERM);
	IS(unlinkat(parent, "fedcba987654", AT_REMOVEDIR), 0);
	int image = ckt_chain_image_open(fd, 4, true);
	CU_ASSERT_FATAL(image >= 0);
	IS(ckt_chain_image_open(fd, 4, true), -EEXIST);
	int file = openat(image, "data-0", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	IS(write(file, "contents", 8), 8);
	close(file);
	YES(ckt_chain_image_bytes(image) > 0);
	close(image);
	/* What no state names goes, links included, and not what they lead to. */
	int rest = ckt_chain_image_open(fd, 9, true);
	close(rest);
	IS(symlinkat("4", fd, "12"), 0);
	ckt_chain_clean(fd, &state);
	IS(faccessat(fd, "9", F_OK, 0), -1);
	IS(faccessat(fd, "12", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	IS(faccessat(fd, "4/data-0", F_OK, 0), 0);
	/* A state that somebody else could have written. */
	MUST(ckt_chain_write(fd, &state), 0);
	IS(fchmodat(fd, "state", 0666, 0), 0);
	IS(ckt_chain_read(fd, SESSION, &state), -EPERM);
	unmake(fd);
}

UNIT_SUITE(chain_store, {"state", test_state}, {"group", test_group}, {"damaged", test_damaged},
	{"more", test_more}, {"lock", test_lock}, {"directories", test_directories})
