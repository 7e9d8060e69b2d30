/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: what an image says of forwarded libraries (server/worker/libs/state_image.c),
 * checked before anything is made of it.
 *
 * The bytes are lists of small numbers: contexts, blocks, settings, libraries, steps, journal.
 * What the check lets through must hold what the replay relies on, which believes it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "rpc/handle.h"
#include "server/worker/libs/libs.h"
#include "server/worker/libs/state.h"
#include "server/worker/worker.h"
#include "tests/fuzz/fuzz.h"

enum { LIST_MAX = 15, ARGS_MAX = 24 };

static int never(struct ckt_wcall *call)
{
	(void)call;
	abort();
}

/* A procedure of each kind; the object's id is the first argument, or the second. */
static const struct ckt_proc procs[] = {
	[1] = {"open", never, 0, 0, 0, 0},
	[2] = {"create", never, CKT_PROC_NUMBERED | CKT_PROC_CREATES, 0, 0, 0},
	[3] = {"set", never, CKT_PROC_BATCHED | CKT_PROC_SETS, 0, 8, 4},
	[4] = {"run", never, CKT_PROC_BATCHED, 0, 0, 0},
	[5] = {"destroy", never, CKT_PROC_BATCHED | CKT_PROC_DESTROYS, 0, 0, 0},
	[7] = {"createBehind", never, CKT_PROC_CREATES, 8, 0, 0},
};
static const unsigned proc_count = sizeof procs / sizeof *procs;
static struct ckt_library library = {
	.name = "toy", .lib = CKT_LIB_CUDNN, .procs = procs, .proc_count = &proc_count};

/* ---- Reading the bytes; behind the last one all is 0 */

static const uint8_t *at, *end;

static unsigned byte(void)
{
	return at < end ? *at++ : 0;
}

/* Mostly of the right kind, so that the check is got through. */
static uint64_t id(enum ckt_kind kind)
{
	unsigned b = byte();
	return ckt_handle_make(b & 0x80 ? CKT_KIND_STREAM : kind, b >> 4 & 7, b & 15) |
		(b == 0xff ? 1ull << 63 : 0);
}

static unsigned length(void)
{
	return byte() % (LIST_MAX + 1);
}

static ckt_image_context contexts[LIST_MAX];
static ckt_image_block blocks[LIST_MAX];
static ckt_image_device device;
static ckt_image_setting settings[LIST_MAX];
static ckt_image_library libraries[LIST_MAX];
static ckt_image_library_step steps[LIST_MAX];
static char args[LIST_MAX][ARGS_MAX];
static ckt_image_journal journal[LIST_MAX];

static void read_step(ckt_image_library_step *step, char *bytes, uint64_t *number)
{
	unsigned b = byte();
	*number += b >> 6 == 3 ? 0 : 1 + (b >> 6);
	*step = (ckt_image_library_step){
		.kind = b & 7, .library = byte() & 3, .proc = byte() % 9, .number = *number};
	step->id = id(step->kind == CKT_LIB_CAPTURE ? CKT_KIND_LIB_CALL : CKT_KIND_LIB_OBJECT);
	step->context = id(CKT_KIND_CONTEXT);
	b = byte();
	step->life = b & 3;
	step->workspace = (uint64_t)(b >> 2 & 3) << 12;
	step->workspace_bytes = b >> 4;
	b = byte();
	memset(bytes, 0, ARGS_MAX);
	/* In just as many bytes, so that a read behind them is found. */
	step->args.args_len = b % (ARGS_MAX + 1);
	step->args.args_val = malloc(step->args.args_len + !step->args.args_len);
	ckt_put_u64((uint8_t *)bytes + (b & 0x40 ? 8 : 0), step->id);
	memcpy(step->args.args_val, bytes, step->args.args_len);
}

static void read_image(ckt_image *image)
{
	static char *const names[] = {(char *)"NCCL_ALGO", (char *)"NVIDIA_TF32_OVERRIDE",
		(char *)"LD_PRELOAD", (char *)""};
	static char *const values[] = {(char *)"1", (char *)"/x", (char *)"", (char *)":4096:8"};
	static char *const called[] = {
		(char *)"toy", (char *)"toy", (char *)"cuda", (char *)"none"};
	uint64_t number = 0;
	unsigned count = length();
	image->contexts.contexts_len = count;
	for (unsigned i = 0; i < count; i++)
		contexts[i] = (ckt_image_context){.id = id(CKT_KIND_CONTEXT)};
	device.blocks.blocks_len = count = length();
	for (unsigned i = 0; i < count; i++)
		blocks[i] = (ckt_image_block){
			.address = (uint64_t)(byte() & 3) << 12, .size = byte() & 15};
	image->library_settings.library_settings_len = count = length();
	for (unsigned i = 0; i < count; i++)
		settings[i] = (ckt_image_setting){names[byte() & 3], values[byte() & 3]};
	image->libraries.libraries_len = count = length();
	for (unsigned i = 0; i < count; i++) {
		unsigned b = byte();
		if (b & 8)
			library.soname = "/libcricket-fuzz-none.so.1";
		libraries[i] = (ckt_image_library){.name = called[b & 3],
			.number = b & 0x10 ? b >> 4 : CKT_LIB_CUDNN,
			.api_version = b >> 2 & 1,
			.major = b >> 7,
			.file = (char *)""};
	}
	image->library_steps.library_steps_len = count = length();
	for (unsigned i = 0; i < count; i++)
		read_step(&steps[i], args[i], &number);
	image->journal.journal_len = count = length();
	for (unsigned i = 0; i < count; i++) {
		unsigned b = byte();
		journal[i] = (ckt_image_journal){.kind = b & 0x80 ? CKT_JOURNAL_LIBRARY : b,
			.id = byte(),
			.context = id(CKT_KIND_CONTEXT),
			.flags = byte() & 15};
	}
}

