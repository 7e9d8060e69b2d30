/* SPDX-License-Identifier: Apache-2.0 */
/* CRIU's messages; see criu_message.h. */
#include "ctl/client/criu_message.h"

#include <errno.h>
#include <stdio.h>

size_t ckt_ctl_criu_request_encode(
	const CktCtlCriu__Request *request, uint8_t *ret_data, size_t size)
{
	size_t needed = ckt_ctl_criu__request__get_packed_size(request);
	return needed <= size ? ckt_ctl_criu__request__pack(request, ret_data) : 0;
}

/* A part of a version, as two decimal digits. */
static unsigned two_digits(int32_t number)
{
	return number < 0 ? 0 : number > 99 ? 99 : (unsigned)number;
}

int ckt_ctl_criu_response_decode(
	const uint8_t *data, size_t size, struct ckt_criu_response *ret_response)
{
	*ret_response = (struct ckt_criu_response){0};
	CktCtlCriu__Response *r = ckt_ctl_criu__response__unpack(NULL, size, data);
	if (!r)
		return -EPROTO;
	ret_response->type = r->type;
	ret_response->success = r->success;
	ret_response->error = r->error;
	if (r->restored)
		ret_response->pid = r->restored->pid;
	if (r->version)
		ret_response->version = two_digits(r->version->major) * 10000 +
			two_digits(r->version->minor) * 100 + two_digits(r->version->sublevel);
	if (r->notice && r->notice->script)
		snprintf(
			ret_response->script, sizeof ret_response->script, "%s", r->notice->script);
	if (r->error_message)
		snprintf(ret_response->message, sizeof ret_response->message, "%s",
			r->error_message);
	ckt_ctl_criu__response__free_unpacked(r, NULL);
	return 0;
}
