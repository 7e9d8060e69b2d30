/* SPDX-License-Identifier: Apache-2.0 */
/* Encrypted automatic images; see sealed_chain.h. */
#include "server/daemon/durable/sealed_chain.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/format/broker.h"
#include "checkpoint/format/sealed_file.h"

enum { NAME_SIZE = 32, MANIFEST = CKT_BROKER_FILES_MAX, FILES, BLOCK = 4096, TAG = 16 };

static void file_name(unsigned file, char ret_name[NAME_SIZE])
{
	if (file < CKT_BROKER_FILES_MAX)
		snprintf(ret_name, NAME_SIZE, "data-%u", file);
	else
		snprintf(ret_name, NAME_SIZE, "manifest");
}

/* A file in memory that belongs to nobody else. */
static int make_plain(void)
{
	int fd = memfd_create("cricket-image", MFD_CLOEXEC);
	if (fd >= 0 && fchmod(fd, 0600) == 0)
		return fd;
	int error = errno;
	if (fd >= 0)
		close(fd);
	return -error;
}

/* The same file, to be read alone or written alone. */
static int open_again(int fd, int flags)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int again = open(path, flags | O_CLOEXEC);
	return again < 0 ? -errno : again;
}

/* ---- An image that is being written */

struct ckt_sealed_image {
	atomic_uint refs; /* the broker's, and those of who asked for it */
	pthread_mutex_t lock;
	bool closed;
	int plain[FILES]; /* -1: not made */
	uint8_t mac[CKT_IMAGE_MAC_FILE_MAX];
	size_t mac_size;
};

struct ckt_sealed_image *ckt_sealed_image_ref(struct ckt_sealed_image *image)
{
	if (image)
		atomic_fetch_add(&image->refs, 1);
	return image;
}

void ckt_sealed_image_unref(struct ckt_sealed_image *image)
{
	if (!image || atomic_fetch_sub(&image->refs, 1) != 1)
		return;
	for (unsigned i = 0; i < FILES; i++)
		if (image->plain[i] >= 0)
			close(image->plain[i]);
	pthread_mutex_destroy(&image->lock);
	free(image);
}

static void release_image(void *context)
{
	ckt_sealed_image_unref(context);
}

static int make_file(
	void *context, enum ckt_broker_right right, unsigned directory, unsigned number)
{
	struct ckt_sealed_image *image = context;
	unsigned file = number == CKT_BROKER_MANIFEST ? MANIFEST : number;
	(void)right, (void)directory;
	pthread_mutex_lock(&image->lock);
	int result = image->closed ? -ESTALE : image->plain[file] >= 0 ? -EEXIST : 0;
	if (!result) {
		image->plain[file] = make_plain();
		result = image->plain[file] < 0 ? image->plain[file]
						: open_again(image->plain[file], O_WRONLY);
	}
	pthread_mutex_unlock(&image->lock);
	return result;
}

int ckt_sealed_image_start(
	struct ckt_sealed_image **ret_image, struct ckt_broker **ret_broker, int *ret_fd)
{
	struct ckt_sealed_image *image = calloc(1, sizeof *image);
	if (!image)
		return -ENOMEM;
	pthread_mutex_init(&image->lock, NULL);
	for (unsigned i = 0; i < FILES; i++)
		image->plain[i] = -1;
	atomic_store(&image->refs, 1);
	const struct ckt_broker_opener opener = {.open = make_file,
		.release = release_image,
		.context = ckt_sealed_image_ref(image)};
	int result = ckt_broker_start_opener(&opener, 1, CKT_BROKER_MAKE, ret_broker, ret_fd);
	if (!result) {
		*ret_image = image;
		return 0;
	}
	/* The broker's reference, and ours. */
	ckt_sealed_image_unref(image);
	ckt_sealed_image_unref(image);
	return result;
}

int ckt_sealed_image_vouch(struct ckt_sealed_image *image, const uint8_t *data, size_t size)
{
	if (size > sizeof image->mac)
		return -E2BIG;
	memcpy(image->mac, data, size);
	image->mac_size = size;
	return 0;
}

uint64_t ckt_sealed_image_bytes(struct ckt_sealed_image *image)
{
	uint64_t bytes = 0;
	pthread_mutex_lock(&image->lock);
	for (unsigned i = 0; i < FILES; i++) {
		struct stat st;
		if (image->plain[i] < 0 || fstat(image->plain[i], &st))
			continue;
		uint64_t segments = (uint64_t)st.st_size / CKT_SEALED_SEGMENT + 1;
		bytes += (CKT_SEALED_HEADER + (uint64_t)st.st_size + segments * TAG + BLOCK - 1) /
			BLOCK * BLOCK;
	}
	pthread_mutex_unlock(&image->lock);
	return bytes + BLOCK;
}

