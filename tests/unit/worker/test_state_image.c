/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/state_image.c: what libraries have made goes into an image and is made again;
 * images that lie are refused.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/save.h"
#include "server/worker/libs/environment.h"
#include "server/worker/objects/context.h"
#include "tests/unit/worker/graphs.h"
#include "tests/unit/worker/inside_image.h"
#include "tests/unit/worker/toy_library.h"

#define OBJECT(n) ID(LIB_OBJECT, 500 + (n))
#define CALL(n) ID(LIB_CALL, 500 + (n))

static struct description d;
static uint64_t memory;
static char message[CKT_MESSAGE_MAX];

/* The image of the session as it is. */
static ckt_image *save(void)
{
	struct ckt_save how = {0};
	image_files_new();
	MUST(image_save(&how), 0);
	ckt_image *image = image_read();
	image_files_close();
	return image;
}

static void begin_loading(struct ckt_loading *l, const ckt_image *image)
{
	*l = (struct ckt_loading){.worker = &ckt_worker,
		.image = *image,
		.message = message,
		.message_size = sizeof message};
	message[0] = 0;
}

/* As a fresh worker does, with the journal's steps of libraries first. */
static int load(const ckt_image *image)
{
	struct ckt_loading l;
	begin_loading(&l, image);
	int error = ckt_worker_lib_load_check(&l);
	for (u_int i = 0; i < image->journal.journal_len && !error; i++)
		if (image->journal.journal_val[i].kind == CKT_JOURNAL_LIBRARY &&
			image->journal.journal_val[i].context == ckt_handle_primary(0))
			error = ckt_worker_lib_load_first(&l, &image->journal.journal_val[i]);
	if (!error)
		error = ckt_worker_lib_load(&l);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	return error;
}

static void launch(uint64_t exec)
{
	inside_fill(memory, 0, 64);
	IS(ASK(graph_launch, .exec = exec), CUDA_SUCCESS);
	IS(ckt_driver.cuCtxSynchronize(), CUDA_SUCCESS);
}

/* Two objects, of which one is gone, and three captured calls. */
static void make(void)
{
	toy_begin();
	memory = inside_memory(64, 0);
	MUST(toy_create(OBJECT(1), 10), CUDA_SUCCESS);
	toy_workspace = 2 << 20;
	MUST(toy_create(OBJECT(2), 1000), CUDA_SUCCESS);
	toy_workspace = 0;
	IS(toy_set(OBJECT(1), 0, 1), CUDA_SUCCESS);
	MUST(toy_capture(CALL(1), OBJECT(1), memory), CUDA_SUCCESS);
	IS(toy_set(OBJECT(1), 0, 2), CUDA_SUCCESS);
	MUST(toy_capture(CALL(2), OBJECT(1), memory + 4), CUDA_SUCCESS);
	IS(toy_set(OBJECT(1), 0, 3), CUDA_SUCCESS);
	IS(toy_set(OBJECT(1), 1, 4), CUDA_SUCCESS);
	IS(toy_set(OBJECT(2), 2, 5), CUDA_SUCCESS);
	MUST(toy_capture(CALL(3), OBJECT(2), memory + 8), CUDA_SUCCESS);
	IS(toy_destroy(OBJECT(2)), CUDA_SUCCESS);
}

static void forget(void)
{
	for (unsigned i = 1; i < 4; i++)
		IS(toy_capture_end(CALL(i)), CUDA_SUCCESS);
	IS(toy_destroy(OBJECT(1)), CUDA_SUCCESS);
	IS(toy_alive, 0);
}

static void end(void)
{
	forget();
	inside_free(memory);
	toy_end();
}

