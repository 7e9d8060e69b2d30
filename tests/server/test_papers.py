#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the manual pages say must be what there is."""
import collections
import functools
import json
import os
import re
import shutil
import subprocess
import unittest

SOURCE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")


def read(*path):
    with open(os.path.join(SOURCE, *path)) as f:
        return f.read().replace("\\-", "-")


def output(program, *words):
    return subprocess.run([os.environ[program], *words], capture_output=True, text=True, check=True).stdout


PROGRAMS = ("cricketctl", "cricket-run", "cricket-server")


@functools.cache
def table(program):
    """The program's option table, as completion/describe_options.c prints it."""
    with open(os.path.join(os.environ["CKT_TEST_COMPLETION"], "options.json"), encoding="utf-8") as f:
        return next(entry for entry in json.load(f) if entry["program"] == program)


def names(entries):
    return {entry["name"] for entry in entries}


class Papers(unittest.TestCase):
    def test_options_of_the_server(self):
        page, options = read("docs", "man", "cricket-server.8"), re.findall(r"^  --([a-z-]+)", output("CKT_TEST_SERVER", "--help"), re.M)
        self.assertGreater(len(options), 10)
        for option in options:
            self.assertRegex(page, r"\.(TP\n\.)?(B|BI|BR)\b.*--%s\b" % option)

    def test_entries_of_the_server(self):
        """Page and help have the same options in the same order, with the same words for what they take and the same plain defaults."""
        text = output("CKT_TEST_SERVER", "--help")
        told = re.findall(r"(?m)^  --([a-z-]+)((?: FILE\|journal| [A-Z][A-Z:-]*| ACTION| soft\|auto\|PATH)?) (.*(?:\n {10,}.*)*)", text)
        page = read("docs", "man", "cricket-server.8")
        part = page[page.index(".SH OPTIONS"):page.index(".SH WHO MAY DO WHAT")]
        entries = {}
        for entry in part.split("\n.TP\n")[1:]:
            head, body = entry.split("\n", 1)
            head = re.sub(r"^\.B[IR]* |\\f.|\"", "", head)
            for name in re.findall(r"--([a-z-]+)", head):
                entries[name] = (re.sub(r"--[a-z-]+|,", "", head).split(), body)
        self.assertGreater(len(told), 20)
        self.assertEqual([name for name, _, _ in told], list(entries) if list(entries)[-2:] == ["version", "help"] else None)
        for name, takes, what in told:
            with self.subTest(option=name):
                if name != "on-term":   # the page has the one action that there is
                    self.assertEqual(entries[name][0], takes.split())
                default = re.search(r"\(default (\d+|all|auto|info|cricket)\b", re.sub(r"\s+", " ", what))
                if default:
                    self.assertRegex(entries[name][1], r"\b%s\b" % default.group(1))

    def test_subcommands(self):
        page, text = read("docs", "man", "cricketctl.1"), output("CKT_TEST_CTL", "--help")
        subcommands = re.findall(r"^  ([a-z]+)\b", text, re.M)
        self.assertIn("checkpoint", subcommands)
        for subcommand in subcommands:
            self.assertRegex(page, r"(?m)^\.B(I)? %s\b" % subcommand)
        for option in re.findall(r"--[a-z]+", text):
            self.assertIn(option, page)

    def test_options_of_subcommands(self):
        """Help and manual page of each subcommand name the options that it takes, and no others."""
        everywhere = names(option for option in table("cricketctl")["options"] if option["everywhere"])
        self.assertEqual(everywhere, {"server", "json", "help", "version"})
        page = read("docs", "man", "cricketctl.1")
        # The parts of the page between a subcommand's head and the next; one with --job has a head of its own.
        parts = collections.defaultdict(str)
        for part in re.split(r"\.TP\n\.B[IR]? \"?", page):
            name = re.match(r"\w[\w-]*", part)
            if name:
                parts[name.group()] += part
        for subcommand in table("cricketctl")["subcommands"]:
            wanted = set(subcommand["options"])
            with self.subTest(subcommand=subcommand["name"]):
                text = output("CKT_TEST_CTL", subcommand["name"], "--help")
                self.assertEqual(set(re.findall(r"^  --([a-z-]+)", text, re.M)) - everywhere, wanted)
                # Its first lines are the form of the command, with all of them.
                self.assertEqual(set(re.findall(r"--([a-z-]+)", text[:text.index("\n\n")])) - everywhere, wanted)
                self.assertEqual(wanted - set(re.findall(r"--([a-z-]+)", parts[subcommand["name"]])), set())

    def test_lists_of_options(self):
        """The OPTIONS of each manual page are those of the program's table, with the same words for what they take."""
        for program, page, variable in (("cricketctl", "cricketctl.1", "CKT_TEST_CTL"), ("cricket-run", "cricket-run.1", "CKT_TEST_RUN"),
                                        ("cricket-server", "cricket-server.8", "CKT_TEST_SERVER")):
            with self.subTest(program=program):
                options = [option for option in table(program)["options"] if option["everywhere"]]
                part = read("docs", "man", page).split(".SH OPTIONS\n")[1].split("\n.SH ")[0]
                heads = " ".join(re.findall(r"(?m)^\.TP\n(.*)$", part))
                self.assertEqual(set(re.findall(r"--([a-z-]+)", heads)), names(options))
                told = re.findall(r"(?m)^  (?:-\w, |    )?--([a-z-]+)", output(variable, "--help"))
                self.assertEqual(told, [option["name"] for option in options])

    def test_unknown_options(self):
        for variable, words, said in (("CKT_TEST_CTL", ["ps", "--nonsense"], "unknown option '--nonsense'"), ("CKT_TEST_CTL", ["ps", "--stop"], "--stop is no option of 'ps'"),
                                      ("CKT_TEST_SERVER", ["--nonsense"], "'--nonsense' is no option of cricket-server"),
                                      ("CKT_TEST_RUN", ["--nonsense"], "unrecognized option '--nonsense'"), ("CKT_TEST_RUN", ["-x"], "invalid option -- 'x'")):
            result = subprocess.run([os.environ[variable], *words], capture_output=True, text=True, check=False)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(said, result.stderr)

    def offers(self, *words):
        """What bash offers in place of the last word."""
        script = """. "$1"; shift
                    compopt() { :; }
                    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
                    "$(complete -p "$1" | sed 's/.*-F \\([^ ]*\\).*/\\1/')"
                    printf "%s\\n" "${COMPREPLY[@]}"
                 """
        result = subprocess.run(["bash", "-c", script, "bash", os.path.join(os.environ["CKT_TEST_COMPLETION"], "cricketctl"), *words],
                                capture_output=True, text=True, check=True)
        self.assertEqual(result.stderr, "")
        return set(result.stdout.split())

    def test_bash(self):
        everywhere = {"--" + option["name"] for option in table("cricketctl")["options"] if option["everywhere"]}
        self.assertEqual(self.offers("cricketctl", ""), everywhere | names(table("cricketctl")["subcommands"]))
        for subcommand in table("cricketctl")["subcommands"]:
            self.assertEqual(self.offers("cricketctl", subcommand["name"], "--"), everywhere | {"--" + name for name in subcommand["options"]})
        for program in ("cricket-run", "cricket-server"):
            self.assertEqual(self.offers(program, "--"), {"--" + name for name in names(table(program)["options"])})
        self.assertEqual(self.offers("cricketctl", "image", ""), {"show", "verify", "diff", "flatten", "decrypt", "list", "remove"})
        self.assertEqual(self.offers("cricket-server", "--log-level", "w"), {"warning"})
        # A value is not the subcommand, and what its option takes has no list.
        self.assertEqual(self.offers("cricketctl", "--server", "ps"), set())
        self.assertEqual(self.offers("cricketctl", "--server", "kill", "eve"), {"events"})
        self.assertIn("root", self.offers("cricket-server", "--user", "roo"))

    def test_shells_read_them(self):
        folder = os.environ["CKT_TEST_COMPLETION"]
        for shell, files in (("bash", ["cricketctl"]), ("zsh", ["_cricketctl"]), ("fish", ["cricketctl.fish", "cricket-run.fish", "cricket-server.fish"])):
            for file in files:
                with self.subTest(file=file):
                    with open(os.path.join(folder, file), encoding="utf-8") as f:
                        text = f.read()
                    programs = [file.removesuffix(".fish")] if shell == "fish" else PROGRAMS
                    for program in programs:
                        for name in names(table(program)["options"]):
                            self.assertRegex(text, r"-l %s\b" % name if shell == "fish" else r"--%s\b" % name)
                    if shutil.which(shell):
                        subprocess.run([shell, "-n", os.path.join(folder, file)], check=True)

    def test_what_images_cannot_do(self):
        """As long as a program cannot outlive its worker, every place that offers images says so."""
        for text in (read("README.md"), read("docs", "man", "cricketctl.1"), output("CKT_TEST_CTL", "checkpoint", "--every", "30s", "--help")):
            self.assertRegex(re.sub(r"\s+", " ", text), r"(?i)do not rescue a (running )?program")
            self.assertIn("--every", text)

    def test_variables(self):
        page = read("docs", "man", "cricket.7")
        table = page[page.index(".TS"):page.index(".TE")]
        known = re.findall(r'^\t\{"(CRICKET_\w+)"', read("base", "environment.c"), re.M)
        self.assertGreater(len(known), 5)
        self.assertEqual(sorted(known), sorted(re.findall(r"^(CRICKET_\w+)\t", table, re.M)))

    def test_pages_format(self):
        for page in os.listdir(os.path.join(SOURCE, "docs", "man")):
            text = read("docs", "man", page)
            self.assertRegex(text, r'(?m)^\.TH %s %s' % re.match(r"(.*)\.(.)", page.upper()).groups())


if __name__ == "__main__":
    unittest.main(verbosity=2)