/* ---- What the replay relies on */

static const ckt_image_library_step *created(
	const ckt_image *image, const ckt_image_library_step *before, uint64_t object)
{
	for (const ckt_image_library_step *step = image->library_steps.library_steps_val;
		step < before; step++)
		if (step->kind == CKT_LIB_CREATE && step->life != CKT_LIB_PAST &&
			step->id == object)
			return step;
	return NULL;
}

static void try_step(const ckt_image *image, const ckt_image_library_step *step)
{
	fuzz_insist(step->library < image->libraries.libraries_len && step->proc < proc_count &&
			procs[step->proc].handler,
		"a step of nothing");
	const struct ckt_proc *proc = &procs[step->proc];
	if (step->kind == CKT_LIB_CREATE)
		/* What is only history is made and ended at once, beside the table of objects. */
		fuzz_insist(proc->flags & CKT_PROC_CREATES &&
				(step->life == CKT_LIB_PAST || !created(image, step, step->id)),
			"an object that is there is created");
	else if (step->kind == CKT_LIB_SET)
		fuzz_insist(proc->flags & CKT_PROC_SETS && created(image, step, step->id),
			"something is set of nothing");
	else
		fuzz_insist(step->kind == CKT_LIB_CAPTURE && ckt_worker_lib_is_work(proc),
			"no work is captured");
	if (step->kind != CKT_LIB_CAPTURE)
		fuzz_insist(step->args.args_len >= proc->id_at + 8u, "arguments without an id");
	fuzz_insist(step > image->library_steps.library_steps_val ? step->number > step[-1].number
								  : true,
		"no order");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char message[2048];
	struct ckt_loading l = {
		.worker = &ckt_worker, .message = message, .message_size = sizeof message};
	ckt_image *image = &l.image;
	ckt_library_toy = &library;
	library.soname = NULL;
	at = data;
	end = data + size;
	image->contexts.contexts_val = contexts;
	image->devices.devices_val = &device;
	image->devices.devices_len = 1;
	device.blocks.blocks_val = blocks;
	image->library_settings.library_settings_val = settings;
	image->libraries.libraries_val = libraries;
	image->library_steps.library_steps_val = steps;
	image->journal.journal_val = journal;
	read_image(image);
	message[0] = 0;
	fuzz_fail_allocation(byte() & 15);
	int error = ckt_worker_lib_load_check(&l);
	fuzz_fail_allocation(0);
	fuzz_insist(error <= 0 && (error != 0) == (message[0] != 0),
		"an error has a sentence, and nothing else has");
	for (unsigned i = 0; i < image->library_steps.library_steps_len; i++) {
		if (!error)
			try_step(image, &steps[i]);
		free(steps[i].args.args_val);
	}
	fuzz_insist(!getenv("LD_PRELOAD"), "a variable that may not travel was set");
	return 0;
}

/*
 * Called once: with CKT_FUZZ_SEEDS=DIR, writes the seeds there and ends: an image with a created,
 * set and captured object.
 */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const uint8_t seed[] = {1, 1, 1, 1, 15, 1, 0, 0, 1, 0, 3, 1, 0, 2, 1, 1, 0, 12, 2, 0,
		3, 1, 1, 0, 16, 3, 0, 4, 2, 1, 0, 16, 1, 0x80, 1, 1, 7};
	enum { LIBRARY_AT = 9 };
	const char *directory = getenv("CKT_FUZZ_SEEDS");
	uint8_t other[sizeof seed + 1];
	(void)argc, (void)argv;
	if (!directory)
		return 0;
	fuzz_write_seed(directory, "state", seed, sizeof seed);
	/* The library in another version, or not at all, and no memory. */
	memcpy(other, seed, sizeof seed);
	other[LIBRARY_AT] = 4;
	fuzz_write_seed(directory, "state-other-version", other, sizeof seed);
	other[LIBRARY_AT] = 8;
	fuzz_write_seed(directory, "state-no-library", other, sizeof seed);
	other[LIBRARY_AT] = 0;
	for (uint8_t number = 1; number < 8; number++) {
		char name[] = "state-poor-0";
		name[11] += (char)number;
		other[sizeof seed] = number;
		fuzz_write_seed(directory, name, other, sizeof other);
	}
	exit(0);
}
