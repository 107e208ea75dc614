"""Runs rdma-core's Python tests of one module and prints a line of JSON at the start and end of each.

Arguments: the directory that has `tests`, the device, the module, and the names of tests to skip
because they have ended before. A test that starts and does not end has crashed or hangs."""

import json
import os
import sys
import unittest
from importlib.machinery import SourceFileLoader

directory, device, module, done = sys.argv[1], sys.argv[2], sys.argv[3], set(sys.argv[4:])
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # The output of tests goes to standard error.


def say(test, how, why=""):
    out.write(json.dumps([test.id(), how, str(why)]) + "\n")
    out.flush()


class Result(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        say(test, "starts")

    def addSuccess(self, test):
        say(test, "passes")

    def addSkip(self, test, reason):
        say(test, "skipped", reason)

    def addError(self, test, error):
        say(test, "fails", repr(error[1]))

    addFailure = addError

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.addError(test, error)


def leaves(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from leaves(item)
        else:
            yield item


sys.path.insert(0, os.path.join(directory, "tests"))
sys.path.insert(0, directory)
sys.argv[1:] = ["--dev", device]
package = SourceFileLoader("tests", os.path.join(directory, "tests", "__init__.py")).load_module()
package.parser.parse_args()
found = unittest.defaultTestLoader.loadTestsFromName("tests." + module)
unittest.TestSuite(test for test in leaves(found) if test.id() not in done).run(Result())
