# SPDX-License-Identifier: Apache-2.0
"""Where this installation of Cricket is, and its version.  Importing it starts nothing, changes nothing and loads no CUDA."""

import os as _os

__version__ = "@VERSION@"
__all__ = ["bin_directory", "cricket_run", "cricket_server", "cricketctl", "lib_directory", "libexec_directory", "prefix", "share_directory"]


prefix = _os.path.dirname(_os.path.abspath(__file__))
"""The directory that holds bin, lib, libexec and share."""


def _below(*parts):
    return _os.path.join(prefix, *parts)


bin_directory = _below("bin")
lib_directory = _below("lib", "cricket")
libexec_directory = _below("libexec", "cricket")
share_directory = _below("share")
cricket_run = _below("bin", "cricket-run")
cricketctl = _below("bin", "cricketctl")
cricket_server = _below("bin", "cricket-server")
