#!/usr/bin/python3
"""What the manual pages say must be what there is."""
import collections
import os
import re
import subprocess
import unittest

SOURCE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")


def read(*path):
    with open(os.path.join(SOURCE, *path)) as f:
        return f.read().replace("\\-", "-")


def output(program, *words):
    return subprocess.run([os.environ[program], *words], capture_output=True, text=True, check=True).stdout


class Papers(unittest.TestCase):
    def test_options_of_the_server(self):
        page, options = read("docs", "man", "cricket-server.8"), re.findall(r"^  --([a-z-]+)", output("CKT_TEST_SERVER", "--help"), re.M)
        self.assertGreater(len(options), 10)
        for option in options:
            self.assertRegex(page, r"\.(TP\n\.)?(B|BI|BR)\b.*--%s\b" % option)

    def test_entries_of_the_server(self):
        """Page and help have the same options in the same order, with the same words for what they take and the same plain defaults."""
        text = output("CKT_TEST_SERVER", "--help")
        told = re.findall(r"(?m)^  --([a-z-]+)((?: [A-Z][A-Z:]*| ACTION| soft\|auto\|PATH)?) (.*(?:\n {10,}.*)*)", text)
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
        """Help, manual page and completion of each subcommand name the options that it takes, and no others."""
        table = dict(re.findall(r'^\t\{"([a-z]+)", \d+, \d+, \w+,\s+"([a-z -]*)"', read("ctl", "main.c"), re.M))
        self.assertIn("checkpoint", table)
        everywhere = {"server", "json", "help", "version"}
        page, completion = read("docs", "man", "cricketctl.1"), read("completion", "cricket.bash")
        # The parts of the page between a subcommand's head and the next; one with --job has a head of its own.
        parts = collections.defaultdict(str)
        for part in re.split(r"\.TP\n\.B[IR]? \"?", page):
            if re.match(r"\w+", part):
                parts[re.match(r"\w+", part).group()] += part
        completed = {name: set(re.findall(r"--([a-z-]+)", words)) for name, words in re.findall(r'^\t\t([a-z]+)\) options\+="([^"]*)"', completion, re.M)}
        for name, words in table.items():
            wanted = set(words.split())
            with self.subTest(subcommand=name):
                text = output("CKT_TEST_CTL", name, "--help")
                self.assertEqual(set(re.findall(r"^  --([a-z-]+)", text, re.M)) - everywhere, wanted)
                # Its first lines are the form of the command, with all of them.
                self.assertEqual(set(re.findall(r"--([a-z-]+)", text[:text.index("\n\n")])) - everywhere, wanted)
                self.assertEqual(completed.get(name, set()), wanted)
                self.assertEqual(wanted - set(re.findall(r"--([a-z-]+)", parts[name])), set())
        self.assertEqual(set(completed) - set(table), set())

    def test_options_of_run(self):
        taken = set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", output("CKT_TEST_RUN", "--help"), re.M))
        self.assertGreater(len(taken), 3)
        page, completion = read("docs", "man", "cricket-run.1"), read("completion", "cricket.bash")
        part = completion[completion.index("_cricket_run()"):completion.index("_cricket_server()")]
        self.assertEqual(set(re.findall(r"--([a-z-]+)", part)) | {"server"}, taken | {"server"})
        for option in taken:
            self.assertIn("--" + option, page)

    def test_completion_of_the_server(self):
        options = set(re.findall(r"^  --([a-z-]+)", output("CKT_TEST_SERVER", "--help"), re.M))
        part = read("completion", "cricket.bash")
        part = part[part.index("_cricket_server()"):]
        self.assertEqual(set(re.findall(r"--([a-z-]+)", part[part.index("*) mapfile"):])), options)

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
