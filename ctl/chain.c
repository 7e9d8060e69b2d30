/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directories of an image and its ancestors.  A manifest names its ancestors by ID, newest
 * first. The file `base` that cricketctl left in each directory tells where its base is; for moved
 * directories cricketctl searches the neighbours of the first.
 */
#include "ctl/chain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/files.h"
#include "rpc/control.h"

void ckt_ctl_chain_close(struct ckt_ctl_chain *chain)
{
	for (unsigned i = 0; i < chain->count; i++)
		close(chain->fds[i]);
	if (chain->read)
		xdr_free((xdrproc_t)xdr_ckt_image, (char *)&chain->image);
	chain->count = 0;
	chain->read = false;
}

bool ckt_ctl_image_id(const char *path, char ret_id[CKT_IMAGE_ID])
{
	ckt_image image = {0};
	char message[512];
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool good = fd >= 0 && ckt_image_read(fd, &image, message, sizeof message) == 0;
	if (good) {
		memcpy(ret_id, image.id, CKT_IMAGE_ID);
		xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	}
	if (fd >= 0)
		close(fd);
	return good;
}

static bool has_id(const char *path, const char *id)
{
	char found[CKT_IMAGE_ID];
	return ckt_ctl_image_id(path, found) && memcmp(found, id, sizeof found) == 0;
}

static bool find_neighbour(const char *first, const char *id, char ret_path[CKT_CTL_PATH_SIZE])
{
	char parent[CKT_CTL_PATH_SIZE];
	bool found = false;
	ckt_ctl_path_parent(first, parent);
	DIR *dir = opendir(parent);
	for (struct dirent *entry; dir && !found && (entry = readdir(dir));)
		found = entry->d_name[0] != '.' &&
			snprintf(ret_path, CKT_CTL_PATH_SIZE, "%s/%s", parent, entry->d_name) <
				CKT_CTL_PATH_SIZE &&
			has_id(ret_path, id);
	if (dir)
		closedir(dir);
	return found;
}

/* Images in between that hold nothing useful are not ancestors, but they lead to them. */
static bool follow_to(const char *from, const char *id, char ret_path[CKT_CTL_PATH_SIZE])
{
	char path[CKT_CTL_PATH_SIZE], base[CKT_CTL_PATH_SIZE];
	strcpy(path, from);
	for (unsigned steps = 0; steps < CKT_IMAGE_ANCESTORS && ckt_ctl_base_read(path, base);
		steps++) {
		if (has_id(base, id)) {
			strcpy(ret_path, base);
			return true;
		}
		strcpy(path, base);
	}
	return false;
}

static int add(struct ckt_ctl_chain *chain, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return ckt_ctl_refuse(path,
			errno == ENOTDIR ? "is not a directory, and an image is a directory"
					 : strerror(errno));
	chain->fds[chain->count++] = fd;
	return CKT_EXIT_DONE;
}

static int follow_bases(struct ckt_ctl_chain *chain)
{
	char path[CKT_CTL_PATH_SIZE], base[CKT_CTL_PATH_SIZE];
	int status = CKT_EXIT_DONE;
	strcpy(path, chain->path);
	while (status == CKT_EXIT_DONE && chain->count < CKT_CONTROL_CHAIN_MAX &&
		ckt_ctl_base_read(path, base)) {
		strcpy(path, base);
		status = add(chain, path);
	}
	if (status != CKT_EXIT_DONE)
		ckt_ctl_chain_close(chain);
	return status;
}

int ckt_ctl_chain_open(const char *first, bool strict, struct ckt_ctl_chain *chain)
{
	char path[CKT_CTL_PATH_SIZE], message[512];
	*chain = (struct ckt_ctl_chain){0};
	int status = ckt_ctl_path_copy(first, chain->path);
	if (status == CKT_EXIT_DONE)
		status = add(chain, chain->path);
	if (status != CKT_EXIT_DONE)
		return status;
	if (ckt_image_read(chain->fds[0], &chain->image, message, sizeof message)) {
		if (!strict)
			return follow_bases(chain);
		ckt_ctl_refuse(chain->path, message);
		ckt_ctl_chain_close(chain);
		return CKT_EXIT_REFUSED;
	}
	chain->read = true;
	strcpy(path, chain->path);
	for (u_int i = 0; i < chain->image.ancestors.ancestors_len && status == CKT_EXIT_DONE;
		i++) {
		const char *id = chain->image.ancestors.ancestors_val[i].id;
		if (!follow_to(path, id, path) && !find_neighbour(chain->path, id, path))
			status = ckt_ctl_refuse(chain->path,
				"builds on an image that is neither at its recorded "
				"path nor beside it");
		if (status == CKT_EXIT_DONE)
			status = add(chain, path);
	}
	if (status != CKT_EXIT_DONE)
		ckt_ctl_chain_close(chain);
	return status;
}
