"""Reports every result of a pytest session on a descriptor that only the verifier reads.

Loaded with ``-p`` before any conftest or test module. The first line of a second descriptor, read and closed here
before graded code exists, holds the nonce every record must carry. Two canaries, one that passes and one that fails,
run among the repository's own tests, hidden from its terminal output and exit status: whatever makes failing tests
pass makes the second pass too.

Written for Python 2.7 and 3 and for pytest from 3.6 on. A worker of pytest-xdist has no channel: its controller reports.
"""
import os

import pytest
from mortise_pipe import open_pipe, without


def _open():
    options = os.environ.get("PYTEST_ADDOPTS", "")
    os.environ["PYTEST_ADDOPTS"] = options.replace("-p mortise_channel", "", 1).strip()
    without("PYTEST_ADDOPTS", "\0", ())
    return open_pipe()


_SEND, _WISH = _open()


def _must_pass():
    assert 1 + 1 == 2


def _must_fail():
    raise AssertionError("a canary")


def _canary(neighbour, name, function):
    """A test in the module of a real one, so that it is treated as the repository treats its own."""
    module = neighbour.getparent(pytest.Module)
    if module is None:
        return None

    def canary():
        function()

    canary.__name__ = name
    if hasattr(pytest.Function, "from_parent"):
        return pytest.Function.from_parent(module, name=name, callobj=canary)
    return pytest.Function(name, parent=module, callobj=canary)


def _outcome(report):
    """One word for a report that says something, else None."""
    expected = hasattr(report, "wasxfail")
    if report.outcome == "failed":
        return "failed" if report.when == "call" else "error"
    if report.outcome == "skipped":
        return "xfailed" if expected else "skipped"
    if report.outcome == "passed":
        if report.when != "call":
            return None
        return "xpassed" if expected else "passed"
    return str(report.outcome)


class _Reporter(object):
    # What would make a canary visible: its report goes to every other plugin.
    SILENT = ("terminalreporter", "session", "lfplugin", "nfplugin", "stepwiseplugin", "junitxml", "dsession")

    def __init__(self, send, names):
        self._send = send
        self._names = names
        self._canaries = {}
        self._raised = {}
        self._selected = None
        send({"start": True, "pytest": pytest.__version__})

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, config, items):
        yield
        self._selected = len(items)
        if not items or config.getoption("collectonly", False):
            return
        try:
            first = _canary(items[0], self._names[0], _must_pass)
            last = _canary(items[-1], self._names[1], _must_fail)
        except Exception:  # A pytest that makes tests in another way has no canaries.
            return
        if first is not None and last is not None:
            self._canaries = {first: "pass", last: "fail"}
            items.insert(0, first)
            items.append(last)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        # The share of tests that are done, as the terminal shows it, is of the repository's own.
        session.testscollected -= len(self._canaries)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        kind = self._canaries.get(item)
        if kind is None:
            return None
        from _pytest.runner import runtestprotocol

        manager = item.config.pluginmanager
        silent = [manager.get_plugin(name) for name in self.SILENT] + [self, item.session]
        silent += [plugin for plugin in manager.get_plugins() if type(plugin).__name__ == "LogXML"]
        report_to = manager.subset_hook_caller(
            "pytest_runtest_logreport", [plugin for plugin in silent if plugin is not None]
        )
        outcomes = []
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            report_to(report=report)
            outcomes.append(_outcome(report))
        said = [outcome for outcome in outcomes if outcome is not None]
        worst = [outcome for outcome in said if outcome != "passed"]
        self._send({"canary": kind, "outcome": (worst or said or ["silent"])[0]})
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        if call.when == "call" and item not in self._canaries:
            skips = (pytest.skip.Exception, pytest.xfail.Exception)
            self._raised[item.nodeid] = call.excinfo is not None and not isinstance(call.excinfo.value, skips)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        outcome = _outcome(report)
        if outcome is None:
            return
        record = {"nodeid": report.nodeid, "phase": report.when, "outcome": outcome}
        if outcome == "passed" and self._raised.pop(report.nodeid, False):
            record["raised"] = True
        self._send(record)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report):
        if report.failed:
            self._send({"nodeid": report.nodeid, "phase": "collect", "outcome": "error"})

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session, exitstatus):
        self._send({"finish": True, "exitstatus": int(exitstatus), "collected": self._selected})


def pytest_configure(config):
    if _SEND is not None:
        config.pluginmanager.register(_Reporter(_SEND, _WISH["canaries"]), "mortise-channel")
