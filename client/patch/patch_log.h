/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The patcher's few lines on stderr.  It does not use the library's own log, because this code runs
 * before libc's constructors and must need nothing but libc.  Keeps errno.  Threading:
 * ckt_patch_log_init before anything else; the rest from any thread.
 */
#pragma once

/* Reads CRICKET_LOG from the given environment: debug[:FILE] turns ckt_patch_log_debug on. */
void ckt_patch_log_init(char **environment);
void ckt_patch_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
void ckt_patch_log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
