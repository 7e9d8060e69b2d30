/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: the manifest of an image (checkpoint/format/store.c), and whether its session
 * can resume here (checkpoint/load/load_check.c).
 *
 * Four bytes choose the circumstances: the minor version, what is wrong with the header, which
 * allocation fails, and the GPU that the image meets.  The rest is the manifest's body.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/format/manifest_hash.h"
#include "checkpoint/load/image_load.h"
#include "checkpoint/load/preload.h"
#include "checkpoint/memory_operations.h"
#include "checkpoint/session.h"
#include "rpc/gen/cuda_driver.h"
#include "rpc/wire.h"
#include "tests/fuzz/mutate_xdr.h"

enum { HEAD = 4, HEADER = 20 + CKT_IMAGE_HASH, BODY_MAX = 1 << 16, GPUS_MAX = 4 };
enum { BAD_MAGIC = 1, BAD_MAJOR, BAD_LENGTH, BAD_SUM, SHORT, RAW, FAULTS };
enum { GPU_FULL = 1, GPU_DEAD = 2, GPU_OLDER = 4, PRELOADED = 8, NO_POOLS = 16, LIMITED = 32 };

static char directory[] = "/dev/shm/ckt-fuzz-XXXXXX";
static int place = -1;

/* ---- The session's side of a check: a worker whose GPUs are as the input says */

static uint8_t gpu;
static struct ckt_memory_layout layout;

static struct ckt_memory_layout get_layout(struct ckt_worker *worker)
{
	(void)worker;
	return layout;
}

static void set_layout(struct ckt_worker *worker, const struct ckt_memory_layout *to)
{
	(void)worker;
	fuzz_insist(to->device_count <= layout.device_count, "more GPUs than there are");
	layout = *to;
}

static bool window_holds(uint64_t base, uint64_t size)
{
	return base == CKT_WINDOW_BASE && size <= CKT_WINDOW_BASE;
}

static struct ckt_device_description describe(struct ckt_worker *worker, unsigned device)
{
	(void)worker;
	fuzz_insist(device < GPUS_MAX, "a GPU that is not there");
	return (struct ckt_device_description){
		.name = "GPU", .major = gpu & GPU_OLDER ? 8 : 12, .minor = 0};
}

static int driver_version(struct ckt_worker *worker)
{
	(void)worker;
	return gpu & GPU_OLDER ? 12080 : 13000;
}

static int make_pools(struct ckt_worker *worker)
{
	(void)worker;
	return gpu & NO_POOLS ? -ENOMEM : 0;
}

const struct ckt_memory_operations ckt_memory_operations = {.layout = get_layout,
	.place = set_layout,
	.window_holds = window_holds,
	.describe = describe,
	.driver_version = driver_version,
	.make_pools = make_pools};

