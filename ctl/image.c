/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cricketctl image show|verify|diff|flatten: looks at images on this host, without a server; list
 * and remove: see memory_images.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "ctl/chain.h"
#include "ctl/client/client.h"
#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/job/job.h"
#include "ctl/memory_images.h"
#include "ctl/print.h"
#include "ctl/progress.h"
#include "ctl/sealed_image.h"
#include "ctl/subcommands.h"

static const char *hex(const char *bytes, size_t size, char *buffer)
{
	for (size_t i = 0; i < size; i++)
		snprintf(buffer + 2 * i, 3, "%02x", (unsigned char)bytes[i]);
	return buffer;
}

struct sums {
	uint64_t memory;   /* blocks of device memory */
	uint64_t contents; /* that is not zeros */
	uint64_t stored;   /* in this image's own files */
	uint64_t older;    /* contents that lie in ancestors */
	uint64_t objects;
};

/* Without those that only the journal names. */
static u_int live_arrays(const ckt_image *image)
{
	u_int count = 0;
	for (u_int i = 0; i < image->arrays.arrays_len; i++)
		count += image->arrays.arrays_val[i].live;
	return count;
}

static struct sums add_up(const ckt_image *image)
{
	struct sums sums = {0};
	for (u_int i = 0; i < image->devices.devices_len; i++)
		for (u_int k = 0; k < image->devices.devices_val[i].blocks.blocks_len; k++)
			sums.memory += image->devices.devices_val[i].blocks.blocks_val[k].size;
	for (u_int i = 0; i < image->chunks.chunks_len; i++) {
		const ckt_image_chunk *chunk = &image->chunks.chunks_val[i];
		sums.contents += chunk->size;
		if (chunk->file >= image->file_bytes.file_bytes_len)
			sums.older += chunk->size;
	}
	for (u_int i = 0; i < image->file_bytes.file_bytes_len; i++)
		sums.stored += image->file_bytes.file_bytes_val[i];
	sums.objects = (uint64_t)image->contexts.contexts_len + image->streams.streams_len +
		image->events.events_len + image->modules.modules_len +
		image->functions.functions_len + image->pools.pools_len +
		image->physicals.physicals_len + live_arrays(image) + image->textures.textures_len;
	return sums;
}

/* ---- show */

/* The CUDA version of the driver that the session ran on. */
static const char *driver_text(const ckt_image *image, char *buffer, size_t size)
{
	snprintf(buffer, size, "%d.%d", image->driver_version / 1000,
		image->driver_version % 1000 / 10);
	return buffer;
}

static int show_json(const struct ckt_ctl_chain *chain, const struct sums *sums)
{
	const ckt_image *image = &chain->image;
	char saved[64], id[2 * CKT_IMAGE_ID + 1], driver[32];
	json_t *devices = json_array(), *ancestors = json_array();
	for (u_int i = 0; i < image->devices.devices_len; i++)
		json_array_append_new(devices,
			json_pack("{s:o, s:i, s:i, s:I}", "name",
				ckt_ctl_json_text(image->devices.devices_val[i].name), "major",
				image->devices.devices_val[i].major, "minor",
				image->devices.devices_val[i].minor, "total_bytes",
				(json_int_t)image->devices.devices_val[i].total_bytes));
	for (u_int i = 0; i < image->ancestors.ancestors_len; i++)
		json_array_append_new(ancestors,
			json_string(hex(image->ancestors.ancestors_val[i].id, CKT_IMAGE_ID, id)));
	hex(image->id, CKT_IMAGE_ID, id);
	return ckt_ctl_json_print(json_pack(
		"{s:s, s:o, s:o, s:o, s:o, s:o, s:i, s:I, s:s, s:o, s:s, s:I, s:o, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}, s:o}",
		"image", id, "session", ckt_ctl_json_text(image->session), "program",
		ckt_ctl_json_text(image->program_name), "owner",
		ckt_ctl_json_text(image->owner_name), "project",
		ckt_ctl_json_text(image->owner_project), "client", ckt_ctl_json_text(image->client),
		"pid", (int)image->client_pid, "generation", (json_int_t)image->generation, "saved",
		ckt_ctl_time_text(image->saved, saved, sizeof saved), "version",
		ckt_ctl_json_text(image->build), "cuda", driver_text(image, driver, sizeof driver),
		"executed", (json_int_t)image->executed, "devices", devices, "memory_bytes",
		(json_int_t)sums->memory, "contents_bytes", (json_int_t)sums->contents,
		"stored_bytes", (json_int_t)sums->stored, "older_bytes", (json_int_t)sums->older,
		"objects", "contexts", (json_int_t)image->contexts.contexts_len, "streams",
		(json_int_t)image->streams.streams_len, "events",
		(json_int_t)image->events.events_len, "modules",
		(json_int_t)image->modules.modules_len, "functions",
		(json_int_t)image->functions.functions_len, "pools",
		(json_int_t)image->pools.pools_len, "physical",
		(json_int_t)image->physicals.physicals_len, "arrays",
		(json_int_t)live_arrays(image), "textures",
		(json_int_t)image->textures.textures_len, "ancestors", ancestors));
}

