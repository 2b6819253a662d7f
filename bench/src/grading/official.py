"""Times the installed swebench package: one JSON case a line in, its processor seconds (several repeats) a line out."""
import json
import sys
import time
import types
from importlib.metadata import version

from swebench.harness.grading import get_eval_report

BY_REPOSITORY = "parse_log_pytest"


def parser_of(case):
    from swebench.harness.log_parsers import python

    table = python.MAP_REPO_TO_PARSER_PY
    return case.get("log_parser") or getattr(table.get(case["repo"]), "__name__", BY_REPOSITORY)


def names(value):
    return json.loads(value) if isinstance(value, str) else value


print(json.dumps({"swebench": version("swebench"), "python": sys.version.split()[0]}))
for line in sys.stdin:
    case = json.loads(line)
    record = case["record"]
    lists = {key: names(record[key]) for key in ("FAIL_TO_PASS", "PASS_TO_PASS")}
    fields = {key: record[key] for key in ("instance_id", "repo", "version")}
    spec = types.SimpleNamespace(eval_type="pass_and_fail", log_parser=parser_of(record), **fields, **lists)
    prediction = {"instance_id": record["instance_id"], "model_patch": "x", "model_name_or_path": "x"}
    seconds = []
    for _ in range(case["repeats"]):
        start = time.process_time()
        report = get_eval_report(spec, prediction, case["log_file"], True)
        seconds.append(time.process_time() - start)
    print(json.dumps({"seconds": seconds, "resolved": report[record["instance_id"]]["resolved"]}))
