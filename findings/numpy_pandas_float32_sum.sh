#!/usr/bin/env bash
# NumPy 2.2.0 and pandas 2.2.3: the sum of a float32 column depends on whether it is summed alone or beside another column.
#
# Expected: df.sum()["a"] is df["a"].sum(), and NumPy's pairwise summation keeps long float32 sums accurate.
# Behaviour: NumPy sums pairwise only along the axis that lies contiguous in memory. Across rows of a [n, 2] array it adds one float32 after
# the other, so 2^25 ones come to 2^24, where adding 1 changes nothing more, and their mean is 0.5. pandas hands a frame of equal types to
# NumPy that way, one column contiguous, and sums groups by a third way (compensated).
# Why it matters: per-token losses and step times are read as float32 columns; the mean of all columns at once may be half of the right one.
# Such columns are to be summed in float64.
# Seen with Python 3.11.7 on Debian 12, for 2^25 ones in each of two columns:
#   numpy sum(axis=0) 16777216, of a contiguous column 33554432; mean(axis=0) 0.5
#   pandas df.sum() 16777216, df["a"].sum() 33554432, groupby.sum() 33554432
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check pandas==2.2.3 numpy==2.2.0
"$folder/python/bin/python" - <<'PYTHON'
import sys

import numpy as np
import pandas as pd

ones = np.ones((2**25, 2), dtype=np.float32)
by_numpy = int(ones.sum(axis=0)[0]), int(np.ascontiguousarray(ones[:, 0]).sum()), float(ones.mean(axis=0)[0])
print("numpy sum(axis=0) {}, of a contiguous column {}; mean(axis=0) {}".format(*by_numpy))
df = pd.DataFrame(ones, columns=["a", "b"])
by_pandas = int(df.sum()["a"]), int(df["a"].sum()), int(df.groupby(np.zeros(len(df), dtype=int)).sum()["a"].iloc[0])
print('pandas df.sum() {}, df["a"].sum() {}, groupby.sum() {}'.format(*by_pandas))
if by_numpy != (2**24, 2**25, 0.5) or by_pandas != (2**24, 2**25, 2**25):
    sys.exit("the behaviour has changed")
PYTHON