static CUresult use_primary(struct ckt_worker *worker, unsigned device)
{
	(void)worker, (void)device;
	return gpu & GPU_DEAD ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

static void note(struct ckt_worker *worker, const char *format, ...)
{
	char text[512];
	va_list ap;
	(void)worker;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
}

const struct ckt_session_operations ckt_session_operations = {
	.use_primary = use_primary, .note = note};

static CUresult CUDAAPI memory_info(size_t *ret_free, size_t *ret_total)
{
	*ret_free = gpu & GPU_FULL ? 1 << 20 : (size_t)8 << 30;
	*ret_total = (size_t)8 << 30;
	return CUDA_SUCCESS;
}

struct ckt_driver ckt_driver;

bool ckt_preload_active(void)
{
	return gpu & PRELOADED;
}

void ckt_contents_visit_all(const ckt_image *image, ckt_contents_visit *visit, void *opaque)
{
	for (unsigned d = 0; d < image->devices.devices_len; d++) {
		const ckt_image_device *device = &image->devices.devices_val[d];
		for (unsigned i = 0; i < device->extents.extents_len; i++)
			visit(&(struct ckt_contents){.device = d,
				      .size = device->extents.extents_val[i].size,
				      .taken = true},
				opaque);
	}
}

int ckt_load_refuse(struct ckt_loading *l, int error, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	vsnprintf(l->message, l->message_size, format, ap);
	va_end(ap);
	return error;
}

/* ---- One image */

static uint8_t manifest[HEADER + BODY_MAX];

static size_t make_manifest(uint8_t minor, uint8_t fault, const uint8_t *body, size_t size)
{
	uint8_t *p = manifest;
	if (fault == RAW) {
		memcpy(manifest, body, size);
		return size;
	}
	p = ckt_put_u32(p, fault == BAD_MAGIC ? 1 : (uint32_t)CKT_IMAGE_MAGIC);
	p = ckt_put_u32(p, CKT_IMAGE_MAJOR + (fault == BAD_MAJOR));
	p = ckt_put_u32(p, minor % (CKT_IMAGE_MINOR + 2));
	p = ckt_put_u64(p, size + (fault == BAD_LENGTH));
	struct sha256_ctx sha;
	sha256_init(&sha);
	sha256_update(&sha, size, body);
	sha256_digest(&sha, CKT_IMAGE_HASH, p);
	*p ^= fault == BAD_SUM;
	memcpy(p + CKT_IMAGE_HASH, body, size);
	return fault == SHORT ? minor % HEADER : HEADER + size;
}

static void check_session(ckt_image *image)
{
	static char message[1024];
	struct ckt_loading l = {
		.image = *image, .message = message, .message_size = sizeof message};
	/* Enough of an image's own world that the check comes to its end. */
	layout = (struct ckt_memory_layout){.device_count = 1 + (gpu >> 6),
		.base = image->window_base,
		.size = image->window_bytes,
		.slice_size = image->slice_bytes};
	ckt_worker_start_args args = {.memory_limit_bytes = gpu & LIMITED ? 1 << 20 : 0};
	message[0] = 0;
	int result = ckt_load_check(&l, &args);
	fuzz_insist(result <= 0 && (result != 0) == (message[0] != 0),
		"a refusal has a sentence, and nothing else has");
	fuzz_insist(result || layout.device_count >= image->devices.devices_len,
		"more GPUs than there are");
}

/* What was decoded encodes, and that decodes to the same. */
static void encode_again(const ckt_image *image)
{
	uint8_t *data, *again;
	size_t size, again_size;
	char message[512];
	ckt_image copy;
	if (ckt_image_encode(image, &data, &size))
		return;
	fuzz_insist(!ckt_image_decode(data, size, &copy, message, sizeof message),
		"what was encoded does not decode");
	fuzz_insist(!ckt_image_encode(&copy, &again, &again_size) && again_size == size &&
			!memcmp(data, again, size),
		"an image changes when encoded again");
	free(again);
	free(data);
	/* What cannot be encoded is refused. */
	static char name[4096];
	char *own = copy.session;
	memset(name, 'n', sizeof name - 1);
	copy.session = name;
	fuzz_insist(ckt_image_encode(&copy, &data, &size) < 0, "an image with an endless name");
	copy.session = own;
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&copy);
}

static int pipe_ends[2];

static void drain(void)
{
	static uint8_t bytes[1 << 16];
	while (read(pipe_ends[0], bytes, sizeof bytes) > 0)
		;
}