static void test_again(void)
{
	make();
	ckt_image *image = save();
	IS(image->libraries.libraries_len, 1);
	TEXT(image->libraries.libraries_val[0].name, "toy");
	size_t steps = ckt_worker_lib_log_count();
	IS(image->library_steps.library_steps_len, steps);
	unsigned lives[3] = {0};
	uint64_t workspace = 0;
	for (u_int i = 0; i < steps; i++) {
		const ckt_image_library_step *step = &image->library_steps.library_steps_val[i];
		lives[step->life] += step->kind == CKT_LIB_CREATE;
		workspace |= step->workspace;
	}
	IS(lives[CKT_LIB_ALIVE], 1);
	IS(lives[CKT_LIB_USED], 1);
	YES(workspace != 0);
	forget();
	unsigned created = toy_created;
	IS(load(image), 0);
	TEXT(message, "");
	/*
	 * The living one, the one that the calls use and, ahead of them, what there is for the
	 * history alone; only the first stays.
	 */
	IS(toy_alive, 1);
	YES(toy_created - created >= 2);
	MUST(toy_find(OBJECT(1)) != NULL, true);
	IS(toy_find(OBJECT(1))->seed, 10);
	IS(toy_find(OBJECT(1))->settings[0], 3);
	IS(toy_find(OBJECT(1))->settings[1], 4);
	YES(toy_find(OBJECT(2)) == NULL);
	graph_begin(&d);
	for (unsigned i = 1; i < 4; i++)
		graph_library(&d, i, CALL(i));
	MUST(graph_instantiate(&d, ID(GRAPH, 71), ID(GRAPH_EXEC, 71)), CUDA_SUCCESS);
	launch(ID(GRAPH_EXEC, 71));
	IS(inside_word(memory), 11);
	IS(inside_word(memory + 4), 12);
	IS(inside_word(memory + 8), 1005);
	IS(ASK(graph_exec_destroy, .exec = ID(GRAPH_EXEC, 71)), CUDA_SUCCESS);
	/* A second image says the same of what there is. */
	ckt_image *again = save();
	unsigned same = 0, wanted = 0;
	for (u_int i = 0; i < image->library_steps.library_steps_len; i++) {
		const ckt_image_library_step *a = &image->library_steps.library_steps_val[i];
		wanted += a->life != CKT_LIB_PAST;
		for (u_int k = 0;
			k < again->library_steps.library_steps_len && a->life != CKT_LIB_PAST;
			k++) {
			const ckt_image_library_step *b =
				&again->library_steps.library_steps_val[k];
			same += a->kind == b->kind && a->id == b->id && a->life == b->life &&
				a->workspace == b->workspace &&
				a->args.args_len == b->args.args_len &&
				!memcmp(a->args.args_val, b->args.args_val, a->args.args_len);
		}
	}
	IS(same, wanted);
	image_free(again);
	image_free(image);
	end();
}

/*
 * The journal's steps alone, as of a round ahead of the session; what has ended by the last round
 * ends here too.
 */
static void test_ahead(void)
{
	make();
	ckt_image *image = save();
	struct ckt_loading l;
	forget();
	begin_loading(&l, image);
	for (u_int i = 0; i < image->journal.journal_len; i++)
		if (image->journal.journal_val[i].kind == CKT_JOURNAL_LIBRARY &&
			image->journal.journal_val[i].context == ckt_handle_primary(0))
			IS(ckt_worker_lib_load_first(&l, &image->journal.journal_val[i]), 0);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	/* One of an earlier round. */
	MUST(toy_create(OBJECT(7), 1), CUDA_SUCCESS);
	IS(ckt_worker_lib_load(&l), 0);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	YES(toy_find(OBJECT(7)) == NULL);
	IS(toy_alive, 1);
	image_free(image);
	end();
}

static ckt_image_library_step *step_of(ckt_image *image, unsigned kind, unsigned life)
{
	for (u_int i = 0; i < image->library_steps.library_steps_len; i++)
		if (image->library_steps.library_steps_val[i].kind == kind &&
			image->library_steps.library_steps_val[i].life == life)
			return &image->library_steps.library_steps_val[i];
	return NULL;
}

/* The image is as it was behind it. */
#define LIE(step, field, value, said)                            \
	do {                                                     \
		__typeof__((step)->field) kept_ = (step)->field; \
		(step)->field = (value);                         \
		begin_loading(&l, image);                        \
		YES(ckt_worker_lib_load_check(&l) < 0);          \
		HAS(message, said);                              \
		(step)->field = kept_;                           \
	} while (0)

