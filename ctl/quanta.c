/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that the server may swap; see quanta.h. */
#include "ctl/quanta.h"

#include <stdio.h>

#include "ctl/print.h"
#include "rpc/control.h"

static const char *state_name(ckt_control_quantum_state state)
{
	static const char *const names[] = {[CKT_CONTROL_QUANTUM_RUNS] = "runs",
		[CKT_CONTROL_QUANTUM_IDLE] = "idle",
		[CKT_CONTROL_QUANTUM_WAITS] = "waits",
		[CKT_CONTROL_QUANTUM_SWAPPED] = "swapped",
		[CKT_CONTROL_QUANTUM_MOVES] = "moves",
		[CKT_CONTROL_QUANTUM_STAYS] = "stays"};
	return (unsigned)state < sizeof names / sizeof *names ? names[state] : "?";
}

void ckt_ctl_quanta_read(const struct ckt_ctl_args *args, struct ckt_ctl_listing *ret_quanta)
{
	static const struct ckt_ctl_listing_kind kind =
		CKT_CTL_LISTING_KIND(CKT_CONTROL_QUANTA, ckt_control_quanta_res, sessions);
	ckt_ctl_listing_read(args, &kind, ret_quanta);
}

json_t *ckt_ctl_quanta_json(const struct ckt_ctl_listing *quanta, const char *session)
{
	const ckt_control_quantum *one = ckt_ctl_listing_next(quanta, session, NULL);
	if (!one)
		return json_null();
	return json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:o}", "gpu", (int)one->gpu,
		"state", state_name(one->state), "here_bytes", (json_int_t)one->here_bytes,
		"swapped_bytes", (json_int_t)one->swapped_bytes, "wanted_bytes",
		(json_int_t)one->wanted_bytes, "waited_ms", (json_int_t)one->waited_ms, "outs",
		(json_int_t)one->outs, "ins", (json_int_t)one->ins, "switches", (int)one->switches,
		"reason", ckt_ctl_json_text(one->reason));
}

void ckt_ctl_quanta_print(const struct ckt_ctl_listing *quanta, const char *session)
{
	const ckt_control_quantum *one = ckt_ctl_listing_next(quanta, session, NULL);
	char here[32], out[32], reason[CKT_CONTROL_REASON + 1];
	if (!one || (!*one->reason && !one->waited_ms))
		return;
	printf("              memory on GPU %u: %s, %s here, %s swapped out", one->gpu,
		state_name(one->state), ckt_ctl_size_text(one->here_bytes, here, sizeof here),
		ckt_ctl_size_text(one->swapped_bytes, out, sizeof out));
	if (one->waited_ms)
		printf(", waits for %s for %.1f s",
			ckt_ctl_size_text(one->wanted_bytes, here, sizeof here),
			(double)one->waited_ms / 1000);
	printf(", out %llu and in %llu times", (unsigned long long)one->outs,
		(unsigned long long)one->ins);
	if (*one->reason)
		printf(": %s", ckt_ctl_clean(one->reason, reason, sizeof reason));
	printf("\n");
}
