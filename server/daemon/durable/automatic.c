/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of automatic images, from a session's begin to its end; see automatic.h. */
#include "server/daemon/durable/automatic.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "checkpoint/format/broker.h"
#include "rpc/net.h"
#include "server/daemon/durable/automatic_option.h"
#include "server/daemon/durable/chain_job.h"
#include "server/daemon/durable/chain_mac.h"
#include "server/daemon/durable/group_cut.h"
#include "server/daemon/durable/group_return.h"
#include "server/daemon/durable/replica.h"
#include "server/daemon/durable/sleep.h"
#include "server/daemon/image/image_space.h"
#include "server/daemon/paths.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/session_marks.h"

/* No name of a stage, so that no client can name it. */
#define DIRECTORY "_automatic"

static struct ckt_automatic_chain *waiting; /* without a session */
static struct ckt_loop *loop;

enum { SWEEP_MS = 3600 * 1000, AGE_MAX_S = 86400 };

/* ---- The server's */

static int open_directory(struct ckt_server *server, struct ckt_automatic *automatic)
{
	struct stat st;
	char *path = automatic->dir;
	if (server->options.auto_dir)
		snprintf(path, CKT_PATH_MAX, "%s", server->options.auto_dir);
	else
		snprintf(path, CKT_PATH_MAX, "%.4000s/%s", server->image_dir, DIRECTORY);
	int result = ckt_paths_make_parent(path);
	if (!result && mkdir(path, 0700) && errno != EEXIST)
		result = -errno;
	automatic->dir_fd = result ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!result && automatic->dir_fd < 0)
		result = -errno;
	/* Whoever can write there can make sessions; whoever can read there has what they hold. */
	if (!result &&
		(fstat(automatic->dir_fd, &st) || st.st_uid != geteuid() || st.st_mode & 0077))
		result = -EPERM;
	return result;
}

/* A server that died, or a client that never came back, leaves chains. */
static void sweep_directory(const struct ckt_automatic *automatic)
{
	int own = openat(automatic->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own >= 0 ? fdopendir(own) : NULL;
	if (!dir && own >= 0)
		close(own);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		struct stat st;
		int fd = ckt_chain_id_good(entry->d_name)
			? ckt_chain_open(automatic->dir_fd, entry->d_name, false)
			: -1;
		if (fd < 0)
			continue;
		if (ckt_sleep_find(entry->d_name)) {
			/* Not old, whoever else shares the directory. */
			utimensat(fd, "state", NULL, AT_SYMLINK_NOFOLLOW);
			close(fd);
			continue;
		}
		bool old = (fstatat(fd, "state", &st, AT_SYMLINK_NOFOLLOW) == 0 ||
				   fstat(fd, &st) == 0) &&
			time(NULL) - st.st_mtime > AGE_MAX_S;
		/* A session that ended while no server was here is wanted by nobody. */
		unsigned left_s;
		bool gone = (old || ckt_chain_is_over(fd)) &&
			!ckt_replica_is_leased(fd, entry->d_name, 0, &left_s);
		int lock = gone ? ckt_chain_lock(fd, false) : -1;
		if (lock >= 0) {
			ckt_info("session %s: removing its automatic images: nobody came for them",
				entry->d_name);
			ckt_chain_remove(automatic->dir_fd, fd, entry->d_name);
			close(lock);
		}
		close(fd);
	}
	if (dir)
		closedir(dir);
}

static void sweep(struct ckt_timer *timer)
{
	sweep_directory(CKT_CONTAINER(timer, struct ckt_automatic, sweep));
	ckt_timer_set(loop, timer, SWEEP_MS);
}

int ckt_automatic_init(struct ckt_server *server, char *ret_message, size_t message_size)
{
	const struct ckt_options *options = &server->options;
	if (options->auto_encrypt &&
		((!options->auto_checkpoint && !options->idle_context) || !server->image_keys)) {
		snprintf(ret_message, message_size, "--auto-encrypt: %s",
			server->image_keys
				? "there are no automatic images to encrypt; give --auto-checkpoint, too"
				: "there is no key to encrypt by; give --image-key, too");
		return -EINVAL;
	}
	if (!options->auto_checkpoint && !options->idle_context)
		return 0;
	struct ckt_automatic *automatic = calloc(1, sizeof *automatic);
	if (!automatic) {
		snprintf(ret_message, message_size, "out of memory");
		return -ENOMEM;
	}
	if (server->options.auto_checkpoint)
		ckt_automatic_parse(
			server->options.auto_checkpoint, &automatic->seconds, &automatic->asked);
	int result = open_directory(server, automatic);
	if (result) {
		snprintf(ret_message, message_size, "--auto-dir: '%s': %s", automatic->dir,
			result == -EPERM ? "must be a directory of the server's user with mode 0700"
					 : strerror(-result));
		if (automatic->dir_fd >= 0)
			close(automatic->dir_fd);
		free(automatic);
		return result;
	}
	server->automatic = automatic;
	ckt_chain_keys_set(server->image_keys);
	automatic->sweep.fire = sweep;
	loop = &server->loop;
	sweep(&automatic->sweep);
	if (automatic->seconds)
		ckt_info("an image of each session%s every %u s, in %s",
			automatic->asked ? " that asks for it" : "", automatic->seconds,
			automatic->dir);
	return 0;
}

