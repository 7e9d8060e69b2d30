# SPDX-License-Identifier: Apache-2.0
"""A server of an ordinary user's that has subordinate ids, without a change of the host's /etc/subuid: it gets mounts of its own with another one."""
import ctypes
import os
import shutil

CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x1000, 0x4000, 1 << 18
PLACES = ("/etc/subuid", "/etc/subgid")


def lacking():
    """What this host lacks for that; empty: nothing."""
    if not shutil.which("newuidmap") or not shutil.which("newgidmap"):
        return "no newuidmap; apt-get install uidmap"
    return "".join("no %s" % place for place in PLACES if not os.path.exists(place))[:40]


def become(user, ids):
    """For a child that becomes the server: as this user, with the file ids as /etc/subuid and /etc/subgid."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(what, *arguments):
        if getattr(libc, what)(*arguments):
            raise OSError(ctypes.get_errno(), what)

    call("unshare", CLONE_NEWNS)
    call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
    for place in PLACES:
        call("mount", ids.encode(), place.encode(), None, MS_BIND, None)
    os.setgroups([])
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