static int show(const struct ckt_ctl_args *args, const struct ckt_ctl_chain *chain)
{
	const ckt_image *image = &chain->image;
	struct sums sums = add_up(image);
	char id[2 * CKT_IMAGE_ID + 1], saved[64], a[32], b[32], c[32], program[CKT_IMAGE_NAME + 1],
		client[CKT_IMAGE_NAME + 1];
	if (args->json)
		return show_json(chain, &sums);
	printf("image       %s\n", hex(image->id, CKT_IMAGE_ID, id));
	printf("session     %s, generation %" PRIu64 ", saved %s\n", image->session,
		(uint64_t)image->generation, ckt_ctl_time_text(image->saved, saved, sizeof saved));
	printf("program     %s, process %u on %s\n",
		ckt_ctl_clean(image->program_name, program, sizeof program), image->client_pid,
		ckt_ctl_clean(image->client, client, sizeof client));
	if (*image->owner_name)
		printf("owner       %s%s%s\n", ckt_ctl_clean(image->owner_name, a, sizeof a),
			*image->owner_project ? " of project " : "",
			ckt_ctl_clean(image->owner_project, b, sizeof b));
	for (u_int i = 0; i < image->devices.devices_len; i++)
		printf("device      %s, %d.%d\n",
			ckt_ctl_clean(image->devices.devices_val[i].name, program, sizeof program),
			image->devices.devices_val[i].major, image->devices.devices_val[i].minor);
	printf("driver      for CUDA %s, image of Cricket %s\n", driver_text(image, a, sizeof a),
		ckt_ctl_clean(image->build, program, sizeof program));
	printf("memory      %s, %s of it not zero\n", ckt_ctl_size_text(sums.memory, a, sizeof a),
		ckt_ctl_size_text(sums.contents, b, sizeof b));
	printf("files       %s here, %s of the contents in older images\n",
		ckt_ctl_size_text(sums.stored, a, sizeof a),
		ckt_ctl_size_text(sums.older, c, sizeof c));
	printf("objects     %u contexts, %u streams, %u events, %u modules, %u functions, %u pools, %u arrays, %u textures\n",
		image->contexts.contexts_len, image->streams.streams_len, image->events.events_len,
		image->modules.modules_len, image->functions.functions_len, image->pools.pools_len,
		live_arrays(image), image->textures.textures_len);
	for (u_int i = 0; i < image->ancestors.ancestors_len; i++)
		printf("%s   %s\n", i ? "         " : "builds on",
			hex(image->ancestors.ancestors_val[i].id, CKT_IMAGE_ID, id));
	return ckt_ctl_flush();
}

/* ---- verify */

static int open_reader(const struct ckt_ctl_chain *chain, struct ckt_image_reader *ret_reader)
{
	char message[512];
	if (ckt_image_reader_init(ret_reader, &chain->image, chain->fds, chain->count, message,
		    sizeof message) == 0)
		return CKT_EXIT_DONE;
	return ckt_ctl_refuse(chain->path, message);
}

/* Over all contents. */
static struct ckt_ctl_progress *begin_progress(
	const struct ckt_ctl_args *args, const struct ckt_ctl_chain *chain, const char *what)
{
	struct ckt_ctl_progress *progress = ckt_ctl_progress_begin(args, NULL, "");
	uint64_t total = 0;
	for (u_int i = 0; i < chain->image.chunks.chunks_len; i++)
		total += chain->image.chunks.chunks_val[i].size;
	ckt_ctl_progress_phase(progress, what, total);
	return progress;
}