void ckt_automatic_fini(struct ckt_server *server)
{
	struct ckt_automatic *automatic = server->automatic;
	ckt_chain_jobs_finish();
	ckt_group_cut_fini();
	ckt_group_return_fini();
	while (waiting) {
		struct ckt_automatic_chain *chain = waiting;
		waiting = chain->next_waiting;
		ckt_automatic_chain_free(chain);
	}
	if (!automatic)
		return;
	for (struct ckt_session *session = server->sessions; session; session = session->next) {
		if (session->chain)
			ckt_automatic_chain_free(session->chain);
		session->chain = NULL;
	}
	ckt_timer_clear(&automatic->sweep);
	ckt_chain_keys_set(NULL);
	close(automatic->dir_fd);
	if (!server->options.auto_dir)
		rmdir(automatic->dir);
	free(automatic);
	server->automatic = NULL;
}

/* ---- A session's */

struct ckt_automatic_chain *ckt_automatic_chain_new(struct ckt_server *server, const char *session)
{
	struct ckt_automatic_chain *chain = calloc(1, sizeof *chain);
	if (!chain)
		return NULL;
	*chain = (struct ckt_automatic_chain){
		.server = server, .dir_fd = -1, .lock_fd = -1, .stamps = {.fd = -1}, .wait = 1};
	snprintf(chain->id, sizeof chain->id, "%.12s", session);
	chain->timer.fire = ckt_automatic_tick;
	return chain;
}

void ckt_automatic_chain_free(struct ckt_automatic_chain *chain)
{
	ckt_timer_clear(&chain->timer);
	ckt_broker_stop(chain->broker);
	if (chain->space)
		ckt_daemon_image_space_release(chain->space, chain->counted);
	ckt_daemon_image_space_put(chain->space);
	if (chain->stamps.fd >= 0)
		close(chain->stamps.fd);
	if (chain->dir_fd >= 0)
		close(chain->dir_fd);
	if (chain->lock_fd >= 0)
		close(chain->lock_fd);
	ckt_sleeper_free(chain->sleeper);
	free(chain);
}

void ckt_automatic_count(struct ckt_automatic_chain *chain, uint32_t owner)
{
	const struct ckt_identity identity = ckt_identity_of_owner(owner);
	if (!chain->space)
		chain->space = ckt_daemon_image_space_get(chain->server, &identity);
	if (!chain->space)
		return;
	ckt_daemon_image_space_release(chain->space, chain->counted);
	chain->counted = 0;
	for (unsigned i = 0; i < chain->state.count; i++)
		chain->counted += chain->state.images[i].bytes;
	ckt_daemon_image_space_note(chain->space, chain->counted);
}

void ckt_automatic_wait(struct ckt_automatic_chain *chain)
{
	chain->timer.fire = ckt_automatic_tick;
	if (chain->server->automatic->seconds)
		ckt_timer_set(&chain->server->loop, &chain->timer,
			(int64_t)chain->server->automatic->seconds * 1000 * chain->wait);
}

static bool wants(const struct ckt_session *session)
{
	const struct ckt_automatic *automatic = session->server->automatic;
	return automatic && automatic->seconds && !session->warm &&
		(!automatic->asked || session->asks_for_images);
}

void ckt_automatic_join_group(struct ckt_session *session, const struct ckt_automatic_chain *chain)
{
	for (unsigned i = 0; i < chain->state.member_count; i++)
		ckt_group_await(session, chain->state.members[i]);
}

/*
 * The server was started again, and the session has run on: so do its images.  alive: its worker
 * is, and has the lock.
 */
static void adopt(struct ckt_automatic_chain *chain, bool alive)
{
	struct ckt_automatic *automatic = chain->server->automatic;
	int fd = ckt_chain_open(automatic->dir_fd, chain->id, false);
	if (fd < 0)
		return;
	ckt_group_settle(chain->server, fd, chain->id);
	int result = ckt_chain_read(fd, chain->id, &chain->state);
	int lock = result ? result : ckt_chain_lock(fd, alive);
	/* A first image replaces what does not count. */
	if (ckt_chain_keys() && result && result != -ENOENT) {
		char message[CKT_MESSAGE_MAX];
		ckt_chain_refusal(result, chain->id, message);
		ckt_warning("%s", message);
	}
	if (lock < 0) {
		chain->state = (struct ckt_chain_state){0};
		close(fd);
		return;
	}
	chain->dir_fd = fd;
	chain->lock_fd = lock;
	chain->shares |= chain->state.shared || chain->state.member_count;
	if (chain->session) {
		chain->session->asks_for_images |= chain->state.asked;
		ckt_automatic_join_group(chain->session, chain);
	}
	ckt_automatic_count(chain, chain->state.owner);
}

void ckt_automatic_begin(struct ckt_session *session)
{
	struct ckt_server *server = session->server;
	if (session->phase != CKT_SESSION_LIVE || !server->automatic)
		return;
	/* Of a restore from it. */
	if (session->chain && session->chain->session) {
		ckt_group_return_tell(session);
		ckt_broker_stop(session->chain->broker);
		session->chain->broker = NULL;
		session->chain->alive_ms = ckt_net_now_ms();
		ckt_sleep_woken(session);
		ckt_replica_begin(session);
		if (!session->chain->busy)
			ckt_automatic_wait(session->chain);
		return;
	}
	struct ckt_automatic_chain *chain = ckt_automatic_chain_new(server, session->id);
	if (!chain)
		return;
	chain->session = session;
	chain->shares = session->group.shares;
	/* Also where it is the directory alone that says that its client asked. */
	if (!session->child)
		adopt(chain, true);
	if (!wants(session)) {
		ckt_automatic_chain_free(chain);
		return;
	}
	session->chain = chain;
	ckt_replica_begin(session);
	ckt_automatic_wait(chain);
}

uint64_t ckt_automatic_told(const struct ckt_hello_args *hello, const char *name)
{
	for (u_int i = 0; i < hello->capabilities.capabilities_len; i++)
		if (strcmp(hello->capabilities.capabilities_val[i].name, name) == 0)
			return hello->capabilities.capabilities_val[i].value;
	return 0;
}

bool ckt_automatic_is_asked(const struct ckt_hello_args *hello)
{
	return ckt_automatic_told(hello, CKT_CAPABILITY_DURABLE) != 0;
}

void ckt_automatic_ask(struct ckt_session *session)
{
	session->asks_for_images = true;
	if (!session->chain)
		ckt_automatic_begin(session);
}

static void removed(void *context, int result)
{
	(void)result;
	ckt_automatic_chain_free(context);
}

/* The images, and the chain. */
static void remove_images(struct ckt_automatic_chain *chain)
{
	struct ckt_server *server = chain->server;
	ckt_timer_clear(&chain->timer);
	ckt_replica_drop(server, chain->id);
	if (chain->dir_fd < 0 ||
		ckt_chain_drop(&server->loop, server->automatic->dir_fd, chain->dir_fd, chain->id,
			removed, chain))
		ckt_automatic_chain_free(chain);
}

/* ---- Images that outlive their worker */

static struct ckt_automatic_chain *take_waiting(const char *session)
{
	struct ckt_automatic_chain **place = &waiting;
	while (*place && strcmp((*place)->id, session) != 0)
		place = &(*place)->next_waiting;
	struct ckt_automatic_chain *chain = *place;
	if (chain)
		*place = chain->next_waiting;
	return chain;
}

/* Nobody came for the session. */
static void give_up(struct ckt_timer *timer)
{
	struct ckt_automatic_chain *chain = CKT_CONTAINER(timer, struct ckt_automatic_chain, timer);
	struct ckt_chain_state state;
	take_waiting(chain->id);
	/* It may have gone on at another server that shares the directory. */
	chain->lock_fd = ckt_chain_lock(chain->dir_fd, false);
	if (chain->lock_fd >= 0 && ckt_chain_read(chain->dir_fd, chain->id, &state) == 0 &&
		state.generation == chain->state.generation) {
		ckt_info("session %s: removing its automatic images: its client did not come back",
			chain->id);
		remove_images(chain);
	} else {
		ckt_automatic_chain_free(chain);
	}
}

void ckt_automatic_leave(struct ckt_automatic_chain *chain)
{
	ckt_broker_stop(chain->broker);
	chain->broker = NULL;
	chain->session = NULL;
	/* A worker that we ended says that it is over. */
	if (chain->lock_fd >= 0 && ftruncate(chain->lock_fd, 0))
		ckt_debug("session %s: its lock stays as it is: %s", chain->id, strerror(errno));
	if (chain->lock_fd >= 0)
		close(chain->lock_fd);
	chain->lock_fd = -1;
	chain->next_waiting = waiting;
	waiting = chain;
	if (chain->sleeper)
		ckt_sleep_settle(chain);
	else
		ckt_automatic_wait_for_client(
			chain, (int64_t)chain->server->options.claim_timeout * 1000);
}

