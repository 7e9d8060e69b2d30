/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx-run: loads PTX texts and runs one kernel, for developers; not installed.
 *
 *	ptx-run [-g X[,Y[,Z]]] [-b X[,Y[,Z]]] [-s SHARED] [-t TARGET] [-k KERNEL] [-c] FILE.ptx...
 *		-- ARG...
 *
 * ARG: i:N (32 bits), l:N (64 bits), f:X, d:X, or a buffer: zi:N (N zeroed 32-bit words), ri:N (0,
 * 1, 2...), rf:N (0.0, 1.0, ...).  A leading p prints the buffer afterwards: pzi:8.  Without -k,
 * ptx-run lists the kernels.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/option_table.h"
#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/ptx.h"

struct buffer {
	uint32_t *words;
	size_t n;
	bool print, is_float;
};

static void *device_alloc(uint64_t size)
{
	size = (size + 4095) & ~4095ull;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED ||
		ckt_soft_memmap_set((uint64_t)(uintptr_t)memory, size,
			CKT_SOFT_PAGE_READ | CKT_SOFT_PAGE_WRITE)) {
		fprintf(stderr, "ptx-run: out of memory\n");
		exit(EXIT_FAILURE);
	}
	return memory;
}

static void output(void *data, int fd, const char *text, size_t size)
{
	(void)data;
	fwrite(text, 1, size, fd == 2 ? stderr : stdout);
}

static void *heap_alloc(void *data, uint64_t size)
{
	(void)data;
	return device_alloc(size);
}

static void heap_free(void *data, void *address)
{
	(void)data;
	(void)address; /* the process ends soon */
}

static char *read_file(const char *path, size_t *ret_size)
{
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	fseek(f, 0, SEEK_END);
	*ret_size = (size_t)ftell(f);
	rewind(f);
	char *text = malloc(*ret_size + 1);
	if (!text || fread(text, 1, *ret_size, f) != *ret_size)
		exit(EXIT_FAILURE);
	fclose(f);
	return text;
}

static void three(const char *text, uint32_t *ret)
{
	ret[0] = ret[1] = ret[2] = 1;
	sscanf(text, "%u,%u,%u", &ret[0], &ret[1], &ret[2]);
}

static void put_argument(const char *text, const struct ckt_ptx_param *param, uint8_t *params,
	struct buffer *buffers, unsigned *n_buffers)
{
	const char *value = strchr(text, ':');
	if (!value) {
		fprintf(stderr, "ptx-run: invalid argument %s\n", text);
		exit(CKT_EXIT_USAGE);
	}
	value++;
	uint64_t bits = 0;
	if (*text == 'i' || *text == 'l') {
		bits = strtoull(value, NULL, 0);
	} else if (*text == 'f') {
		float f = strtof(value, NULL);
		memcpy(&bits, &f, 4);
	} else if (*text == 'd') {
		double d = strtod(value, NULL);
		memcpy(&bits, &d, 8);
	} else {
		struct buffer *b = &buffers[(*n_buffers)++];
		b->print = *text == 'p';
		text += b->print;
		b->is_float = text[1] == 'f';
		b->n = strtoull(value, NULL, 0);
		b->words = device_alloc(b->n * 4 + 4);
		for (size_t k = 0; *text == 'r' && k < b->n; k++) {
			float f = (float)k;
			b->words[k] = (uint32_t)k;
			if (b->is_float)
				memcpy(&b->words[k], &f, 4);
		}
		bits = (uint64_t)(uintptr_t)b->words;
	}
	memcpy(params + param->offset_bytes, &bits, param->size_bytes < 8 ? param->size_bytes : 8);
}

static int run(struct ckt_ptx_module *module, const char *kernel, struct ckt_ptx_launch *launch,
	char **args, int n_args)
{
	const struct ckt_ptx_function *f = ckt_ptx_module_find_function(module, kernel);
	struct buffer buffers[16] = {0};
	unsigned n_buffers = 0;
	if (!f) {
		fprintf(stderr, "ptx-run: no kernel %s\n", kernel);
		return 1;
	}
	const struct ckt_ptx_function_info *info = ckt_ptx_function_info(f);
	if ((size_t)n_args != info->n_params || n_args > 16) {
		fprintf(stderr, "ptx-run: %s has %zu parameters\n", kernel, info->n_params);
		return CKT_EXIT_USAGE;
	}
	uint8_t *params = calloc(1, info->param_bytes + 8);
	for (int k = 0; k < n_args; k++)
		put_argument(args[k], &info->params[k], params, buffers, &n_buffers);
	launch->params = params;
	char message[256];
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	enum ckt_ptx_fault fault = ckt_ptx_launch(f, launch, message, sizeof message);
	clock_gettime(CLOCK_MONOTONIC, &to);
	fprintf(stderr, "%s: fault %d %s (%.3f ms)\n", kernel, fault, message,
		(double)(to.tv_sec - from.tv_sec) * 1e3 +
			(double)(to.tv_nsec - from.tv_nsec) / 1e6);
	for (unsigned b = 0; b < n_buffers; b++) {
		for (size_t k = 0; buffers[b].print && k < buffers[b].n; k++) {
			float v;
			memcpy(&v, &buffers[b].words[k], 4);
			if (buffers[b].is_float)
				printf("%g ", (double)v);
			else
				printf("%d ", (int)buffers[b].words[k]);
		}
		if (buffers[b].print)
			printf("\n");
	}
	free(params);
	return fault != CKT_PTX_FAULT_NONE;
}

