/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of NVML; see gpu_health.h. */
#include "server/daemon/nvml/gpu_health.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "rpc/nvml.h"
#include "server/daemon/nvml/nvml.h"
#include "server/daemon/server.h"

int ckt_gpu_sample_ms = 2000;

struct ckt_gpu_health {
	struct ckt_server *server;
	struct ckt_timer timer;
	int64_t wanted_ms, begun_ms; /* the last scrape, the last round of questions */
	bool asking;                 /* a question is under way */
	struct ckt_gpu_sample gpus[CKT_DEVICES_MAX];
};

static unsigned count_of(const struct ckt_server *server)
{
	return server->driver.gpu_count < CKT_DEVICES_MAX ? server->driver.gpu_count
							  : CKT_DEVICES_MAX;
}

static void heard(struct ckt_server *server, unsigned gpu, const struct ckt_reader_answer *answer);

/* The next round, where anybody still wants one. */
static void plan(struct ckt_gpu_health *health)
{
	int64_t now = ckt_net_now_ms(), due = health->begun_ms + ckt_gpu_sample_ms - now;
	if (health->asking || now - health->wanted_ms > CKT_GPU_WANTED_MS)
		return;
	ckt_timer_set(&health->server->loop, &health->timer, due > 0 ? due : 0);
}

static void silent(struct ckt_gpu_sample *sample)
{
	if (!sample->silent_ms)
		sample->silent_ms = ckt_net_now_ms();
}

/* That GPU, and at its answer the next; behind the last, or where nobody can be asked, the round ends. */
static void ask(struct ckt_gpu_health *health, unsigned gpu)
{
	unsigned count = count_of(health->server);
	health->asking = gpu < count && ckt_nvml_ask_health(health->server, gpu, heard);
	for (; !health->asking && gpu < count; gpu++)
		silent(&health->gpus[gpu]);
	plan(health);
}

static void heard(struct ckt_server *server, unsigned gpu, const struct ckt_reader_answer *answer)
{
	struct ckt_gpu_health *health = server->health;
	if (!health)
		return;
	struct ckt_gpu_sample *sample = &health->gpus[gpu];
	bool found = answer && answer->result == CKT_NVML_SUCCESS;
	bool lost = sample->found && answer && !found;
	if (!answer)
		silent(sample);
	else
		sample->silent_ms = 0;
	if (lost != sample->lost && answer)
		ckt_warning(lost ? "GPU %u is lost: NVML answers %d; its sessions fail until the "
				   "host resets it"
				 : "GPU %u is back: NVML answers %d",
			gpu, answer->result);
	if (answer)
		sample->lost = lost;
	if (found) {
		sample->found = true;
		sample->when_ms = ckt_net_now_ms();
		sample->known = answer->known;
		memcpy(sample->values, answer->values, sizeof sample->values);
	}
	ask(health, gpu + 1);
}

static void fire(struct ckt_timer *timer)
{
	struct ckt_gpu_health *health = CKT_CONTAINER(timer, struct ckt_gpu_health, timer);
	health->begun_ms = ckt_net_now_ms();
	ask(health, 0);
}

void ckt_gpu_health_begin(struct ckt_server *server)
{
	if (server->driver.soft || !count_of(server) || server->health)
		return;
	server->health = calloc(1, sizeof *server->health);
	if (!server->health)
		return;
	server->health->server = server;
	server->health->timer.fire = fire;
	server->health->begun_ms = ckt_net_now_ms() - ckt_gpu_sample_ms;
	ckt_gpu_health_want(server);
}

void ckt_gpu_health_end(struct ckt_server *server)
{
	if (server->health)
		ckt_timer_clear(&server->health->timer);
	free(server->health);
	server->health = NULL;
}

void ckt_gpu_health_want(struct ckt_server *server)
{
	if (!server->health)
		return;
	server->health->wanted_ms = ckt_net_now_ms();
	if (!server->health->timer.link)
		plan(server->health);
}

const struct ckt_gpu_sample *ckt_gpu_health_of(const struct ckt_server *server, unsigned gpu)
{
	return server->health && server->health->gpus[gpu].found ? &server->health->gpus[gpu]
								 : NULL;
}

bool ckt_gpu_health_is_up(const struct ckt_gpu_sample *sample, int64_t now_ms)
{
	return !sample->lost &&
		(!sample->silent_ms || now_ms - sample->silent_ms < CKT_GPU_SILENT_MS);
}

bool ckt_gpu_health_value(const struct ckt_gpu_sample *sample, int64_t now_ms,
	enum ckt_reader_value which, uint64_t *ret_value)
{
	if (!(sample->known >> which & 1) || now_ms - sample->when_ms > CKT_GPU_OLD_MS)
		return false;
	*ret_value = sample->values[which];
	return true;
}
