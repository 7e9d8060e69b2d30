#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Distributions build libmicrohttpd with TLS by GnuTLS, which the server would then have to bring along with everything that it needs.
The server never asks libmicrohttpd for TLS, so this writes the functions of GnuTLS that the static library names: its start and its
end, which libmicrohttpd always calls, do nothing; a call of any other ends the process.

	gen_no_tls.py ARCHIVE OUTPUT
"""

import subprocess
import sys

ALWAYS_CALLED = {"gnutls_global_init", "gnutls_global_deinit"}
DATA = {"gnutls_malloc"}


def main():
    archive, output = sys.argv[1:]
    symbols = subprocess.run(["nm", "-u", archive], capture_output=True, text=True, check=True).stdout
    names = sorted({line.split()[-1] for line in symbols.splitlines() if line.split() and line.split()[-1].startswith("gnutls_")})
    with open(output, "w", encoding="utf-8") as f:
        f.write("/* Made by gen_no_tls.py. */\n#include <stdlib.h>\n\n")
        for name in names:
            if name in DATA:
                f.write(f"void *{name} = NULL;\n")
            elif name in ALWAYS_CALLED:
                f.write(f"int {name}(void);\nint {name}(void)\n{{\n\treturn 0;\n}}\n")
            else:
                f.write(f"_Noreturn void {name}(void);\n_Noreturn void {name}(void)\n{{\n\tabort();\n}}\n")


if __name__ == "__main__":
    main()
