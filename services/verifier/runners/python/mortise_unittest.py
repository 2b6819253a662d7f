"""Reports every result of a run of unittest's text runner, Django's among them, on the channel.

Installed before any graded code is loaded. Only the outermost run counts: projects test runners of their own inside
their tests. Two canaries, one that passes and one that fails, are run with the run's own result class around the
tests, hidden from its output: whatever makes failing tests pass makes the second pass too.
"""
import os
import unittest


class _Run(object):
    def __init__(self):
        self.depth = 0
        self.result = None
        self.collected = 0
        self.is_counted = True
        self.is_successful = True


_OUTCOMES = {
    "addSuccess": "passed",
    "addFailure": "failed",
    "addError": "error",
    "addSkip": "skipped",
    "addExpectedFailure": "xfailed",
    "addUnexpectedSuccess": "xpassed",
}


def _canary(neighbour, name, passes):
    """A test that looks like one of the module its neighbour is in."""

    def body(self):
        self.assertEqual(1 + 1, 2 if passes else 3)

    body.__name__ = name
    kind = type(neighbour) if neighbour is not None else unittest.TestCase
    attributes = {name: body, "__module__": kind.__module__}
    return type(kind.__name__, (unittest.TestCase,), attributes)(name)


def _first(tests):
    for test in tests if isinstance(tests, unittest.TestSuite) else [tests]:
        found = _first(test) if isinstance(test, unittest.TestSuite) else test
        if found is not None:
            return found
    return None


def _try(runner, make_result, test):
    """How a test ends with the results of this run, without a word of it in the output."""
    stream = runner.stream
    with open(os.devnull, "w") as nowhere:
        runner.stream = type(stream)(nowhere)
        try:
            result = make_result()
            test.run(result)
        finally:
            runner.stream = stream
    if result.failures or result.errors:
        return "failed"
    return "passed" if result.testsRun == 1 and result.wasSuccessful() else "silent"


def install(send, wish):
    run = _Run()
    first, last = wish["canaries"]
    send({"start": True, "runner": "unittest"})

    def note(result, test, outcome):
        if result is not run.result:
            return
        if not hasattr(test, "_testMethodName"):
            # A class or module as a whole: its tests have no results of their own.
            run.is_counted = False
        describe = getattr(result, "getDescription", str)
        send({"nodeid": describe(test), "phase": "call", "outcome": outcome})

    def reporting(name, outcome):
        original = getattr(unittest.TestResult, name)

        def report(self, test, *rest):
            note(self, test, outcome)
            return original(self, test, *rest)

        setattr(unittest.TestResult, name, report)

    for name, outcome in _OUTCOMES.items():
        reporting(name, outcome)

    if hasattr(unittest.TestResult, "addSubTest"):
        add_sub_test = unittest.TestResult.addSubTest

        def report_sub_test(self, test, subtest, err):
            if err is not None:
                note(self, test, "failed" if issubclass(err[0], test.failureException) else "error")
            return add_sub_test(self, test, subtest, err)

        unittest.TestResult.addSubTest = report_sub_test

    original_run = unittest.TextTestRunner.run

    def run_tests(self, test):
        if run.depth > 0:
            return original_run(self, test)
        run.depth += 1
        make_result = self._makeResult

        def kept():
            run.result = make_result()
            return run.result

        self._makeResult = kept
        try:
            run.collected += test.countTestCases()
            neighbour = _first(test)
            send({"canary": "pass", "outcome": _try(self, make_result, _canary(neighbour, first, True))})
            result = original_run(self, test)
            send({"canary": "fail", "outcome": _try(self, make_result, _canary(neighbour, last, False))})
            run.is_successful = run.is_successful and result.wasSuccessful()
            send(
                {
                    "finish": True,
                    "exitstatus": 0 if run.is_successful else 1,
                    "collected": run.collected if run.is_counted else None,
                }
            )
            return result
        finally:
            del self._makeResult
            run.result = None
            run.depth -= 1

    unittest.TextTestRunner.run = run_tests
