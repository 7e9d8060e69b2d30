/* SPDX-License-Identifier: Apache-2.0 */
/* Whole records over a transport; see record.h. */
#include "rpc/record.h"

#include <stdlib.h>
#include <unistd.h>

#include "rpc/net.h"

static int receive(
	struct ckt_transport *t, uint8_t *p, size_t size, int64_t deadline_ms, int *ret_fd)
{
	while (size) {
		int passed;
		ssize_t n = ckt_transport_read_fd(t, p, size, &passed);
		if (passed >= 0 && ret_fd && *ret_fd < 0)
			*ret_fd = passed;
		else if (passed >= 0)
			close(passed);
		if (n == -EAGAIN) {
			int result = ckt_transport_wait_until(t, CKT_TRANSPORT_READ, deadline_ms);
			if (result)
				return result;
		} else if (n < 0) {
			return (int)n;
		} else {
			p += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

int ckt_record_read(struct ckt_transport *t, size_t max_bytes, int64_t deadline_ms,
	uint8_t **ret_data, size_t *ret_size, int *ret_fd)
{
	uint8_t mark[CKT_MARK_SIZE], *data = NULL;
	size_t size = 0;
	int passed = -1, result = receive(t, mark, sizeof mark, deadline_ms, &passed);
	if (!result)
		result = ckt_mark_get(mark, max_bytes, &size);
	if (!result && !(data = malloc(size ? size : 1)))
		result = -ENOMEM;
	if (!result)
		result = receive(t, data, size, deadline_ms, &passed);
	if (passed >= 0 && (result || !ret_fd)) {
		close(passed);
		passed = -1;
	}
	if (result) {
		free(data);
		return result;
	}
	if (ret_fd)
		*ret_fd = passed;
	*ret_data = data;
	*ret_size = size;
	return 0;
}

size_t ckt_record_parts(const uint8_t mark[CKT_MARK_SIZE], const uint8_t *data, size_t size,
	size_t sent, struct iovec ret_parts[2])
{
	size_t count = 0, skip = sent < CKT_MARK_SIZE ? 0 : sent - CKT_MARK_SIZE;
	if (sent < CKT_MARK_SIZE)
		ret_parts[count++] = (struct iovec){
			.iov_base = (void *)(mark + sent), .iov_len = CKT_MARK_SIZE - sent};
	ret_parts[count++] =
		(struct iovec){.iov_base = (void *)(data + skip), .iov_len = size - skip};
	return count;
}

int ckt_record_write(
	struct ckt_transport *t, const uint8_t *data, size_t size, int64_t deadline_ms, int pass_fd)
{
	uint8_t mark[CKT_MARK_SIZE];
	ckt_mark_put(mark, size);
	for (size_t sent = 0; sent < size + sizeof mark;) {
		struct iovec parts[2];
		size_t count = ckt_record_parts(mark, data, size, sent, parts);
		ssize_t n = ckt_transport_write_fd(t, parts, count, sent ? -1 : pass_fd);
		if (n == -EAGAIN) {
			int result = ckt_transport_wait_until(t, CKT_TRANSPORT_WRITE, deadline_ms);
			if (result)
				return result;
		} else if (n < 0) {
			return (int)n;
		} else {
			sent += (size_t)n;
		}
	}
	return 0;
}

/* ---- The same for a socket that its caller holds as a descriptor; see net.h */

int ckt_net_read_record(int fd, size_t max_bytes, int64_t deadline_ms, uint8_t **ret_data,
	size_t *ret_size, int *ret_fd)
{
	struct ckt_transport t;
	ckt_transport_init_socket(&t, fd);
	return ckt_record_read(&t, max_bytes, deadline_ms, ret_data, ret_size, ret_fd);
}

int ckt_net_write_record(int fd, const uint8_t *data, size_t size, int64_t deadline_ms, int pass_fd)
{
	struct ckt_transport t;
	ckt_transport_init_socket(&t, fd);
	return ckt_record_write(&t, data, size, deadline_ms, pass_fd);
}