static void test_lies(void)
{
	make();
	ckt_image *image = save();
	struct ckt_loading l;
	ckt_image_library_step *create = step_of(image, CKT_LIB_CREATE, CKT_LIB_ALIVE),
			       *set = step_of(image, CKT_LIB_SET, 0),
			       *captured = step_of(image, CKT_LIB_CAPTURE, 0),
			       *used = step_of(image, CKT_LIB_CREATE, CKT_LIB_USED);
	MUST(create && set && captured && used, true);
	begin_loading(&l, image);
	MUST(ckt_worker_lib_load_check(&l), 0);
	unsigned created = toy_created;
	LIE(&image->libraries.libraries_val[0], number, CKT_LIB_CUDNN, "the library toy (");
	LIE(&image->libraries.libraries_val[0], name, (char *)"cuda",
		"which this Cricket does not know");
	LIE(&image->libraries.libraries_val[0], name, (char *)"nothing", "the library nothing");
	LIE(&image->libraries.libraries_val[0], major, 13, "of major version 13");
	LIE(create, library, 1, "its library is not in the image");
	LIE(create, kind, 0, "its procedure is of another kind");
	LIE(create, kind, 9, "its procedure is of another kind");
	LIE(create, kind, CKT_LIB_CAPTURE, "its procedure is of another kind");
	LIE(create, proc, TOY_SET, "its procedure is of another kind");
	LIE(create, proc, TOY_PROCS, "no such procedure");
	LIE(create, proc, 0, "no such procedure");
	LIE(create, proc, UINT32_MAX, "no such procedure");
	LIE(set, proc, TOY_WRITE, "its procedure is of another kind");
	LIE(captured, proc, TOY_ASK, "its procedure is of another kind");
	LIE(captured, proc, TOY_CREATE, "its procedure is of another kind");
	LIE(captured, proc, TOY_DESTROY, "its procedure is of another kind");
	LIE(create, id, OBJECT(8), "for another object");
	LIE(create, args.args_len, 7, "for another object");
	LIE(captured, id, OBJECT(8), "of another kind");
	LIE(create, life, 3, "ended in this way");
	LIE(set, life, CKT_LIB_USED, "ended in this way");
	LIE(used, life, CKT_LIB_PAST, "not memory of the session");
	LIE(used, workspace, 0x1000, "not memory of the session");
	LIE(used, workspace_bytes, 1ull << 40, "not memory of the session");
	LIE(set, workspace, used->workspace, "ended in this way");
	LIE(create, context, ID(CONTEXT, 999), "its context is not in the image");
	LIE(captured, context, ID(CONTEXT, 999), "its context is not in the image");
	LIE(set, number, 1ull << 60, "out of order");
	LIE(create, life, CKT_LIB_PAST, "does not exist");
	for (u_int i = 0; i < image->journal.journal_len; i++)
		if (image->journal.journal_val[i].kind == CKT_JOURNAL_LIBRARY)
			LIE(&image->journal.journal_val[i], id, 1ull << 50, "does not describe");
	/* Two of one id. */
	uint8_t bytes[12];
	memcpy(bytes, used->args.args_val, sizeof bytes);
	memcpy(used->args.args_val, create->args.args_val, 8);
	LIE(used, id, create->id, "created twice");
	memcpy(used->args.args_val, bytes, sizeof bytes);
	/* None of that has touched anything. */
	IS(toy_created, created);
	IS(toy_alive, 1);
	/*
	 * Bytes that are no arguments, and what the library refuses, show only when it is done
	 * again.
	 */
	forget();
	set->args.args_len -= 4;
	YES(load(image) < 0);
	HAS(message, "malformed arguments of toySet");
	set->args.args_len += 4;
	if (toy_find(OBJECT(1)))
		IS(toy_destroy(OBJECT(1)), CUDA_SUCCESS);
	toy_status = 3;
	YES(load(image) < 0);
	HAS(message, "toyCreate of object");
	HAS(message, "returned 3");
	toy_status = 0;
	image_free(image);
	inside_free(memory);
	toy_end();
}

/* A context of the program's, current. */
static struct ckt_object *context_begin(unsigned n)
{
	struct ckt_object *context;
	MUST(ckt_context_create(&ckt_worker, ID(CONTEXT, 500 + n), 0, 0, &context), CUDA_SUCCESS);
	MUST(ckt_worker_use_context(&ckt_worker, context->id), CUDA_SUCCESS);
	return context;
}

static void context_end(struct ckt_object *context)
{
	MUST(ckt_context_destroy(&ckt_worker, context), CUDA_SUCCESS);
	MUST(ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0)), CUDA_SUCCESS);
}

/* Something was set of an object while another context was current, which has gone since. */
static void test_set_elsewhere(void)
{
	toy_begin();
	MUST(toy_create(OBJECT(21), 10), CUDA_SUCCESS);
	struct ckt_object *other = context_begin(1);
	IS(toy_set(OBJECT(21), 0, 7), CUDA_SUCCESS);
	context_end(other);
	ckt_image *image = save();
	/* As images of before say it, too. */
	for (unsigned old = 0; old < 2; old++) {
		IS(toy_destroy(OBJECT(21)), CUDA_SUCCESS);
		for (u_int i = 0; old && i < image->library_steps.library_steps_len; i++)
			if (image->library_steps.library_steps_val[i].kind == CKT_LIB_SET)
				image->library_steps.library_steps_val[i].context =
					ID(CONTEXT, 501);
		IS(load(image), 0);
		TEXT(message, "");
		MUST(toy_find(OBJECT(21)) != NULL, true);
		IS(toy_find(OBJECT(21))->settings[0], 7);
	}
	IS(toy_destroy(OBJECT(21)), CUDA_SUCCESS);
	image_free(image);
	toy_end();
}

