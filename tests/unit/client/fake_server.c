/* SPDX-License-Identifier: Apache-2.0 */
/* The fake server; see fake_server.h. */
#include "fake_server.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/gen/cuda_codec.h"
#include "rpc/net.h"
#include "rpc/session.h"

static void send_greeting(int fd)
{
	u_int flavours[] = {CKT_AUTH_NONE};
	struct ckt_greeting greeting = {.protocol = 1, .flavours = {1, flavours}};
	uint8_t *data;
	size_t size;
	ckt_net_encode_call(0, CRICKET_CALLBACK_PROG, CKT_CALLBACK_GREETING,
		(xdrproc_t)xdr_ckt_greeting, &greeting, &data, &size);
	ckt_net_write_record(fd, data, size, -1, -1);
	free(data);
}

/*
 * The hello's header has another credential than a command's: its arguments begin after 40 bytes.
 */
static bool answer_hello(struct fake_server *server, int fd, bool other, bool behind)
{
	uint8_t *data;
	size_t size;
	struct ckt_hello_args hello = {0};
	if (ckt_net_read_record(fd, CKT_HELLO_MAX, -1, &data, &size, NULL))
		return false;
	struct ckt_cursor c = {.p = data + 40, .end = data + size};
	if (ckt_net_decode(&c, (xdrproc_t)xdr_ckt_hello_args, &hello)) {
		free(data);
		return false;
	}
	struct ckt_hello_res res = {.status = CKT_HELLO_OK};
	bool parked = server->parked && !other;
	if (hello.kind == CKT_HELLO_RESUME && (server->refuse || parked)) {
		res.status = parked ? CKT_HELLO_PARKED : CKT_HELLO_NO_SESSION;
		server->parked_answers += parked;
		res.ckt_hello_res_u.refused.message = (char *)"no such session";
		res.ckt_hello_res_u.refused.moved_to = (char *)"";
	} else {
		res.ckt_hello_res_u.ok = (struct ckt_hello_ok){.protocol = 1,
			.session = (char *)"0123456789ab",
			.generation = 1,
			.executed = behind ? 1 : server->executed,
			.server = (char *)"fake",
			.build = (char *)"test"};
	}
	bool accepted = res.status == CKT_HELLO_OK;
	xdr_free((xdrproc_t)xdr_ckt_hello_args, (char *)&hello);
	free(data);
	ckt_net_encode_reply(0, server->executed, (xdrproc_t)xdr_ckt_hello_res, &res, &data, &size);
	ckt_net_write_record(fd, data, size, -1, -1);
	free(data);
	return accepted;
}

static void send_devices(struct fake_server *server, int fd, uint32_t xid)
{
	static struct ckt_attribute attributes[CU_DEVICE_ATTRIBUTE_MAX];
	for (unsigned i = 0; i < CU_DEVICE_ATTRIBUTE_MAX; i++)
		attributes[i].value = 1024;
	struct ckt_device device = {.name = (char *)"Fake",
		.total_bytes = 1 << 30,
		.pci_bus_id = (char *)"0000:00:00.0",
		.attributes = {CU_DEVICE_ATTRIBUTE_MAX, attributes}};
	struct ckt_devices_res res = {.driver_version = 13000, .devices = {1, &device}};
	uint8_t *data;
	size_t size;
	ckt_net_encode_reply(
		xid, server->executed, (xdrproc_t)xdr_ckt_devices_res, &res, &data, &size);
	ckt_net_write_record(fd, data, size, -1, -1);
	free(data);
}

/* Copies to the host bring bytes that tell their source address and place. */
static size_t put_results(struct fake_server *server, const struct ckt_call_header *header,
	struct ckt_cursor *c, uint8_t *p)
{
	if (header->proc == CKT_PROC_MEM_ALLOC) {
		struct ckt_mem_alloc_args args;
		ckt_mem_alloc_args_get(c, &args);
		struct ckt_mem_alloc_res res = {.address = 0x200000000000 + server->next_address};
		server->next_address += args.size;
		return (size_t)(ckt_mem_alloc_res_put(p, &res) - p);
	}
	if (header->proc == CKT_PROC_MEMCPY_DTOH) {
		struct ckt_memcpy_dtoh_args args;
		ckt_memcpy_dtoh_args_get(c, &args);
		uint8_t *bytes = malloc(args.size);
		for (uint32_t i = 0; i < args.size; i++)
			bytes[i] = (uint8_t)((args.src + i) * 31 >> 3);
		struct ckt_memcpy_dtoh_res res = {.data = bytes, .data_len = args.size};
		size_t size = (size_t)(ckt_memcpy_dtoh_res_put(p, &res) - p);
		free(bytes);
		return size;
	}
	return 0;
}

