/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the kernels of a kit (kit.py) on whatever libcuda.so.1 the loader finds, or the one named, and writes what came out.
 *
 *	record KIT RESULT [LIBCUDA [SECONDS]]	SECONDS: what one kernel may take, 30
 *	record --loads TEXTS LIBCUDA	prints 1 or 0 for each text of PTX, ended by a zero byte each: whether its kernel f0 can be loaded
 *
 * RESULT holds the outputs at the offsets of the manifest, RESULT.txt the device, the driver and one line for each form that could not
 * be run.  Needs no header and no library of CUDA's, so that one build serves every machine.  Each module runs in a process of its
 * own, a few at a time; where a form faults or does not end, another process goes on behind it.  Exits 0 when all forms ran, 1 when some did not, 2 when nothing could.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 128, MAX_MODULES = 4096, JIT_ERROR_LOG = 5, JIT_ERROR_LOG_BYTES = 6, AT_ONCE = 8, LOAD_SECONDS = 300 };

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

static struct {
	int (*array_create)(void **, const void *);
	int (*mipmap_create)(void **, const void *, unsigned);
	int (*mipmap_level)(void **, void *, unsigned);
	int (*copy_3d)(const void *);
	int (*texture_create)(uint64_t *, const void *, const void *, const void *);
	int (*surface_create)(uint64_t *, const void *);
} arrays;

static int report_fd = -1, result_fd = -1;
static unsigned form_seconds = 30;

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
		{"cuMemcpyHtoD_v2", &cu.to_device}, {"cuMemcpyDtoH_v2", &cu.to_host}, {"cuMemsetD8_v2", &cu.fill}, {"cuLaunchKernel", &cu.launch},
		{"cuArray3DCreate_v2", &arrays.array_create}, {"cuMipmappedArrayCreate", &arrays.mipmap_create},
		{"cuMipmappedArrayGetLevel", &arrays.mipmap_level}, {"cuMemcpy3D_v2", &arrays.copy_3d}, {"cuTexObjectCreate", &arrays.texture_create},
		{"cuSurfObjectCreate", &arrays.surface_create}};
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

/* ---- Textures and surfaces: the structures of cuda.h, by their ABI */

struct array_description { size_t width, height, depth; int format; unsigned channels, flags; };
struct copy_3d {
	struct { size_t x, y, z, level; int kind; void *host; uint64_t device; void *array, *reserved; size_t pitch, height; } from, to;
	size_t width_bytes, height, depth;
};
struct resource {
	int kind;
	union {
		void *array;
		struct { uint64_t memory; int format; unsigned channels; size_t width, height, pitch; } pitched;
		struct { uint64_t memory; int format; unsigned channels; size_t bytes; } linear;
		int reserved[32];
	};
	unsigned flags;
};
struct texture { int address[3], filter; unsigned flags, anisotropy; int mipmap_filter; float bias, least, most, border[4]; int reserved[12]; };

enum { RESOURCE_ARRAY = 0, RESOURCE_MIPMAP = 1, RESOURCE_LINEAR = 2, RESOURCE_PITCH = 3, MEMORY_HOST = 1, MEMORY_ARRAY = 3, ARRAY_LAYERED = 1, ARRAY_CUBE = 4 };

struct thing {
	char what[16], back[8];
	size_t size[3], contents;
	int format, channels, texel, array_flags, texture_flags, address, filter, levels, mip_filter;
	float least, most, bias, border;
	void *array;			/* of a surface */
	uint64_t handle;
};

static size_t at_least_1(size_t n) { return n ? n : 1; }

/* One level, to or from packed bytes of the host; moves *bytes on. */
static int copy_level(const struct thing *t, void *array, int level, char **bytes, int back)
{
	size_t w = at_least_1(t->size[0] >> level), h = at_least_1(t->size[1] >> level), d = at_least_1(t->size[2]);
	if (!(t->array_flags & (ARRAY_LAYERED | ARRAY_CUBE)))
		d = at_least_1(t->size[2] >> level);
	struct copy_3d copy = {.width_bytes = w * (size_t)t->texel, .height = h, .depth = d};
	copy.from.kind = back ? MEMORY_ARRAY : MEMORY_HOST;
	copy.to.kind = back ? MEMORY_HOST : MEMORY_ARRAY;
	(back ? &copy.from : &copy.to)->array = array;
	(back ? &copy.to : &copy.from)->host = *bytes;
	(back ? &copy.to : &copy.from)->pitch = copy.width_bytes;
	(back ? &copy.to : &copy.from)->height = h;
	*bytes += copy.width_bytes * h * d;
	return arrays.copy_3d(&copy);
}

