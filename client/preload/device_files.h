/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files by which Python programs detect a GPU: /dev/nvidia0 and /dev/nvidiactl.
 *
 * JAX starts CUDA only if os.path.exists finds one of these files (jax/_src/hardware_utils.py), and
 * no environment variable overrides this check.  So Python's calls of the stat family go through
 * our functions.  These functions report the two files if the machine lacks them.  Calls of other
 * objects do not change.  Opening the files, or listing /dev, shows the real state.
 */
#pragma once

#include <sys/stat.h>

#include "client/patch/loaded_object.h"

/* stat() for Python. */
int ckt_preload_files_stat(const char *path, struct stat *ret_status);
/* The same, as called by programs that were built with a glibc before 2.33. */
int ckt_preload_files_xstat(int version, const char *path, struct stat *ret_status);
/* Redirects the object's calls to these functions; returns the number of changed places. */
unsigned ckt_preload_files_redirect(const struct ckt_loaded_object *object);
/* The same for Python itself: the program and libpython. */
void ckt_preload_files_redirect_python(void);
