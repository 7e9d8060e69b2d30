/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of several processes of a job, whose GPU work depends on the others' as a collective's does: a host function on the stream gives
 * this rank's number to the others and waits for theirs.  So a rank that is stopped before it has issued that holds up the others.
 *
 * Arguments: the rank, how many there are, a directory of FIFOs F.T (from F to T), and what to do:
 *
 *	run FILE	exchanges until FILE exists, as rank 0 sees it; each rank checks its numbers against the CPU's
 *	hang FILE	the same, and once FILE exists the last rank leaves a host function that does not return until FILE.on exists
 *	spin FILE	and the last rank leaves a kernel that spins on pinned memory until FILE.on exists
 *
 * Directory/RANK.going exists once a rank is at work.
 */
#include "phase.h"

#include <atomic>
#include <string>

enum { RANKS_MAX = 8, AHEAD = 6 };

static int rank, ranks, in[RANKS_MAX], out[RANKS_MAX];
static std::string enough;

struct message {
	uint32_t value, last;
};

struct slot {
	message mine, theirs[RANKS_MAX];
};

__global__ void mix(uint32_t *x)
{
	*x = *x * 1664525u + 1013904223u;
}

__global__ void take(uint32_t *x, const slot *all, int ranks, int rank)
{
	for (int r = 0; r < ranks; r++)
		if (r != rank)
			*x = *x * 31u + all->theirs[r].value;
}

__global__ void spin(volatile unsigned *flag)
{
	while (!*flag)
		;
}

static bool exists(const std::string &path)
{
	return access(path.c_str(), F_OK) == 0;
}

static void whole(ssize_t n, size_t size, const char *what)
{
	if (n != (ssize_t)size) {
		perror(what);
		_exit(3);
	}
}

/* Everybody to everybody.  Rank 0 says which exchange is the last. */
static void exchange(void *opaque)
{
	slot *s = (slot *)opaque;
	message one;

	s->mine.last = rank == 0 && exists(enough);
	one = s->mine;
	for (int r = 0; r < ranks; r++)
		if (r != rank)
			whole(write(out[r], &one, sizeof(one)), sizeof(one), "write");
	for (int r = 0; r < ranks; r++) {
		if (r == rank)
			continue;
		whole(read(in[r], &one, sizeof(one)), sizeof(one), "read");
		s->theirs[r] = one;
	}
	if (rank)
		s->mine.last = s->theirs[0].last;
}

static void never(void *)
{
	while (!exists(enough + ".on"))
		usleep(2000);
}

static void open_all(const std::string &directory)
{
	for (int r = 0; r < ranks; r++) {
		std::string number = std::to_string(r), own = std::to_string(rank);
		if (r == rank)
			continue;
		/* Both ways: an open waits for nobody, and no rank's end is an end of file before all was read. */
		in[r] = open((directory + "/" + number + "." + own).c_str(), O_RDWR | O_CLOEXEC);
		out[r] = open((directory + "/" + own + "." + number).c_str(), O_RDWR | O_CLOEXEC);
		if (in[r] < 0 || out[r] < 0) {
			perror(directory.c_str());
			exit(2);
		}
	}
}

static void mark(const std::string &path)
{
	int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0)
		exit(2);
	close(fd);
}

/* All ranks' numbers after that many exchanges, as the CPU has them. */
static uint32_t expected(unsigned exchanges)
{
	uint32_t x[RANKS_MAX], before[RANKS_MAX];

	for (int r = 0; r < ranks; r++)
		x[r] = r + 1;
	for (unsigned e = 0; e < exchanges; e++) {
		for (int r = 0; r < ranks; r++)
			before[r] = x[r] = x[r] * 1664525u + 1013904223u;
		for (int r = 0; r < ranks; r++)
			for (int k = 0; k < ranks; k++)
				if (k != r)
					x[r] = x[r] * 31u + before[k];
	}
	return x[rank];
}

int main(int argc, char **argv)
{
	uint32_t *x, value;
	unsigned *flag, exchanges = 0;
	slot *slots;
	cudaStream_t stream;
	cudaEvent_t done[AHEAD];

	if (argc != 6)
		return 2;
	rank = atoi(argv[1]);
	ranks = atoi(argv[2]);
	std::string directory = argv[3], how = argv[4];
	enough = argv[5];
	if (ranks > RANKS_MAX)
		return 2;
	open_all(directory);
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc(&x, sizeof(*x)));
	CHECK(cudaMallocHost(&slots, AHEAD * sizeof(*slots)));
	CHECK(cudaMallocHost(&flag, sizeof(*flag)));
	*flag = 0;
	value = rank + 1;
	CHECK(cudaMemcpy(x, &value, sizeof(value), cudaMemcpyHostToDevice));
	for (int i = 0; i < AHEAD; i++)
		CHECK(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming));
	for (unsigned i = 0;; i++) {
		slot *s = &slots[i % AHEAD];
		/* Several exchanges are on the stream at any time; which is the last is known when it is done. */
		if (i >= AHEAD) {
			CHECK(cudaEventSynchronize(done[i % AHEAD]));
			exchanges++;
			if (s->mine.last)
				break;
		}
		/* Behind the one that was to be the last nobody exchanges any more, but all have put as many there. */
		mix<<<1, 1, 0, stream>>>(x);
		CHECK(cudaMemcpyAsync(&s->mine.value, x, sizeof(*x), cudaMemcpyDeviceToHost, stream));
		CHECK(cudaLaunchHostFunc(stream, exchange, s));
		take<<<1, 1, 0, stream>>>(x, s, ranks, rank);
		CHECK(cudaEventRecord(done[i % AHEAD], stream));
		if (i == AHEAD)
			mark(directory + "/" + std::to_string(rank) + ".going");
	}
	CHECK(cudaStreamSynchronize(stream));
	exchanges += AHEAD - 1;
	CHECK(cudaMemcpy(&value, x, sizeof(value), cudaMemcpyDeviceToHost));
	EXPECT(value == expected(exchanges));
	if (how != "run" && rank == ranks - 1) {
		if (how == "hang")
			CHECK(cudaLaunchHostFunc(stream, never, NULL));
		else
			spin<<<1, 1, 0, stream>>>(flag);
		mark(directory + "/stuck");
		while (how == "spin" && !exists(enough + ".on"))
			usleep(2000);
		*flag = 1;
		CHECK(cudaStreamSynchronize(stream));
	} else if (how != "run") {
		while (!exists(enough + ".on"))
			usleep(2000);
		CHECK(cudaDeviceSynchronize());
	}
	fprintf(stderr, "%u exchanges\n", exchanges);
	return finish();
}
