/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that swap, in virtual time; see quanta.h. */
#include "tests/policy/quanta.h"

#include <stddef.h>

/* The step of the clock, and of the server's looks at who is idle. */
#define STEP_NS INT64_C(10000000)

static struct quanta_program *program_of(struct ckt_quantum_member *member)
{
	return (struct quanta_program *)((char *)member - offsetof(struct quanta_program, member));
}

int64_t quanta_alone_ns(const struct quanta_program *programs, unsigned count)
{
	int64_t ns = 0;
	for (unsigned i = 0; i < count; i++)
		ns += programs[i].rounds * (programs[i].gpu_ns + programs[i].own_ns);
	return ns;
}

static bool runs(const struct quanta_program *p, int64_t now_ns)
{
	return !p->ended_ns && now_ns >= p->begins_ns;
}

/* Whether a command of it waits for its memory. */
static void wish(struct quanta_program *p, int64_t now_ns)
{
	struct ckt_quantum_member *m = &p->member;
	bool wants = runs(p, now_ns) && p->on_gpu && !p->here && !m->leaving && !m->coming;
	if (m->chosen && m->coming)
		return;
	m->follows = p->follows;
	m->want[0] = wants ? p->bytes : 0;
	if (!wants)
		m->want_since_ns = 0;
	else if (!m->want_since_ns)
		m->want_since_ns = now_ns;
	m->idle_since_ns = p->here && !p->on_gpu ? (m->idle_since_ns ? m->idle_since_ns : now_ns)
		: m->out                         ? m->idle_since_ns
						 : 0;
	ckt_quantum_note(m, now_ns);
}

static uint64_t used(const struct quanta_program *programs, unsigned count)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < count; i++)
		bytes += programs[i].member.here[0];
	return bytes;
}

static void take(struct quanta_program *p, double rate, int64_t now_ns)
{
	struct ckt_quantum_member *m = &p->member;
	int64_t waited = now_ns - m->want_since_ns;
	p->longest_wait_ns = waited > p->longest_wait_ns ? waited : p->longest_wait_ns;
	m->here[0] = p->bytes;
	m->coming = m->out;
	p->moves_ns = m->out ? (int64_t)((double)p->bytes / rate * 1e9) : 0;
	p->here = !m->coming;
	if (m->out)
		ckt_quantum_came(m, now_ns);
	m->want_since_ns = 0;
	m->want[0] = 0;
	m->in_since_ns = now_ns;
	m->chosen = m->served = false;
}

