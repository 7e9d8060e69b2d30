/* SPDX-License-Identifier: Apache-2.0 */
/* Shares, swapped memory and waits in numbers; see watched.h. */
#include "ctl/watched.h"

#include <stdint.h>

#include "rpc/control.h"

void ckt_ctl_watched_read(const struct ckt_ctl_args *args, struct ckt_ctl_listing *ret_watched)
{
	static const struct ckt_ctl_listing_kind kind =
		CKT_CTL_LISTING_KIND(CKT_CONTROL_WATCH, ckt_control_watch_res, sessions);
	ckt_ctl_listing_read(args, &kind, ret_watched);
}

static json_t *count_or_null(const ckt_control_watched *known, int64_t count)
{
	return !known || count < 0 ? json_null() : json_integer(count);
}

void ckt_ctl_watched_json(
	const struct ckt_ctl_listing *watched, const char *session, json_t *object)
{
	const ckt_control_watched *one = ckt_ctl_listing_next(watched, session, NULL);
	json_object_set_new(object, "share_percent",
		!one || one->share_permille < 0 ? json_null()
						: json_real(one->share_permille / 10.0));
	json_object_set_new(
		object, "swapped_bytes", count_or_null(one, one ? one->swapped_bytes : -1));
	json_object_set_new(object, "waiting_ms", count_or_null(one, one ? one->waiting_ms : -1));
	json_object_set_new(object, "switches", count_or_null(one, one ? one->switches : -1));
}
