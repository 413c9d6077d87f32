#!/usr/bin/env bash
# NumPy 2.2.0, pandas 2.2.3, polars 1.17.1, DuckDB 1.1.3: the median of 1, NaN and 3 is NaN, 2, 3 or NaN, and their largest NaN, 3, 3 or NaN.
#
# Expected: readers of one table agree; a NaN is a missing value (2 and 3), or it makes everything NaN.
# Behaviour: NumPy's results are NaN. pandas takes NaN for missing. polars leaves it out of max(), but sorts it behind all numbers for
# median(), so that 3 is in the middle. DuckDB orders it behind all numbers in both, and its median is NaN.
# Why it matters: assay writes tables in which a figure may be NaN; the reader of such a column gets the median by the library, and polars'
# is a number that looks right and is the median of other data. Figures that are not known are left out rather than written as NaN.
# Seen with Python 3.11.7 on Debian 12, for the column 1, NaN, 3:
#   numpy:  median nan, max nan
#   pandas: median 2, max 3
#   polars: median 3, max 3
#   duckdb: median nan, max nan
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check numpy==2.2.0 pandas==2.2.3 polars==1.17.1 duckdb==1.1.3
"$folder/python/bin/python" - <<'PYTHON'
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl

numbers = [1.0, float("nan"), 3.0]
query = "SELECT median(x), max(x) FROM (VALUES (1::DOUBLE), ('nan'::DOUBLE), (3::DOUBLE)) t(x)"
seen = {
    "numpy": (np.median(numbers), np.max(numbers)),
    "pandas": (pd.Series(numbers).median(), pd.Series(numbers).max()),
    "polars": (pl.Series(numbers).median(), pl.Series(numbers).max()),
    "duckdb": duckdb.sql(query).fetchall()[0],
}
for name, (median, most) in seen.items():
    print(f"{name + ':':8}median {median:g}, max {most:g}")
if [f"{a:g} {b:g}" for a, b in seen.values()] != ["nan nan", "2 3", "3 3", "nan nan"]:
    sys.exit("the behaviour has changed")
PYTHON