struct options {
	struct ckt_ptx_launch *launch;
	unsigned target;
	const char *kernel;
};

static bool read_options(int argc, char **argv, struct options *ret_options)
{
	struct ckt_ptx_launch *launch = ret_options->launch;
	int option;
	while ((option = getopt(argc, argv, "+g:b:s:t:k:c")) != -1) {
		switch (option) {
		case 'g':
			three(optarg, launch->grid);
			break;
		case 'b':
			three(optarg, launch->block);
			break;
		case 's':
			launch->dynamic_shared_bytes = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 't':
			ret_options->target = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'k':
			ret_options->kernel = optarg;
			break;
		case 'c':
			launch->cooperative = true;
			break;
		default:
			return false;
		}
	}
	return true;
}

/* Loads the files before "--"; NULL, with a message, if the loader refuses them. */
static struct ckt_ptx_module *load_files(int argc, char **argv, unsigned target)
{
	struct ckt_ptx_load_options options = {.target = target};
	struct ckt_ptx_text texts[16];
	size_t n_texts = 0;
	for (; optind < argc && strcmp(argv[optind], "--") && n_texts < 16; optind++, n_texts++) {
		texts[n_texts].text = read_file(argv[optind], &texts[n_texts].size_bytes);
		texts[n_texts].name = argv[optind];
	}
	char log[512];
	struct ckt_ptx_module *module;
	enum ckt_ptx_result r =
		ckt_ptx_module_load(texts, n_texts, &options, log, sizeof log, &module);
	for (size_t k = 0; k < n_texts; k++)
		free((void *)texts[k].text);
	if (r != CKT_PTX_OK) {
		fprintf(stderr, "ptx-run: %d: %s\n", r, log);
		return NULL;
	}
	for (size_t k = 0; k < ckt_ptx_module_global_count(module); k++) {
		struct ckt_ptx_global *g = ckt_ptx_module_global(module, k);
		g->address = (uint64_t)(uintptr_t)device_alloc(g->size_bytes ? g->size_bytes : 1);
	}
	ckt_ptx_module_bind(module);
	return module;
}

/*
 * Prints why the kernel, or any kernel if it is NULL, cannot run; returns the number of refusals.
 */
static unsigned print_refusals(struct ckt_ptx_module *module, const char *kernel)
{
	unsigned refusals = 0;
	for (size_t k = 0; k < ckt_ptx_module_function_count(module); k++) {
		const struct ckt_ptx_function_info *info =
			ckt_ptx_function_info(ckt_ptx_module_function(module, k));
		if (!info->refusal || (kernel && strcmp(kernel, info->name)))
			continue;
		fprintf(stderr, "ptx-run: %s: %s\n", info->name, info->refusal);
		refusals++;
	}
	return refusals;
}

static void list_kernels(struct ckt_ptx_module *module)
{
	for (size_t k = 0; k < ckt_ptx_module_function_count(module); k++) {
		const struct ckt_ptx_function_info *info =
			ckt_ptx_function_info(ckt_ptx_module_function(module, k));
		printf("%s: %zu parameters, %u bytes shared, %u local\n", info->name,
			info->n_params, info->static_shared_bytes, info->local_bytes);
	}
}

int main(int argc, char **argv)
{
	struct ckt_ptx_device device = {.n_sm = 16,
		.capability = 120,
		.output = output,
		.heap_alloc = heap_alloc,
		.heap_free = heap_free};
	struct ckt_ptx_launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .device = &device};
	struct options options = {.launch = &launch, .target = 120};
	if (!read_options(argc, argv, &options))
		return CKT_EXIT_USAGE;
	struct ckt_ptx_module *module = load_files(argc, argv, options.target);
	if (!module)
		return 1;
	int status = print_refusals(module, options.kernel) != 0;
	int first = optind < argc ? optind + 1 : argc;
	if (!options.kernel)
		list_kernels(module);
	else if (!status)
		status = run(module, options.kernel, &launch, argv + first, argc - first);
	ckt_ptx_module_destroy(module);
	return status;
}
