#!/usr/bin/env bash
# Apache Otava 0.8.0: the permutation test of compute_change_points_orig() says p = 0 after 100 permutations.
#
# Behaviour: the p-value is the number of permutations that are as extreme, over the number of permutations plus 1; the series itself is
# counted below the line, and not above it. So where none of its 100 permutations is as extreme, p is 0, where the permutation test's smallest is
# 1/101. Every max_pvalue from 0 up to 1/101 then means the same, the default of 0.001 included: 2 of 200 series of 20 independent normal values
# have a change at 0.001, at 0.009, and at 0.0098 alike.
# Seen with Python 3.11.7 on Debian 12:
#   a step of 50%: p = 0.0 after 100 permutations
#   independent values: a change in 2, 2, 2 of 200 series at max_pvalue 0.001, 0.009, 0.0098
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check apache-otava==0.8.0 numpy==2.2.0
"$folder/python/bin/python" - <<'PYTHON'
import sys

import numpy as np
from otava.analysis import compute_change_points_orig

random = np.random.default_rng(1)
step = np.concatenate([100 + random.standard_normal(40), 150 + random.standard_normal(40)])
change = compute_change_points_orig(list(step), seed=1)[0][0]
print(f"a step of 50%: p = {change.stats.pvalue} after {change.stats.n_perm} permutations")

thresholds = (0.001, 0.009, 0.0098)
series = [list(100 + np.random.default_rng(seed).standard_normal(20)) for seed in range(200)]
found = [
    sum(bool(compute_change_points_orig(values, max_pvalue=threshold, seed=seed)[0]) for seed, values in enumerate(series))
    for threshold in thresholds
]
print(f"independent values: a change in {', '.join(map(str, found))} of 200 series at max_pvalue "
      f"{', '.join(map(str, thresholds))}")
if not (change.stats.pvalue == 0 and change.stats.n_perm == 100 and len(set(found)) == 1 and found[0] > 0):
    sys.exit("the behaviour has changed")
PYTHON
