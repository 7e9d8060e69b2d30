/*
 * Runs the kernels of a kit (kit.py) on whatever libcuda.so.1 the loader finds, or the one named, and writes what came out.
 *
 *	record KIT RESULT [LIBCUDA]
 *	record --loads TEXTS LIBCUDA	prints 1 or 0 for each text of PTX, ended by a zero byte each: whether it can be loaded
 *
 * RESULT holds the outputs at the offsets of the manifest, RESULT.txt the device, the driver and one line for each form that could not
 * be run.  Needs no header and no library of CUDA's, so that one build serves every machine.  Each module runs in a process of its
 * own: one that faults takes only its own forms along.  Exits 0 when all forms ran, 1 when some did not, 2 when nothing could.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 128, MAX_MODULES = 4096, JIT_ERROR_LOG = 5, JIT_ERROR_LOG_BYTES = 6 };

static struct {
	int (*init)(unsigned);
	int (*driver_version)(int *);
	int (*device_get)(int *, int);
	int (*device_name)(char *, int, int);
	int (*device_attribute)(int *, int, int);
	int (*primary_retain)(void **, int);
	int (*context_set)(void *);
	int (*context_sync)(void);
	int (*module_load)(void **, const void *, unsigned, int *, void **);
	int (*module_unload)(void *);
	int (*module_function)(void **, void *, const char *);
	int (*alloc)(uint64_t *, size_t);
	int (*to_device)(uint64_t, const void *, size_t);
	int (*to_host)(void *, uint64_t, size_t);
	int (*fill)(uint64_t, unsigned char, size_t);
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
} cu;

static int report_fd = -1, result_fd = -1;

static void report(const char *format, ...)
{
	char line[4096];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(line, sizeof line - 1, format, args);
	va_end(args);
	if (n > (int)sizeof line - 2)
		n = sizeof line - 2;
	line[n] = '\n';
	/* One write: lines of several processes do not mix. */
	if (write(report_fd, line, (size_t)n + 1) != n + 1)
		perror("record: the report");
}

static void open_driver(const char *path)
{
	static const struct { const char *name; void *place; } wanted[] = {
		{"cuInit", &cu.init}, {"cuDriverGetVersion", &cu.driver_version}, {"cuDeviceGet", &cu.device_get},
		{"cuDeviceGetName", &cu.device_name}, {"cuDeviceGetAttribute", &cu.device_attribute},
		{"cuDevicePrimaryCtxRetain", &cu.primary_retain}, {"cuCtxSetCurrent", &cu.context_set}, {"cuCtxSynchronize", &cu.context_sync},
		{"cuModuleLoadDataEx", &cu.module_load}, {"cuModuleUnload", &cu.module_unload}, {"cuModuleGetFunction", &cu.module_function}, {"cuMemAlloc_v2", &cu.alloc},
		{"cuMemcpyHtoD_v2", &cu.to_device}, {"cuMemcpyDtoH_v2", &cu.to_host}, {"cuMemsetD8_v2", &cu.fill}, {"cuLaunchKernel", &cu.launch}};
	void *library = dlopen(path, RTLD_NOW);
	if (!library) {
		fprintf(stderr, "record: %s\n", dlerror());
		exit(2);
	}
	for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
		void *symbol = dlsym(library, wanted[k].name);
		if (!symbol) {
			fprintf(stderr, "record: %s has no %s\n", path, wanted[k].name);
			exit(2);
		}
		memcpy(wanted[k].place, &symbol, sizeof symbol);
	}
}

static char *read_file(const char *folder, const char *name, size_t *ret_size)
{
	char path[4096];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", folder, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		perror(path);
		exit(2);
	}
	char *data = malloc((size_t)st.st_size + 1);
	for (off_t done = 0; data && done < st.st_size;) {
		ssize_t n = read(fd, data + done, (size_t)(st.st_size - done));
		if (n <= 0) {
			perror(path);
			exit(2);
		}
		done += n;
	}
	if (!data)
		exit(2);
	data[st.st_size] = '\0';
	close(fd);
	*ret_size = (size_t)st.st_size;
	return data;
}

static void open_context(void)
{
	int device, rc;
	void *context;
	if ((rc = cu.init(0)) || (rc = cu.device_get(&device, 0)) || (rc = cu.primary_retain(&context, device)) || (rc = cu.context_set(context))) {
		report("failed: no context: error %d", rc);
		exit(2);
	}
}

/* What the vectors were recorded on, in a child so that the parent stays free to fork. */
static void describe(void)
{
	int version = 0, major = 0, minor = 0, device = 0;
	char name[256] = "?", date[64];
	time_t now = time(NULL);
	open_context();
	cu.driver_version(&version);
	cu.device_get(&device, 0);
	cu.device_name(name, sizeof name, device);
	cu.device_attribute(&major, 75, device);
	cu.device_attribute(&minor, 76, device);
	strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
	report("device: %s, compute capability %d.%d", name, major, minor);
	report("cuda: %d.%d", version / 1000, version % 1000 / 10);
	report("date: %s", date);
}

