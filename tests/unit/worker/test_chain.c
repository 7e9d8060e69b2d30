/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of images: what did not change points into the last image's files, and only what is sure
 * not to have changed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/save/chain.h"
#include "server/worker/objects/array.h"
#include "server/worker/objects/context.h"
#include "server/worker/session/long_call.h"
#include "tests/unit/worker/inside.h"

enum { PIECES = 4 };

static uint64_t memory, key[4];

static void make_pieces(struct ckt_piece *pieces)
{
	for (unsigned i = 0; i < PIECES; i++)
		pieces[i] = (struct ckt_piece){.address = memory + (uint64_t)i * CKT_IMAGE_CHUNK,
			.size = CKT_IMAGE_CHUNK,
			.hashable = true};
}

static ckt_image *image_new(uint8_t id, unsigned own_files)
{
	ckt_image *image = calloc(1, sizeof *image);
	memset(image->id, id, sizeof image->id);
	image->session = strdup("0123456789ab");
	image->program_name = strdup("");
	image->client = strdup("");
	image->build = strdup("");
	image->owner_name = strdup("");
	image->owner_project = strdup("");
	image->file_bytes.file_bytes_val = calloc(own_files + 1, sizeof(uint64_t));
	image->file_bytes.file_bytes_len = own_files;
	for (unsigned i = 0; i < own_files; i++)
		image->file_bytes.file_bytes_val[i] = 1000u * id + i;
	return image;
}

static void image_free(ckt_image *image)
{
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)image);
	free(image);
}

/* What of the pieces is to be written becomes chunks of the image's own file, as saving would. */
static void write_chunks(ckt_image *image, const struct ckt_piece *pieces, unsigned file)
{
	image->chunks.chunks_val = calloc(PIECES + 1, sizeof(ckt_image_chunk));
	for (unsigned i = 0; i < PIECES; i++)
		if (!pieces[i].same)
			image->chunks.chunks_val[image->chunks.chunks_len++] =
				(ckt_image_chunk){.address = pieces[i].address,
					.size = pieces[i].size,
					.file = file,
					.offset = i,
					.stored = 1};
}

static void test_hash(void)
{
	struct ckt_piece pieces[PIECES];
	memory = inside_memory((uint64_t)PIECES * CKT_IMAGE_CHUNK, 0);
	inside_fill(memory + CKT_IMAGE_CHUNK, 1, CKT_IMAGE_CHUNK);
	inside_fill(memory + 2 * CKT_IMAGE_CHUNK, 1, CKT_IMAGE_CHUNK);
	make_pieces(pieces);
	pieces[3].hashable = false;
	ckt_chain_key(true, key);
	YES(key[0] && key[3]);
	IS(ckt_chain_hash(&ckt_worker, pieces, PIECES, key), 0);
	YES(pieces[0].hashed && pieces[0].same); /* zeros are never written */
	YES(pieces[1].hashed && !pieces[1].same);
	IS(memcmp(&pieces[1].value, &pieces[2].value, sizeof pieces[1].value), 0);
	NO(pieces[3].hashed || pieces[3].same);
	/*
	 * The second device has no context, so no kernel: none has a hash then, and nothing counts
	 * as unchanged.
	 */
	make_pieces(pieces);
	pieces[2].device = 1;
	IS(ckt_chain_hash(&ckt_worker, pieces, PIECES, key), -EOPNOTSUPP);
	for (unsigned i = 0; i < PIECES; i++)
		NO(pieces[i].hashed || pieces[i].same);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	inside_free(memory);
}

/*
 * Arrays have a hash by their contents, and an image without keyed hashes is compared by what it
 * says of its chunks.
 */
static void test_candidates(void)
{
	struct ckt_piece pieces[2];
	uint64_t id = ID(ARRAY, 220);
	static uint8_t data[64 * 16];
	char hash[CKT_IMAGE_HASH], other[CKT_IMAGE_HASH] = "other";
	ckt_chain_break();
	MUST(ASK(array_create, .id = id, .width = 64, .height = 16,
		     .format = CU_AD_FORMAT_UNSIGNED_INT8, .channels = 1),
		CUDA_SUCCESS);
	const struct ckt_object *object = ckt_objects_find(&ckt_worker.objects, id);
	for (unsigned round = 0; round < 2; round++) {
		memset(data, round ? 7 : 0, sizeof data);
		IS(ckt_array_write(object, data), CUDA_SUCCESS);
		pieces[0] = (struct ckt_piece){
			.space = 1, .owner = id, .array = object, .size = sizeof data};
		ckt_chain_key(true, key);
		IS(ckt_chain_hash(&ckt_worker, pieces, 1, key), 0);
		YES(pieces[0].hashed);
		IS(pieces[0].same, !round);
	}
	ckt_image *image = image_new(9, 1);
	image->arrays.arrays_val = calloc(1, sizeof(ckt_image_array));
	image->arrays.arrays_len = 1;
	image->arrays.arrays_val[0].id = id;
	image->chunks.chunks_val = calloc(2, sizeof(ckt_image_chunk));
	image->chunks.chunks_len = 2;
	ckt_image_hash(CKT_IMAGE_BLAKE3, data, sizeof data, hash);
	image->chunks.chunks_val[0] = (ckt_image_chunk){.space = 1, .size = sizeof data};
	memcpy(image->chunks.chunks_val[0].hash, hash, sizeof hash);
	image->chunks.chunks_val[1] = (ckt_image_chunk){.address = 0x1000, .size = 16};
	ckt_chain_advance(image, NULL, 0, NULL);
	image_free(image);
	NO(ckt_chain_hashed());
	pieces[0].hashed = false;
	pieces[1] = (struct ckt_piece){.address = 0x1000, .size = 32}; /* another size: none */
	ckt_chain_compare(pieces, 2);
	YES(pieces[0].candidate && !pieces[1].candidate);
	NO(ckt_chain_resembles(&pieces[0], other) || ckt_chain_resembles(&pieces[1], other));
	NO(pieces[0].same);
	YES(ckt_chain_resembles(&pieces[0], hash));
	YES(pieces[0].same && pieces[0].old);
	IS(ASK(array_destroy, .id = id), CUDA_SUCCESS);
	ckt_long_call_drain(&ckt_worker, -1);
	ckt_chain_break();
}

