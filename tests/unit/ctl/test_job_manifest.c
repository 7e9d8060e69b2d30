/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl/job/job_manifest.c: what is written is read, and what somebody else may have written is
 * refused.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/job/job.h"
#include "inside.h"
#include "rpc/job.h"

static struct ckt_ctl_job_entry *entries;
static unsigned count;
static char job_name[CKT_JOB_NAME_MAX + 1];

static int read_it(const struct ckt_ctl_args *args)
{
	free(entries);
	entries = NULL;
	return ckt_ctl_job_manifest_read(args->words[0], job_name, &entries, &count);
}

static void test_round(void)
{
	struct ckt_ctl_rank ranks[2] = {{.server = 1,
						.session = "0123456789ab",
						.program = "a\xff",
						.client = "host",
						.pid = 7,
						.gpu = 3},
		{.server = 0,
			.session = "ba9876543210",
			.program = "b",
			.client = "host",
			.pid = 8,
			.gpu = 0}};
	struct ckt_ctl_job job = {.name = "mine",
		.ranks = ranks,
		.rank_count = 2,
		.server_count = 2,
		.plain = {.fd = -1}};
	begin();
	mkdir(path_in("job"), 0700);
	int fd = open(path_in("job"), O_RDONLY | O_DIRECTORY);
	IS(ckt_ctl_job_manifest_write(fd, &job), 0);
	IS(run(read_it, (struct ckt_ctl_args){0}, path_in("job"), NULL), CKT_EXIT_DONE);
	TEXT(job_name, "mine");
	MUST(count, 2);
	TEXT(entries[0].session, "0123456789ab");
	IS(entries[0].server, 1);
	IS(entries[0].gpu, 3);
	TEXT(entries[1].session, "ba9876543210");
	YES(!entries[0].sealed);
	YES(ckt_ctl_job_manifest_write(fd, &job) < 0); /* never over another */
	/* Of encrypted images the salts. */
	unlink(path_in("job/job.json"));
	for (unsigned i = 0; i < CKT_SEALED_SALT; i++)
		ranks[1].salt[i] = (uint8_t)(200 + i);
	job.plain.fd = fd;
	IS(ckt_ctl_job_manifest_write(fd, &job), 0);
	IS(run(read_it, (struct ckt_ctl_args){0}, path_in("job"), NULL), CKT_EXIT_DONE);
	MUST(count, 2);
	YES(entries[0].sealed && entries[1].sealed);
	IS(memcmp(entries[1].salt, ranks[1].salt, CKT_SEALED_SALT), 0);
	close(fd);
}

#define SALTED(salt)                                                                                                    \
	"{\"format\":1,\"job\":\"a\",\"sessions\":[{\"session\":\"0123456789ab\",\"server\":0,\"gpu\":0,\"salt\":" salt \
	"}]}"
#define ENTRY "{\"session\":\"0123456789ab\",\"server\":0,\"gpu\":0}"
static void test_bad(void)
{
	static const char *const bad[] = {
		"",
		"{}",
		"[]",
		"{\"format\":2,\"job\":\"a\",\"sessions\":[" ENTRY "]}",
		"{\"format\":1,\"job\":\"a b\",\"sessions\":[" ENTRY "]}",
		"{\"format\":1,\"job\":\"a\",\"sessions\":[]}",
		"{\"format\":1,\"job\":\"a\",\"sessions\":[" ENTRY "," ENTRY "]}",
		"{\"format\":1,\"job\":\"a\",\"sessions\":[{\"session\":\"../../../etc/\",\"server\":0,\"gpu\":0}]}",
		"{\"format\":1,\"job\":\"a\",\"sessions\":[{\"session\":\"0123456789a\",\"server\":0,\"gpu\":0}]}",
		"{\"format\":1,\"job\":\"a\",\"sessions\":[{\"session\":\"0123456789ab\",\"server\":16,\"gpu\":0}]}",
		"{\"format\":1,\"job\":\"a\",\"sessions\":[{\"session\":\"0123456789ab\",\"server\":-1,\"gpu\":0}]}",
		"{\"format\":1,\"job\":\"a\",\"sessions\":[{\"session\":\"0123456789ab\",\"server\":0,\"gpu\":64}]}",
		"{\"format\":1,\"job\":\"a\",\"sessions\":[7]}",
		"{\"format\":1,\"job\":7,\"sessions\":[" ENTRY "]}",
		SALTED("7"),
		SALTED("\"\""),
		SALTED("\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\""),
		SALTED("\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeg\""),
	};
	begin();
	mkdir(path_in("bad"), 0700);
	for (size_t i = 0; i < COUNT(bad); i++) {
		write_file(path_in("bad/job.json"), bad[i]);
		IS(run(read_it, (struct ckt_ctl_args){0}, path_in("bad"), NULL), CKT_EXIT_REFUSED);
		HAS(err, "holds no job that this version of Cricket can restore");
	}
	write_file(path_in("bad/job.json"),
		"{\"format\":1,\"job\":\"a\",\"sessions\":[" ENTRY "],\"later\":true}");
	IS(run(read_it, (struct ckt_ctl_args){0}, path_in("bad"), NULL), CKT_EXIT_DONE);
	unlink(path_in("bad/job.json"));
	IS(run(read_it, (struct ckt_ctl_args){0}, path_in("bad"), NULL), CKT_EXIT_REFUSED);
	free(entries);
	entries = NULL;
}

UNIT_SUITE(job_manifest, {"round", test_round}, {"bad", test_bad})
