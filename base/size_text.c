/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes; see size_text.h. */
#include "base/size_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ckt_size_parse(const char *text, uint64_t *ret_bytes)
{
	static const char units[] = "KMGT";
	char *end;
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno)
		return -ERANGE;
	unsigned shift = 0;
	const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (unit) {
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
		if (*end == 'i' && end[1] == 'B')
			end++;
	}
	if (*end == 'B')
		end++;
	if (*end)
		return -EINVAL;
	if (value > UINT64_MAX >> shift)
		return -ERANGE;
	*ret_bytes = (uint64_t)value << shift;
	return 0;
}