static void decide(struct ckt_quantum *quantum, struct quanta_program *programs, unsigned count,
	uint64_t budget, double rate, int64_t now_ns)
{
	struct ckt_quantum_decision decision;
	for (;;) {
		ckt_quantum_decide(quantum, 0, budget - used(programs, count), now_ns, &decision);
		if (!decision.step)
			return;
		struct quanta_program *p = program_of(decision.member);
		if (decision.step == CKT_QUANTUM_ADMIT && decision.behind) {
			p->member.coming = true;
			continue;
		}
		if (decision.step == CKT_QUANTUM_ADMIT) {
			take(p, rate, now_ns);
			continue;
		}
		p->member.leaving = true;
		p->here = false;
		p->moves_ns = (int64_t)((double)p->bytes / rate * 1e9);
	}
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void leave(struct ckt_quantum *quantum, struct quanta_program *p, double rate, unsigned outs,
	int64_t now_ns)
{
	struct ckt_quantum_member *m = &p->member;
	p->moves_ns -= STEP_NS / outs;
	if (p->follows) {
		m->giving = true;
		m->here[0] -= least(m->here[0], (uint64_t)(rate * STEP_NS / 1e9 / outs));
	}
	if (p->moves_ns > 0)
		return;
	m->here[0] = 0;
	ckt_quantum_left(quantum, m, p->bytes, (int64_t)((double)p->bytes / rate * 1e9), now_ns);
}

/* Behind others: of what is free, so much as the rate allows.  Returns what came. */
static uint64_t follow(struct ckt_quantum *quantum, struct quanta_program *p, uint64_t free_bytes,
	double rate, unsigned ins, int64_t now_ns)
{
	struct ckt_quantum_member *m = &p->member;
	int64_t waited = now_ns - m->want_since_ns;
	uint64_t bytes =
		least(least(m->want[0], free_bytes), (uint64_t)(rate * STEP_NS / 1e9 / ins));
	m->here[0] += bytes;
	m->want[0] -= bytes;
	m->got_bytes += bytes;
	if (m->want[0] && !bytes && !m->ahead && !ckt_quantum_gives(quantum, 0)) {
		/* Nothing leaves any more. */
		m->here[0] = m->got_bytes = 0;
		m->want[0] = p->bytes;
		ckt_quantum_failed(m, now_ns);
	}
	if (m->want[0])
		return bytes;
	m->got_bytes = 0;
	p->longest_wait_ns = waited > p->longest_wait_ns ? waited : p->longest_wait_ns;
	m->coming = false;
	p->here = true;
	ckt_quantum_came(m, now_ns);
	ckt_quantum_measure_in(quantum, p->bytes, (int64_t)((double)p->bytes / rate * 1e9));
	return bytes;
}

/* Moves that run come to their end; in each direction they share the rate. */
static void move(struct ckt_quantum *quantum, struct quanta_program *programs, unsigned count,
	uint64_t budget, double rate, int64_t now_ns, struct quanta_result *result)
{
	unsigned outs = 0, ins = 0;
	for (unsigned i = 0; i < count; i++) {
		outs += programs[i].member.leaving;
		ins += programs[i].member.coming;
	}
	for (unsigned i = 0; i < count; i++) {
		struct quanta_program *p = &programs[i];
		struct ckt_quantum_member *m = &p->member;
		if (m->leaving) {
			leave(quantum, p, rate, outs, now_ns);
		} else if (m->coming && m->chosen) {
			uint64_t came = follow(
				quantum, p, budget - used(programs, count), rate, ins, now_ns);
			result->met += outs ? came : 0;
		} else if (m->coming && (p->moves_ns -= STEP_NS / ins) <= 0) {
			m->coming = false;
			p->here = true;
			ckt_quantum_measure_in(
				quantum, p->bytes, (int64_t)((double)p->bytes / rate * 1e9));
		}
	}
}

static void work(struct quanta_program *programs, unsigned count, int64_t now_ns)
{
	unsigned busy = 0;
	for (unsigned i = 0; i < count; i++)
		busy += runs(&programs[i], now_ns) && programs[i].on_gpu && programs[i].here;
	for (unsigned i = 0; i < count; i++) {
		struct quanta_program *p = &programs[i];
		if (!runs(p, now_ns) || (p->on_gpu && !p->here))
			continue;
		p->left_ns -= p->on_gpu ? STEP_NS / busy : STEP_NS;
		if (p->left_ns > 0)
			continue;
		p->on_gpu = !p->on_gpu;
		p->left_ns += p->on_gpu ? p->gpu_ns : p->own_ns;
		if (!p->on_gpu || ++p->done < p->rounds)
			continue;
		p->ended_ns = now_ns + STEP_NS;
		p->here = false;
		p->member.here[0] = 0;
	}
}

static void begin(struct ckt_quantum *quantum, struct quanta_program *programs, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct quanta_program *p = &programs[i];
		p->member = (struct ckt_quantum_member){.weight = 100};
		p->on_gpu = true;
		p->here = false;
		p->left_ns = p->gpu_ns;
		p->ended_ns = p->longest_wait_ns = p->moves_ns = 0;
		p->done = 0;
		ckt_quantum_add(quantum, &p->member, 0);
	}
}

void quanta_run(struct quanta_program *programs, unsigned count, uint64_t budget_bytes, double rate,
	int64_t max_wait_ns, int64_t end_ns, struct quanta_result *ret_result)
{
	struct ckt_quantum quantum;
	int64_t moving = 0, now = STEP_NS;
	*ret_result = (struct quanta_result){0};
	ckt_quantum_init(&quantum, max_wait_ns);
	begin(&quantum, programs, count);
	for (; now < end_ns && ret_result->finished < count; now += STEP_NS) {
		bool moves = false;
		ret_result->finished = 0;
		for (unsigned i = 0; i < count; i++) {
			wish(&programs[i], now);
			moves |= programs[i].member.leaving || programs[i].member.coming;
			ret_result->finished += programs[i].ended_ns != 0;
		}
		moving += moves ? STEP_NS : 0;
		move(&quantum, programs, count, budget_bytes, rate, now, ret_result);
		decide(&quantum, programs, count, budget_bytes, rate, now);
		ret_result->overfull |= used(programs, count) > budget_bytes;
		work(programs, count, now);
	}
	for (unsigned i = 0; i < count; i++) {
		ret_result->outs += programs[i].member.outs;
		if (programs[i].ended_ns > ret_result->ended_ns)
			ret_result->ended_ns = programs[i].ended_ns;
	}
	ret_result->switching = (double)moving / (double)now;
}