/* The manifest of a base comes in pieces, in order, and must be this session's. */
static void test_base(void)
{
	char id[CKT_IMAGE_ID], message[CKT_MESSAGE_MAX] = "";
	uint8_t *data;
	size_t size;
	memset(id, 5, sizeof id);
	ckt_chain_break();
	IS(ckt_chain_base_use(&ckt_worker, id, message, sizeof message), -ESTALE);
	for (unsigned round = 0; round < 4; round++) {
		ckt_image *image = image_new(5, 1);
		free(image->session);
		image->session = strdup(round == 1 ? "ffffffffffff" : ckt_worker.session);
		memcpy(image->secret_hash, ckt_worker.secret_hash, sizeof image->secret_hash);
		image->window_base = ckt_worker.window_base;
		image->window_bytes = ckt_worker.window_size;
		image->slice_bytes = ckt_worker.slice_size;
		image->devices.devices_val = calloc(1, sizeof(ckt_image_device));
		image->devices.devices_len = 1;
		image->devices.devices_val[0].name = strdup("");
		image->hash_kind = round == 2 ? CKT_IMAGE_SHA256 : CKT_IMAGE_BLAKE3;
		ckt_chain_break();
		IS(ckt_image_encode(image, &data, &size), 0);
		image_free(image);
		IS(ckt_chain_base_piece(id, 0, data, 10), 0);
		IS(ckt_chain_base_piece(id, 11, data + 11, size - 11), -EINVAL); /* a gap */
		IS(ckt_chain_base_piece(id, 10, data + 10, size - 10 - (round == 3)), 0);
		IS(ckt_chain_base_use(&ckt_worker, id, message, sizeof message),
			round == 0           ? 0
				: round == 3 ? -EBADMSG
					     : -EINVAL);
		IS(ckt_chain_continues(id), round == 0);
		if (round == 1)
			HAS(message, "belongs to session ffffffffffff");
		if (round == 0)
			IS(ckt_chain_base_use(&ckt_worker, id, message, sizeof message), 0);
		id[0] ^= 1;
		/* used up, and of another id */
		IS(ckt_chain_base_use(&ckt_worker, id, message, sizeof message), -ESTALE);
		IS(ckt_chain_base_piece(id, 100, data, 1), -EINVAL);
		id[0] ^= 1;
		free(data);
	}
	ckt_chain_break();
}

