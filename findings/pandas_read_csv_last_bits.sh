#!/usr/bin/env bash
# pandas 2.2.3: read_csv() reads a third of numbers that were written with all their digits as another float64, up to thousands of units away.
#
# Expected: a float64 written with 17 significant digits comes back as itself, as from Python's float(), NumPy's loadtxt and C's strtod().
# Behaviour: the C parser multiplies digits and a power of ten in double, which is not correctly rounded; float_precision="round_trip" is.
# Why it matters: a table of results that goes through a spreadsheet script is no longer equal to the record it came from: a check by == of
# an exported figure fails, and two readers of one CSV disagree.
# Seen with Python 3.11.7 and NumPy 2.2.0 on Debian 12, of 10,000 numbers from 1e-9 to 1e9:
#   read_csv: 3181 differ, by up to 7330 units in the last place
#   numpy.loadtxt: 0 differ
#   read_csv with float_precision="round_trip": 0 differ
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check pandas==2.2.3 numpy==2.2.0
"$folder/python/bin/python" - <<'PYTHON'
import io
import sys

import numpy as np
import pandas as pd

numbers = np.random.default_rng(1).random(10_000) * 10.0 ** np.random.default_rng(2).integers(-9, 10, 10_000)
text = "x\n" + "\n".join(repr(x) for x in numbers.tolist()) + "\n"
plain = pd.read_csv(io.StringIO(text))["x"].to_numpy()
exact = pd.read_csv(io.StringIO(text), float_precision="round_trip")["x"].to_numpy()
loaded = np.loadtxt(io.StringIO(text), skiprows=1)
units = np.abs(plain.view(np.int64) - numbers.view(np.int64)).max()
print(f"read_csv: {(plain != numbers).sum()} differ, by up to {units} units in the last place")
print(f"numpy.loadtxt: {(loaded != numbers).sum()} differ")
print(f'read_csv with float_precision="round_trip": {(exact != numbers).sum()} differ')
if not ((plain != numbers).sum() > 1000 and (loaded == numbers).all() and (exact == numbers).all()):
    sys.exit("the behaviour has changed")
PYTHON
