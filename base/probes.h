/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static probes (USDT) of the provider "cricket", for bpftrace, perf and SystemTap; docs/metrics.md
 * lists them.  Each is one instruction that does nothing until a tracer replaces it.  Without
 * <sys/sdt.h> (Debian's systemtap-sdt-dev) there are none.
 *
 * Arguments are numbers and texts that exist anyway: they are computed whether anybody traces or not.
 */
#pragma once

#if defined(__has_include)
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define CKT_HAVE_PROBES 1
#endif
#endif

#ifdef CKT_HAVE_PROBES
#define CKT_PROBE1(name, a) DTRACE_PROBE1(cricket, name, a)
#define CKT_PROBE2(name, a, b) DTRACE_PROBE2(cricket, name, a, b)
#define CKT_PROBE3(name, a, b, c) DTRACE_PROBE3(cricket, name, a, b, c)
#define CKT_PROBE4(name, a, b, c, d) DTRACE_PROBE4(cricket, name, a, b, c, d)
#else
#define CKT_PROBE1(name, a) ((void)(a))
#define CKT_PROBE2(name, a, b) ((void)(a), (void)(b))
#define CKT_PROBE3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#define CKT_PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif
