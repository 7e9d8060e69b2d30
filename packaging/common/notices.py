# SPDX-License-Identifier: Apache-2.0
"""The copyright file of a package: ours, and the notices of all libraries that are in it."""

from common.description import text_file
from common.sbom import contained_in


def copyright_of(description, package, work):
    common, contained = description["common"], contained_in(package)
    parts = [f"{package.name} is part of Cricket.\n\nCopyright: 2026 the authors of Cricket\nLicense: {common['license']}\n\n"
             "On Debian systems, the text of the Apache License, Version 2.0, is in /usr/share/common-licenses/Apache-2.0.\n"]
    for library in sorted({library for each in contained.values() for library in each}, key=lambda library: library.source):
        places = ", ".join(f"/{place}" for place, each in sorted(contained.items()) if library in each)
        with open(library.copyright, encoding="utf-8", errors="replace") as f:
            notice = f.read()
        parts.append(f"\n{'-' * 78}\n{library.source} {library.version} ({library.license}) is contained in {places}.\nIts notice:\n\n{notice.rstrip()}\n")
    return text_file(work, f"{package.name}/copyright", "".join(parts))
