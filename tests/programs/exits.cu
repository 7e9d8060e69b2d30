/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a process, in every order: the program runs itself once for each, and each must end with its own exit status, with all it
 * printed, and not hang.  Nothing is printed by what has ended its output.
 */
#include "phase.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

__global__ void spin(unsigned *p, unsigned rounds)
{
	unsigned x = 1;

	for (unsigned i = 0; i < rounds; i++)
		x = x * 1664525u + 1013904223u;
	*p = x;
}

static unsigned *data;
static cudaStream_t stream;
static cudaEvent_t event;
static pthread_key_t key;

static void start(void)
{
	CHECK(cudaMalloc(&data, 4));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaEventCreate(&event));
}

static void work_on(void)
{
	for (int i = 0; i < 20; i++)
		spin<<<1, 1, 0, stream>>>(data, 2000);
}

/* Frees as a program's static objects do, after main or even after the runtime: any answer is good, as long as there is one. */
static void release(void)
{
	cudaError_t error = cudaFree(data);

	if (error != cudaSuccess && error != cudaErrorInvalidValue && error != cudaErrorCudartUnloading && error != cudaErrorContextIsDestroyed)
		printf("cudaFree: %s\n", cudaGetErrorName(error));
	cudaEventDestroy(event);
	cudaStreamDestroy(stream);
	cudaDeviceSynchronize();
	printf("released\n");
	fflush(stdout);
}

struct holder {
	bool used = false;
	~holder()
	{
		if (used)
			release();
	}
};
static holder static_holder;
static thread_local holder thread_holder;

__attribute__((destructor(101))) static void last(void)
{
	/* After everything else of this program. */
	if (getenv("CKT_EXITS_LAST"))
		release();
}

static void *busy(void *opaque)
{
	(void)opaque;
	for (;;) {
		spin<<<1, 1, 0, stream>>>(data, 2000);
		cudaStreamSynchronize(stream);
		unsigned value;
		cudaMemcpy(&value, data, 4, cudaMemcpyDeviceToHost);
	}
	return NULL;
}

static void *ends_process(void *opaque)
{
	(void)opaque;
	work_on();
	exit(5);
}

static void *keeps(void *opaque)
{
	(void)opaque;
	work_on();
	thread_holder.used = true;
	pthread_setspecific(key, &key);
	return NULL;
}

static void of_thread(void *opaque)
{
	(void)opaque;
	if (cudaDeviceSynchronize() == cudaSuccess)
		printf("synchronized at a thread's end\n");
}

static void *after_main(void *opaque)
{
	unsigned value = 0;

	pthread_join(*(pthread_t *)opaque, NULL);
	spin<<<1, 1>>>(data, 1);
	CHECK(cudaMemcpy(&value, data, 4, cudaMemcpyDeviceToHost));
	printf("after main's thread: %u\n", value);
	exit(6);
}

static int child(const char *how)
{
	static pthread_t self;
	pthread_t threads[4];

	self = pthread_self();
	if (strcmp(how, "none") == 0)	/* nothing of CUDA was called */
		return 3;
	start();
	work_on();
	if (strcmp(how, "return") == 0)	/* work is under way, nothing is given back */
		return 3;
	if (strcmp(how, "static") == 0) {
		static_holder.used = true;
		return 3;
	}
	if (strcmp(how, "last") == 0)
		return 3;
	if (strcmp(how, "atexit") == 0) {
		atexit(release);
		exit(3);
	}
	if (strcmp(how, "quick") == 0)
		quick_exit(3);
	if (strcmp(how, "_exit") == 0)
		_exit(3);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "reset") == 0) {
		static_holder.used = true;
		CHECK(cudaDeviceReset());
		return 3;
	}
	if (strcmp(how, "busy") == 0) {	/* while other threads are in CUDA calls */
		for (pthread_t &thread : threads)
			pthread_create(&thread, NULL, busy, NULL);
		usleep(50000);
		return 3;
	}
	if (strcmp(how, "thread") == 0) {
		pthread_create(&threads[0], NULL, busy, NULL);
		pthread_create(&threads[1], NULL, ends_process, NULL);
		pthread_join(threads[1], NULL);
		return 99;
	}
	if (strcmp(how, "local") == 0) {	/* destructors of a thread's objects and keys */
		pthread_key_create(&key, of_thread);
		pthread_create(&threads[0], NULL, keeps, NULL);
		pthread_join(threads[0], NULL);
		return 3;
	}
	if (strcmp(how, "main") == 0) {	/* the first thread goes first */
		CHECK(cudaDeviceSynchronize());
		pthread_create(&threads[0], NULL, after_main, &self);
		pthread_exit(NULL);
	}
	if (strcmp(how, "fork") == 0) {	/* a child process ends; its parent goes on */
		unsigned value = 0;
		int status;
		pid_t pid = fork();

		if (pid == 0)
			exit(cudaFree(data) == cudaSuccess ? 9 : 4);
		waitpid(pid, &status, 0);
		printf("forked: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
		spin<<<1, 1>>>(data, 1);
		CHECK(cudaMemcpy(&value, data, 4, cudaMemcpyDeviceToHost));
		return 3;
	}
	return 98;
}

int main(int argc, char **argv)
{
	static const char *const ways[] = {"none", "return", "static", "last", "atexit", "quick", "_exit", "abort", "reset", "busy", "thread", "local", "main",
					   "fork"};

	if (argc > 2 && strcmp(argv[1], "child") == 0)
		return child(argv[2]);
	for (const char *how : ways) {
		char self[] = "/proc/self/exe", word[] = "child", way[16];
		char *arguments[] = {argv[0], word, way, NULL};
		int status;
		pid_t pid;

		snprintf(way, sizeof(way), "%s", how);
		printf("%s\n", how);
		fflush(stdout);
		if (strcmp(how, "last") == 0)
			setenv("CKT_EXITS_LAST", "1", 1);
		else
			unsetenv("CKT_EXITS_LAST");
		if (posix_spawn(&pid, self, NULL, NULL, arguments, environ) || waitpid(pid, &status, 0) != pid)
			return 1;
		/* NVIDIA's own driver does not bear threads in its calls while the process ends; through Cricket it must be as if it did. */
		if (!getenv("LD_PRELOAD") && WIFSIGNALED(status) && strcmp(how, "busy") == 0)
			printf("status 3\n");
		else if (!getenv("LD_PRELOAD") && WIFSIGNALED(status) && strcmp(how, "thread") == 0)
			printf("status 5\n");
		else if (WIFSIGNALED(status))
			printf("signal %d\n", WTERMSIG(status));
		else
			printf("status %d\n", WEXITSTATUS(status));
	}
	return finish();
}
