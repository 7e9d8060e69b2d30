/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a session: the driver, the devices, the window, the first context, the pools and the
 * threads, in this order, so that every worker has the same history before the program's first
 * command.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "checkpoint/content_threads.h"
#include "checkpoint/format/store.h"
#include "checkpoint/kernels/hash.h"
#include "checkpoint/load/image_load.h"
#include "checkpoint/load/load.h"
#include "rpc/net.h"
#include "rpc/worker_descriptors.h"
#include "server/worker/cage/cage.h"
#include "server/worker/driver.h"
#include "server/worker/memory/rescue.h"
#include "server/worker/memory/window.h"
#include "server/worker/module/module_loading.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/context_limits.h"
#include "server/worker/objects/session_devices.h"
#include "server/worker/objects/stream.h"
#include "server/worker/session/automatic.h"
#include "server/worker/session/control_handlers.h"
#include "server/worker/session/executor.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/session/long_call.h"
#include "server/worker/session/space_end.h"
#include "server/worker/session/start.h"
#include "server/worker/worker.h"

/* Since this minor version of images the hash kernel is part of a session's history. */
enum { MINOR_WITH_HASHES = 3 };
/* Since this one an image says how its worker was started. */
enum { MINOR_WITH_START = 15 };

struct ckt_worker ckt_worker;

void ckt_worker_end(const char *why)
{
	ckt_info("ends: %s", why);
	/* What never began to be the session says nothing of the session's end. */
	if (ckt_worker_control_has_devices())
		ckt_automatic_over();
	ckt_space_end(&ckt_worker, 0);
	/*
	 * Not exit(): destructors of the driver would wait for a kernel that may never finish. The
	 * system takes everything back.
	 */
	_exit(0);
}

void ckt_worker_end_cut_off(const char *why)
{
	ckt_info("ends: %s", why);
	ckt_space_end(&ckt_worker, CKT_WORKER_CUT_OFF_STATUS);
	_exit(CKT_WORKER_CUT_OFF_STATUS);
}

void ckt_worker_end_faulted(struct ckt_worker *worker, int result)
{
	ckt_warning("session %s: error %d of a kernel, which ends all that share the GPU in space",
		worker->session, result);
	/* A thread that waits for MPS to terminate the worker's own work knows why. */
	ckt_space_end(worker, CKT_WORKER_FAULT_STATUS);
	_exit(CKT_WORKER_FAULT_STATUS);
}

void ckt_worker_harden(int argc, char **argv)
{
	if (!ckt_cage_is_off())
		prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* With 0 the kernel still pipes a dump to the program of core_pattern. */
	setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1});
	int now = personality(0xffffffff);
	if (now == -1 || now & ADDR_NO_RANDOMIZE)
		return;
	/*
	 * Started without the server's care: try once ourselves, the environment says that it was
	 * tried.
	 */
	if (!getenv("CKT_WORKER_AGAIN") &&
		personality((unsigned long)now | ADDR_NO_RANDOMIZE) != -1) {
		setenv("CKT_WORKER_AGAIN", "1", 1);
		setenv("GLIBC_TUNABLES",
			"glibc.malloc.arena_max=1:glibc.malloc.mmap_threshold=4294967296", 1);
		execv("/proc/self/exe", argv);
	}
	snprintf(ckt_worker.note, sizeof ckt_worker.note,
		"cannot switch off address space randomisation: after a restore, "
		"variables of modules may have moved");
}

void ckt_worker_note(struct ckt_worker *worker, const char *format, ...)
{
	char text[CKT_MESSAGE_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	ckt_warning("%s", text);
	pthread_mutex_lock(&worker->mail_lock);
	size_t used = strlen(worker->note);
	snprintf(worker->note + used, sizeof worker->note - used, "%s%s", used ? "; " : "", text);
	pthread_mutex_unlock(&worker->mail_lock);
}

static int fail(CUresult result, const char *what, char *ret_message, size_t message_size)
{
	const char *name = NULL;
	if (ckt_driver.cuGetErrorName)
		ckt_driver.cuGetErrorName(result, &name);
	snprintf(ret_message, message_size, "%s failed: %s (%d)", what, name ? name : "CUDA error",
		result);
	return result == CUDA_ERROR_OUT_OF_MEMORY ? -ENOMEM : -ENODEV;
}

static int open_device(struct ckt_worker *worker, int ordinal, unsigned number, char *ret_message,
	size_t message_size)
{
	struct ckt_worker_device *device = &worker->devices[worker->device_count];
	CUresult result = ckt_driver.cuDeviceGet(&device->ordinal, ordinal);
	size_t total = 0;
	if (!result)
		result = ckt_driver.cuDeviceTotalMem_v2(&total, device->ordinal);
	if (!result)
		result = ckt_driver.cuDeviceGetName(
			device->name, sizeof device->name - 1, device->ordinal);
	if (!result)
		result = ckt_driver.cuDeviceGetAttribute(&device->major,
			CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device->ordinal);
	if (!result)
		result = ckt_driver.cuDeviceGetAttribute(&device->minor,
			CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device->ordinal);
	if (result) {
		char what[64];
		snprintf(what, sizeof what, "opening GPU %u", number);
		return fail(result, what, ret_message, message_size);
	}
	int processors = 0, threads = 0;
	ckt_driver.cuDeviceGetAttribute(
		&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device->ordinal);
	ckt_driver.cuDeviceGetAttribute(
		&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device->ordinal);
	device->threads = (uint64_t)processors * (uint64_t)threads;
	device->total = total;
	device->number = number;
	worker->device_count++;
	return 0;
}

static int open_devices(struct ckt_worker *worker, const ckt_worker_start_args *args, bool narrow,
	char *ret_message, size_t message_size)
{
	int count = 0;
	CUresult result = ckt_driver.cuDeviceGetCount(&count);
	if (!result && count == 0)
		result = CUDA_ERROR_NO_DEVICE;
	if (result)
		return fail(result, "cannot count the GPUs", ret_message, message_size);
	if (args->gpus.gpus_len) {
		for (unsigned i = 0; i < args->gpus.gpus_len && i < CKT_DEVICES_MAX; i++) {
			unsigned number = args->gpus.gpus_val[i];
			int error = open_device(worker, narrow ? (int)i : (int)number, number,
				ret_message, message_size);
			if (error)
				return error;
		}
		return 0;
	}
	for (int i = 0; i < count && i < CKT_DEVICES_MAX; i++) {
		int error = open_device(worker, i, (unsigned)i, ret_message, message_size);
		if (error)
			return error;
	}
	return 0;
}

/* start: of the image that is to be restored; NULL where there is none. */
static int open_driver(struct ckt_worker *worker, const ckt_worker_start_args *args,
	const unsigned *start, char *ret_message, size_t message_size)
{
	bool lazy = start && *start & CKT_IMAGE_START_LAZY;
	bool narrow = !start || *start & CKT_IMAGE_START_NARROW;
	ckt_loading_prepare(start ? &lazy : NULL);
	if (narrow)
		worker->checkpoint.start |= CKT_IMAGE_START_NARROW;
	if (worker->space)
		worker->checkpoint.start |= CKT_IMAGE_START_SPACE;
	const char *total = getenv("CRICKET_GPUS");
	narrow = narrow &&
		ckt_worker_devices_narrow(args->gpus.gpus_val, args->gpus.gpus_len,
			total ? (unsigned)strtoul(total, NULL, 10) : 0);
	ckt_rescue_init(args->driver);
	int error = ckt_driver_open(args->driver, ret_message, message_size);
	if (error)
		return error;
	CUresult result = ckt_driver.cuInit(0);
	if (result)
		return fail(result, "cuInit", ret_message, message_size);
	ckt_driver.cuDriverGetVersion(&worker->driver_version);
	if (ckt_loading_is_lazy())
		worker->checkpoint.start |= CKT_IMAGE_START_LAZY;
	ckt_limits_watch(worker);
	return open_devices(worker, args, narrow, ret_message, message_size);
}

static int make_pools(
	struct ckt_worker *worker, uint64_t staging_bytes, char *ret_message, size_t message_size)
{
	for (unsigned d = 0; d < worker->device_count; d++)
		ckt_window_init_device(worker, d);
	struct ckt_object *context;
	CUresult result = ckt_worker_pools_init(worker) ? CUDA_ERROR_OUT_OF_MEMORY
							: ckt_context_primary(worker, 0, &context);
	if (!result)
		result = ckt_worker_use_context(worker, context->id);
	if (result)
		return fail(result, "cannot create the first context", ret_message, message_size);
	worker->first_context = context->real;
	ckt_space_begin(worker->device_count > 1 ? NULL : worker->first_context);
	ckt_worker_stream_pool_fill();
	int error = ckt_staging_init(&worker->staging, staging_bytes);
	if (!error)
		error = ckt_pendings_init(worker);
	if (!error)
		error = ckt_printed_start(worker);
	if (!error)
		error = ckt_content_threads_start(worker);
	if (!error)
		error = ckt_long_call_start(worker);
	if (!error)
		error = ckt_executor_start(worker);
	if (error)
		snprintf(ret_message, message_size, "cannot start the worker's threads: %s",
			strerror(-error));
	return error;
}

static unsigned image_minor(const struct ckt_worker *worker, int image_fd)
{
	if (worker->checkpoint.source.memory_count)
		return ckt_image_minor_open(worker->checkpoint.source.memory_fds[0]);
	return ckt_image_minor(
		worker->checkpoint.source.count ? worker->checkpoint.source.places[0] : image_fd);
}

/* How the image's worker was started; where there is no image, as now. */
static void look_at_image(struct ckt_worker *worker, const ckt_worker_start_args *args,
	int image_fd, unsigned *ret_minor, unsigned *ret_start)
{
	unsigned minor = args->restore ? image_minor(worker, image_fd) : CKT_IMAGE_MINOR;
	*ret_minor = minor;
	*ret_start =
		args->restore && minor >= MINOR_WITH_START ? ckt_load_start(worker, image_fd) : 0;
	/* The load checks that variables lie where they lay. */
	bool was_space = *ret_start & CKT_IMAGE_START_SPACE;
	if (args->restore && minor >= MINOR_WITH_START && was_space != worker->space)
		ckt_info("session %s: it shared its GPU in %s, and goes on in %s", args->session,
			was_space ? "space" : "time", worker->space ? "space" : "time");
}

static void take_limits(struct ckt_worker *worker, const ckt_worker_start_args *args)
{
	worker->memory_limit = args->memory_limit_bytes;
	ckt_budget_init(args->host_memory_bytes);
	worker->started = time(NULL);
}

/* Whether the driver sees the GPUs that a fresh worker would show it; an empty list is all of them. */
static bool has_gpus(const struct ckt_worker *worker, const ckt_worker_start_args *args)
{
	u_int count = args->gpus.gpus_len;
	for (u_int i = 0; i < count; i++)
		if (i >= worker->device_count ||
			worker->devices[i].number != args->gpus.gpus_val[i])
			return false;
	return count ? count == worker->device_count : worker->warm_all;
}

/* A warm worker's session: only what its owner decides is left to do. */
static int become(struct ckt_worker *worker, const ckt_worker_start_args *args, int image_fd,
	char *ret_message, size_t message_size)
{
	const unsigned how = CKT_IMAGE_START_LAZY | CKT_IMAGE_START_NARROW;
	unsigned minor, start;
	look_at_image(worker, args, image_fd, &minor, &start);
	bool same = !args->restore ||
		(minor >= MINOR_WITH_HASHES && (start & how) == (worker->checkpoint.start & how));
	if (!same || !has_gpus(worker, args)) {
		snprintf(ret_message, message_size,
			"a warm worker was started in another way than %s: a fresh one is needed",
			same ? "for these GPUs" : "the image's worker");
		return -EXDEV;
	}
	take_limits(worker, args);
	for (unsigned d = 0; d < worker->device_count; d++)
		ckt_memory_set_limit(&worker->devices[d].memory, args->memory_limit_bytes);
	worker->warm = false;
	return 0;
}

/* Everything that comes before the first image and the first command, once. */
static int prepare(struct ckt_worker *worker, const ckt_worker_start_args *args, int image_fd,
	char *ret_message, size_t message_size)
{
	snprintf(worker->session, sizeof worker->session, "%s", args->session);
	snprintf(worker->socket, sizeof worker->socket, "%s", args->socket);
	/* The main thread looks at them. */
	pthread_mutex_lock(&worker->mail_lock);
	worker->claim_timeout_ms = args->claim_timeout_ms;
	worker->disconnect_timeout_ms = args->disconnect_timeout_ms;
	pthread_mutex_unlock(&worker->mail_lock);
	if (worker->warm)
		return become(worker, args, image_fd, ret_message, message_size);
	if (worker->stats)
		return 0;
	take_limits(worker, args);
	worker->generation = 1;
	if (getrandom(&worker->copy, sizeof worker->copy, 0) != sizeof worker->copy ||
		!worker->copy)
		worker->copy = 1;
	worker->stats = calloc(CKT_STATS, sizeof *worker->stats);
	worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!worker->stats || worker->wake_fd < 0)
		return -ENOMEM;
	ckt_output_init(&worker->output);
	ckt_replies_init(&worker->replies);
	ckt_worker_lanes_init(&worker->lanes);
	unsigned minor, start;
	look_at_image(worker, args, image_fd, &minor, &start);
	int error =
		open_driver(worker, args, args->restore ? &start : NULL, ret_message, message_size);
	if (!error && ckt_window_reserve(worker, ret_message, message_size))
		error = -ENOMEM;
	if (!error)
		ckt_hostmem_reserve(worker);
	if (!error) {
		worker->checkpoint.old_image = minor < MINOR_WITH_HASHES;
		ckt_hash_reserve(worker);
	}
	if (!error)
		error = make_pools(worker, args->staging_bytes, ret_message, message_size);
	return error;
}

