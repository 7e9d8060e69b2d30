# SPDX-License-Identifier: Apache-2.0
"""What the programs here print: a name and a hash of the bits, so that runs can be compared line by line."""
import hashlib
import sys


def show(name, *arrays):
    """Arrays: anything that numpy.asarray takes, or a tensor."""
    import numpy
    digest = hashlib.sha256()
    for array in arrays:
        if hasattr(array, "detach"):
            array = array.detach().cpu()
            array = array.float().numpy() if str(array.dtype) == "torch.bfloat16" else array.numpy()
        elif hasattr(array, "get"):
            array = array.get()
        array = numpy.ascontiguousarray(numpy.asarray(array))
        digest.update(str(array.dtype).encode() + str(array.shape).encode() + array.tobytes())
    print(f"{name}: {digest.hexdigest()[:16]}", flush=True)


def need(module):
    """Imports it and says its version, or ends as a test that cannot be run here."""
    try:
        found = __import__(module)
        print(f"{module} {found.__version__}")
        return found
    except ImportError as problem:
        print(f"{module} is not here: {problem}", file=sys.stderr)
        sys.exit(77)
