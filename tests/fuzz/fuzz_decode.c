/*
 * libFuzzer target: every decoder of peer bytes.  The first byte chooses one, the rest is the message.
 *
 *	0	the two fixed message headers
 *	1..	the messages of the CUDA program, flat coders; what is accepted must encode to the same bytes again and rpcgen's routine
 *		must accept it too
 *	then	the messages of the hand-written protocols through rpcgen's routines
 *
 * The seeds, one valid message of each kind, come from the target itself: see LLVMFuzzerInitialize.
 */
#include <rpc/rpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/wire.h"
#include "rpc/session.h"
#include "rpc/worker.h"
#include "rpc/control.h"

struct part {
	size_t fixed_bytes;
	size_t element_bytes, limit;
};

struct message {
	const char *name;
	void (*fill)(void *flat, void *x);
	void (*own)(void *flat);
	size_t (*size)(const void *flat);
	uint8_t *(*put)(uint8_t *p, const void *flat);
	bool (*get)(struct ckt_cursor *c, void *flat);
	bool_t (*xdr)(XDR *xdrs, void *x);
	size_t flat_bytes, x_bytes;
	const struct part *parts;
	unsigned part_count;
};

/* What lives until the end of one input. */
static void *owned[4096];
static unsigned owned_count;

static void *own(size_t size_bytes)
{
	if (owned_count == sizeof(owned) / sizeof(owned[0]))
		abort();
	return owned[owned_count++] = calloc(1, size_bytes ? size_bytes : 1);
}

static void free_owned(void)
{
	while (owned_count)
		free(owned[--owned_count]);
}

/* The generated fillers draw from these; a fuzzer has no use for them but to write seeds. */
static uint32_t random_u32(void)
{
	return (uint32_t)random() << 16 ^ (uint32_t)random();
}

static uint64_t random_u64(void)
{
	return (uint64_t)random_u32() << 32 | random_u32();
}

static __attribute__((unused)) float random_float(void)
{
	return (float)(int32_t)random_u32() / 1024;
}

static __attribute__((unused)) double random_double(void)
{
	return (double)(int64_t)random_u64() / 1048576;
}

static __attribute__((unused)) void random_bytes(void *p, size_t size_bytes)
{
	for (size_t i = 0; i < size_bytes; i++)
		((uint8_t *)p)[i] = (uint8_t)random();
}

static __attribute__((unused)) uint32_t random_length(uint32_t limit)
{
	return (uint32_t)random() % (limit < 21 ? limit + 1 : 21);
}

static __attribute__((unused)) char *random_text(uint32_t length)
{
	char *text = own(length + 1);
	memset(text, 'x', length);
	return text;
}

static __attribute__((unused)) void *random_array(uint32_t count, size_t element_bytes)
{
	void *array = own(count * element_bytes);
	random_bytes(array, count * element_bytes);
	return array;
}

static __attribute__((unused)) const uint32_t *own_u32s(const uint8_t *xdr, uint32_t count)
{
	uint32_t *words = own(count * sizeof(*words));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t word;
		memcpy(&word, xdr + 4 * i, 4);
		words[i] = be32toh(word);
	}
	return words;
}

static __attribute__((unused)) const uint64_t *own_u64s(const uint8_t *xdr, uint32_t count)
{
	uint64_t *words = own(count * sizeof(*words));
	for (uint32_t i = 0; i < count; i++) {
		uint64_t word;
		memcpy(&word, xdr + 8 * i, 8);
		words[i] = be64toh(word);
	}
	return words;
}

#include "rpc/gen/codec_messages.inc"

enum { MESSAGES = sizeof(messages) / sizeof(messages[0]) };

static const struct {
	xdrproc_t xdr;
	size_t bytes;
} protocols[] = {
#define PROTOCOL(type) { (xdrproc_t)xdr_##type, sizeof(type) }
	PROTOCOL(ckt_greeting),
	PROTOCOL(ckt_hello_args),
	PROTOCOL(ckt_hello_res),
	PROTOCOL(ckt_devices_res),
	PROTOCOL(ckt_output_args),
	PROTOCOL(ckt_moved_args),
	PROTOCOL(ckt_worker_start_args),
	PROTOCOL(ckt_worker_start_res),
	PROTOCOL(ckt_worker_client_args),
	PROTOCOL(ckt_worker_status_res),
	PROTOCOL(ckt_worker_stats_res),
	PROTOCOL(ckt_worker_save_args),
	PROTOCOL(ckt_worker_save_res),
	PROTOCOL(ckt_control_result),
	PROTOCOL(ckt_control_info_res),
	PROTOCOL(ckt_control_list_args),
	PROTOCOL(ckt_control_list_res),
	PROTOCOL(ckt_control_session_args),
	PROTOCOL(ckt_control_stats_res),
	PROTOCOL(ckt_control_checkpoint_args),
	PROTOCOL(ckt_control_checkpoint_res),
	PROTOCOL(ckt_control_restore_args),
	PROTOCOL(ckt_control_restore_res),
};