static void send_quiesce(int fd)
{
	uint8_t call[CKT_CALL_HEADER_SIZE];
	ckt_call_header_put(call,
		&(struct ckt_call_header){
			.prog = CRICKET_CALLBACK_PROG, .vers = 1, .proc = CKT_CALLBACK_QUIESCE});
	ckt_net_write_record(fd, call, sizeof call, -1, -1);
}

/* False: end this connection. */
static bool handle(struct fake_server *server, int fd, const uint8_t *data, size_t size, bool drop)
{
	static uint8_t reply[CKT_RECORD_MAX + 64];
	struct ckt_cursor c = {.p = data, .end = data + size};
	struct ckt_call_header header = {0};
	if (!ckt_call_header_get(&c, &header)) {
		server->gaps++;
		return false;
	}
	if (header.seq && header.seq <= server->executed) {
		/* Sent again after a break: fine only for a call whose reply may have got lost. */
		server->replayed++;
		if (header.flags & CKT_CALL_BATCHED)
			server->gaps++;
	} else if (header.seq) {
		if (header.seq != server->executed + 1)
			server->gaps++;
		server->executed = header.seq;
		if (header.prog == CKT_CUDA_PROG && header.proc == CKT_PROC_MEMCPY_HTOD) {
			struct ckt_memcpy_htod_args args;
			if (ckt_memcpy_htod_args_get(&c, &args))
				server->bytes_to_device += args.data_len;
		}
	}
	if (header.prog == CRICKET_SESSION_PROG && header.proc == CKT_SESSION_BYE) {
		server->byes++;
		return false;
	}
	if (header.flags & CKT_CALL_BATCHED || (drop && server->lose_reply))
		return true;
	if (header.prog == CRICKET_SESSION_PROG && header.proc == CKT_SESSION_DEVICES) {
		send_devices(server, fd, header.xid);
		return true;
	}
	uint8_t *p = ckt_reply_header_put(
		reply, &(struct ckt_reply_header){.xid = header.xid, .executed = server->executed});
	if (server->slow_ack && header.prog == CRICKET_SESSION_PROG &&
		header.proc == CKT_SESSION_ACK)
		poll(NULL, 0, 100);
	if (header.prog == CKT_CUDA_PROG) {
		p = ckt_put_u32(p, CUDA_SUCCESS);
		p += put_results(server, &header, &c, p);
	}
	return ckt_net_write_record(fd, reply, (size_t)(p - reply), -1, -1) == 0;
}

static void *serve(void *data)
{
	struct fake_server *server = data;
	for (;;) {
		bool other = false;
		int fd = accept(server->listener, NULL, NULL);
		if (fd < 0) {
			other = true;
			fd = accept(server->other_listener, NULL, NULL);
		}
		if (fd < 0) {
			poll(NULL, 0, 1);
			continue;
		}
		server->connections++;
		server->other_connections += other;
		send_greeting(fd);
		bool behind = server->behind;
		bool open = answer_hello(server, fd, other, behind);
		for (uint64_t n = 1; open; n++) {
			uint8_t *record;
			size_t size;
			bool drop = server->drop_every && n % server->drop_every == 0;
			if (ckt_net_read_record(fd, CKT_RECORD_MAX, -1, &record, &size, NULL))
				break;
			server->record = record;
			server->records++;
			server->behind_records += behind;
			open = handle(server, fd, record, size, drop) && !drop;
			server->record = NULL;
			free(record);
			if (open && atomic_exchange(&server->quiesce, false)) {
				send_quiesce(fd);
				open = false;
			}
		}
		close(fd);
	}
	return NULL;
}

static int listen_at(const char *path)
{
	struct ckt_address address = {.type = CKT_ADDRESS_UNIX};
	char message[256];
	int fd;
	snprintf(address.host, sizeof address.host, "%s", path);
	if (ckt_net_listen(&address, 0600, &fd, message, sizeof message)) {
		fprintf(stderr, "fake server: %s\n", message);
		exit(1);
	}
	return fd;
}

void fake_server_start(struct fake_server *server)
{
	snprintf(server->path, sizeof server->path, "/tmp/ckt-fake-%d", (int)getpid());
	snprintf(server->other_path, sizeof server->other_path, "/tmp/ckt-fake-%d-other",
		(int)getpid());
	server->listener = listen_at(server->path);
	server->other_listener = listen_at(server->other_path);
	pthread_create(&server->thread, NULL, serve, server);
}