/* The same bytes as a file of a directory, and as open files; then written again. */
static void read_files(size_t size, uint8_t fails, uint8_t which)
{
	char message[512] = "";
	ckt_image image;
	unlinkat(place, "manifest", 0);
	int fd = openat(place, "manifest", O_RDWR | O_CREAT | O_EXCL, 0600);
	fuzz_insist(fd >= 0 && write(fd, manifest, size) == (ssize_t)size, "no file");
	int fds[2] = {fd, openat(place, "data-0", O_RDONLY)};
	fuzz_fail_allocation(fails);
	/* As one of a chain; a place is one directory. */
	char id[CKT_IMAGE_ID];
	int known = ckt_image_read_id(place, which >> 7, which & 2 ? 64 : BODY_MAX, id);
	if (!(which & 1 ? ckt_image_read(place, &image, message, sizeof message)
			: ckt_image_read_within(place, which & 2 ? 64 : BODY_MAX, &image, message,
				  sizeof message))) {
		fuzz_insist(known || memcmp(id, image.id, CKT_IMAGE_ID) == 0, "the id of another");
		unlinkat(place, "manifest", 0);
		ckt_image_write(which & 4 ? -1 : place, &image, message, sizeof message);
		xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	}
	/* Another one than that whose MAC was checked. */
	static const uint8_t other[32];
	ckt_manifest_expect(other);
	fuzz_insist(ckt_image_read(place, &image, message, sizeof message) < 0,
		"a manifest that nobody expects");
	ckt_manifest_expect(NULL);
	if (!ckt_image_read_open(fds, (which >> 3 & 3) % 3, &image, message, sizeof message)) {
		/* A file, one that may only be read, or a pipe, which nobody can sync. */
		ckt_image_write_open(which & 0x80 ? pipe_ends[1] : fds[which >> 5 & 1], &image,
			message, sizeof message);
		xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	}
	fuzz_fail_allocation(0);
	unsigned minor = ckt_image_minor(place);
	int64_t bytes = ckt_image_manifest_bytes(place, 0);
	fuzz_insist(minor < 256 || bytes >= 12, "a minor version out of nothing");
	fuzz_insist(ckt_image_manifest_bytes_open(fd) >= 0, "no size");
	close(fds[1]);
	close(fd);
	drain();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, data + size};
	static char message[1024];
	ckt_image image;
	if (size < HEAD || size > BODY_MAX)
		return 0;
	uint8_t minor = fuzz_u8(&input), fault = fuzz_u8(&input), fails = fuzz_u8(&input);
	gpu = fuzz_u8(&input);
	fails = fails < 0xc0 ? 0 : fails & 63;
	size = make_manifest(
		minor, fault & 0x80 ? fault % FAULTS : 0, input.p, (size_t)(input.end - input.p));
	message[0] = 0;
	fuzz_fail_allocation(fails);
	int result = ckt_image_decode(manifest, size, &image, message, sizeof message);
	fuzz_fail_allocation(0);
	fuzz_insist(result <= 0 && (!result || message[0] || result == -ENOMEM), "no sentence");
	if (!result) {
		check_session(&image);
		encode_again(&image);
		xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	}
	if (fault & 0x40)
		read_files(size, fails, gpu);
	/* One that is encrypted says so. */
	memcpy(manifest, "CkE1", 4);
	fuzz_insist(ckt_image_decode(manifest, size, &image, message, sizeof message) == -EBADMSG,
		"an encrypted manifest is read");
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	static uint8_t out[BODY_MAX];
	if (size < HEAD || max_size > sizeof out || fuzz_random(&seed) % 16 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	memcpy(out, data, HEAD);
	if (fuzz_random(&seed) % 4 == 0)
		out[fuzz_random(&seed) % HEAD] = (uint8_t)fuzz_random(&seed);
	if (fuzz_random(&seed) % 4 && out[1] & 0x80)
		out[1] &= 0x7f;
	size = HEAD +
		fuzz_mutate_xdr((xdrproc_t)xdr_ckt_image, sizeof(ckt_image), data + HEAD,
			size - HEAD, out + HEAD, max_size - HEAD, seed);
	memcpy(data, out, size);
	return size;
}

/* ---- Seeds: an image with some of everything, encoded by the product */

static ckt_image make_image(void)
{
	static ckt_image_extent extents[] = {{CKT_WINDOW_BASE, 1 << 21, 0}};
	static ckt_image_device devices[] = {{.name = (char *)"GPU",
		.major = 12,
		.total_bytes = (uint64_t)8 << 30,
		.extents = {1, extents}}};
	static ckt_image_blob blobs[] = {{.size = 100, .received = 100}};
	static ckt_image_array arrays[] = {
		{.levels = 0, .width = 8, .height = 8, .format = 1, .channels = 1, .live = TRUE}};
	static ckt_image_reply replies[] = {{.seq = 4}, {.seq = 5}};
	static uint64_t file_bytes[] = {4096};
	static ckt_image_chunk chunks[] = {{.size = 100, .stored = 100},
		{.space = 1, .size = 100, .stored = 50, .encoding = CKT_IMAGE_ZSTD},
		{.space = 2, .size = 64, .stored = 64, .offset = 1000},
		{.size = 64, .stored = 64, .file = 1}};
	static ckt_image_ancestor ancestors[1];
	static ckt_image_file elsewhere[] = {{0, 0, 4096}};
	static ckt_image_journal journal[] = {{.kind = CKT_JOURNAL_PRIMARY}};
	static u_int keys[] = {1};
	static u_quad_t values[] = {1};
	static ckt_image_module modules[] = {
		{.option_keys = {1, keys}, .option_values = {1, values}}};
	return (ckt_image){.session = (char *)"0123456789ab",
		.program_name = (char *)"program",
		.client = (char *)"here",
		.build = (char *)"0",
		.owner_name = (char *)"",
		.owner_project = (char *)"",
		.driver_version = 13000,
		.executed = 5,
		.acked = 3,
		.replies = {2, replies},
		.window_base = CKT_WINDOW_BASE,
		.window_bytes = (uint64_t)1 << 40,
		.slice_bytes = (uint64_t)1 << 38,
		.devices = {1, devices},
		.blobs = {1, blobs},
		.journal = {1, journal},
		.modules = {1, modules},
		.file_bytes = {1, file_bytes},
		.chunks = {4, chunks},
		.arrays = {1, arrays},
		.ancestors = {1, ancestors},
		.elsewhere = {1, elsewhere}};
}

