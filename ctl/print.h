/* SPDX-License-Identifier: Apache-2.0 */
/* What subcommands print: numbers, times, texts of peers, JSON. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

const char *ckt_ctl_state_name(unsigned state);
/* "1.5 GiB", "0 B" */
const char *ckt_ctl_size_text(uint64_t bytes, char *buffer, size_t size);
/* "2026-11-21T04:55:00Z" */
const char *ckt_ctl_time_text(int64_t seconds, char *buffer, size_t size);
/* A peer's text with control characters replaced, because it goes to a terminal. */
const char *ckt_ctl_clean(const char *text, char *buffer, size_t size);
/* JSON strings must be UTF-8; other bytes are replaced. */
json_t *ckt_ctl_json_text(const char *text);
/* Prints and frees; CKT_EXIT_DONE, or CKT_EXIT_REFUSED where stdout is full. */
int ckt_ctl_json_print(json_t *value);
int ckt_ctl_flush(void);
