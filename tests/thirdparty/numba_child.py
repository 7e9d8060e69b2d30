# SPDX-License-Identifier: Apache-2.0
"""Runs tests of Numba in this process and tells each result as a line of JSON on the descriptor $CKT_TEST_CHANNEL.

The parent reads the lines as they come, so that a crash or a hang is laid at the right test.  Arguments: a module or tests
of one, with commas between, then the tests not to run (they were, or they ended an earlier process).
"""

import json
import os
import sys
import unittest

CHANNEL = os.fdopen(int(os.environ["CKT_TEST_CHANNEL"]), "w", buffering=1) if __name__ == "__main__" else None


def tell(what, name, detail=""):
    CHANNEL.write(json.dumps([what, name, detail[-3000:]]) + "\n")


class Result(unittest.TestResult):
    """Tells the parent instead of collecting."""

    def startTest(self, test):
        super().startTest(test)
        tell("start", test.id())

    def addSuccess(self, test):
        tell("pass", test.id())

    def addFailure(self, test, err):
        tell("fail", test.id(), self._exc_info_to_string(err, test))

    def addError(self, test, err):
        if err[0].__name__ == "Skipped":  # pytest's way, which unittest does not know
            tell("skip", test.id(), str(err[1]))
            return
        tell("fail", test.id(), self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        tell("skip", test.id(), reason)

    def addExpectedFailure(self, test, err):
        tell("pass", test.id())

    def addUnexpectedSuccess(self, test):
        tell("fail", test.id(), "passes, though Numba expects it to fail")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            tell("fail", test.id(), self._exc_info_to_string(err, test))


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        else:
            yield test


def main():
    names, done = sys.argv[1], set(sys.argv[2:])
    try:
        suite = unittest.defaultTestLoader.loadTestsFromNames(names.split(","))
    except BaseException as error:  # pytest's Skipped is no Exception
        if type(error).__name__ != "Skipped":
            raise
        tell("skip", names, str(error))
        suite = []
    tests = [test for test in flatten(suite) if test.id() not in done]
    unittest.TestSuite(tests).run(Result())
    tell("end", "")


if __name__ == "__main__":  # tests that start processes import this file again
    main()
