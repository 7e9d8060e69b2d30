/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a durable session; see replay_log.h. */
#include "client/conn/replay_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"

void ckt_replay_log_init(struct ckt_replay_log *log, uint64_t limit, const char *directory)
{
	*log = (struct ckt_replay_log){.limit = limit, .directory = directory, .fd = -1};
}

void ckt_replay_log_fini(struct ckt_replay_log *log)
{
	for (size_t i = 0; i < log->piece_count; i++)
		free(log->pieces[i].memory);
	free(log->pieces);
	free(log->commands);
	free(log->replies);
	if (log->fd >= 0)
		close(log->fd);
	*log = (struct ckt_replay_log){.fd = -1};
}

/* ---- Bytes */

static int open_file(struct ckt_replay_log *log)
{
	if (log->fd < 0)
		log->fd = open(log->directory, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
	return log->fd < 0 ? -errno : 0;
}

static int add_piece(struct ckt_replay_log *log)
{
	struct ckt_log_piece piece = {0};
	int result = CKT_GROW(log->pieces, log->piece_count, log->piece_room, 16);
	if (!result && log->memory + CKT_LOG_PIECE <= log->limit)
		piece.memory = malloc(CKT_LOG_PIECE);
	if (piece.memory)
		log->memory += CKT_LOG_PIECE;
	else if (!result)
		result = open_file(log);
	if (!result)
		log->pieces[log->piece_count++] = piece;
	return result;
}

static int write_file(int fd, const uint8_t *data, size_t size, off_t at)
{
	while (size) {
		ssize_t n = pwrite(fd, data, size, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENOSPC;
		data += n;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

static int read_file(int fd, uint8_t *data, size_t size, off_t at)
{
	while (size) {
		ssize_t n = pread(fd, data, size, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		data += n;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

static int put(struct ckt_replay_log *log, const uint8_t *data, size_t size, uint64_t *ret_position)
{
	if (size > CKT_LOG_PIECE)
		return -EMSGSIZE;
	struct ckt_log_piece *last = log->piece_count ? &log->pieces[log->piece_count - 1] : NULL;
	if (!last || CKT_LOG_PIECE - last->used < size) {
		int result = add_piece(log);
		if (result)
			return result;
		last = &log->pieces[log->piece_count - 1];
	}
	*ret_position = (log->first_piece + log->piece_count - 1) * CKT_LOG_PIECE + last->used;
	if (last->memory) {
		memcpy(last->memory + last->used, data, size);
	} else {
		int result = write_file(log->fd, data, size, (off_t)*ret_position);
		if (result)
			return result;
	}
	last->used += size;
	return 0;
}

int ckt_replay_log_read(
	struct ckt_replay_log *log, const struct ckt_log_command *command, uint8_t *ret_record)
{
	uint64_t number = command->position / CKT_LOG_PIECE - log->first_piece;
	if (number >= log->piece_count)
		return -EINVAL;
	const struct ckt_log_piece *piece = &log->pieces[number];
	if (!piece->memory)
		return read_file(log->fd, ret_record, command->size, (off_t)command->position);
	memcpy(ret_record, piece->memory + command->position % CKT_LOG_PIECE, command->size);
	return 0;
}

/* Drops the first pieces, up to the one that holds the position. */
static void drop_pieces(struct ckt_replay_log *log, uint64_t position)
{
	size_t count = 0;
	while (count < log->piece_count &&
		(log->first_piece + count + 1) * CKT_LOG_PIECE <= position) {
		if (log->pieces[count].memory)
			log->memory -= CKT_LOG_PIECE;
		else
			fallocate(log->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)((log->first_piece + count) * CKT_LOG_PIECE), CKT_LOG_PIECE);
		free(log->pieces[count++].memory);
	}
	log->piece_count -= count;
	log->first_piece += count;
	if (count)
		memmove(log->pieces, log->pieces + count, log->piece_count * sizeof *log->pieces);
}

/* ---- Commands and replies */

/* Room for one entry more in a list, within the bound. */
static int list_room(
	struct ckt_replay_log *log, void *list, size_t count, size_t *room, size_t size)
{
	size_t before = *room;
	if (count < before)
		return 0;
	if (log->memory + (before ? before : 64) * size > log->limit)
		return -ENOSPC;
	int result = ckt_grow(list, count, room, 64, size);
	log->memory += (*room - before) * size;
	return result;
}

int ckt_replay_log_command(
	struct ckt_replay_log *log, const uint8_t *record, const struct ckt_log_command *what)
{
	struct ckt_log_command command = *what;
	int result = list_room(
		log, &log->commands, log->command_count, &log->command_room, sizeof *log->commands);
	if (!result)
		result = put(log, record, what->size, &command.position);
	if (!result)
		log->commands[log->command_count++] = command;
	return result;
}

/* NULL: it is not kept. */
static struct ckt_log_command *find(struct ckt_replay_log *log, uint64_t seq, uint32_t xid)
{
	if (seq) {
		size_t at = ckt_replay_log_behind(log, seq - 1);
		while (at < log->command_count && !log->commands[at].seq)
			at++;
		return at < log->command_count && log->commands[at].seq == seq ? &log->commands[at]
									       : NULL;
	}
	/* It waits no longer than the program's threads have other waits. */
	for (size_t i = log->command_count, n = 0; i-- > 0 && n < CKT_LOG_WAITS; n++)
		if (!log->commands[i].seq && log->commands[i].xid == xid)
			return &log->commands[i];
	return NULL;
}

int ckt_replay_log_reply(struct ckt_replay_log *log, const struct ckt_log_reply *reply)
{
	int result = list_room(
		log, &log->replies, log->reply_count, &log->reply_room, sizeof *log->replies);
	struct ckt_log_command *command = result ? NULL : find(log, reply->seq, reply->xid);
	if (result)
		return result;
	log->replies[log->reply_count++] = *reply;
	if (command)
		command->reply = log->replies_gone + log->reply_count;
	return 0;
}

size_t ckt_replay_log_behind(const struct ckt_replay_log *log, uint64_t executed)
{
	/* Numbered commands ascend; between them lie waits, which have no number. */
	size_t low = 0, high = log->command_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2, at = middle;
		while (at < high && !log->commands[at].seq)
			at++;
		if (at < high && log->commands[at].seq <= executed)
			low = at + 1;
		else
			high = middle;
	}
	return low;
}

void ckt_replay_log_cut(struct ckt_replay_log *log, uint64_t executed)
{
	size_t gone = ckt_replay_log_behind(log, executed), replies = 0;
	if (!gone)
		return;
	log->command_count -= gone;
	memmove(log->commands, log->commands + gone, log->command_count * sizeof *log->commands);
	drop_pieces(log,
		log->command_count ? log->commands[0].position
				   : (log->first_piece + log->piece_count) * CKT_LOG_PIECE);
	while (replies < log->reply_count) {
		const struct ckt_log_reply *reply = &log->replies[replies];
		if (reply->seq ? reply->seq > executed : reply->before > executed + 1)
			break;
		replies++;
	}
	log->reply_count -= replies;
	log->replies_gone += replies;
	/* There may have been none at all. */
	if (replies)
		memmove(log->replies, log->replies + replies,
			log->reply_count * sizeof *log->replies);
}
