/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/transfer.c: images that travel: every byte of every file in pieces, names that are names, and
 * a server whose word is not taken.
 */
#include <errno.h>
#include <fcntl.h>
#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/server.h"
#include "ctl/transfer.h"
#include "inside.h"
#include "rpc/control.h"
#include "rpc/net.h"
#include "rpc/wire.h"

/* What the server's stage holds. */
static struct {
	char name[65];
	uint8_t *bytes;
	uint64_t size;
} files[4];
static unsigned file_count;
static int read_status, write_status;
static bool short_reads;

static int find(const char *name)
{
	for (unsigned i = 0; i < file_count; i++)
		if (!strcmp(files[i].name, name))
			return (int)i;
	return -1;
}

static bool list(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_file entries[4];
	static ckt_control_files_res res;
	(void)args, (void)fd;
	for (unsigned i = 0; i < file_count; i++)
		entries[i] = (ckt_control_file){files[i].name, files[i].size};
	res = (ckt_control_files_res){
		.result = {CKT_CONTROL_OK, (char *)""}, .files = {file_count, entries}};
	*ret_xdr = (xdrproc_t)xdr_ckt_control_files_res;
	*ret_res = &res;
	return true;
}

static bool read_piece(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static ckt_control_read_res res;
	ckt_control_read_args asked = {0};
	(void)fd;
	if (ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_read_args, &asked))
		return false;
	int at = find(asked.file);
	res = (ckt_control_read_res){.status = at < 0 ? -ENOENT : read_status};
	if (!res.status && asked.offset + asked.bytes <= files[at].size)
		res.data.data_val = (char *)files[at].bytes + asked.offset,
		res.data.data_len = asked.bytes - (short_reads && asked.bytes);
	xdr_free((xdrproc_t)xdr_ckt_control_read_args, (char *)&asked);
	*ret_xdr = (xdrproc_t)xdr_ckt_control_read_res;
	*ret_res = &res;
	return true;
}

static bool write_piece(struct ckt_cursor *args, int fd, xdrproc_t *ret_xdr, void **ret_res)
{
	static int status;
	ckt_control_write_args asked = {0};
	(void)fd;
	if (ckt_net_decode(args, (xdrproc_t)xdr_ckt_control_write_args, &asked))
		return false;
	int at = find(asked.file);
	if (at < 0) {
		at = (int)file_count++;
		snprintf(files[at].name, sizeof files[at].name, "%s", asked.file);
		files[at].bytes = calloc(1, 8 << 20);
		files[at].size = 0;
	}
	if (asked.data.data_len)
		memcpy(files[at].bytes + asked.offset, asked.data.data_val, asked.data.data_len);
	if (asked.offset + asked.data.data_len > files[at].size)
		files[at].size = asked.offset + asked.data.data_len;
	xdr_free((xdrproc_t)xdr_ckt_control_write_args, (char *)&asked);
	status = write_status;
	*ret_xdr = (xdrproc_t)xdr_int;
	*ret_res = &status;
	return true;
}

static void reset(void)
{
	begin();
	for (unsigned i = 0; i < file_count; i++)
		free(files[i].bytes);
	file_count = 0;
	read_status = write_status = 0;
	short_reads = false;
	replies[CKT_CONTROL_STAGE_LIST].answer = list;
	replies[CKT_CONTROL_READ].answer = read_piece;
	replies[CKT_CONTROL_WRITE].answer = write_piece;
}

static void add(const char *name, uint64_t size)
{
	snprintf(files[file_count].name, sizeof files[0].name, "%s", name);
	files[file_count].bytes = malloc(size + 1);
	for (uint64_t i = 0; i < size; i++)
		files[file_count].bytes[i] = (uint8_t)(i * 31 >> 7);
	files[file_count++].size = size;
}

static char target[256];

static int move(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_server server;
	int dir = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	    status = ckt_ctl_connect(args, &server);
	if (!status)
		status = args->stop ? ckt_ctl_send(args, &server, "stage", dir, NULL)
				    : ckt_ctl_fetch(args, &server, "stage", dir, true, NULL);
	ckt_ctl_disconnect(&server);
	close(dir);
	return status;
}

