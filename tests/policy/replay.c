/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded runs; see replay.h. */
#include "tests/policy/replay.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MIB (INT64_C(1) << 20)

enum { LINE_BYTES = 1 << 16 };

static int64_t integer(const json_t *event, const char *key)
{
	return json_integer_value(json_object_get(event, key));
}

static const char *text(const json_t *event, const char *key)
{
	const char *value = json_string_value(json_object_get(event, key));
	return value ? value : "";
}

/* The one of that id that has not ended; NULL: none. */
static struct replay_session *find(struct replay *replay, const char *id)
{
	for (unsigned i = replay->count; i > 0; i--)
		if (strcmp(replay->sessions[i - 1].id, id) == 0)
			return replay->sessions[i - 1].ended ? NULL : &replay->sessions[i - 1];
	return NULL;
}

static struct replay_session *add(struct replay *replay, const json_t *event)
{
	if (replay->count == REPLAY_SESSIONS_MAX)
		return NULL;
	struct replay_session *more =
		reallocarray(replay->sessions, replay->count + 1, sizeof *more);
	if (!more)
		return NULL;
	replay->sessions = more;
	struct replay_session *s = &more[replay->count++];
	int64_t at_ms = integer(event, "at_ms");
	memset(s, 0, sizeof *s);
	snprintf(s->id, sizeof s->id, "%s", text(event, "session"));
	s->gpu = (unsigned)integer(event, "gpu");
	s->last_ms = at_ms;
	if (replay->count == 1)
		replay->began_ms = at_ms;
	s->program.arrives_ms = at_ms - replay->began_ms;
	s->program.declared_mib = (uint64_t)(integer(event, "bytes") / MIB);
	/* The first one alone has nothing but its context. */
	if (replay->count == 1)
		replay->context_mib = (uint64_t)(integer(event, "used_bytes") / MIB);
	return s;
}

/* Time passes; then it takes (above 0) or gives back so much.  What is too much joins the last step. */
static void step(struct replay_session *s, int64_t at_ms, int64_t mib)
{
	struct simulation_program *program = &s->program;
	int64_t passed = at_ms > s->last_ms ? at_ms - s->last_ms : 0;
	s->last_ms = at_ms;
	/* It gives back no more than it has, as where the record begins late. */
	if (mib < 0 && -mib > s->held_mib)
		mib = -s->held_mib;
	s->held_mib += mib;
	if (program->step_count)
		program->steps[program->step_count - 1].ms += passed;
	else if (passed)
		program->steps[program->step_count++] = (struct simulation_step){0, passed};
	if (!mib)
		return;
	if (program->step_count < SIMULATION_STEPS_MAX)
		program->steps[program->step_count++] = (struct simulation_step){mib, 0};
	else
		program->steps[program->step_count - 1].mib += mib;
}

static void take_event(const struct replay *replay, struct replay_session *s, const json_t *event)
{
	const char *name = text(event, "event");
	int64_t at_ms = integer(event, "at_ms"), mib = integer(event, "bytes") / MIB;
	if (strcmp(name, "leased") == 0) {
		step(s, at_ms, mib);
	} else if (strcmp(name, "wait") == 0) {
		/* Its memory comes with "granted", and the time until then is not its own. */
		step(s, at_ms, 0);
	} else if (strcmp(name, "granted") == 0) {
		s->waits++;
		s->waited_ms += integer(event, "waited_ms");
		s->last_ms = at_ms;
		step(s, at_ms, mib);
	} else if (strcmp(name, "withdrawn") == 0 ||
		(strcmp(name, "refused") == 0 && integer(event, "request"))) {
		s->last_ms = at_ms;
	} else if (strcmp(name, "freed") == 0) {
		step(s, at_ms, -mib);
	} else if (strcmp(name, "left") == 0) {
		step(s, at_ms, 0);
		s->ended = true;
		s->ended_ms = at_ms - replay->began_ms;
	}
}

static bool take_line(struct replay *replay, const json_t *event)
{
	const char *name = text(event, "event");
	int64_t gpu = integer(event, "gpu");
	struct replay_session *s;
	if (strcmp(name, "missed") == 0)
		replay->missed += (uint64_t)integer(event, "lost");
	/* Of no session, or of a server without facts. */
	if (!*text(event, "session") || !json_object_get(event, "at_ms"))
		return true;
	if (gpu < 0 || gpu >= REPLAY_GPUS_MAX)
		return false;
	s = strcmp(name, "came") == 0 ? add(replay, event) : find(replay, text(event, "session"));
	if (strcmp(name, "came") == 0)
		return s != NULL;
	if (s && integer(event, "budget_bytes"))
		replay->budgets_mib[s->gpu] = (uint64_t)(integer(event, "budget_bytes") / MIB);
	if (s)
		take_event(replay, s, event);
	return true;
}

bool replay_read(FILE *file, struct replay *ret_replay, char *ret_message, size_t message_size)
{
	char *line = malloc(LINE_BYTES);
	unsigned number = 0;
	bool good = line != NULL;
	*ret_replay = (struct replay){0};
	while (good && fgets(line, LINE_BYTES, file)) {
		json_error_t error;
		json_t *event = json_loads(line, 0, &error);
		number++;
		good = json_is_object(event) && take_line(ret_replay, event);
		if (!good)
			snprintf(ret_message, message_size,
				"line %u is no event of a record: %.200s", number, error.text);
		json_decref(event);
	}
	free(line);
	if (good && !ret_replay->count) {
		snprintf(ret_message, message_size,
			"the record has no session: record with cricketctl --json events --follow, "
			"of a server with --gpu-memory or --when-full wait");
		return false;
	}
	return good;
}

void replay_free(struct replay *replay)
{
	free(replay->sessions);
	*replay = (struct replay){0};
}
