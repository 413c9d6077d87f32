#!/usr/bin/env bash
# Apache Otava 0.8.0 (the tool that was called Hunter): change points in series without any, where each value resembles
# the one before it.
#
# Behaviour: compute_change_points() with its defaults (max_pvalue 0.001, window_len 50) reports a change in 4 of 100 series of
# 40 independent values (sd 1%), and in 73 of 100 of the same length and spread whose values follow an autoregressive process of order 1
# with the coefficient 0.8, as levels of runs on a machine that warms up and cools down do. Its test takes values for independent.
# Seen with Python 3.11.7 on Debian 12:
#   independent: a change in 4 of 100 series without one
#   AR(0.8): a change in 73 of 100 series without one
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check apache-otava==0.8.0 numpy==2.2.0
"$folder/python/bin/python" - <<'PYTHON'
import sys

import numpy as np
from otava.analysis import compute_change_points


def level(random, coefficient, count=40, deviation=0.01):
    values = [deviation * random.standard_normal()]
    while len(values) < count:
        values.append(coefficient * values[-1] + deviation * np.sqrt(1 - coefficient**2) * random.standard_normal())
    return 100 * np.exp(values)


alarms = {}
for name, coefficient in (("independent", 0.0), ("AR(0.8)", 0.8)):
    series = [level(np.random.default_rng(seed), coefficient) for seed in range(100)]
    alarms[name] = sum(bool(compute_change_points(list(values))[0]) for values in series)
    print(f"{name}: a change in {alarms[name]} of 100 series without one")
if not (alarms["independent"] <= 10 and alarms["AR(0.8)"] >= 50):
    sys.exit("the behaviour has changed")
PYTHON