static int verify(const struct ckt_ctl_args *args, const struct ckt_ctl_chain *chain)
{
	struct ckt_image_reader reader;
	char *data = malloc(CKT_IMAGE_CHUNK), size[32];
	uint64_t bytes = 0, bad = 0;
	int status =
		data ? open_reader(chain, &reader) : ckt_ctl_refuse(chain->path, "out of memory");
	if (status != CKT_EXIT_DONE) {
		free(data);
		return status;
	}
	struct ckt_ctl_progress *progress = begin_progress(args, chain, "verify");
	for (u_int i = 0; i < chain->image.chunks.chunks_len; i++) {
		const ckt_image_chunk *chunk = &chain->image.chunks.chunks_val[i];
		int result = ckt_image_reader_chunk(&reader, chunk, data);
		bytes += chunk->size;
		ckt_ctl_progress_add(progress, chunk->size);
		if (!result)
			continue;
		if (!bad++)
			fprintf(stderr,
				"cricketctl: %s: the contents of %s 0x%" PRIx64
				" are damaged: %s\n",
				chain->path,
				chunk->space > chain->image.blobs.blobs_len ? "array offset"
					: chunk->space                      ? "blob offset"
									    : "address",
				(uint64_t)chunk->address, strerror(-result));
	}
	ckt_ctl_progress_end(progress);
	ckt_image_reader_fini(&reader);
	free(data);
	if (args->json)
		status = ckt_ctl_json_print(json_pack("{s:b, s:i, s:I, s:I}", "ok", bad == 0,
			"chunks", (int)chain->image.chunks.chunks_len, "bytes", (json_int_t)bytes,
			"damaged", (json_int_t)bad));
	else if (!bad) {
		printf("%s is undamaged: %u chunks, %s\n", chain->path,
			chain->image.chunks.chunks_len,
			ckt_ctl_size_text(bytes, size, sizeof size));
		status = ckt_ctl_flush();
	}
	return bad ? CKT_EXIT_REFUSED : status;
}

/* ---- diff */

static int by_place(const void *a, const void *b)
{
	const ckt_image_chunk *x = a, *y = b;
	if (x->space != y->space)
		return x->space < y->space ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

/* Chunks of contents in which two images differ, and their bytes. */
struct chunk_changes {
	uint64_t changed, gone, fresh, bytes;
};

static void sort_chunks(ckt_image *image)
{
	/* An image without contents has no list. */
	if (image->chunks.chunks_len)
		qsort(image->chunks.chunks_val, image->chunks.chunks_len,
			sizeof *image->chunks.chunks_val, by_place);
}

/* Both lists end up sorted. */
static struct chunk_changes compare_chunks(ckt_image *older, ckt_image *newer)
{
	struct chunk_changes changes = {0};
	const ckt_image_chunk *a = older->chunks.chunks_val, *b = newer->chunks.chunks_val;
	u_int a_count = older->chunks.chunks_len, b_count = newer->chunks.chunks_len, i = 0, k = 0;
	sort_chunks(older);
	sort_chunks(newer);
	while (i < a_count || k < b_count) {
		int order = i == a_count ? 1 : k == b_count ? -1 : by_place(&a[i], &b[k]);
		if (order < 0) {
			changes.gone++;
			changes.bytes += a[i++].size;
			continue;
		}
		if (order > 0) {
			changes.fresh++;
			changes.bytes += b[k++].size;
			continue;
		}
		if (a[i].size != b[k].size || memcmp(a[i].hash, b[k].hash, CKT_IMAGE_HASH) != 0) {
			changes.changed++;
			changes.bytes += b[k].size;
		}
		i++;
		k++;
	}
	return changes;
}

static int64_t live_arrays_of(const ckt_image *image)
{
	return live_arrays(image);
}

#define COUNT_OF(kind)                                   \
	static int64_t kind##_of(const ckt_image *image) \
	{                                                \
		return image->kind.kind##_len;           \
	}
COUNT_OF(contexts)
COUNT_OF(streams)
COUNT_OF(events)
COUNT_OF(modules)
COUNT_OF(functions)
COUNT_OF(pools)
COUNT_OF(textures)

static const struct {
	const char *name;
	int64_t (*count)(const ckt_image *image);
} kinds[] = {
	{"contexts", contexts_of},
	{"streams", streams_of},
	{"events", events_of},
	{"modules", modules_of},
	{"functions", functions_of},
	{"pools", pools_of},
	{"arrays", live_arrays_of},
	{"textures", textures_of},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static int print_diff_json(
	const ckt_image *older, const ckt_image *newer, const struct chunk_changes *changes)
{
	json_t *objects = json_object();
	for (unsigned n = 0; n < KINDS; n++)
		json_object_set_new(objects, kinds[n].name,
			json_integer(kinds[n].count(newer) - kinds[n].count(older)));
	return ckt_ctl_json_print(json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:o}", "same_session",
		strcmp(older->session, newer->session) == 0, "changed_chunks",
		(json_int_t)changes->changed, "new_chunks", (json_int_t)changes->fresh,
		"gone_chunks", (json_int_t)changes->gone, "bytes", (json_int_t)changes->bytes,
		"commands", (json_int_t)(newer->executed - older->executed), "objects", objects));
}