static void test_fetch(void)
{
	struct stat st;
	snprintf(target, sizeof target, "%s", path_in("fetched"));
	IS(mkdir(target, 0700), 0);
	reset();
	add("manifest", 5);
	add("data-0", (3 << 20) + 7);
	add("data-1", 0);
	IS(run(move, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_DONE);
	for (unsigned i = 0; i < file_count; i++) {
		char path[600];
		snprintf(path, sizeof path, "%.255s/%.64s", target, files[i].name);
		IS(stat(path, &st), 0);
		IS(st.st_size, files[i].size);
		IS(st.st_mode & 07777, 0600);
		int fd = open(path, O_RDONLY);
		uint8_t *got = malloc(files[i].size + 1);
		IS(read(fd, got, files[i].size + 1), files[i].size);
		IS(memcmp(got, files[i].bytes, files[i].size), 0);
		free(got);
		close(fd);
	}
}

static void test_fetch_refused(void)
{
	static const char *const names[] = {"../evil", "A", "", "a/b", "x.y"};
	for (size_t i = 0; i < COUNT(names); i++) {
		reset();
		add(names[i], 3);
		IS(run(move, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_REFUSED);
		HAS(err, "names a file that does not belong to an image");
		IS(seen_count, 1);
	}
	NO(exists(path_in("evil")));
	reset();
	add("manifest", 5);
	read_status = -EIO;
	IS(run(move, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_REFUSED);
	HAS(err, "cannot transfer the image here from");
	read_status = 5; /* no error that we know: not success either */
	IS(run(move, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_REFUSED);
	read_status = 0;
	short_reads = true;
	IS(run(move, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_REFUSED);
	short_reads = false;
	/* A link where the file should go is not followed. */
	IS(unlink(path_in("fetched/manifest")), 0);
	write_file(path_in("victim"), "precious");
	IS(symlink(path_in("victim"), path_in("fetched/manifest")), 0);
	IS(run(move, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_REFUSED);
	TEXT(read_file(path_in("victim")), "precious");
	ckt_control_result none = {CKT_CONTROL_REFUSED, (char *)"no such stage"};
	replies[CKT_CONTROL_STAGE_DATA] =
		(struct reply){(xdrproc_t)xdr_ckt_control_result, &none, NULL};
	IS(run(move, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_REFUSED);
}

static void test_send(void)
{
	char text[100];
	snprintf(target, sizeof target, "%s", path_in("sent"));
	IS(mkdir(target, 0700), 0);
	write_file(path_in("sent/manifest"), "12345");
	write_file(path_in("sent/data-0"), "");
	write_file(path_in("sent/base"), "../x"); /* ours alone */
	write_file(path_in("sent/Other.file"), "x");
	IS(mkdir(path_in("sent/client"), 0700), 0);
	IS(symlink("/etc/passwd", path_in("sent/data-1")), 0);
	reset();
	IS(run(move, (struct ckt_ctl_args){.stop = true}, NULL), CKT_EXIT_DONE);
	IS(file_count, 2);
	int at = find("manifest");
	YES(at >= 0 && files[at].size == 5 && !memcmp(files[at].bytes, "12345", 5));
	YES(find("data-0") >= 0);
	reset();
	write_status = -ENOSPC;
	IS(run(move, (struct ckt_ctl_args){.stop = true}, NULL), CKT_EXIT_REFUSED);
	HAS(err, "No space left");
	write_status = 1;
	IS(run(move, (struct ckt_ctl_args){.stop = true}, NULL), CKT_EXIT_REFUSED);
	reset();
	snprintf(text, sizeof text, "%s", path_in("nowhere"));
	snprintf(target, sizeof target, "%s", text);
	IS(run(move, (struct ckt_ctl_args){.stop = true}, NULL), CKT_EXIT_REFUSED);
	reset();
}

static int stages(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_server server;
	char stage[CKT_CONTROL_NAME_MAX + 1] = "";
	int status = ckt_ctl_connect(args, &server);
	if (!status)
		status = ckt_ctl_stage_make(&server, stage);
	TEXT(stage, status ? "" : "tmp-1");
	if (!status)
		status = ckt_ctl_stage_keep(&server, stage, "name");
	if (!status)
		status = ckt_ctl_stage_remove(&server, "name");
	ckt_ctl_disconnect(&server);
	return status;
}

static void test_stages(void)
{
	ckt_control_stage_res made = {
		.result = {CKT_CONTROL_OK, (char *)""}, .stage = (char *)"tmp-1"};
	ckt_control_keep_args keep = {0};
	reset();
	replies[CKT_CONTROL_STAGE_MAKE] =
		(struct reply){(xdrproc_t)xdr_ckt_control_stage_res, &made, NULL};
	IS(run(stages, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_DONE);
	calls_are((uint32_t[]){CKT_CONTROL_STAGE_MAKE, CKT_CONTROL_STAGE_KEEP,
			  CKT_CONTROL_STAGE_REMOVE},
		3);
	YES(decode(1, (xdrproc_t)xdr_ckt_control_keep_args, &keep));
	TEXT(keep.stage, "tmp-1");
	TEXT(keep.name, "name");
	xdr_free((xdrproc_t)xdr_ckt_control_keep_args, (char *)&keep);
	made.result = (ckt_control_result){CKT_CONTROL_REFUSED, (char *)"full"};
	IS(run(stages, (struct ckt_ctl_args){0}, NULL), CKT_EXIT_REFUSED);
	HAS(err, "full");
	reset();
}

UNIT_SUITE(transfer, {"fetch", test_fetch}, {"fetch refused", test_fetch_refused},
	{"send", test_send}, {"stages", test_stages})