/* Three images, as saving makes them. */
static void test_share(void)
{
	struct ckt_piece pieces[PIECES];
	ckt_chain_break();
	memory = inside_memory((uint64_t)PIECES * CKT_IMAGE_CHUNK, 3);
	make_pieces(pieces);
	ckt_chain_key(true, key);
	IS(ckt_chain_hash(&ckt_worker, pieces, PIECES, key), 0);
	ckt_image *first = image_new(1, 2);
	write_chunks(first, pieces, 1);
	IS(first->chunks.chunks_len, PIECES);
	NO(ckt_chain_continues(first->id));
	char id[CKT_IMAGE_ID];
	memset(id, 1, sizeof id);
	ckt_chain_advance(first, pieces, PIECES, key);
	image_free(first); /* its tables have moved */
	YES(ckt_chain_continues(id));
	id[5] ^= 1;
	NO(ckt_chain_continues(id));
	uint64_t same_key[4];
	ckt_chain_key(false, same_key);
	IS(memcmp(same_key, key, sizeof key), 0);

	/* One piece changes, one becomes zeros, one is of another size. */
	inside_fill(memory + CKT_IMAGE_CHUNK, 4, 4);
	inside_fill(memory + 2 * CKT_IMAGE_CHUNK, 0, CKT_IMAGE_CHUNK);
	make_pieces(pieces);
	pieces[3].size -= 16;
	IS(ckt_chain_hash(&ckt_worker, pieces, PIECES, key), 0);
	ckt_chain_compare(pieces, PIECES);
	static const bool same[PIECES] = {true, false, true, false},
			  old[PIECES] = {true, false, false, false};
	for (unsigned i = 0; i < PIECES; i++) {
		IS(pieces[i].same, same[i]);
		IS(pieces[i].old != NULL, old[i]);
	}
	ckt_image *second = image_new(2, 1);
	write_chunks(second, pieces, 0);
	IS(second->chunks.chunks_len, 2);
	IS(ckt_chain_share(second, pieces, PIECES), 0);
	IS(second->chunks.chunks_len, 3);
	IS(second->ancestors.ancestors_len, 1);
	IS(second->ancestors.ancestors_val[0].id[0], 1);
	/* of the first image's two files, the one that is needed */
	IS(second->elsewhere.elsewhere_len, 1);
	IS(second->elsewhere.elsewhere_val[0].file, 1);
	IS(second->elsewhere.elsewhere_val[0].bytes, 1001);
	const ckt_image_chunk *shared = &second->chunks.chunks_val[2];
	IS(shared->file, 1); /* behind its own one */
	IS(shared->address, memory);
	ckt_chain_advance(second, pieces, PIECES, key);
	image_free(second);

	/* The third shares with both: the newest is ancestor 0. */
	make_pieces(pieces);
	IS(ckt_chain_hash(&ckt_worker, pieces, PIECES, key), 0);
	ckt_chain_compare(pieces, PIECES);
	YES(pieces[0].old && pieces[1].old && !pieces[3].old);
	ckt_image *third = image_new(3, 1);
	write_chunks(third, pieces, 0);
	IS(ckt_chain_share(third, pieces, PIECES), 0);
	IS(third->ancestors.ancestors_len, 2);
	IS(third->ancestors.ancestors_val[0].id[0], 2);
	IS(third->ancestors.ancestors_val[1].id[0], 1);
	for (unsigned i = 0; i < third->chunks.chunks_len; i++) {
		const ckt_image_chunk *chunk = &third->chunks.chunks_val[i];
		uint64_t piece = (chunk->address - memory) / CKT_IMAGE_CHUNK;
		const ckt_image_file *file =
			chunk->file ? &third->elsewhere.elsewhere_val[chunk->file - 1] : NULL;
		IS(file ? third->ancestors.ancestors_val[file->ancestor].id[0] : 3,
			piece == 0           ? 1
				: piece == 1 ? 2
					     : 3);
	}
	ckt_chain_advance(third, pieces, PIECES, key);
	image_free(third);
	ckt_chain_break();
	memset(id, 3, sizeof id);
	NO(ckt_chain_continues(id));
	ckt_chain_break();
	inside_free(memory);
}

/*
 * Each image holds one more piece that the ones behind it need: at some length no more can be built
 * on it.
 */
static void test_long(void)
{
	struct ckt_piece pieces[PIECES] = {0};
	int result = 0;
	unsigned length = 0;
	ckt_chain_break();
	for (; !result && length <= CKT_IMAGE_ANCESTORS + 2; length++) {
		ckt_image *image = image_new((uint8_t)(length + 1), 1);
		image->blobs.blobs_val = calloc(length + 1, sizeof(ckt_image_blob));
		image->blobs.blobs_len = length + 1;
		for (unsigned b = 0; b <= length; b++) {
			image->blobs.blobs_val[b] = (ckt_image_blob){.size = 1, .received = 1};
			memset(image->blobs.blobs_val[b].hash, (int)b + 1, CKT_HASH_SIZE);
		}
		/* Its newest blob is its own, the others lie where they came from. */
		image->chunks.chunks_val = calloc(1, sizeof(ckt_image_chunk));
		image->chunks.chunks_len = 1;
		image->chunks.chunks_val[0] = (ckt_image_chunk){.space = length + 1, .size = 1};
		YES(!ckt_chain_has_blob(&image->blobs.blobs_val[length]));
		if (length)
			YES(ckt_chain_has_blob(&image->blobs.blobs_val[0]));
		result = ckt_chain_share(image, pieces, 0);
		if (!result) {
			IS(image->ancestors.ancestors_len, length);
			IS(image->chunks.chunks_len, length + 1);
			ckt_chain_advance(image, pieces, 0, key);
		}
		image_free(image);
	}
	IS(result, -EMLINK);
	IS(length, CKT_IMAGE_ANCESTORS + 2);
	/* A blob that had not wholly come is not there. */
	ckt_image_blob half = {.size = 1, .received = 0};
	memset(half.hash, 1, sizeof half.hash);
	NO(ckt_chain_has_blob(&half));
	ckt_chain_break();
}

UNIT_SUITE(chain, {"share", test_share}, {"candidates", test_candidates}, {"base", test_base},
	{"long", test_long}, {"hash", test_hash})
