/* SPDX-License-Identifier: Apache-2.0 */
/* ctl/job/job_sealed.c: what belongs to one encrypted job comes back together, and nothing else. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/format/image_key.h"
#include "ctl/files.h"
#include "ctl/job/job.h"
#include "ctl/sealed_image.h"
#include "ctl/subcommands.h"
#include "inside.h"

static char key[128], place[128], plain[160];

/* The job's two images, written into `plain`, and encrypted in `place`. */
static int seal(const struct ckt_ctl_args *args)
{
	struct ckt_ctl_rank ranks[2] = {
		{.session = "0123456789ab", .gpu = 1}, {.session = "ba9876543210"}};
	struct ckt_ctl_job job = {.args = args, .name = "mine", .ranks = ranks, .rank_count = 2};
	int to = open(place, O_RDONLY | O_DIRECTORY), status = CKT_EXIT_DONE;
	job.plain.fd = open(plain, O_RDONLY | O_DIRECTORY);
	for (unsigned i = 0; i < 2 && status == CKT_EXIT_DONE; i++) {
		mkdirat(job.plain.fd, ranks[i].session, 0700);
		int image = openat(job.plain.fd, ranks[i].session, O_RDONLY | O_DIRECTORY);
		image_in(image, (uint8_t)(i + 1), "");
		status = ckt_ctl_job_image_seal(&job, &ranks[i], image, to);
		close(image);
	}
	YES(memcmp(ranks[0].salt, ranks[1].salt, CKT_SEALED_SALT) != 0);
	IS(ckt_ctl_job_manifest_write(job.plain.fd, &job), 0);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_file_seal(args, CKT_CTL_JOB_MANIFEST, job.plain.fd, to);
	close(job.plain.fd);
	close(to);
	return status;
}

static void make_job(const char *name)
{
	snprintf(place, sizeof place, "%s", path_in(name));
	snprintf(plain, sizeof plain, "%s-plain", place);
	mkdir(place, 0700);
	mkdir(plain, 0700);
	IS(run(seal, (struct ckt_ctl_args){.image_keys = {key}, .image_key_count = 1}, NULL),
		CKT_EXIT_DONE);
	YES(ckt_ctl_job_is_sealed(place));
}

static int decrypt(const char *to)
{
	return run(ckt_ctl_image, (struct ckt_ctl_args){.image_keys = {key}, .image_key_count = 1},
		"decrypt", place, path_in(to), NULL);
}

static void test_round(void)
{
	struct ckt_image_key made;
	begin();
	snprintf(key, sizeof key, "%s", path_in("key"));
	IS(ckt_image_key_make(key, &made), 0);
	make_job("sealed");
	NO(ckt_ctl_job_is_sealed(path_in("sealed-plain")));
	NO(ckt_ctl_job_is_sealed(path_in("nothing")));
	IS(decrypt("unsealed"), CKT_EXIT_DONE);
	HAS(read_file(path_in("unsealed/job.json")), "\"session\":\"ba9876543210\"");
	IS(run(ckt_ctl_image, (struct ckt_ctl_args){0}, "verify", path_in("unsealed/0123456789ab"),
		   NULL),
		CKT_EXIT_DONE);
	IS(run(ckt_ctl_image, (struct ckt_ctl_args){.image_keys = {key}, .image_key_count = 1},
		   "verify", path_in("sealed/ba9876543210"), NULL),
		CKT_EXIT_DONE);
	HAS(out, "sealed/ba9876543210 is undamaged");
}

static void test_exchanged(void)
{
	make_job("other");
	/* The list of another cut. */
	IS(rename(path_in("sealed/job.json"), path_in("other/job.json")), 0);
	IS(decrypt("mixed"), CKT_EXIT_REFUSED);
	HAS(err, "it was changed since it was encrypted");
	NO(exists(path_in("mixed")));
	/* A key that is none of its own. */
	snprintf(key, sizeof key, "%s", path_in("stranger"));
	struct ckt_image_key made;
	IS(ckt_image_key_make(key, &made), 0);
	IS(decrypt("mixed"), CKT_EXIT_REFUSED);
	HAS(err, "job.json: it is encrypted with key");
	/* A list that names no salt, encrypted by whoever has the key. */
	make_job("forged");
	write_file(path_in("forged-plain/job.json"),
		"{\"format\":1,\"job\":\"mine\",\"sessions\":[{\"session\":\"0123456789ab\",\"server\":0,\"gpu\":0}]}");
	int from = open(plain, O_RDONLY | O_DIRECTORY), to = open(place, O_RDONLY);
	unlinkat(to, CKT_CTL_JOB_MANIFEST, 0);
	struct ckt_ctl_args args = {.image_keys = {key}, .image_key_count = 1};
	IS(ckt_ctl_file_seal(&args, CKT_CTL_JOB_MANIFEST, from, to), CKT_EXIT_DONE);
	close(from);
	close(to);
	IS(decrypt("mixed"), CKT_EXIT_REFUSED);
	HAS(err, "job.json does not say which image is encrypted");
}

UNIT_SUITE(job_sealed, {"round", test_round}, {"exchanged", test_exchanged})
