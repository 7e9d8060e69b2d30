#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is in the packages: no error of lintian's, hardened programs, valid units and bills of materials, and the same files in .deb, .rpm and tarball.

	test_contents.py --packages DIR [--python FILE]

--python is a Python with cyclonedx-python-lib; without one the bills are not compared with CycloneDX's schema.  Exit status 77 without packages.
"""

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "bundle"))
import check  # noqa: E402

sys.path.insert(0, os.path.join(HERE, "..", "..", "packaging"))
from common import description  # noqa: E402

NAMES = ("cricket-server", "cricket-client", "cricketctl", "cricket-soft-gpu", "cricket-dev")
VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
validator = JsonStrictValidator(SchemaVersion.V1_5)
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as f:
        error = validator.validate_str(f.read())
    if error:
        print(f"{path}: {error}")
        sys.exit(1)
"""


def run(*words, check_status=True, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if check_status and done.returncode:
        raise SystemExit(f"{' '.join(words)[:200]}: exit status {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def newest(pattern):
    found = sorted(glob.glob(pattern), key=os.path.getmtime)
    if not found:
        print(f"skipped: no {pattern}; ./run test packages builds it")
        sys.exit(77)
    return found[-1]


def lint(debs):
    """lintian's errors; it has no opinion on a package that was not built from Debian's source."""
    if not shutil.which("lintian"):
        yield "lintian is not installed"
        return
    said = run("lintian", "--allow-root", "--fail-on", "none", "--tag-display-limit", "0", *debs, check_status=False)
    yield from (line for line in said.splitlines() if line.startswith("E: ") or "Can't" in line)


def programs(root):
    """Floor of glibc, libraries, hardening, as the bundle's."""
    seen = 0
    for directory, _, files in os.walk(os.path.join(root, "usr")):
        for name in files:
            path = os.path.join(directory, name)
            if name.startswith(check.FOR_TESTS):
                yield f"{name} is for tests alone"
            if not os.path.islink(path) and not path.endswith(".debug"):
                yield from check.check_file(os.path.join(root, "usr"), path)
                seen += 1
    if seen < 40:
        yield f"only {seen} files were looked at"


def symbols(debs, root):
    """Each program's debugging information is in the package beside it, under its build ID."""
    for deb in debs:
        if "-dbgsym_" in deb:
            run("dpkg-deb", "-x", deb, root)
    for directory, _, files in os.walk(os.path.join(root, "usr")):
        for name in files:
            path = os.path.join(directory, name)
            if os.path.islink(path) or path.endswith(".debug") or open(path, "rb").read(4) != b"\x7fELF":
                continue
            identity = re.search(r"Build ID: (\w+)", run("readelf", "-nW", path)).group(1)
            debug = os.path.join(root, "usr/lib/debug/.build-id", identity[:2], identity[2:] + ".debug")
            if not os.path.exists(debug):
                yield f"{path} has no debugging information"
            elif "debug_info" not in run("readelf", "-SW", debug):
                yield f"{debug} has no .debug_info"
            # Static libraries of the distribution have no debugging information, or a directory of its own build machines.
            elif (own := [place for place in re.findall(r"DW_AT_comp_dir.*: (/\S+)$", run("readelf", "--debug-dump=info", "--dwarf-depth=1", debug), re.M)
                          if not place.startswith(("/usr/src/", "/build/"))]):
                yield f"{debug} names the build's directory: {own[0]}"


def completions(root):
    """zsh of Debian looks for those of packages in a directory of its own; the other shells' have one name everywhere."""
    for path in ("bash-completion/completions/cricketctl", "fish/vendor_completions.d/cricketctl.fish", "zsh/vendor-completions/_cricketctl"):
        if not os.path.exists(os.path.join(root, "usr/share", path)):
            yield f"no /usr/share/{path}"
    if shutil.which("zsh") and "/usr/share/zsh/vendor-completions" not in run("zsh", "-fc", "print -l $fpath").splitlines():
        yield "zsh does not look in /usr/share/zsh/vendor-completions"


def unit(root, scratch):
    """systemd's opinion of the unit, with a program that exists here."""
    source = os.path.join(root, "usr/lib/systemd/system/cricket-server.service")
    with open(source, encoding="utf-8") as f:
        text = f.read()
    if "ExecStart=/usr/bin/cricket-server " not in text or "KillMode=process" not in text:
        yield "the unit does not start /usr/bin/cricket-server, or its stop would end workers"
    if not shutil.which("systemd-analyze"):
        return
    copy = os.path.join(scratch, "cricket-server.service")
    with open(copy, "w", encoding="utf-8") as f:
        f.write(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.M))
    said = run("systemd-analyze", "verify", "--man=no", copy, check_status=False)
    # Before 254 it does not know this one.
    yield from (line for line in said.splitlines() if copy in line and "DelegateSubgroup" not in line)
    for pattern, command in (("sysusers.d", "systemd-sysusers"), ("tmpfiles.d", "systemd-tmpfiles")):
        if not os.path.exists(os.path.join(root, "usr/lib", pattern, "cricket-server.conf")):
            yield f"no {pattern} for {command}"


def bills(paths, python, debs):
    if python:
        said = run(python, "-c", VALIDATE, *paths, check_status=False)
        yield from said.splitlines()
    for path in paths:
        with open(path, encoding="utf-8") as f:
            bill = json.load(f)
        for library in (each for each in bill["components"] if each["type"] == "library"):
            if not library["version"] or not library["licenses"]:
                yield f"{path}: {library['name']} has no version or licence"
    text = "".join(open(path, encoding="utf-8").read() for path in paths)
    for library in ("libtirpc", "jansson", "nettle", "openssl", "libzstd", "lz4", "libinih", "libseccomp", "protobuf-c", "openblas", "xxhash"):
        if f'"library:{library}"' not in text:
            yield f"no bill names {library}"
    if not debs:
        yield "no packages for the bills"


def listed(root):
    found = set()
    for directory, _, files in os.walk(root):
        found.update(os.path.relpath(os.path.join(directory, name), root) for name in files)
    return found


def of_format(path):
    """Files that one format alone has."""
    return re.search(r"/changelog\.gz$|share/lintian/|/copyright$|^usr/lib/debug/|share/doc/\S*-dbgsym$", path)


def rpms(directory, scratch, wanted):
    """Installed below a directory, verified, and erased again.  Scripts are read by the shell only: there is none below the directory."""
    root = os.path.join(scratch, "rpm")
    os.makedirs(root)
    files = [newest(os.path.join(directory, f"{name}-[0-9]*.rpm")) for name in NAMES]
    common = ["rpm", "--root", root, "--dbpath", "/var/lib/rpm", "--nodeps", "--noscripts"]
    run(*common, "-i", "--nosignature", *files)
    found = {path for path in listed(root) if not path.startswith("var/lib/rpm")}
    for path in sorted(found ^ wanted):
        if not of_format(path):
            yield f"only {'.rpm' if path in found else '.deb'} has {path}"
    said = run(*common, "-V", *NAMES, check_status=False)
    yield from (f"rpm -V: {line}" for line in said.splitlines() if not line.startswith("warning"))
    for kind in ("--scripts", "--requires", "--provides"):
        said = run("rpm", "-qp", "--nosignature", kind, *files)
        if kind == "--provides" and "libcuda" in said:
            yield "an .rpm provides libcuda, which is NVIDIA's to provide"
        if kind == "--scripts" and "sysusers" not in said:
            yield "no .rpm makes the user"
    for script in glob.glob(os.path.join(HERE, "../../packaging/rpm/*.p*")):
        run("sh", "-n", script)
    run(*common, "-e", *NAMES)
    left = [path for path in listed(root) if not path.startswith("var/lib/rpm")]
    if left:
        yield f"rpm -e leaves {left}"


def tarball(path, wanted):
    with tarfile.open(path) as tar:
        members = tar.getmembers()
    found = {member.name.split("/", 1)[1] for member in members}
    for place in sorted(wanted):
        inside = re.sub(r"^usr/(share/doc/)[^/]+/", r"\1cricket/", place).removeprefix("usr/")
        if not of_format(place) and not re.match(r"etc/|lib/(sysusers|tmpfiles)\.d/|share/pkgconfig/", inside) and inside not in found:
            yield f"the tarball has no {inside}"
    for member in members:
        if (member.uid, member.gid, member.uname) != (0, 0, "root") or member.name.startswith("/") or ".." in member.name:
            yield f"the tarball's {member.name} belongs to {member.uname}, or is elsewhere"


def maintainer(debs, directory):
    """Whoever builds packages is named in all of them, by one line that is nothing else."""
    common = description.load()["common"]["maintainer"]
    if not re.search(r"@[a-z0-9.-]*\b(example|example\.(com|net|org))>$", common):
        yield f"the maintainer of packages.toml, {common}, may be somebody's address"
    says = {run("dpkg-deb", "-f", deb, "Maintainer").strip() for deb in debs}
    says.add(run("rpm", "-qp", "--nosignature", "--qf", "%{PACKAGER}", newest(os.path.join(directory, "cricketctl-[0-9]*.rpm"))))
    if len(says) != 1 or not description.MAINTAINER.fullmatch(*says):
        yield f"the packages name the maintainers {sorted(says)}"
    for given, good in (("Jané Q. Doe-Roe (packages) <jane+c@example.org>", True), ("jane@example.org", False), ("Jane <jane>", False), (" <a@b>", False),
                        ("Jane <a@b>\nEssential: yes", False), ("Jane\nEssential: yes <a@b>", False), ("%(id) <a@b>", False), ("Jane <a@b> <c@d>", False)):
        os.environ["CRICKET_PACKAGE_MAINTAINER"] = given
        try:
            if description.load()["common"]["maintainer"] != given or not good:
                yield f"CRICKET_PACKAGE_MAINTAINER={given!r} is taken"
        except description.PackagingError as error:
            if good or "CRICKET_PACKAGE_MAINTAINER" not in str(error):
                yield f"CRICKET_PACKAGE_MAINTAINER={given!r}: {error}"
        finally:
            del os.environ["CRICKET_PACKAGE_MAINTAINER"]


def readme(directory):
    """The line of README.md that installs packages takes the programs, and neither debugging information nor protocols."""
    with open(os.path.join(HERE, "..", "..", "README.md"), encoding="utf-8") as f:
        words = re.search(r"apt install (\S+)", f.read()).group(1).replace("build/packages/", "")
    names = {os.path.basename(path).split("_")[0] for path in run("bash", "-c", f"printf '%s\n' {words}", cwd=directory).split()}
    if names != set(NAMES) - {"cricket-dev"}:
        yield f"README.md: apt install {words} takes {sorted(names)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", required=True)
    parser.add_argument("--python")
    args = parser.parse_args()
    os.umask(0o022)
    os.environ.pop("CRICKET_PACKAGE_MAINTAINER", None)
    debs = [newest(os.path.join(args.packages, f"{name}_[0-9]*.deb")) for name in NAMES]
    debs += [newest(os.path.join(args.packages, f"{name}-dbgsym_[0-9]*.deb")) for name in NAMES if name != "cricket-dev"]
    wrong = []
    with tempfile.TemporaryDirectory(prefix="cricket-contents-") as scratch:
        root = os.path.join(scratch, "root")
        for deb in debs[:len(NAMES)]:
            run("dpkg-deb", "-x", deb, root)
        files = listed(root)
        wrong += [*completions(root), *lint(debs), *programs(root), *unit(root, scratch), *bills(sorted(glob.glob(os.path.join(args.packages, "*.cdx.json"))), args.python, debs)]
        files = {path.replace("zsh/vendor-completions/", "zsh/site-functions/") for path in files}
        wrong += [*rpms(args.packages, scratch, files), *tarball(newest(os.path.join(args.packages, "cricket-[0-9]*.tar.xz")), files)]
        wrong += [*symbols(debs, root), *maintainer(debs, args.packages), *readme(args.packages)]
    if wrong:
        print(*wrong, sep="\n")
        return 1
    print(f"{len(debs)} packages, {len(files)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
