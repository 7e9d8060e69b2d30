/* SPDX-License-Identifier: Apache-2.0 */
/* The names and texts of errors, sorted by number. */
#pragma once

struct ckt_rt_error_text {
	int number;
	const char *name;
	const char *text;
};
extern const struct ckt_rt_error_text ckt_rt_error_texts[];
extern const unsigned ckt_rt_error_text_count;
