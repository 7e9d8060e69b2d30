/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files by which Python programs see whether a machine has a GPU: /dev/nvidia0 and
 * /dev/nvidiactl.
 *
 * JAX starts CUDA only where os.path.exists finds one of them (jax/_src/hardware_utils.py), and no
 * variable of the environment overrules that.  So Python's calls of the stat family go through
 * ours, which answers for these two names where the machine has none.  Nobody else's calls are
 * touched, and opening the files, or listing /dev, shows what is really there.
 */
#pragma once

#include <sys/stat.h>

#include "client/patch/loaded_object.h"

/* stat() as Python gets it. */
int ckt_preload_files_stat(const char *path, struct stat *ret_status);
/* As programs built with a glibc before 2.33 call it. */
int ckt_preload_files_xstat(int version, const char *path, struct stat *ret_status);
/* Makes the object's calls lead to these; how many places were changed. */
unsigned ckt_preload_files_redirect(const struct ckt_loaded_object *object);
/* The same for Python itself: the program and libpython. */
void ckt_preload_files_redirect_python(void);