static int print_diff(
	const ckt_image *older, const ckt_image *newer, const struct chunk_changes *changes)
{
	char size[32];
	printf("%s%" PRIu64 " chunks changed, %" PRIu64 " new, %" PRIu64 " gone, %s; %" PRId64
	       " commands\n",
		strcmp(older->session, newer->session) == 0 ? "" : "different sessions: ",
		changes->changed, changes->fresh, changes->gone,
		ckt_ctl_size_text(changes->bytes, size, sizeof size),
		(int64_t)(newer->executed - older->executed));
	for (unsigned n = 0; n < KINDS; n++) {
		int64_t by = kinds[n].count(newer) - kinds[n].count(older);
		if (by)
			printf("%+" PRId64 " %s\n", by, kinds[n].name);
	}
	return ckt_ctl_flush();
}

static int diff(
	const struct ckt_ctl_args *args, struct ckt_ctl_chain *one, struct ckt_ctl_chain *two)
{
	if (one->image.hash_kind != two->image.hash_kind)
		return ckt_ctl_refuse(two->path,
			"uses another hash for its contents than the first image: "
			"flatten the older one first");
	const struct chunk_changes changes = compare_chunks(&one->image, &two->image);
	return (args->json ? print_diff_json : print_diff)(&one->image, &two->image, &changes);
}

/* ---- flatten */

/*
 * Copies all contents into one file of the new image and updates the manifest's lists of files and
 * chunks.
 */
static int copy_contents(const struct ckt_ctl_args *args, const struct ckt_ctl_chain *chain,
	struct ckt_image_writer *writer, char *data)
{
	struct ckt_image_reader reader;
	int status = open_reader(chain, &reader), result = 0;
	if (status != CKT_EXIT_DONE)
		return status;
	struct ckt_ctl_progress *progress = begin_progress(args, chain, "flatten");
	for (u_int i = 0; i < chain->image.chunks.chunks_len && !result; i++) {
		const ckt_image_chunk *chunk = &chain->image.chunks.chunks_val[i];
		result = ckt_image_reader_chunk(&reader, chunk, data);
		if (!result)
			result = ckt_image_writer_add(
				writer, chunk->space, chunk->address, data, chunk->size, NULL);
		ckt_ctl_progress_add(progress, chunk->size);
	}
	ckt_ctl_progress_end(progress);
	ckt_image_reader_fini(&reader);
	if (!result)
		result = ckt_image_writer_finish(writer);
	return result ? ckt_ctl_refuse(chain->path, strerror(-result)) : CKT_EXIT_DONE;
}

static int flatten_to(
	const struct ckt_ctl_args *args, const struct ckt_ctl_chain *chain, int dir_fd)
{
	struct ckt_image_writer writer = {.fd = -1};
	char *data = malloc(CKT_IMAGE_CHUNK), message[512];
	u_quad_t file_bytes;
	int status = data ? CKT_EXIT_DONE : ckt_ctl_refuse(chain->path, "out of memory");
	int result = data ? ckt_image_writer_init(&writer, dir_fd, 0, false) : 0;
	writer.hash_kind = chain->image.hash_kind;
	if (result)
		status = ckt_ctl_refuse(chain->path, strerror(-result));
	if (status == CKT_EXIT_DONE)
		status = copy_contents(args, chain, &writer, data);
	if (status == CKT_EXIT_DONE) {
		ckt_image image = chain->image;
		file_bytes = writer.offset;
		image.file_bytes.file_bytes_len = 1;
		image.file_bytes.file_bytes_val = &file_bytes;
		image.chunks.chunks_len = (u_int)writer.count;
		image.chunks.chunks_val = writer.chunks;
		image.ancestors.ancestors_len = 0;
		image.elsewhere.elsewhere_len = 0;
		/*
		 * Images that build on the old one rely on its data files, so this is another
		 * image.
		 */
		image.chain = false;
		if (getrandom(image.id, sizeof image.id, 0) != sizeof image.id)
			status = ckt_ctl_refuse(chain->path, strerror(errno));
		else if (ckt_image_write(dir_fd, &image, message, sizeof message))
			status = ckt_ctl_refuse(chain->path, message);
	}
	ckt_image_writer_fini(&writer);
	free(data);
	return status;
}

