# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of a package, as CycloneDX 1.5 in JSON: our files with their hashes, and the libraries linked into them."""

import hashlib
import json
import os
import uuid
from datetime import datetime, timezone

from common.contents import libraries
from common.description import epoch, version


def file_component(place, source):
    with open(source, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    return {"type": "file", "bom-ref": f"file:/{place}", "name": f"/{place}", "hashes": [{"alg": "SHA-256", "content": digest}]}


def library_component(library):
    # SPDX expressions and single identifiers have different forms.
    license_form = {"expression": library.license} if " " in library.license else {"license": {"id": library.license}}
    url = f"pkg:deb/debian/{library.package}@{library.version.replace('+', '%2B').replace(':', '%3A')}?arch=amd64"
    return {"type": "library", "bom-ref": f"library:{library.source}", "name": library.source, "version": library.version, "purl": url,
            "licenses": [license_form], "properties": [{"name": "cricket:linkage", "value": "static"}]}


def contained_in(package):
    """{place in the package: libraries}"""
    linked = libraries()
    found = {}
    for place, (_, mode) in package.files.items():
        if mode is not None and linked.get(place.removeprefix("usr/")):
            found[place] = linked[place.removeprefix("usr/")]
    return found


def document(description, package):
    """The bill of a package, as text.  The same package gives the same text: its serial number is drawn from its contents."""
    common, contained = description["common"], contained_in(package)
    used = sorted({library for each in contained.values() for library in each}, key=lambda library: library.source)
    components = [file_component(place, source) for place, (source, mode) in sorted(package.files.items()) if mode is not None]
    components += [library_component(library) for library in used]
    top = {"type": "application", "bom-ref": package.name, "name": package.name, "version": version(), "description": package.about["summary"],
           "licenses": [{"license": {"id": common["license"]}}]}
    ours = [component["bom-ref"] for component in components if component["type"] == "file"]
    dependencies = [{"ref": package.name, "dependsOn": ours}]
    dependencies += [{"ref": f"file:/{place}", "dependsOn": [f"library:{library.source}" for library in each]} for place, each in sorted(contained.items())]
    when = datetime.fromtimestamp(epoch(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"timestamp": when, "component": top},
            "components": components, "dependencies": dependencies}
    digest = hashlib.sha256(json.dumps(bill, sort_keys=True).encode()).hexdigest()
    bill["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}"
    return json.dumps(bill, indent=1, sort_keys=True) + "\n"


def write(description, packages, out, suffix):
    """One file for each package beside the packages; their paths."""
    for package in packages:
        path = os.path.join(out, f"{package.name}{suffix}.cdx.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(document(description, package))
        yield path
