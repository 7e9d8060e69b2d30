/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The patcher's few lines on stderr.  It does not use the library's own log, because this code runs
 * before libc's constructors and must need nothing but libc.  Keeps errno.  Threading:
 * ckt_patch_log_init before anything else; the rest from any thread.
 */
#pragma once

/*
 * Reads CRICKET_LOG from the given environment: debug[:FILE] turns ckt_patch_log_debug on.  And
 * CRICKET_REFUSALS, a file (base/refusal_log.h).  The environment must stay.
 */
void ckt_patch_log_init(char **environment);
void ckt_patch_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Logs a refusal, the name and what is said of it, and adds it to the file of CRICKET_REFUSALS. */
void ckt_patch_log_refusal(const char *name, const char *what);
void ckt_patch_log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
