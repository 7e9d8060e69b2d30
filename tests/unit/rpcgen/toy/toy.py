#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""toy.py GENERATOR ARGUMENT...: generate.py, with a library that it does not have: an entry as library.py's, and nothing else, makes it known."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(sys.argv.pop(1)))

import generate  # noqa: E402
import library  # noqa: E402

KINDS = library.SCALARS + ("toy_handle", "opaque", "string", "u32s", "u64s")
library.LIBRARIES["toy"] = library.Library(
    name="toy", prefix="toy", soname="libtoy.so.1", includes=("toy.h",), result="toyStatus_t", handles={"toyHandle_t": "toy_handle"},
    argument_kinds=KINDS, result_kinds=KINDS, modes=("waits", "batched"), rules=("local", "unsupported"), title="toy", program=0x20434bff,
    codec_includes=("tests/unit/rpcgen/toy/toy.h",), enumerators="CKT_TOY_PROC")
generate.OUTPUTS["toy"] = {**generate.message_outputs("toy"), "toy.map": generate.emit_client.version_script}

sys.exit(generate.main())