static int make_array(struct thing *t, struct resource *resource, char *bytes)
{
	struct array_description description = {.width = t->size[0], .height = t->size[1], .depth = t->size[2], .format = t->format,
						.channels = (unsigned)t->channels, .flags = (unsigned)t->array_flags};
	bool mipmap = !strcmp(t->what, "mipmap");
	int rc = mipmap ? arrays.mipmap_create(&t->array, &description, (unsigned)t->levels) : arrays.array_create(&t->array, &description);
	resource->kind = mipmap ? RESOURCE_MIPMAP : RESOURCE_ARRAY;
	resource->array = t->array;
	for (int level = 0; !rc && level < t->levels; level++) {
		void *one = t->array;
		rc = mipmap ? arrays.mipmap_level(&one, t->array, (unsigned)level) : 0;
		if (!rc)
			rc = copy_level(t, one, level, &bytes, 0);
	}
	return rc;
}

static int make_memory(struct thing *t, struct resource *resource, const char *bytes)
{
	bool linear = !strcmp(t->what, "linear");
	size_t row = t->size[0] * (size_t)t->texel, pitch = linear ? row : (row + 511) / 512 * 512, rows = at_least_1(t->size[1]);
	uint64_t memory;
	int rc = cu.alloc(&memory, pitch * rows);
	for (size_t y = 0; !rc && y < rows; y++)
		rc = cu.to_device(memory + y * pitch, bytes + y * row, row);
	if (linear) {
		resource->kind = RESOURCE_LINEAR;
		resource->linear.memory = memory;
		resource->linear.format = t->format;
		resource->linear.channels = (unsigned)t->channels;
		resource->linear.bytes = row;
	} else {
		resource->kind = RESOURCE_PITCH;
		resource->pitched.memory = memory;
		resource->pitched.format = t->format;
		resource->pitched.channels = (unsigned)t->channels;
		resource->pitched.width = t->size[0];
		resource->pitched.height = rows;
		resource->pitched.pitch = pitch;
	}
	return rc;
}

/* A manifest's line "thing ..."; the object lives until the process ends. */
static int make_thing(const char *line, char *values, struct thing *t)
{
	struct resource resource = {0};
	struct texture texture = {0};
	memset(t, 0, sizeof *t);
	if (sscanf(line, "thing %15s %zu %zu %zu %d %d %d %d %d %d %d %d %d %f %f %f %f %zu %7s", t->what, &t->size[0], &t->size[1], &t->size[2], &t->format,
		   &t->channels, &t->texel, &t->array_flags, &t->texture_flags, &t->address, &t->filter, &t->levels, &t->mip_filter, &t->least, &t->most,
		   &t->bias, &t->border, &t->contents, t->back) != 19)
		return -1;
	bool array = strcmp(t->what, "linear") && strcmp(t->what, "pitch");
	int rc = array ? make_array(t, &resource, values + t->contents) : make_memory(t, &resource, values + t->contents);
	if (rc || !strcmp(t->what, "surface"))
		return rc ? rc : arrays.surface_create(&t->handle, &resource);
	for (int k = 0; k < 3; k++)
		texture.address[k] = t->address;
	for (int k = 0; k < 4; k++)
		texture.border[k] = t->border;
	texture.filter = t->filter;
	texture.flags = (unsigned)t->texture_flags;
	texture.mipmap_filter = t->mip_filter;
	texture.bias = t->bias;
	texture.least = t->least;
	texture.most = t->most;
	return arrays.texture_create(&t->handle, &resource, &texture, NULL);
}

/* ---- Running */

struct form { char kernel[32], key[16], name[256]; size_t input, output, bytes, scratch; unsigned threads; };

/* 0, or the error that ended it; a context that is lost makes all later forms fail, too. */
static int run_form(void *module, const struct form *f, const struct thing *thing, uint64_t values, uint64_t cells, char *host)
{
	void *function;
	uint64_t in = values + f->input, handle = thing ? thing->handle : 0;
	void *params[] = {&in, &cells, &handle};
	int rc = cu.module_function(&function, module, f->kernel);
	if (!rc)
		rc = cu.fill(cells, 0xcc, f->bytes + f->scratch);
	if (!rc)
		rc = cu.launch(function, f->threads / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, params, NULL);
	if (!rc)
		rc = cu.context_sync();
	char *to = host;
	if (!rc)
		rc = thing && !strcmp(thing->back, "back") ? copy_level(thing, thing->array, 0, &to, 1) : cu.to_host(host, cells, f->bytes);
	if (!rc && pwrite(result_fd, host, f->bytes, (off_t)f->output) != (ssize_t)f->bytes) {
		perror("record: the result");
		exit(2);
	}
	return rc;
}

static const char *next_line(const char *p) { return strchr(p, '\n') + 1; }

/* The next form, with the text of the thing before it or NULL; the place behind it or NULL. */
static const char *next_form(const char *p, struct form *f, const char **ret_thing)
{
	*ret_thing = NULL;
	if (!strncmp(p, "thing ", 6)) {
		*ret_thing = p;
		p = next_line(p);
	}
	if (sscanf(p, "form %31s %zu %zu %zu %zu %u %15s %255[^\n]", f->kernel, &f->input, &f->output, &f->bytes, &f->scratch, &f->threads, f->key, f->name) != 8)
		return NULL;
	return next_line(p);
}

/* What a child that runs a module tells while it lives: the number of the form it is at, and how many failed. */
struct progress { int at, failed; };

