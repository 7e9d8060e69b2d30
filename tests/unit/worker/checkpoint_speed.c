/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a session is saved and restored: test_checkpoint_speed WORKER LIBCUDA DIRECTORY MIB.
 * One line of JSON for each step: whole, nothing changed, 1%, 10% and all changed, whole and held,
 * restored.  Run by tests/gpu/checkpoint_speed.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rpc/net.h"
#include "tests/unit/worker/wire_client.h"

enum { PIECE = 1 << 20, CHUNK = 2 << 20, STEPS = 6 };
static struct wire wire;
static char names[STEPS][256];

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void sync_all(void)
{
	free(WIRE_CALL(&wire, ctx_synchronize, false).data);
	wire.acked = wire.seq;
}

static uint8_t random_data[2 * PIECE];

/*
 * Other contents in every call, at any speed the wire has: the same random bytes from another
 * offset, then copied on the device.
 */
static void scramble(uint64_t block, uint64_t mib, unsigned percent)
{
	static unsigned round;
	uint64_t chunks = mib / 2, some = chunks * percent / 100;
	for (uint64_t i = 0; i < some; i++) {
		uint64_t at = block + i * (chunks / (some ? some : 1)) * CHUNK;
		const uint8_t *data = random_data + (i * 13 + ++round * 7) % PIECE / 8 * 8;
		for (unsigned half = 0; half < 2; half++) {
			WIRE_BATCH(&wire, memcpy_htod, .dst = at + half * PIECE, .data = data,
				.data_len = PIECE);
			data = random_data + (i * 29 + ++round * 11) % PIECE / 8 * 8;
		}
		if (i % 64 == 63)
			sync_all();
	}
	sync_all();
}

static void say(uint64_t mib, const char *what, double seconds, uint64_t bytes,
	const ckt_worker_save2_res *saved)
{
	printf("{\"mib\": %llu, \"what\": \"%s\", \"seconds\": %.6f, \"bytes\": %llu, \"stopped_us\": %llu, \"changed\": %llu}\n",
		(unsigned long long)mib, what, seconds, (unsigned long long)bytes,
		saved ? (unsigned long long)saved->stopped_us : 0,
		saved ? (unsigned long long)saved->changed_bytes : 0);
	fflush(stdout);
}

static ckt_worker_save2_res save(
	unsigned step, uint64_t mib, const char *what, const ckt_worker_save2_res *base, bool hold)
{
	ckt_worker_save2_args args = {.deadline_ms = 10000,
		.keep_hashes = true,
		.hold = hold,
		.incremental = base != NULL};
	if (base)
		memcpy(args.base, base->image, sizeof args.base);
	double begun = now();
	ckt_worker_save2_res res = wire_save2(&wire, names[step], args);
	if (res.status)
		exit(1);
	say(mib, what, now() - begun, base ? res.changed_bytes : res.memory_bytes, &res);
	return res;
}

static void remove_all(unsigned from)
{
	char command[300];
	for (unsigned i = from; i < STEPS; i++) {
		snprintf(command, sizeof command, "rm -rf '%s'", names[i]);
		if (system(command))
			exit(1);
	}
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	uint64_t mib = strtoull(argv[4], NULL, 10);
	signal(SIGPIPE, SIG_IGN);
	for (unsigned i = 0; i < STEPS; i++) {
		snprintf(
			names[i], sizeof names[i], "%s/ckt-speed-%d-%u", argv[3], (int)getpid(), i);
		if (mkdir(names[i], 0700))
			return 1;
	}
	for (unsigned i = 0; i < sizeof random_data; i++)
		random_data[i] = (uint8_t)(rand() >> 8);
	wire.no_log = true;
	if (wire_start(&wire, argv[1], argv[2], 0, -1, NULL) ||
		wire_hello(&wire, CKT_HELLO_NEW, true) != CKT_HELLO_OK)
		return 1;
	struct wire_reply reply = WIRE_CALL(&wire, mem_alloc, true, .size = mib << 20);
	struct ckt_mem_alloc_res res = {0};
	if (reply.result || !ckt_mem_alloc_res_get(&reply.results, &res))
		return 1;
	free(reply.data);
	scramble(res.address, mib, 100);
	ckt_worker_save2_res last = save(0, mib, "whole", NULL, false);
	last = save(1, mib, "nothing changed", &last, false);
	scramble(res.address, mib, 1);
	last = save(2, mib, "1% changed", &last, false);
	scramble(res.address, mib, 10);
	last = save(3, mib, "10% changed", &last, false);
	remove_all(1);
	if (mkdir(names[4], 0700) || mkdir(names[5], 0700))
		return 1;
	remove_all(6);
	char command[300];
	snprintf(command, sizeof command, "rm -rf '%s'", names[0]);
	if (system(command))
		return 1;
	save(4, mib, "whole, held", NULL, true);
	wire_release(&wire, true, true, "", "");
	wire_ended(&wire);
	double begun = now();
	int fd = open(names[4], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char message[CKT_MESSAGE_MAX] = "";
	if (wire_start(&wire, argv[1], argv[2], 0, fd, message)) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	say(mib, "restored, start included", now() - begun, mib << 20, NULL);
	kill(wire.pid, SIGKILL);
	wire_ended(&wire);
	remove_all(0);
	return 0;
}
