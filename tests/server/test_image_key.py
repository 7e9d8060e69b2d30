#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Images for which a key vouches, with real clients, servers and workers: the owner's key, the server's, and everything that somebody may change."""
import contextlib
import json
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from whole import Whole, runner  # noqa: E402

MAC_BYTES = 4 + 8 + 32 + 16 + 4 + 8 + 32 + 32 # of one key, in manifest-mac


class ImageKey(Whole):
    def setUp(self):
        super().setUp()
        self.memory = self.own_memory()

    def path(self, name):
        return os.path.join(self.dir, name)

    def key(self, name="key"):
        runner.cricketctl(self.tree, "image-key", "make", self.path(name))
        return self.path(name)

    def copy(self, image, name):
        """A copy that nobody has restored."""
        shutil.rmtree(self.path(name), ignore_errors=True)
        shutil.copytree(image, self.path(name))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.path(name), "claim.json"))
        return self.path(name)

    def change(self, path, at, by=1):
        with open(path, "r+b") as f:
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ by]))

    def cut(self, path, size):
        os.truncate(path, size)

    def refused(self, server, image, *words, because):
        """The restore is refused with that reason, and nothing was made."""
        code, out, err = self.may_fail(server, "restore", image, *words)
        self.assertEqual((code, out), (1, ""), err)
        self.assertIn(because, err)
        self.assertEqual(runner.sessions_of(self.tree, server), [])
        self.assertEqual(self.stray_workers(server), [])

    def stray_workers(self, server):
        self.wait(lambda: not server.workers())
        return server.workers()

    def test_owner(self):
        """The user's key: the program goes on from an image that was checked."""
        first, second, key = self.server("first"), self.server("second"), self.key()
        self.assertEqual(os.stat(key).st_mode & 0o777, 0o600)
        program, session = self.start(first)
        self.ctl(first, "checkpoint", session, self.path("image"), "--stop", "--image-key", key)
        self.assertEqual(os.path.getsize(self.path("image/manifest-mac")), MAC_BYTES)
        self.ctl(second, "restore", self.path("image"), "--image-key", key)
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_nobody_asks(self):
        """Without a key nothing is as it was not before: no file, no other answer; and an image with a MAC is restored without one."""
        first, second = self.server("first"), self.server("second")
        program, session = self.start(first)
        self.ctl(first, "checkpoint", session, self.path("plain"))
        self.assertEqual([n for n in os.listdir(self.path("plain")) if not n.startswith("data-")], ["manifest"])
        self.ctl(first, "checkpoint", session, self.path("image"), "--stop", "--image-key", self.key())
        self.ctl(second, "restore", self.path("image"))
        self.assertEqual(self.finish(program)[0], self.expected())

    def images(self, server, session, key):
        """Three images of a chain, each with a MAC of its own."""
        names, base = [], []
        for i in range(3):
            names.append(self.path(f"chain{i}"))
            self.ctl(server, "checkpoint", session, names[-1], "--image-key", key, *base)
            base = ["--incremental", names[-1]]
        return names

    def test_changed(self):
        """Whatever is changed, cut, exchanged or left out: refused by name, and the whole image is restored after all of it."""
        first, target, key = self.server("first"), self.server("target"), self.key()
        program, session = self.start(first)
        other = self.path("other")
        self.ctl(first, "checkpoint", session, other, "--image-key", key)
        image = self.path("image")
        self.ctl(first, "checkpoint", session, image, "--stop", "--image-key", key)
        first.kill()
        words = ["--image-key", key]
        size = os.path.getsize(image + "/manifest")
        # Sampled over the header and all tables.
        for at in sorted({0, 4, 8, 15, 20, 51, size - 1} | set(range(52, size, max(1, size // 24)))):
            bad = self.copy(image, "bad")
            self.change(bad + "/manifest", at)
            self.refused(target, bad, *words, because="the manifest was changed since its MAC was made")
        for at in (0, 5, 13, 45, 60, 66, 80, MAC_BYTES - 33, MAC_BYTES - 1):
            bad = self.copy(image, "bad")
            self.change(bad + "/manifest-mac", at)
            self.refused(target, bad, *words, because="manifest-mac is damaged" if at == 0 else
                         "no key given vouches" if at == 5 else "manifest-mac is damaged" if at == 45 else "manifest-mac was changed")
        bad = self.copy(image, "bad")
        self.cut(bad + "/manifest", size - 1)
        self.refused(target, bad, *words, because="the manifest was changed since its MAC was made")
        for left in (0, 1, MAC_BYTES - 1):
            bad = self.copy(image, "bad")
            self.cut(bad + "/manifest-mac", left)
            self.refused(target, bad, *words, because="manifest-mac is damaged")
        bad = self.copy(image, "bad")
        os.unlink(bad + "/manifest-mac")
        self.refused(target, bad, *words, because="no key vouches for the image: it has no manifest-mac: if you trust it, run "
                     "'cricketctl image-key sign DIR --image-key FILE'")
        # A manifest with the MAC of another one, and with another one's data.
        bad = self.copy(image, "bad")
        shutil.copy(other + "/manifest-mac", bad)
        self.refused(target, bad, *words, because="the manifest was changed since its MAC was made")
        data = max((n for n in os.listdir(image) if n.startswith("data-")), key=lambda n: os.path.getsize(os.path.join(image, n)))
        full = os.path.getsize(os.path.join(image, data))
        for at in (0, full // 2, full - 1):
            bad = self.copy(image, "bad")
            self.change(os.path.join(bad, data), at)
            self.refused(target, bad, *words, because="the image is damaged")
        bad = self.copy(image, "bad")
        self.cut(os.path.join(bad, data), full - 1)
        self.refused(target, bad, *words, because=data + " is missing or its size differs")
        self.ctl(target, "restore", image, *words)
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_keys(self):
        """Files of keys, and which of several counts."""
        first, target = self.server("first"), self.server("target")
        old, new, third = self.key("old"), self.key("new"), self.key("third")
        program, session = self.start(first)
        image = self.path("image")
        self.ctl(first, "checkpoint", session, image, "--stop", "--image-key", old)
        self.refused(target, image, "--image-key", new, because="give that key with --image-key")
        shown = json.loads(runner.cricketctl(self.tree, "image-key", "show", old, "--json"))["key"]
        self.refused(target, image, "--image-key", new, because=f"it has a MAC by key {shown}, not by key ")
        os.chmod(old, 0o640)
        self.refused(target, image, "--image-key", old, because="others may read it")
        os.chmod(old, 0o600)
        for text in (b"", b"\n", bytes(31), bytes(33), b"0" * 63, b"0" * 65, b"g" * 64, b"A" * 64, b"0" * 64 + b"\n\n"):
            with open(third, "wb") as f:
                f.write(text)
            self.refused(target, image, "--image-key", third, because="it holds no key of 32 bytes")
        os.unlink(third)
        self.refused(target, image, "--image-key", third, because="No such file")
        code, _, err = self.may_fail(target, "image-key", "make", old)
        self.assertEqual(code, 1)
        self.assertIn("exists", err)
        # The bytes themselves are the same key as their digits.
        with open(old, encoding="ascii") as f:
            raw = bytes.fromhex(f.read())
        with open(third, "wb") as f:
            f.write(raw)
        os.chmod(third, 0o600)
        # Several: the new one writes, the old one still reads.
        self.ctl(target, "restore", image, "--image-key", new, "--image-key", third)
        self.ctl(target, "checkpoint", session, self.path("next"), "--stop", "--image-key", new, "--image-key", old)
        self.refused(target, self.path("next"), "--image-key", old, because="no key given vouches")
        self.ctl(target, "restore", self.path("next"), "--image-key", old, "--image-key", new)
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_chain(self):
        """A chain: the newest image's MAC covers the data files of those before it, whatever keys they have; an older image is an image."""
        first, target, key, another = self.server("first"), self.server("target"), self.key(), self.key("another")
        program, session = self.start(first)
        names = self.images(first, session, key)
        last = self.path("last")
        self.ctl(first, "checkpoint", session, last, "--stop", "--image-key", another, "--incremental", names[-1])
        words = ["--image-key", another]
        self.assertTrue(json.loads(runner.cricketctl(self.tree, "image", "show", last, "--json"))["ancestors"])
        base = next(n for n in reversed(names) if any(f.startswith("data-") and os.path.getsize(os.path.join(n, f)) for f in os.listdir(n)))
        data = max((f for f in os.listdir(base) if f.startswith("data-")), key=lambda f: os.path.getsize(os.path.join(base, f)))
        middle = os.path.getsize(os.path.join(base, data)) // 2
        self.change(os.path.join(base, data), middle)
        self.refused(target, last, *words, because="the image is damaged")
        self.change(os.path.join(base, data), middle)
        # The manifest of an ancestor is not used: only its id leads there.
        os.unlink(base + "/manifest-mac")
        # The key of the older ones does not vouch for the newest.
        self.refused(target, last, "--image-key", key, because="no key given vouches")
        # An older one in its place is what its key says of it: the user chose the directory.  The client refuses it where it is behind.
        self.ctl(target, "restore", last, *words)
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_server(self):
        """The server's key: it vouches for what it saves, and restores nothing else; over both kinds of connection."""
        key, old = self.key(), self.key("old")
        plain, first = self.server("plain-server"), self.server("first", "--image-key", old)
        stranger = self.server("stranger", "--image-key", self.key("stranger-key"))
        program, session = self.start(first)
        image = self.path("image")
        self.ctl(first, "checkpoint", session, image, "--stop")
        second = self.server("second", "--image-key", key, "--image-key", old)
        self.assertEqual(os.path.getsize(image + "/manifest-mac"), MAC_BYTES)
        self.refused(stranger, image, because="no key given vouches for the image")
        bad = self.copy(image, "bad")
        self.change(bad + "/manifest", 400)
        # The server's word is about another manifest, which the worker notices before it reads it.
        self.refused(second, bad, because="the manifest was changed since its MAC was made")
        self.refused(second, bad, because="the image is damaged")
        bad = self.copy(image, "bad")
        os.unlink(bad + "/manifest-mac")
        self.refused(second, bad, because="no key vouches for the image")
        self.refused(second, self.copy(image, "bad"), "--image-key", key, because="no key given vouches")
        self.ctl(second, "restore", image)
        self.ctl(second, "checkpoint", session, self.path("last"), "--stop")
        # A server without a key restores it as any image.
        self.ctl(plain, "restore", self.path("last"))
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_from_elsewhere(self):
        """Over the network: the server's key and the user's vouch together, and each is asked."""
        runner.cricketctl(self.tree, "token", "add", "chief", "--role", "administrator", "--tokens", self.tokens)
        token = self.token("alice")
        with open(self.tokens, encoding="utf-8") as f:
            text = f.read()
        with open(self.tokens, "w", encoding="utf-8") as f:
            f.write(text.replace("roles = user", "roles = administrator"))
        server = self.server("first", "--image-key", self.key(), "--tokens", self.tokens)
        os.environ["CRICKET_TOKEN_FILE"] = token
        self.addCleanup(os.environ.pop, "CRICKET_TOKEN_FILE", None)
        program, session = self.start(server, CRICKET_TOKEN_FILE=token)
        for name in ("far", "near"):
            image, own = self.path("image-" + name), self.key("own-" + name)
            with self.far(server, name == "far"):
                self.ctl(server, "checkpoint", session, image, "--stop", "--image-key", own)
                self.assertEqual(os.path.getsize(image + "/manifest-mac"), 2 * MAC_BYTES)
                bad = self.copy(image, "bad")
                self.change(bad + "/manifest", 400)
                self.refused(server, bad, because="the manifest was changed since its MAC was made")
                self.refused(server, bad, "--image-key", own, because="the manifest was changed since its MAC was made")
                os.unlink(bad + "/manifest-mac")
                self.refused(server, bad, because="no key vouches for the image")
                self.ctl(server, "restore", image, "--image-key", own)
            self.wait(lambda: self.state(server, session) == "running")
        self.go()
        code, out, err = program.wait(60)
        self.assertEqual((code, out), (0, self.expected()), err)

    @contextlib.contextmanager
    def far(self, server, is_far):
        """cricketctl does not find the server's UNIX socket: as from another host."""
        if is_far:
            os.rename(server.socket, server.socket + ".hidden")
        try:
            yield
        finally:
            if is_far:
                os.rename(server.socket + ".hidden", server.socket)

    def test_sign(self):
        """An image from before the key: its user vouches for it."""
        key = self.key()
        first, second = self.server("first"), self.server("second", "--image-key", key)
        program, session = self.start(first)
        image = self.path("image")
        self.ctl(first, "checkpoint", session, image, "--stop")
        self.refused(second, image, because="no key vouches for the image")
        code, _, err = self.may_fail(second, "image-key", "sign", image)
        self.assertEqual(code, 2, err)
        runner.cricketctl(self.tree, "image-key", "sign", image, "--image-key", key)
        self.ctl(second, "restore", image)
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_server_side(self):
        """What stays at the server, and what it writes by itself at SIGTERM."""
        options = ["--image-key", "server-key", "--image-dir", self.path("kept"), "--on-term", "checkpoint:" + self.path("term")]
        first = self.server("first", *options)
        program, session = self.start(first)
        self.ctl(first, "checkpoint", session, "--server-side", "mine", "--stop")
        self.assertTrue(os.path.exists(self.path("kept/mine/manifest-mac")))
        mac = self.path("kept/mine/manifest-mac")
        self.change(mac, MAC_BYTES - 1)
        code, _, err = self.may_fail(first, "restore", "--server-side", "mine")
        self.assertEqual(code, 1)
        self.assertIn("manifest-mac was changed", err)
        self.change(mac, MAC_BYTES - 1)
        self.ctl(first, "restore", "--server-side", "mine")
        self.wait(lambda: self.state(first, session) == "running")
        self.ctl(first, "checkpoint", session, "--to-memory", "m", "--stop")
        self.ctl(first, "restore", "memory:m")
        self.wait(lambda: self.state(first, session) == "running")
        first.process.terminate()
        first.process.wait(60)
        self.assertTrue(os.path.exists(self.path("term/" + session + "/manifest-mac")))
        second = self.server("first", *options)
        self.ctl(second, "restore", self.path("term/" + session))
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_encrypted(self):
        """Nothing of the session is in the files; the key opens them, from near and far, and only the key does."""
        first, target, key = self.server("first"), self.server("target", "--image-key", self.key("servers")), self.key()
        program, session = self.start(first)
        image, plain = self.path("image"), self.path("plain")
        for words in (("--encrypt",), ("--encrypt", "--image-key", key, "--incremental", image), ("--encrypt", "--image-key", key, "--every", "9s")):
            code, _, err = self.may_fail(first, "checkpoint", session, image, *words)
            self.assertEqual(code, 2, err)
        self.ctl(first, "checkpoint", session, plain)
        self.ctl(first, "checkpoint", session, self.path("image2"), "--image-key", key, "--encrypt")
        self.ctl(first, "checkpoint", session, image, "--stop", "--image-key", key, "--encrypt")
        with open(plain + "/manifest", "rb") as f:
            self.assertIn(session.encode(), f.read())
        for name in os.listdir(image):
            with open(os.path.join(image, name), "rb") as f:
                data = f.read()
            self.assertEqual(data[:4], b"CkE1")
            self.assertNotIn(session.encode(), data)
            self.assertNotIn(b"nbody", data)
        self.assertEqual(os.listdir(self.memory), [])
        second = self.server("second")
        self.refused(second, image, because="is encrypted: give its key with --image-key")
        self.refused(second, image, "--image-key", self.key("another"), because="it is encrypted with key ")
        for change in ("manifest", "manifest-mac", "data-0"):
            bad = self.copy(image, "bad")
            self.change(os.path.join(bad, change), os.path.getsize(os.path.join(bad, change)) // 2)
            self.refused(second, bad, "--image-key", key, because=change + ": it was changed since it was encrypted")
            # A file of another image with the same key.
            bad = self.copy(image, "bad")
            shutil.copy(os.path.join(self.path("image2"), change), bad)
            self.refused(second, bad, "--image-key", key, because="it was changed since it was encrypted")
            bad = self.copy(image, "bad")
            os.unlink(os.path.join(bad, change))
            self.refused(second, bad, "--image-key", key, because="manifest" if change != "data-0" else "data-0 is missing")
        code, _, err = self.may_fail(second, "image", "show", image)
        self.assertEqual(code, 1)
        self.assertIn("cricketctl image decrypt DIR NEW --image-key FILE", err)
        runner.cricketctl(self.tree, "image", "decrypt", image, self.path("open"), "--image-key", key)
        self.assertTrue(self.image_is_whole(self.path("open")))
        # A key of the server's that did not vouch does not now either.
        self.refused(target, image, "--image-key", key, because="no key given vouches")
        self.ctl(second, "restore", image, "--image-key", key)
        self.assertIn("claim.json", os.listdir(image))
        self.refused_while_there(self.server("third"), image, key)
        self.assertEqual(self.finish(program)[0], self.expected())
        self.assertEqual(os.listdir(self.memory), [])

    def refused_while_there(self, server, image, key):
        code, _, err = self.may_fail(server, "restore", image, "--image-key", key)
        self.assertEqual(code, 1)
        self.assertIn("and goes on there", err)

    def test_job(self):
        """Each session of a job has a MAC of its own, and one that was changed keeps all of them away."""
        first, target, key = self.server("first"), self.server("target"), self.key()
        program, session = self.start(first, CRICKET_JOB="train")
        image = self.path("image")
        self.ctl(first, "checkpoint", "--job", "train", image, "--stop", "--image-key", key)
        self.assertEqual(os.path.getsize(os.path.join(image, session, "manifest-mac")), MAC_BYTES)
        bad = self.copy(image, "bad")
        self.change(os.path.join(bad, session, "manifest"), 60)
        code, _, err = self.may_fail(target, "restore", "--job", bad, "--image-key", key)
        self.assertEqual(code, 1)
        self.assertIn("the manifest was changed since its MAC was made", err)
        self.assertEqual(runner.sessions_of(self.tree, target), [])
        self.ctl(target, "restore", "--job", image, "--image-key", key)
        self.assertTrue(os.path.exists(os.path.join(image, session, "claim.json")))
        self.assertEqual(self.finish(program)[0], self.expected())

    def test_migrate(self):
        """Between servers with one key; and not to a server with another, where the session stays."""
        key = self.key()
        first, second = self.server("first", "--image-key", key), self.server("second", "--image-key", key)
        third = self.server("third", "--image-key", self.key("third-key"))
        program, session = self.start(first)
        code, _, err = self.may_fail(first, "migrate", session, "--to", third.address)
        self.assertEqual(code, 1)
        self.assertIn("no key given vouches", err)
        # A worker that stands still is listed as it was known last: held.
        self.wait(lambda: self.state(first, session) == "running")
        self.ctl(first, "migrate", session, "--to", second.address, "--image-key", self.key("own"))
        self.assertEqual(self.finish(program)[0], self.expected())


if __name__ == "__main__":
    unittest.main(verbosity=2)
