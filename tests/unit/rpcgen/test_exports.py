# SPDX-License-Identifier: Apache-2.0
"""test_exports.py LIBRARY MAP: the built libcuda.so.1 exports exactly the names of the generated version script: CUDA's, and what our other
libraries use of it (library.py, private)."""

import re
import subprocess
import sys


def main():
    library, version_script = sys.argv[1:]
    with open(version_script, encoding="utf-8") as f:
        wanted = set(re.findall(r"^\t(\w+);", f.read(), re.M))
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout.splitlines()
    exported = {line.split()[-1].split("@")[0] for line in lines}
    for name in sorted(wanted - exported):
        print(f"{name} is nowhere defined: write it in client/cuda, or change its line in rpc/api/cuda.api", file=sys.stderr)
    for name in sorted(exported - wanted):
        print(f"{name} is exported and no function of the driver API", file=sys.stderr)
    return 0 if wanted and wanted == exported else 1


if __name__ == "__main__":
    sys.exit(main())