static void write_seed(
	const char *to, const char *name, const ckt_image *image, const uint8_t head[HEAD])
{
	static uint8_t seed[BODY_MAX];
	uint8_t *encoded;
	size_t size;
	fuzz_insist(!ckt_image_encode(image, &encoded, &size), "no seed");
	memcpy(seed, head, HEAD);
	memcpy(seed + HEAD, encoded + HEADER, size - HEADER);
	free(encoded);
	fuzz_write_seed(to, name, seed, HEAD + size - HEADER);
}

static void write_seeds(const char *to)
{
	ckt_image image = make_image();
	uint8_t head[HEAD] = {CKT_IMAGE_MINOR, 0x40, 0, 0};
	image.journal.journal_len = 0;
	write_seed(to, "image", &image, head);
	for (head[3] = 1; head[3]; head[3] = (uint8_t)(head[3] << 1)) {
		char name[] = "image-on-0";
		name[9] += (char)__builtin_ctz(head[3]);
		write_seed(to, name, &image, head);
	}
	/* A preloaded session that is another, or whose GPU is dead; then files that cannot be written. */
	static const uint8_t circumstances[] = {0x40 | PRELOADED, PRELOADED | GPU_DEAD, 0x28, 0x88};
	for (unsigned i = 0; i < sizeof circumstances; i++) {
		char name[] = "image-so-0";
		name[9] += (char)i;
		head[3] = circumstances[i];
		write_seed(to, name, &image, head);
	}
	head[3] = 0;
	for (head[2] = 0xc1; head[2] < 0xe0; head[2]++) {
		char name[16];
		snprintf(name, sizeof name, "image-poor-%u", head[2] & 63);
		write_seed(to, name, &image, head);
	}
	head[2] = 0;
	head[0]--;
	write_seed(to, "image-older", &image, head);
	head[0]++;
	/* What is refused, each for one reason. */
	ckt_image_device devices[] = {image.devices.devices_val[0], image.devices.devices_val[0]};
	devices[0].extents.extents_len = devices[1].extents.extents_len = 0;
	ckt_image other = image;
	other.devices.devices_val = devices;
	write_seed(to, "image-empty-gpu", &other, head);
	other.window_base++;
	write_seed(to, "image-other-window", &other, head);
	other.window_base--;
	other.devices.devices_len = 2;
	write_seed(to, "image-two-gpus", &other, head);
	other = image;
	other.acked = other.executed + 1;
	write_seed(to, "image-acked", &other, head);
	other = make_image();
	write_seed(to, "image-journal", &other, head);
	other.modules.modules_val[0].option_values.option_values_len = 0;
	write_seed(to, "image-options", &other, head);
}

static void remove_files(void)
{
	unlinkat(place, "manifest", 0);
	unlinkat(place, "data-0", 0);
	rmdir(directory);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	fuzz_insist(mkdtemp(directory), "no directory");
	place = open(directory, O_RDONLY | O_DIRECTORY);
	fuzz_insist(!pipe2(pipe_ends, O_NONBLOCK | O_CLOEXEC), "no pipe");
	atexit(remove_files);
	int fd = openat(place, "data-0", O_WRONLY | O_CREAT, 0600);
	fuzz_insist(fd >= 0 && !ftruncate(fd, 4096), "no file");
	close(fd);
	ckt_driver.cuMemGetInfo_v2 = memory_info;
	const char *to = getenv("CKT_FUZZ_SEEDS");
	if (!to)
		return 0;
	write_seeds(to);
	exit(0);
}
