/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How cuBLAS comes and goes in a program: used before main, by two threads through one handle, closed with a handle alive and opened again, in a
 * child of fork, and by a thread that is inside of it when the program ends.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

#include "phase.h"

enum { N = 24, ROUNDS = 50, CHILD_SECONDS = 30 };

typedef struct cublasContext *handle_t;
static void *library;
static int (*create)(handle_t *);
static int (*destroy)(handle_t);
static int (*sgemm)(handle_t, int, int, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int);

static void open_library()
{
	library = dlopen("libcublas.so.13", RTLD_NOW);
	if (!library) {
		printf("%s\n", dlerror());
		exit(77);
	}
	*(void **)&create = dlsym(library, "cublasCreate_v2");
	*(void **)&destroy = dlsym(library, "cublasDestroy_v2");
	*(void **)&sgemm = dlsym(library, "cublasSgemm_v2");
	if (!create || !destroy || !sgemm) {
		printf("libcublas.so.13 lacks a function\n");
		exit(1);
	}
}

struct work {
	handle_t handle;
	float *a, *c;
	int status;
};

static int multiply(const struct work *w)
{
	float one = 1, zero = 0;

	return sgemm(w->handle, 0, 0, N, N, N, &one, w->a, N, w->a, N, &zero, w->c, N);
}

static void begin(struct work *w, handle_t handle)
{
	float host[N * N];

	for (int i = 0; i < N * N; i++)
		host[i] = (float)(i % 3);
	CHECK(cudaMalloc(&w->a, sizeof host));
	CHECK(cudaMalloc(&w->c, sizeof host));
	CHECK(cudaMemcpy(w->a, host, sizeof host, cudaMemcpyHostToDevice));
	w->handle = handle;
	w->status = 0;
	if (!handle)
		w->status = create(&w->handle);
	EXPECT(!w->status);
}

static void show(const char *name, const struct work *w)
{
	float host[N * N];

	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(host, w->c, sizeof host, cudaMemcpyDeviceToHost));
	print_checksum(name, host, sizeof host);
}

static struct work early;

/* Before main: the library's and ours. */
__attribute__((constructor)) static void before_main()
{
	open_library();
	begin(&early, NULL);
	EXPECT(!multiply(&early));
}

static void *work_often(void *data)
{
	struct work *w = (struct work *)data;

	/* Natively cuBLAS refuses a thread without a context. */
	CHECK(cudaSetDevice(0));
	for (int i = 0; i < ROUNDS && !w->status; i++)
		w->status = multiply(w);
	return NULL;
}

/* One handle and a handle each. */
static void test_threads()
{
	struct work shared[2], own[2];
	pthread_t threads[4];

	for (int i = 0; i < 2; i++) {
		begin(&shared[i], early.handle);
		begin(&own[i], NULL);
		pthread_create(&threads[2 * i], NULL, work_often, &shared[i]);
		pthread_create(&threads[2 * i + 1], NULL, work_often, &own[i]);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 2; i++) {
		EXPECT(!shared[i].status && !own[i].status);
		show("shared", &shared[i]);
		show("own", &own[i]);
		EXPECT(!destroy(own[i].handle));
	}
}

/* The child has no CUDA, and is told so by each call; the parent does not notice. */
static void test_fork()
{
	int status = 0;
	handle_t other = NULL;

	fflush(stdout);
	pid_t child = fork();
	if (!child) {
		alarm(CHILD_SECONDS);
		int wrong = multiply(&early) == 0;
		wrong |= (create(&other) == 0) << 1;
		/* Which has nothing to do but to come back. */
		destroy(early.handle);
		_exit(wrong);
	}
	EXPECT(child > 0 && waitpid(child, &status, 0) == child);
	EXPECT(WIFEXITED(status));
	if (WIFEXITED(status))
		printf("child: %d\n", WEXITSTATUS(status));
	EXPECT(!multiply(&early));
}

static volatile bool inside;

static void *work_for_ever(void *data)
{
	CHECK(cudaSetDevice(0));
	while (!multiply((struct work *)data))
		inside = true;
	return NULL;
}

int main()
{
	struct work again;
	static struct work last;	/* the thread has it behind the end of this function */
	pthread_t thread;

	show("before main", &early);
	test_threads();
	test_fork();
	phase();
	/* Closed while a handle of it is there. */
	EXPECT(!dlclose(library));
	open_library();
	begin(&again, NULL);
	EXPECT(!multiply(&again));
	show("again", &again);
	EXPECT(!destroy(again.handle));
	EXPECT(!multiply(&early));
	EXPECT(!destroy(early.handle));
	begin(&last, NULL);
	pthread_create(&thread, NULL, work_for_ever, &last);
	while (!inside)
		usleep(1000);
	return finish();
}