/*
 * The forms of one module from number `first` on, from its first manifest line to the next module's; in a child.  A form that faults
 * takes the context along, so the child ends there and another one goes on behind it.
 */
static int run_module(const char *kit, const char *lines, int first, struct progress *progress)
{
	char file[256], log[2048] = "";
	size_t n_text, n_values, most = 0;
	int skip = 0, number = 0;
	uint64_t values, cells;
	void *module = NULL;
	struct form f;
	struct thing made;
	const char *thing, *p;
	if (sscanf(lines, "module %255s\n%n", file, &skip) != 1)
		return 2;
	char *text = read_file(kit, file, &n_text), *data = read_file(kit, "values.bin", &n_values);
	progress->at = first;
	alarm(LOAD_SECONDS);
	open_context();
	for (p = lines + skip; (p = next_form(p, &f, &thing));)
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
	for (p = lines + skip; (p = next_form(p, &f, &thing)); number++) {
		if (number < first)
			continue;
		progress->at = number;
		alarm(form_seconds);
		int one = rc ? rc : thing ? make_thing(thing, data, &made) : 0;
		if (!one)
			one = run_form(module, &f, thing ? &made : NULL, values, cells, host);
		if (one) {
			report("failed: %s: error %d", f.name, one);
			progress->failed++;
			if (!rc && cu.context_sync())
				return 1;	/* the context is lost */
		}
	}
	/* The context dies with the process. */
	progress->at = INT_MAX;
	return 0;
}

/* One module of the manifest, and the child that is at it. */
struct job { const char *lines; pid_t pid; int first; struct progress *progress; };

static int start_job(const char *kit, struct job *job)
{
	job->pid = fork();
	if (job->pid == 0)
		_exit(run_module(kit, job->lines, job->first, job->progress));
	return job->pid < 0 ? -1 : 0;
}

/* After a child's end: true where another one must go on behind the form that ended it. */
static bool goes_on(struct job *job, int status)
{
	const char *p = strchr(job->lines, '\n') + 1, *thing;
	struct form f = {.name = "?"};
	int at = job->progress->at;
	if (at == INT_MAX)
		return false;
	for (int number = 0; number <= at && (p = next_form(p, &f, &thing)); number++)
		;
	if (WIFSIGNALED(status)) {
		report("failed: %s: the process was killed by signal %d%s", f.name, WTERMSIG(status), WTERMSIG(status) == SIGALRM ? ": no end" : "");
		job->progress->failed++;
	} else if (WEXITSTATUS(status) == 2) {
		return false;	/* no device, no file: told already */
	}
	job->first = at + 1;
	return true;
}

/* Runs all modules, a few at a time.  Returns how many forms failed. */
static int run_jobs(const char *kit, struct job *jobs, int n_jobs)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	int running = 0, next = 0, failed = 0, status;
	while (next < n_jobs || running) {
		while (next < n_jobs && running < (processors < AT_ONCE ? processors : AT_ONCE)) {
			if (start_job(kit, &jobs[next++]))
				return -1;
			running++;
		}
		pid_t pid = wait(&status);
		for (int k = 0; k < next; k++) {
			if (jobs[k].pid != pid)
				continue;
			jobs[k].pid = 0;
			if (goes_on(&jobs[k], status)) {
				if (start_job(kit, &jobs[k]))
					return -1;
			} else {
				running--;
				failed += jobs[k].progress->failed + (WIFEXITED(status) && WEXITSTATUS(status) == 2);
			}
		}
	}
	return failed;
}

/* The device's name and driver, asked in a child so that the parent stays free to fork. */
static int describe_in_child(void)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		describe();
		_exit(0);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ? 2 : WEXITSTATUS(status);
}

static int try_loading(const char *texts)
{
	size_t size;
	char *all = read_file("", texts, &size);
	report_fd = STDERR_FILENO;
	open_context();
	for (char *p = all; p < all + size; p += strlen(p) + 1) {
		void *module, *function;
		int rc = cu.module_load(&module, p, 0, NULL, NULL);
		putchar(rc || cu.module_function(&function, module, "f0") ? '0' : '1');
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
		fprintf(stderr, "usage: record KIT RESULT [LIBCUDA [SECONDS]]\n");
		return 2;
	}
	open_driver(argc > 3 ? argv[3] : "libcuda.so.1");
	if (argc > 4)
		form_seconds = (unsigned)atoi(argv[4]);
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
	if (describe_in_child()) {
		fprintf(stderr, "record: no device: see %s\n", path);
		return 2;
	}
	static struct job jobs[MAX_MODULES];
	int n_jobs = 0;
	struct progress *shared = mmap(NULL, sizeof *shared * MAX_MODULES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 2;
	for (char *p = manifest; p && n_jobs < MAX_MODULES; p = strstr(p, "\nmodule "), n_jobs++) {
		p += *p == '\n';
		jobs[n_jobs] = (struct job){.lines = p, .progress = &shared[n_jobs]};
	}
	bad = run_jobs(argv[1], jobs, n_jobs) != 0;
	report("done");
	free(manifest);
	return bad;
}