static int flatten(const struct ckt_ctl_args *args, const struct ckt_ctl_chain *chain)
{
	char path[CKT_CTL_PATH_SIZE];
	struct ckt_ctl_partial partial = {.fd = -1};
	int status = ckt_ctl_path_copy(args->words[2], path);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_partial_make(path, &partial);
	if (status == CKT_EXIT_DONE)
		status = flatten_to(args, chain, partial.fd);
	int result = status == CKT_EXIT_DONE ? ckt_ctl_client_copy(chain->fds[0], partial.fd) : 0;
	if (result)
		status = ckt_ctl_refuse(path, strerror(-result));
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_partial_keep(&partial);
	if (status != CKT_EXIT_DONE)
		ckt_ctl_partial_drop(&partial);
	else if (args->json)
		status = ckt_ctl_json_print(json_pack("{s:o, s:i}", "directory",
			ckt_ctl_json_text(path), "images", (int)chain->count));
	return status;
}

static int decrypt(const struct ckt_ctl_args *args)
{
	char path[CKT_CTL_PATH_SIZE];
	struct ckt_ctl_partial partial = {.fd = -1};
	int from = open(args->words[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool job = ckt_ctl_job_is_sealed(args->words[1]);
	int status = from < 0 ? ckt_ctl_refuse(args->words[1], strerror(errno))
		: !job && !ckt_ctl_image_is_sealed(from)
		? ckt_ctl_refuse(args->words[1], "is no encrypted image: use it as it is")
		: ckt_ctl_path_copy(args->words[2], path);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_partial_make(path, &partial);
	if (status == CKT_EXIT_DONE)
		status = job ? ckt_ctl_job_unseal(args, args->words[1], &partial)
			     : ckt_ctl_image_unseal(args, args->words[1], from, partial.fd, NULL);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_partial_keep(&partial);
	if (status != CKT_EXIT_DONE)
		ckt_ctl_partial_drop(&partial);
	else if (args->json)
		status = ckt_ctl_json_print(
			json_pack("{s:o}", "directory", ckt_ctl_json_text(path)));
	if (from >= 0)
		close(from);
	return status;
}

/* show, verify: with its key, an encrypted one, too. */
static int open_plain(const struct ckt_ctl_args *args, struct ckt_ctl_plain *plain,
	struct ckt_ctl_chain *ret_chain)
{
	int from = open(args->words[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool sealed = args->image_key_count && from >= 0 && ckt_ctl_image_is_sealed(from);
	int status = sealed ? ckt_ctl_plain_make(plain) : CKT_EXIT_DONE;
	if (sealed && status == CKT_EXIT_DONE)
		status = ckt_ctl_image_unseal(args, args->words[1], from, plain->fd, NULL);
	if (from >= 0)
		close(from);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_chain_open(sealed ? plain->path : args->words[1], true, ret_chain);
	/* Messages name the directory that the user knows. */
	return status == CKT_EXIT_DONE && sealed
		? ckt_ctl_path_copy(args->words[1], ret_chain->path)
		: status;
}

int ckt_ctl_image(const struct ckt_ctl_args *args)
{
	static struct ckt_ctl_chain one, two;
	static const struct {
		const char *name;
		int words;
		int (*alone)(const struct ckt_ctl_args *args);
	} verbs[] = {{"show", 2, NULL}, {"verify", 2, NULL}, {"diff", 3, NULL},
		{"flatten", 3, NULL}, {"decrypt", 3, decrypt}, {"list", 1, ckt_ctl_kept_list},
		{"remove", 2, ckt_ctl_kept_remove}};
	enum { VERBS = sizeof verbs / sizeof *verbs };
	unsigned verb = 0;
	while (verb < VERBS && strcmp(verbs[verb].name, args->words[0]) != 0)
		verb++;
	if (verb == VERBS || args->word_count != verbs[verb].words) {
		fprintf(stderr,
			"cricketctl: usage: image show DIR, image verify DIR, image "
			"diff OLD NEW, image flatten DIR NEW, image decrypt DIR NEW "
			"--image-key FILE, image list or image remove memory:NAME\n");
		return CKT_EXIT_USAGE;
	}
	if (verbs[verb].alone)
		return verbs[verb].alone(args);
	struct ckt_ctl_plain plain = {.fd = -1};
	int status = verb < 2 ? open_plain(args, &plain, &one)
			      : ckt_ctl_chain_open(args->words[1], true, &one);
	if (status == CKT_EXIT_DONE && verb == 2)
		status = ckt_ctl_chain_open(args->words[2], true, &two);
	if (status == CKT_EXIT_DONE)
		status = verb == 0  ? show(args, &one)
			: verb == 1 ? verify(args, &one)
			: verb == 2 ? diff(args, &one, &two)
				    : flatten(args, &one);
	ckt_ctl_chain_close(&one);
	ckt_ctl_chain_close(&two);
	ckt_ctl_plain_remove(&plain);
	return status;
}