static int seal(const struct ckt_image_key *key, const uint8_t salt[CKT_SEALED_SALT],
	const char *name, int from, int directory_fd)
{
	int to = openat(
		directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int result = to < 0 ? -errno : ckt_sealed_write(key, salt, name, from, to);
	if (to >= 0)
		close(to);
	return result;
}

static int seal_mac(const struct ckt_sealed_image *image, const struct ckt_image_key *key,
	const uint8_t salt[CKT_SEALED_SALT], int directory_fd)
{
	int fd = image->mac_size ? make_plain() : -ENODATA;
	if (fd < 0)
		return fd == -ENODATA ? 0 : fd;
	int result = write(fd, image->mac, image->mac_size) == (ssize_t)image->mac_size
		? seal(key, salt, CKT_IMAGE_MAC_FILE, fd, directory_fd)
		: -EIO;
	close(fd);
	return result;
}

int ckt_sealed_image_finish(
	struct ckt_sealed_image *image, const struct ckt_image_keys *keys, int directory_fd)
{
	uint8_t salt[CKT_SEALED_SALT];
	char name[NAME_SIZE];
	int result = !keys || !keys->count                       ? -ENOKEY
		: getrandom(salt, sizeof salt, 0) != sizeof salt ? -EIO
								 : 0;
	pthread_mutex_lock(&image->lock);
	image->closed = true;
	pthread_mutex_unlock(&image->lock);
	for (unsigned i = 0; i < FILES && !result; i++) {
		file_name(i, name);
		if (image->plain[i] >= 0)
			result = seal(&keys->keys[0], salt, name, image->plain[i], directory_fd);
	}
	if (!result)
		result = seal_mac(image, &keys->keys[0], salt, directory_fd);
	return result;
}

/* ---- What was written */

/* A plain file of that directory, or -errno. */
static int open_file(int directory_fd, const char *name)
{
	struct stat st;
	int fd = openat(
		directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid())
		return fd;
	close(fd);
	return -EPERM;
}

bool ckt_sealed_image_is(int directory_fd)
{
	int fd = open_file(directory_fd, "manifest");
	bool is = fd >= 0 && ckt_sealed_is(fd);
	if (fd >= 0)
		close(fd);
	return is;
}

int ckt_sealed_image_open(int directory_fd, const char *name, const struct ckt_image_keys *keys,
	uint8_t *salt, bool *salt_known, char ret_message[CKT_MESSAGE_MAX])
{
	static const struct ckt_image_keys none;
	int fd = open_file(directory_fd, name);
	if (fd < 0)
		snprintf(ret_message, CKT_MESSAGE_MAX, "%s: %s", name, strerror(-fd));
	if (fd < 0 || !ckt_sealed_is(fd))
		return fd;
	int plain = make_plain();
	int result = plain < 0 ? plain
			       : ckt_sealed_read(keys ? keys : &none, name, fd, plain, salt,
					 salt_known, ret_message, CKT_MESSAGE_MAX);
	close(fd);
	if (plain < 0)
		snprintf(ret_message, CKT_MESSAGE_MAX, "%s: %s", name, strerror(-plain));
	if (!result)
		result = open_again(plain, O_RDONLY);
	if (plain >= 0)
		close(plain);
	return result;
}

/* Of one broker; its thread alone uses it. */
struct sealed_chain {
	unsigned count;
	int directories[CKT_BROKER_DIRECTORIES_MAX];
	uint8_t salts[CKT_BROKER_DIRECTORIES_MAX][CKT_SEALED_SALT];
	bool known[CKT_BROKER_DIRECTORIES_MAX];
	struct ckt_image_keys keys; /* a copy: the thread may outlive the server's */
};

static int read_file(
	void *context, enum ckt_broker_right right, unsigned directory, unsigned number)
{
	struct sealed_chain *chain = context;
	char name[NAME_SIZE], message[CKT_MESSAGE_MAX];
	(void)right;
	file_name(number == CKT_BROKER_MANIFEST ? MANIFEST : number, name);
	/* The worker says which file it could not read, and the session's program is told. */
	return ckt_sealed_image_open(chain->directories[directory], name, &chain->keys,
		chain->salts[directory], &chain->known[directory], message);
}

static void release_chain(void *context)
{
	struct sealed_chain *chain = context;
	while (chain->count)
		close(chain->directories[--chain->count]);
	explicit_bzero(&chain->keys, sizeof chain->keys);
	free(chain);
}

int ckt_sealed_chain_serve(const int *directories, unsigned count,
	const struct ckt_image_keys *keys, struct ckt_broker **ret_broker, int *ret_fd)
{
	struct sealed_chain *chain = calloc(1, sizeof *chain);
	int result = !chain ? -ENOMEM : count > CKT_BROKER_DIRECTORIES_MAX ? -EINVAL : 0;
	while (!result && chain->count < count) {
		int fd = fcntl(directories[chain->count], F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			result = -errno;
		else
			chain->directories[chain->count++] = fd;
	}
	if (!result) {
		chain->keys = *keys;
		const struct ckt_broker_opener opener = {
			.open = read_file, .release = release_chain, .context = chain};
		result = ckt_broker_start_opener(
			&opener, count, CKT_BROKER_READ, ret_broker, ret_fd);
	}
	if (result && chain)
		release_chain(chain);
	return result;
}
