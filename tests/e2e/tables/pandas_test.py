"""usage: pandas_test.py ASSAY PLUGIN PAGE

Runs the lines of PAGE (docs/record.md) that read results with pandas, as they stand there, on two runs that ASSAY makes.
exit status: 0 they work, 1 they do not, 77 there is no pandas here
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

EXPERIMENT = """
schema = 1
name = "decoder-sizes"
[workload]
plugin = "{plugin}"
[workload.params]
batch_size = {batch_size}
right = {right}
[sweep]
elements = [16, 32]
[measure]
warmup = 0
steps = 2
[run]
device = "cpu"
"""


def snippet_of(page):
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    found = [block for block in blocks if "pandas" in block]
    assert len(found) == 1, f"expected one block of Python with pandas, found {len(found)}"
    return found[0]


def make_runs(assay, plugin):
    for batch_size, right in ((4, "true"), (8, "false")):
        Path("x.toml").write_text(EXPERIMENT.format(plugin=plugin, batch_size=batch_size, right=right))
        ran = subprocess.run([assay, "run", "x.toml"], capture_output=True, text=True, check=False)
        assert ran.returncode == (0 if right == "true" else 1), ran.stdout + ran.stderr


def main(assay, plugin, page):
    if importlib.util.find_spec("pandas") is None:
        print("skipped: pandas is not installed for", sys.executable)
        return 77
    snippet = snippet_of(Path(page).read_text())
    assay, plugin = os.path.abspath(assay), os.path.abspath(plugin)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_runs(assay, plugin)
        names = {}
        exec(snippet, names)  # what the page says, to the letter
        os.chdir("/")
    records, tables = names["records"], names["tables"]

    assert len(records) == 2, records
    assert set(records["params.batch_size"]) == {8}, "the newest run"
    assert set(records["status"]) == {"wrong_result"}, records["status"]

    assert len(tables) == 4, tables
    assert tables["run"].nunique() == 2 and set(tables["experiment"]) == {"decoder-sizes"}
    assert sorted(tables["batch_size"]) == [4, 4, 8, 8], "a parameter that is fixed in each run"
    assert sorted(tables["elements"]) == [16, 16, 32, 32]
    means = tables.groupby("batch_size")["step.mean_ms"].count()
    assert means[4] == 2 and means[8] == 0, "figures are numbers, and a wrong result has none"
    for column in ("status", "verify", "device", "device.name", "hash", "started", "workload", "plugin.version",
                   "plugin.file_hash", "host", "assay.revision", "run.seed", "measure.steps"):
        assert tables[column].notna().all(), column
    print("ok:", len(tables.columns), "columns")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