/*
 * The object's context has gone, with memory that the object had there; a call that was captured
 * with it elsewhere has not.
 */
static void test_context_gone(void)
{
	toy_begin();
	memory = inside_memory(64, 0);
	struct ckt_object *other = context_begin(2);
	toy_workspace = 2 << 20;
	MUST(toy_create(OBJECT(22), 100), CUDA_SUCCESS);
	toy_workspace = 0;
	IS(toy_set(OBJECT(22), 0, 1), CUDA_SUCCESS);
	MUST(ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0)), CUDA_SUCCESS);
	MUST(toy_capture(CALL(22), OBJECT(22), memory), CUDA_SUCCESS);
	uint64_t workspace = toy_find(OBJECT(22))->workspace;
	YES(workspace != 0);
	context_end(other);
	YES(toy_find(OBJECT(22)) == NULL);
	/* Somebody else may have that memory now: ending the call must not take it away. */
	ckt_image *image = save();
	for (u_int i = 0; i < image->library_steps.library_steps_len; i++)
		IS(image->library_steps.library_steps_val[i].workspace, 0);
	IS(toy_capture_end(CALL(22)), CUDA_SUCCESS);
	IS(load(image), 0);
	TEXT(message, "");
	YES(toy_find(OBJECT(22)) == NULL);
	IS(toy_alive, 0);
	graph_begin(&d);
	graph_library(&d, 1, CALL(22));
	MUST(graph_instantiate(&d, ID(GRAPH, 72), ID(GRAPH_EXEC, 72)), CUDA_SUCCESS);
	launch(ID(GRAPH_EXEC, 72));
	IS(inside_word(memory), 101);
	IS(ASK(graph_exec_destroy, .exec = ID(GRAPH_EXEC, 72)), CUDA_SUCCESS);
	/* And the same again. */
	ckt_image *again = save();
	IS(toy_capture_end(CALL(22)), CUDA_SUCCESS);
	IS(load(again), 0);
	TEXT(message, "");
	IS(toy_capture_end(CALL(22)), CUDA_SUCCESS);
	image_free(again);
	image_free(image);
	inside_free(memory);
	toy_end();
}

/* A plan is made of what was set before it, and what was set behind it holds too. */
static void test_sealed(void)
{
	toy_begin();
	MUST(toy_create(OBJECT(23), 1), CUDA_SUCCESS);
	IS(toy_set(OBJECT(23), 0, 5), CUDA_SUCCESS);
	IS(toy_make(OBJECT(23)), CUDA_SUCCESS);
	IS(toy_set(OBJECT(23), 0, 6), CUDA_SUCCESS);
	ckt_image *image = save();
	IS(toy_destroy(OBJECT(23)), CUDA_SUCCESS);
	IS(load(image), 0);
	MUST(toy_find(OBJECT(23)) != NULL, true);
	IS(toy_find(OBJECT(23))->planned[0], 5);
	IS(toy_find(OBJECT(23))->settings[0], 6);
	IS(toy_find(OBJECT(23))->made, 1);
	IS(toy_destroy(OBJECT(23)), CUDA_SUCCESS);
	image_free(image);
	toy_end();
}

/*
 * An image of many: n objects that live and n that captured calls alone have, each with memory of
 * its own, n contexts and blocks.  The check and the replay look at a few places for each of them,
 * not at all of the others.
 */
