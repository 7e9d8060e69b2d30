#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The action for forges' CI: valid YAML of a composite action, no expression in a script, and its script installs the wheel.

usage: test_action.py --packages DIR
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import unittest

import wheel

try:
    import yaml
except ImportError:
    print("no module yaml (python3-yaml)")
    sys.exit(wheel.SKIP)

ACTION = os.path.join(wheel.TOP, ".github", "actions", "setup-cricket", "action.yml")
path = None


class Action(unittest.TestCase):
    def setUp(self):
        with open(ACTION, encoding="utf-8") as f:
            self.text = f.read()
        self.action = yaml.safe_load(self.text)
        self.steps = self.action["runs"]["steps"]

    def test_form(self):
        self.assertEqual(set(self.action), {"name", "description", "inputs", "outputs", "runs"})
        self.assertEqual(self.action["runs"]["using"], "composite")
        for entry in [*self.action["inputs"].values(), *self.action["outputs"].values()]:
            self.assertTrue(entry["description"])
        ids = {step.get("id") for step in self.steps}
        for step in self.steps:
            # A composite action's step names its shell.
            self.assertEqual((step["shell"], isinstance(step["run"], str)), ("bash", True))
        for output in self.action["outputs"].values():
            self.assertIn(re.fullmatch(r"\$\{\{ steps\.(\w+)\.outputs\.\w+ \}\}", output["value"])[1], ids)
        # No registry by address: pip's own settings say where packages come from.
        self.assertNotRegex(self.text, r"https?://|--index-url|--extra-index-url")

    def test_inputs(self):
        """Every input is used, by a variable and never in a script's text, where its content would be executed."""
        used = set()
        for step in self.steps:
            self.assertNotIn("${{", step["run"])
            used |= {re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", value)[1] for value in step["env"].values()}
        self.assertEqual(used, set(self.action["inputs"]))

    def test_documented(self):
        with open(os.path.join(wheel.TOP, "docs", "python.md"), encoding="utf-8") as f:
            document = f.read()
        for name in self.action["inputs"]:
            self.assertIn(f"| `{name}` |", document)

    def play(self, directory, **inputs):
        """The script with these inputs and the defaults of others, as a runner executes it."""
        variables = {"GITHUB_OUTPUT": os.path.join(directory, "output"), "GITHUB_PATH": os.path.join(directory, "path")}
        for name in variables.values():
            open(name, "w").close()
        for variable, value in self.steps[0]["env"].items():
            name = re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", value)[1]
            variables[variable] = inputs.get(name, self.action["inputs"][name]["default"])
        return wheel.run("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", self.steps[0]["run"], cwd=directory, **variables)

    def test_installs(self):
        with tempfile.TemporaryDirectory(prefix="ckt-action-") as directory:
            venv = wheel.make_venv(os.path.join(directory, "venv"))
            status, text = self.play(directory, wheel=path, packages="", python=os.path.join(venv, "bin", "python"), version="")
            self.assertEqual(status, 0, text)
            with open(os.path.join(directory, "output"), encoding="utf-8") as f:
                said = dict(line.split("=", 1) for line in f.read().splitlines())
            self.assertEqual(set(said), set(self.action["outputs"]))
            with open(os.path.join(directory, "path"), encoding="utf-8") as f:
                added = f.read().strip()
            done = subprocess.run(["cricket-run", "--version"], capture_output=True, text=True, check=True, env={**wheel.CLEAN, "PATH": added})
            self.assertEqual(done.stdout.split()[1], said["version"])

    def test_hostile_inputs(self):
        with tempfile.TemporaryDirectory(prefix="ckt-action-") as directory:
            for inputs, said in (({"wheel": "nothing.whl"}, "no such file"), ({"wheel": "$(touch ran)"}, "no such file"), ({"version": "1; touch ran"}, "is not a version"),
                                 ({"version": "1 --pre"}, "is not a version"), ({"packages": "pytest --index-url=x"}, "is an option"), ({"packages": "a\n-e ."}, "is an option")):
                status, text = self.play(directory, **inputs)
                self.assertEqual((status, said in text), (1, True), (inputs, text))
            self.assertFalse(os.path.exists(os.path.join(directory, "ran")))


def main():
    global path
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", required=True)
    arguments, rest = parser.parse_known_args()
    path = wheel.find(arguments.packages)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
