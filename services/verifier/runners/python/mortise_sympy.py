"""Reports what SymPy's own runner tells its reporter, on the channel.

The runner is part of the repository. It is watched as it is loaded: the methods by which it reports are wrapped before
any test file is read. There are no canaries: it makes tests of nothing but files.
"""
import sys

MODULES = ("sympy.testing.runtests", "sympy.utilities.runtests")
_OUTCOMES = {
    "test_pass": "passed",
    "test_fail": "failed",
    "test_exception": "error",
    "test_xfail": "xfailed",
    "test_xpass": "xpassed",
    "test_skip": "skipped",
}


class _Watch(object):
    """A finder that lets the others find, and looks at the module they made."""

    def __init__(self, seen):
        self._seen = seen

    def find_spec(self, name, path=None, target=None):
        if name not in MODULES:
            return None
        sys.meta_path.remove(self)
        try:
            from importlib.util import find_spec

            spec = find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def watched(module):
            load(module)
            self._seen(module)

        spec.loader.exec_module = watched
        return spec


def install(send, wish):
    state = {"current": None, "passed": True, "count": 0}
    send({"start": True, "runner": "sympy"})

    def wrap(kind, name, told):
        original = getattr(kind, name)

        def method(self, *arguments, **options):
            told(self, arguments)
            return original(self, *arguments, **options)

        setattr(kind, name, method)

    def entering(_, arguments):
        state["current"] = getattr(arguments[0], "__name__", str(arguments[0]))
        state["count"] += 1

    def reporting(outcome):
        def told(_, __):
            if outcome in ("failed", "error"):
                state["passed"] = False
            send({"nodeid": str(state["current"]), "phase": "call", "outcome": outcome})

        return told

    def seen(module):
        kind = getattr(module, "PyTestReporter", None)
        if kind is None or getattr(kind, "_mortise", False):
            return
        kind._mortise = True
        wrap(kind, "entering_test", entering)
        for name, outcome in _OUTCOMES.items():
            if hasattr(kind, name):
                wrap(kind, name, reporting(outcome))
        finish = kind.finish

        def finished(self):
            ended = finish(self)
            send({"finish": True, "exitstatus": 0 if state["passed"] else 1, "collected": state["count"]})
            return ended

        kind.finish = finished

    sys.meta_path.insert(0, _Watch(seen))
