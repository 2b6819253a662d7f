"""Grades logs with the installed swebench package: one JSON case a line in, one JSON report a line out.

A case names a file that holds its log. Works with swebench 4 (parsers by repository) and 5 (parsers by name).
"""
import json
import sys
import types
from importlib.metadata import version

from swebench.harness.grading import get_eval_report

KEYS = ("FAIL_TO_PASS", "PASS_TO_PASS")


def grade(case):
    spec = types.SimpleNamespace(eval_type="pass_and_fail", **case)
    prediction = {"instance_id": case["instance_id"], "model_patch": "x", "model_name_or_path": "x"}
    try:
        report = get_eval_report(spec, prediction, case["log_file"], True)[case["instance_id"]]
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    lists = report.get("tests_status", {})
    return {
        "resolved": report["resolved"],
        "found": report["patch_successfully_applied"],
        **{key: lists.get(key, {"success": [], "failure": []}) for key in KEYS},
    }


def parse(case):
    """The map of one parser, called by name: swebench 5 only."""
    try:
        from swebench.harness.log_parsers import PARSER_REGISTRY

        return PARSER_REGISTRY[case["parser"]](case["log"], types.SimpleNamespace(**case["spec"]))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    print(json.dumps({"swebench": version("swebench")}))
    for line in sys.stdin:
        case = json.loads(line)
        print(json.dumps(parse(case) if "parser" in case else grade(case)))