enum { PROTOCOLS = sizeof(protocols) / sizeof(protocols[0]) };

static void insist(bool good, const char *what)
{
	if (!good) {
		fprintf(stderr, "fuzz_decode: %s\n", what);
		abort();
	}
}

static void try_headers(const uint8_t *bytes, size_t size_bytes)
{
	struct ckt_cursor cursor = { bytes, bytes + size_bytes, false };
	struct ckt_call_header call;
	uint8_t again[CKT_CALL_HEADER_SIZE];
	if (ckt_call_header_get(&cursor, &call)) {
		insist(ckt_call_header_put(again, &call) == again + CKT_CALL_HEADER_SIZE, "a call header's length");
		insist(memcmp(again, bytes, CKT_CALL_HEADER_SIZE) == 0, "a call header changes when encoded again");
	}
	struct ckt_reply_header reply;
	cursor = (struct ckt_cursor){ bytes, bytes + size_bytes, false };
	if (ckt_reply_header_get(&cursor, &reply))
		insist(ckt_reply_header_put(again, &reply) == again + CKT_REPLY_HEADER_SIZE, "a reply header's length");
}

static void try_message(const struct message *message, const uint8_t *bytes, size_t size_bytes)
{
	struct ckt_cursor cursor = { bytes, bytes + size_bytes, false };
	void *flat = own(message->flat_bytes);
	if (!message->get(&cursor, flat))
		return;
	message->own(flat);
	insist(message->size(flat) == size_bytes, message->name);
	uint8_t *again = own(size_bytes);
	insist(message->put(again, flat) == again + size_bytes && memcmp(again, bytes, size_bytes) == 0, message->name);
	XDR xdrs;
	void *x = own(message->x_bytes);
	xdrmem_create(&xdrs, (char *)(uintptr_t)bytes, (unsigned)size_bytes, XDR_DECODE);
	insist(message->xdr(&xdrs, x), message->name);
	xdr_destroy(&xdrs);
	xdr_free((xdrproc_t)message->xdr, x);
}

static void try_protocol(unsigned i, const uint8_t *bytes, size_t size_bytes)
{
	void *value = own(protocols[i].bytes);
	XDR xdrs;
	xdrmem_create(&xdrs, (char *)(uintptr_t)bytes, (unsigned)size_bytes, XDR_DECODE);
	(void)((bool_t (*)(XDR *, void *))protocols[i].xdr)(&xdrs, value);
	xdr_destroy(&xdrs);
	xdr_free(protocols[i].xdr, value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	if (size_bytes == 0)
		return 0;
	unsigned kind = data[0];
	/* A buffer of the exact size, so that a byte read too many is seen; XDR wants it aligned. */
	uint8_t *bytes = own(size_bytes - 1);
	memcpy(bytes, data + 1, size_bytes - 1);
	if (kind == 0)
		try_headers(bytes, size_bytes - 1);
	else if (kind - 1 < MESSAGES)
		try_message(&messages[kind - 1], bytes, size_bytes - 1);
	else if (kind - 1 - MESSAGES < PROTOCOLS)
		try_protocol(kind - 1 - MESSAGES, bytes, size_bytes - 1);
	free_owned();
	return 0;
}

/* Called once: with CKT_FUZZ_SEEDS=DIR, writes one valid message of every kind there and ends. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	_Static_assert(1 + MESSAGES + PROTOCOLS <= 256, "one byte chooses the decoder");
	const char *directory = getenv("CKT_FUZZ_SEEDS");
	if (!directory)
		return 0;
	for (unsigned i = 0; i < MESSAGES; i++) {
		char path[4096];
		void *flat = own(messages[i].flat_bytes), *x = own(messages[i].x_bytes);
		messages[i].fill(flat, x);
		size_t size = messages[i].size(flat);
		uint8_t *bytes = own(size);
		messages[i].put(bytes, flat);
		snprintf(path, sizeof(path), "%s/%s", directory, messages[i].name);
		FILE *file = fopen(path, "wb");
		if (!file || fputc((int)(1 + i), file) == EOF || (size && fwrite(bytes, size, 1, file) != 1) || fclose(file) != 0) {
			perror(path);
			exit(1);
		}
		free_owned();
	}
	exit(0);
}