struct form { char kernel[32], key[16], name[256]; size_t input, output, bytes, scratch; unsigned threads; };

/* 0, or the error that ended it; a context that is lost makes all later forms fail, too. */
static int run_form(void *module, const struct form *f, uint64_t values, uint64_t cells, char *host)
{
	void *function;
	uint64_t in = values + f->input;
	void *params[] = {&in, &cells};
	int rc = cu.module_function(&function, module, f->kernel);
	if (!rc)
		rc = cu.fill(cells, 0xcc, f->bytes + f->scratch);
	if (!rc)
		rc = cu.launch(function, f->threads / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, params, NULL);
	if (!rc)
		rc = cu.context_sync();
	if (!rc)
		rc = cu.to_host(host, cells, f->bytes);
	if (!rc && pwrite(result_fd, host, f->bytes, (off_t)f->output) != (ssize_t)f->bytes) {
		perror("record: the result");
		exit(2);
	}
	return rc;
}

/* The forms of one module, from its first manifest line to the next module's; in a child. */
static int run_module(const char *kit, const char *lines)
{
	char file[256], log[2048] = "";
	size_t n_text, n_values, most = 0;
	int failed = 0, skip = 0;
	uint64_t values, cells;
	void *module = NULL;
	struct form f;
	if (sscanf(lines, "module %255s\n%n", file, &skip) != 1)
		return 2;
	char *text = read_file(kit, file, &n_text), *data = read_file(kit, "values.bin", &n_values);
	open_context();
	for (const char *p = lines + skip; sscanf(p, "form %31s %zu %zu %zu %zu %u %15s %255[^\n]", f.kernel, &f.input, &f.output, &f.bytes, &f.scratch,
						   &f.threads, f.key, f.name) == 8; p = strchr(p, '\n') + 1)
		most = f.bytes + f.scratch > most ? f.bytes + f.scratch : most;
	int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES};
	void *option_values[] = {log, (void *)(uintptr_t)sizeof log};
	int rc = cu.module_load(&module, text, 2, options, option_values);
	if (rc)
		report("failed: %s: error %d: %s", file, rc, log);
	char *host = malloc(most + 1);
	if (!host || cu.alloc(&values, n_values) || cu.alloc(&cells, most) || cu.to_device(values, data, n_values)) {
		report("failed: %s: no memory", file);
		rc = rc ? rc : 2;
	}
	for (const char *p = lines + skip; sscanf(p, "form %31s %zu %zu %zu %zu %u %15s %255[^\n]", f.kernel, &f.input, &f.output, &f.bytes, &f.scratch,
						   &f.threads, f.key, f.name) == 8; p = strchr(p, '\n') + 1) {
		int one = rc ? rc : run_form(module, &f, values, cells, host);
		if (one)
			report("failed: %s: error %d", f.name, one);
		failed += one != 0;
	}
	/* The context dies with the process. */
	return failed != 0;
}

static int in_child(const char *kit, const char *lines)
{
	int status;
	pid_t pid = fork();
	if (pid < 0)
		return 2;
	if (pid == 0) {
		if (lines)
			_exit(run_module(kit, lines));
		describe();
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		return 2;
	if (WIFSIGNALED(status)) {
		report("failed: killed by signal %d at %.40s", WTERMSIG(status), lines ? lines : "the start");
		return 2;
	}
	return WEXITSTATUS(status);
}

static int try_loading(const char *texts)
{
	size_t size;
	char *all = read_file("", texts, &size);
	report_fd = STDERR_FILENO;
	open_context();
	for (char *p = all; p < all + size; p += strlen(p) + 1) {
		void *module;
		int rc = cu.module_load(&module, p, 0, NULL, NULL);
		putchar(rc ? '0' : '1');
		if (!rc)
			cu.module_unload(module);
	}
	putchar('\n');
	free(all);
	return 0;
}

int main(int argc, char **argv)
{
	char path[4096];
	size_t size;
	int bad = 0;
	if (argc < 3) {
		fprintf(stderr, "usage: record KIT RESULT [LIBCUDA]\n");
		return 2;
	}
	open_driver(argc > 3 ? argv[3] : "libcuda.so.1");
	if (!strcmp(argv[1], "--loads"))
		return try_loading(argv[2]);
	char *manifest = read_file(argv[1], "manifest", &size);
	snprintf(path, sizeof path, "%s.txt", argv[2]);
	result_fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	report_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	if (result_fd < 0 || report_fd < 0) {
		perror(argv[2]);
		return 2;
	}
	report("command: record KIT RESULT");
	if (in_child(argv[1], NULL)) {
		fprintf(stderr, "record: no device: see %s\n", path);
		return 2;
	}
	for (char *p = manifest; p; p = strstr(p, "\nmodule ")) {
		p += *p == '\n';
		bad |= in_child(argv[1], p) != 0;
	}
	report("done");
	free(manifest);
	return bad;
}