void ckt_automatic_wait_for_client(struct ckt_automatic_chain *chain, int64_t delay_ms)
{
	chain->timer.fire = give_up;
	ckt_timer_set(&chain->server->loop, &chain->timer, delay_ms);
}

void ckt_automatic_drop(struct ckt_automatic_chain *chain)
{
	take_waiting(chain->id);
	chain->lock_fd = ckt_chain_lock(chain->dir_fd, false);
	remove_images(chain);
}

const struct ckt_automatic_chain *ckt_automatic_left(const char *session)
{
	const struct ckt_automatic_chain *chain = waiting;
	while (chain && strcmp(chain->id, session) != 0)
		chain = chain->next_waiting;
	return chain;
}

void ckt_automatic_prolong(const char *session)
{
	struct ckt_automatic_chain *chain = waiting;
	while (chain && strcmp(chain->id, session) != 0)
		chain = chain->next_waiting;
	if (chain && !chain->sleeper)
		ckt_automatic_wait_for_client(
			chain, (int64_t)chain->server->options.claim_timeout * 1000);
}

bool ckt_automatic_forget(const char *session)
{
	struct ckt_automatic_chain *chain = take_waiting(session);
	if (chain)
		ckt_automatic_chain_free(chain);
	return chain != NULL;
}

/* A restore that never began does not count: nothing of the program has run. */
static void uncount(struct ckt_automatic_chain *chain)
{
	if (!chain->state.restores)
		return;
	chain->state.restores--;
	ckt_chain_write(chain->dir_fd, &chain->state);
}

/* The images of a dead worker of an earlier server, unless somebody else has the session. */
static struct ckt_automatic_chain *find_left(
	struct ckt_server *server, const char *id, bool *ret_over)
{
	struct ckt_automatic_chain *chain = ckt_automatic_chain_new(server, id);
	int fd = chain ? ckt_chain_open(server->automatic->dir_fd, id, false) : -1;
	/* Taking the lock makes it forget. */
	*ret_over = fd >= 0 && ckt_chain_is_over(fd);
	if (fd >= 0)
		close(fd);
	if (chain)
		adopt(chain, false);
	if (!chain || chain->dir_fd >= 0)
		return chain;
	ckt_automatic_chain_free(chain);
	return NULL;
}

/* Nobody runs the chain's session any more; what its group does with that. */
static void leave_group(struct ckt_session *session, struct ckt_automatic_chain *chain)
{
	/* Where there was no room it has met nobody, and starts again alone. */
	if (session->failure != -ENOMEM)
		ckt_group_return_over(chain->id);
	ckt_group_leave(session, chain->id, chain->keep && (chain->state.count || chain->cut));
	if (chain->cut)
		ckt_group_cut_leave(chain);
	else if (!chain->committing)
		ckt_automatic_ended(chain);
}

static void end_chain(struct ckt_session *session, struct ckt_automatic_chain *chain, bool crashed)
{
	/* What is on the disk alone says all that is known. */
	chain->unfit = chain->session && chain->shares && !chain->state.shared &&
		!ckt_group_is_covered(chain);
	session->chain = NULL;
	chain->session = NULL;
	ckt_timer_clear(&chain->timer);
	ckt_broker_stop(chain->broker);
	chain->broker = NULL;
	/* Where the session is somewhere else, or waits on purpose, there must not be a second one. */
	chain->keep = session->sleep.falls ||
		(!ckt_session_mark_exists(session->server, chain->id) &&
			ckt_session_may_return(session, crashed));
	if (!session->sleep.falls && !chain->state.asleep) {
		ckt_sleeper_free(chain->sleeper);
		chain->sleeper = NULL;
	}
	if (session->failure && chain->keep)
		uncount(chain);
	leave_group(session, chain);
}

void ckt_automatic_end(struct ckt_session *session, bool crashed)
{
	struct ckt_automatic_chain *chain = session->chain;
	struct ckt_server *server = session->server;
	bool over =
		chain && !session->child && chain->dir_fd >= 0 && ckt_chain_is_over(chain->dir_fd);
	/* It ended before its server, which was started again, knew what it has. */
	if (!chain && server->automatic && !session->child && !session->warm &&
		!ckt_automatic_left(session->id))
		chain = find_left(server, session->id, &over);
	if (chain)
		end_chain(session, chain, crashed && !over);
	else
		ckt_group_leave(session, session->id, false);
}

void ckt_automatic_ended(struct ckt_automatic_chain *chain)
{
	if (!chain->keep || !chain->state.count) {
		remove_images(chain);
		return;
	}
	if (chain->unfit) {
		chain->state.shared = true;
		ckt_chain_write(chain->dir_fd, &chain->state);
	}
	if (!chain->sleeper)
		ckt_info("session %s: its %u automatic images stay: its client may come back for "
			 "it",
			chain->id, chain->state.count);
	ckt_automatic_leave(chain);
}
