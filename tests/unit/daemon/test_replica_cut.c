/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/durable/replica_cut.c: next states that peers brought become states together.
 * tests/server/test_replicate_group.py has them with real workers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/durable/chain_job.h"
#include "server/daemon/durable/replica.h"

static const char *const ids[] = {"0000000000d1", "0000000000d2"};
static int dirs[2];
static struct ckt_chain_state states[2];

static struct {
	int times, result;
} done;

static void note(void *context, int result)
{
	(void)context;
	done.times++;
	done.result = result;
}

static bool is_done(void *data)
{
	(void)data;
	return done.times != 0;
}

static struct ckt_chain_state state_of(int i, char cut, uint64_t number)
{
	struct ckt_chain_state state = {.owner = 1000,
		.gpu = -1,
		.executed = number,
		.generation = 1,
		.copy = 1,
		.member_count = 2,
		.count = 1,
		.images = {{.number = number}}};
	strcpy(state.session, ids[i]);
	memset(state.cut, cut, sizeof state.cut);
	for (unsigned m = 0; m < 2; m++)
		strcpy(state.members[m], ids[m]);
	return state;
}

static void begin(void)
{
	static char dir[128];
	char message[256] = "";
	snprintf(dir, sizeof dir, "%s", path_in("replica-images"));
	server.options.auto_checkpoint = (char *)"1h";
	server.options.auto_dir = dir;
	MUST(ckt_automatic_init(&server, message, sizeof message), 0);
	for (int i = 0; i < 2; i++) {
		dirs[i] = ckt_chain_open(server.automatic->dir_fd, ids[i], true);
		YES(dirs[i] >= 0);
		for (uint64_t number = 1; number <= 3; number++)
			close(ckt_chain_image_open(dirs[i], number, true));
		states[i] = state_of(i, 'a', 1);
		MUST(ckt_chain_write(dirs[i], &states[i]), 0);
	}
	done.times = 0;
}

static void end(void)
{
	for (int i = 0; i < 2; i++) {
		ckt_chain_remove(server.automatic->dir_fd, dirs[i], ids[i]);
		close(dirs[i]);
	}
	ckt_automatic_fini(&server);
	server.options.auto_checkpoint = server.options.auto_dir = NULL;
}

/* As KEEP does: what neither names goes. */
static void bring(int i)
{
	states[i] = state_of(i, 'b', 2);
	done.times = 0;
	MUST(ckt_chain_commit_foreign(&server.loop, dirs[i], &states[i], note, NULL), 0);
	YES(run_until(is_done, NULL));
	IS(done.result, 0);
	done.times = 0;
}

static void count(int i, int result)
{
	done.times = 0;
	MUST(ckt_replica_count(&server, &states[i], note, NULL), 0);
	YES(run_until(is_done, NULL));
	IS(done.times, 1);
	IS(done.result, result);
}

static bool has_image(int i, const char *name)
{
	return faccessat(dirs[i], name, F_OK, 0) == 0;
}

static uint64_t executed(int i)
{
	struct ckt_chain_state state;
	MUST(ckt_chain_read(dirs[i], ids[i], &state), 0);
	return state.executed;
}

static void test_together(void)
{
	begin();
	bring(0);
	/* The state that counts keeps its image, and the next one has its own. */
	YES(has_image(0, "1") && has_image(0, "2"));
	NO(has_image(0, "3"));
	count(0, 0);
	IS(executed(0), 1);
	YES(faccessat(dirs[0], "state.next", F_OK, 0) == 0);
	bring(1);
	count(1, 0);
	for (int i = 0; i < 2; i++) {
		IS(executed(i), 2);
		NO(faccessat(dirs[i], "state.next", F_OK, 0) == 0);
		YES(has_image(i, "2"));
		NO(has_image(i, "1"));
	}
	/* Again: there is nothing to do. */
	count(1, 0);
	end();
}

/* Its images are being written, or its session starts: not now. */
static void test_locked(void)
{
	begin();
	bring(0);
	bring(1);
	int lock = ckt_chain_lock(dirs[0], false);
	YES(lock >= 0);
	count(1, -EBUSY);
	close(lock);
	count(1, 0);
	IS(executed(0) + executed(1), 4);
	end();
}

/* A session that shares with nobody any more: the next state of its group is not its own. */
static void test_alone(void)
{
	begin();
	bring(0);
	states[0].member_count = 0;
	memset(states[0].cut, 0, sizeof states[0].cut);
	states[0].executed = 9;
	done.times = 0;
	MUST(ckt_chain_commit_foreign(&server.loop, dirs[0], &states[0], note, NULL), 0);
	YES(run_until(is_done, NULL));
	IS(executed(0), 9);
	NO(faccessat(dirs[0], "state.next", F_OK, 0) == 0);
	end();
}

UNIT_SUITE(replica_cut, {"together", test_together}, {"locked", test_locked}, {"alone", test_alone})