static uint64_t looks_for(u_int n)
{
	static const uint8_t seed[4] = {0, 0, 0, 1};
	ckt_image image = {0};
	ckt_image_library library = {.name = (char *)"toy", .number = TOY_LIB, .file = (char *)""};
	ckt_image_device device = {0};
	struct ckt_loading l;
	ckt_image_library_step *steps = calloc(3 * n, sizeof *steps);
	uint8_t(*args)[16] = calloc(3 * n, sizeof *args);
	image.contexts.contexts_val = calloc(n, sizeof(ckt_image_context));
	device.blocks.blocks_val = calloc(n, sizeof(ckt_image_block));
	for (u_int i = 0; i < n; i++) {
		image.contexts.contexts_val[i].id =
			i ? ID(CONTEXT, 600) + i : ckt_handle_primary(0);
		device.blocks.blocks_val[i] =
			(ckt_image_block){.address = (uint64_t)(i + 1) << 21, .size = 1 << 21};
	}
	for (u_int i = 0; i < 3 * n; i++) {
		bool dead = i < n;
		uint64_t id = ID(LIB_OBJECT, 2000) + (i < 2 * n ? i : i - n);
		memcpy(ckt_put_u64(args[i], id), seed, sizeof seed);
		steps[i] =
			(ckt_image_library_step){.kind = i < 2 * n ? CKT_LIB_CREATE : CKT_LIB_SET,
				.proc = i < 2 * n ? TOY_CREATE : TOY_SET,
				.id = id,
				.number = i + 1,
				.life = dead ? CKT_LIB_USED : CKT_LIB_ALIVE,
				.args = {i < 2 * n ? 12 : 16, (char *)args[i]},
				.context = ckt_handle_primary(0)};
		if (dead) {
			steps[i].workspace = (uint64_t)(i + 1) << 21;
			steps[i].workspace_bytes = 4096;
		}
	}
	image.contexts.contexts_len = device.blocks.blocks_len = n;
	image.devices.devices_len = image.libraries.libraries_len = 1;
	image.devices.devices_val = &device;
	image.libraries.libraries_val = &library;
	image.library_steps.library_steps_len = 3 * n;
	image.library_steps.library_steps_val = steps;
	begin_loading(&l, &image);
	uint64_t before = ckt_lib_load_looks;
	MUST(ckt_worker_lib_load_check(&l), 0);
	MUST(ckt_worker_lib_load(&l), 0);
	uint64_t looks = ckt_lib_load_looks - before;
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	IS(toy_alive, n);
	for (u_int i = n; i < 2 * n; i++)
		IS(toy_destroy(steps[i].id), CUDA_SUCCESS);
	free(steps);
	free(args);
	free(image.contexts.contexts_val);
	free(device.blocks.blocks_val);
	return looks;
}

static void test_many(void)
{
	toy_begin();
	uint64_t few = looks_for(500), many = looks_for(16000);
	YES(few > 0);
	/*
	 * 32 times as many: 32 times as many looks, and not 1024 times; how full the tables are
	 * differs.
	 */
	YES(many < 3 * 32 * few);
	toy_end();
}

static int check(const ckt_image *image)
{
	struct ckt_loading l;
	begin_loading(&l, image);
	return ckt_worker_lib_load_check(&l);
}

/* What the program set for libraries is in the image; what is not allowed, or to such a value is taken from none. */
static void test_settings(void)
{
	ckt_setting taken = {(char *)"NCCL_DEBUG_SUBSYS", (char *)"ALL"};
	ckt_environment_args args = {.settings = {1, &taken}};
	bool open = ckt_worker_environment_take(&args) != 0;
	toy_begin();
	ckt_image *image = save(), other;
	ckt_image_setting list[2] = {{(char *)"NCCL_DEBUG_SUBSYS", (char *)"ALL"},
		{(char *)"NCCL_NET_PLUGIN", (char *)"evil"}};
	IS(image->library_settings.library_settings_len,
		ckt_worker_environment_settings()->settings.settings_len);
	for (u_int i = 0; i < image->library_settings.library_settings_len; i++) {
		TEXT(image->library_settings.library_settings_val[i].name,
			ckt_worker_environment_settings()->settings.settings_val[i].name);
		TEXT(image->library_settings.library_settings_val[i].value,
			ckt_worker_environment_settings()->settings.settings_val[i].value);
	}
	YES(open || image->library_settings.library_settings_len > 0);
	IS(check(image), 0);
	other = *image;
	other.library_settings.library_settings_len = 2;
	other.library_settings.library_settings_val = list;
	IS(check(&other), -EBADMSG);
	HAS(message, "value that is not allowed, or a variable that is not allowed");
	CU_ASSERT_PTR_NULL(getenv("NCCL_NET_PLUGIN"));
	list[1] = (ckt_image_setting){(char *)"NCCL_ALGO", (char *)"/etc/passwd"};
	IS(check(&other), -EBADMSG);
	list[1] = (ckt_image_setting){(char *)"LD_PRELOAD", (char *)"x"};
	IS(check(&other), -EBADMSG);
	image_free(image);
	toy_end();
}

UNIT_SUITE(state_image, {"settings", test_settings}, {"again", test_again}, {"ahead", test_ahead},
	{"set_elsewhere", test_set_elsewhere}, {"context_gone", test_context_gone},
	{"sealed", test_sealed}, {"many", test_many},
	/* Restores that failed leave what a worker would end with. */
	{"lies", test_lies})