int ckt_worker_start_warm(struct ckt_worker *worker, const ckt_worker_start_args *args,
	char *ret_message, size_t message_size)
{
	int error = prepare(worker, args, -1, ret_message, message_size);
	worker->warm = !error;
	worker->warm_all = args->gpus.gpus_len == 0;
	return error;
}

int ckt_worker_start_ahead(struct ckt_worker *worker, const ckt_worker_start_args *args,
	int image_fd, char *ret_message, size_t message_size)
{
	int error = prepare(worker, args, image_fd, ret_message, message_size);
	return error ? error
		     : ckt_checkpoint_preload(worker, image_fd, args, ret_message, message_size);
}

int ckt_worker_start(struct ckt_worker *worker, const ckt_worker_start_args *args, int image_fd,
	char *ret_message, size_t message_size)
{
	int error = prepare(worker, args, image_fd, ret_message, message_size);
	if (!error && args->restore)
		error = ckt_checkpoint_load(worker, image_fd, args, ret_message, message_size);
	if (error)
		return error;
	ckt_executor_go(worker);
	pthread_mutex_lock(&worker->mail_lock);
	worker->detached_ms = ckt_net_now_ms();
	if (!args->restore)
		ckt_automatic_started(worker);
	worker->state = args->restore ? CKT_STATE_RESTORED : CKT_STATE_STARTING;
	pthread_mutex_unlock(&worker->mail_lock);
	ckt_info("session %s on %s (%u device%s)", worker->session, worker->devices[0].name,
		worker->device_count, worker->device_count == 1 ? "" : "s");
	return 0;
}
