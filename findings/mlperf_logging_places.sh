#!/usr/bin/env bash
# mlperf-logging 4.1.68: its parser takes a mark anywhere in a line, drops the first of two records on one line, and numbers lines by itself.
#
# Expected: a record begins its line; a line with something before the mark is none, one with two records is reported, and `lineno` is the
# line of the file.
# Behaviour: parse_file() keeps the lines in which ":::MLLOG " occurs, cuts each at the last mark, and numbers those that are left from 0.
# Why it matters: launchers put "0: " before each line, and several ranks write into one file, so records share lines: one of them is gone
# without an error, and its `lineno` finds nothing in the file. assay's import reads such logs.
# Seen with Python 3.11.7 on Debian 12, for a log of 5 lines with 4 records:
#   record epoch_start of line 3 has lineno 0
#   record eval_accuracy of line 4 has lineno 1
#   record run_stop of line 5 has lineno 2
#   3 records, 0 errors
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check mlperf-logging==4.1.68
"$folder/python/bin/python" - "$folder/log" <<'PYTHON'
import json
import sys

from mlperf_logging.compliance_checker.mlp_parser import parse_file


def record(key, line):
    return ":::MLLOG " + json.dumps({"namespace": "", "time_ms": 1700000000000 + line, "event_type": "POINT_IN_TIME", "key": key,
                                     "value": line, "metadata": {"file": "train.py", "lineno": 1}})


lines = ["starting", "", "0: " + record("epoch_start", 3), record("block_start", 4) + record("eval_accuracy", 4), record("run_stop", 5)]
with open(sys.argv[1], "w", encoding="utf-8") as log:
    log.write("\n".join(lines) + "\n")
records, errors = parse_file(sys.argv[1], ruleset="4.1.0")
for each in records:
    print(f"record {each.key} of line {each.value['value']} has lineno {each.lineno}")
print(f"{len(records)} records, {len(errors)} errors")
if [(r.key, r.lineno) for r in records] != [("epoch_start", 0), ("eval_accuracy", 1), ("run_stop", 2)] or errors:
    sys.exit("the behaviour has changed")
PYTHON
