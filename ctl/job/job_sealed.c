/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encrypted images of a job: checkpoint --job NAME DIR --image-key FILE --encrypt.
 *
 *	workers -> memory: SESSION/..., job.json -> DIR/SESSION/..., DIR/job.json, all encrypted
 *
 * job.json names the salt of each session's image, which no other image has.  So nobody can leave a
 * session out, or put in an image of another cut.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/job/job.h"
#include "ctl/sealed_image.h"

/* The new directory of a session's image. */
static int make_directory(int parent_fd, const char *session, int *ret_fd)
{
	int fd = mkdirat(parent_fd, session, 0700)
		? -1
		: openat(parent_fd, session, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return ckt_ctl_refuse(session, strerror(errno));
	*ret_fd = fd;
	return CKT_EXIT_DONE;
}

int ckt_ctl_job_image_seal(
	const struct ckt_ctl_job *job, struct ckt_ctl_rank *rank, int directory, int parent_fd)
{
	int fd = -1, status = make_directory(parent_fd, rank->session, &fd);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_image_seal(job->args, directory, fd, rank->salt);
	if (status == CKT_EXIT_DONE && fsync(fd))
		status = ckt_ctl_refuse(rank->session, strerror(errno));
	if (fd >= 0)
		close(fd);
	return status;
}

int ckt_ctl_job_sealed_open(const struct ckt_ctl_args *args, const char *path, int to)
{
	int from = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int status = from < 0 ? ckt_ctl_refuse(path, strerror(errno))
			      : ckt_ctl_file_unseal(args, path, CKT_CTL_JOB_MANIFEST, from, to);
	if (from >= 0)
		close(from);
	return status;
}

bool ckt_ctl_job_is_sealed(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool sealed = fd >= 0 && ckt_ctl_file_is_sealed(fd, CKT_CTL_JOB_MANIFEST);
	if (fd >= 0)
		close(fd);
	return sealed;
}

int ckt_ctl_job_image_unseal(const struct ckt_ctl_args *args, const char *path,
	const struct ckt_ctl_job_entry *entry, int to)
{
	char image[CKT_CTL_PATH_SIZE + 16];
	snprintf(image, sizeof image, "%s/%s", path, entry->session);
	int fd = -1, from = open(image, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int status = from < 0 ? ckt_ctl_refuse(image, strerror(errno))
		: !entry->sealed
		? ckt_ctl_refuse(path,
			  "job.json does not say which image is encrypted: restore the job from "
			  "another copy")
		: make_directory(to, entry->session, &fd);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_image_unseal(args, image, from, fd, entry->salt);
	if (from >= 0)
		close(from);
	if (fd >= 0)
		close(fd);
	return status;
}

/* ---- image decrypt */

int ckt_ctl_job_unseal(
	const struct ckt_ctl_args *args, const char *path, const struct ckt_ctl_partial *partial)
{
	char job[CKT_JOB_NAME_MAX + 1];
	struct ckt_ctl_job_entry *entries = NULL;
	unsigned count = 0;
	int status = ckt_ctl_job_sealed_open(args, path, partial->fd);
	if (status == CKT_EXIT_DONE)
		status = ckt_ctl_job_manifest_read(partial->temporary, job, &entries, &count);
	for (unsigned i = 0; i < count && status == CKT_EXIT_DONE; i++)
		status = ckt_ctl_job_image_unseal(args, path, &entries[i], partial->fd);
	free(entries);
	return status;
}
