"""The records agree with the documents, and against_documents finds each mistake that is planted in a copy of them, at
its place."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RESULTS = ROOT / "results" / "published"
DOCUMENTS = ROOT / "tests" / "data" / "report_tables.json"
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import against_documents  # noqa: E402

LAPTOP = "report-001-rtx-4090-laptop/decoder-sizes"
SHARDED = "report-003-rtx-5090-x2/sharded-optimizer"


class Agreement(unittest.TestCase):
    def test_every_number_of_every_document(self):
        comparison = against_documents.compare(RESULTS, DOCUMENTS)
        self.assertEqual(comparison.mistakes, [])
        # A comparison that compares nothing would agree as well. So many numbers have the tables, row numbers and paths
        # of files aside, and the lines of code.
        self.assertEqual(comparison.tables, 32)
        self.assertEqual(comparison.numbers, 881)
        self.assertEqual(comparison.repeated, 28)

    def test_the_records_are_those_of_the_script(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([ROOT / "scripts" / "make_published_reports.py", folder], check=True, capture_output=True)
            written = sorted(f.relative_to(folder) for f in Path(folder).rglob("*") if f.is_file())
            there = sorted(f.relative_to(RESULTS) for f in RESULTS.glob("report-*/**/*") if f.is_file())
            self.assertEqual(written, there)
            for file in written:
                self.assertEqual((RESULTS / file).read_bytes(), (Path(folder) / file).read_bytes(), file)


class Parser(unittest.TestCase):
    DOCUMENT = """# Title
Text without a digit, and `12.5 ms`.
| a | b |
|---:|:---|
| 1 | x ± 2 |
| - | |
## Below
```bash
# 3 is no heading
| 4 | no table |
```
### Deeper
# Other
| c |
| --- |
| 5 |
"""

    def parse(self, text):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "005_made_up.txt").write_text(text, encoding="utf-8")
            return subprocess.run([ROOT / "scripts" / "parse_report_tables.py", folder], capture_output=True, text=True,
                                  check=False)

    def test_tables_and_lines_under_their_headings(self):
        self.assertEqual(json.loads(self.parse(self.DOCUMENT).stdout), {"005": {
            "tables": [{"section": "Title", "columns": ["a", "b"], "rows": [["1", "x ± 2"], ["-", ""]]},
                       {"section": "Other", "columns": ["c"], "rows": [["5"]]}],
            "lines": [{"section": "Title", "text": "Text without a digit, and `12.5 ms`."},
                      {"section": "Title > Below", "text": "# 3 is no heading"},
                      {"section": "Title > Below", "text": "| 4 | no table |"}]}})

    def test_a_row_that_is_too_short_is_refused(self):
        done = self.parse("| a | b |\n| - | - |\n| 1 |\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("a row has 1 cells, and the table 2 columns: ['1']", done.stderr)

    def test_a_folder_without_documents_is_refused(self):
        done = subprocess.run([ROOT / "scripts" / "parse_report_tables.py", HERE], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no document NNN_*.txt", done.stderr)


class Planted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.copy = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.copy.cleanup()

    def setUp(self):
        self.results = Path(self.copy.name) / self._testMethodName
        for file in RESULTS.glob("*/*/cases.jsonl"):
            if file.parts[-3].startswith("report-") or file.parts[-2].startswith("encoder-decoder"):
                (self.results / file.parts[-3] / file.parts[-2]).mkdir(parents=True)
                shutil.copy(file, self.results / file.parts[-3] / file.parts[-2])
        self.documents = json.loads(DOCUMENTS.read_text(encoding="utf-8"))

    def mistakes(self):
        file = self.results / "documents.json"
        file.write_text(json.dumps(self.documents), encoding="utf-8")
        return against_documents.compare(self.results, file).mistakes

    def change(self, table, index, change):
        """`change` alters the record in place."""
        file = self.results / table / "cases.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines()
        record = json.loads(lines[index])
        change(record)
        lines[index] = json.dumps(record)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def expect(self, *patterns):
        """One mistake for each pattern, and no other."""
        mistakes = self.mistakes()
        for pattern in patterns:
            self.assertTrue(any(re.search(pattern, text) for text in mistakes), (pattern, mistakes))
        self.assertEqual([t for t in mistakes if not any(re.search(p, t) for p in patterns)], [])

    def test_nothing(self):
        self.assertEqual(self.mistakes(), [])

    def test_a_figure_that_differs_in_its_last_digit(self):
        self.change(SHARDED, 1, lambda r: r["phases"]["optimizer+parameter_wait"].update(mean_ms=125.829))
        self.expect(r"report 003, 5\.2.*: step_ms: the document has '125\.828', and .*optimizer case 1 has 125\.829")

    def test_a_number_of_a_document_that_differs(self):
        self.documents["002"]["tables"][2]["rows"][0][5] = "-0.00274822"
        self.expect(r"report 002, No Warm-up, row 0 S.*back avg \(sec\): the document has '-0\.00274822', .* -2\.74821")

    def test_an_input(self):
        self.change("report-003-rtx-4060-laptop/decoder-sizes", 2, lambda r: r["params"].update(layers=35))
        self.expect(r"row large 1280 5120.*num_layers: the document has '36', and .* has 35 in params\.layers",
                    r"decoder-warmup case \d+: params\.layers is not that of")

    def test_an_input_that_a_sentence_states(self):
        self.change(LAPTOP, 0, lambda r: r["params"].update(precision="bf16"))
        self.expect(r"params\.precision is fp32 by '\*\*FP32 \(full precision\)\*\*', and bf16 in .* case 0")

    def test_a_sentence_that_is_gone(self):
        lines = self.documents["001"]["lines"]
        lines[:] = [line for line in lines if "5 warmup steps" not in line["text"]]
        self.expect(r"the document does not say 'Your 5 warmup steps'")

    def test_a_figure_that_no_document_has(self):
        self.change(LAPTOP, 1, lambda r: r["phases"].update(forward={"mean_ms": 300.0}))
        self.expect(r"decoder-sizes case 1: no document states phases\.forward\.mean_ms = 300\.0")

    def test_an_input_that_nobody_states(self):
        self.change("report-002-macbook-air/decoder-sizes", 0, lambda r: r["params"].update(precision="fp32"))
        self.expect(r"case 0: no document states params\.precision = fp32, and no note says that it is assumed")

    def test_an_assumption_that_is_not_the_input(self):
        self.change(LAPTOP, 0, lambda r: r["settings"].update({"measure.steps": 20}))
        self.expect(r"settings\.measure\.steps is 20, and its note assumes 10", r"no document states .*\.n = 10")

    def test_an_assumption_that_is_none(self):
        self.change(LAPTOP, 0, lambda r: r["notes"].append("assumed: precision = fp32"))
        self.expect(r"case 0: params\.precision is stated, and its note says that it is assumed")

    def test_a_figure_that_does_not_follow(self):
        self.change("report-003-rtx-4060-laptop/decoder-sizes", 0, lambda r: r["phases"]["forward"].update(cv=0.2))
        self.expect(r"case 0: no document states phases\.forward\.cv = 0\.2")

    def test_a_ratio(self):
        self.change("report-003-cpu-smoke/ddp-strategies", 3, lambda r: r["phases"]["communication_wait"].pop("share"))
        self.expect(r"comm_wait_ratio: the document has '0\.2193', and .* has None")

    def test_a_bucket_where_the_document_has_none(self):
        self.change("report-003-rtx-5090-x2/ddp-strategies", 0, lambda r: r["params"].update(bucket_mb=1.0))
        self.expect(r"row naive xl - 283\.717.*: 0 records .* are meant", r"case 0: no document states")

    def test_the_last_digit_of_ten(self):
        for table in self.documents["003"]["tables"]:
            table["rows"] = [["20.99900247" if cell == "20.99900246" else cell for cell in row] for row in table["rows"]]
        self.expect(r"the document has '20\.99900247', and .* has 20\.99900246")

    def test_which_direction_is_better(self):
        self.change("report-003-rtx-5090-x2/all-reduce", 0,
                    lambda r: r["metrics"]["algorithm_bandwidth_gbs"].update(direction=-1))
        self.expect(r"case 0: algorithm_bandwidth_gbs is in 'GB/s' with direction -1, and expected \('GB/s', 1\)")

    def test_a_unit(self):
        self.change("report-003-rtx-5090-x2/all-reduce", 0,
                    lambda r: r["metrics"]["algorithm_bandwidth_gbs"].update(unit="GiB/s"))
        self.expect(r"case 0: algorithm_bandwidth_gbs is in 'GiB/s'")

    def test_a_kind_of_device(self):
        self.change("report-003-rtx-4060-laptop/decoder-sizes", 0, lambda r: r["device"].update(kind="cpu"))
        self.expect(r"case 0: no document states device\.kind = cpu of NVIDIA")

    def test_a_status_that_nobody_states(self):
        self.change("report-003-rtx-4060-laptop/decoder-sizes", 0, lambda r: r.update(status="oom"))
        self.expect(r"case 0: no document states the status oom")

    def test_a_word(self):
        self.change("report-003-smoke/dtypes", 0, lambda r: r["metrics"]["loss_dtype"].update(word="fp16"))
        self.expect(r"row loss_dtype: the document has 'torch\.float32', and .* has fp16")

    def test_a_record_that_is_gone(self):
        file = self.results / LAPTOP / "cases.jsonl"
        file.write_text("".join(file.read_text(encoding="utf-8").splitlines(keepends=True)[1:]), encoding="utf-8")
        self.expect(r"report 001.*row small 128\.6M.*: 0 records of .* are meant; expected 1")

    def test_a_record_that_stands_twice(self):
        file = self.results / SHARDED / "cases.jsonl"
        file.write_text(file.read_text(encoding="utf-8") * 2, encoding="utf-8")
        self.expect(r"report 003, 5\.2.*: 2 records of .* are meant; expected 1", r"no document states")

    def test_a_table_without_a_place(self):
        self.documents["004"]["tables"].append({"section": "more", "columns": ["a"], "rows": [["1"]]})
        self.expect(r"report 004 has 3 tables, and 2 of them have a place")

    def test_a_column_without_a_place(self):
        table = self.documents["000"]["tables"][0]
        table["columns"].append("layers of what")
        table["rows"] = [[*row, "1"] for row in table["rows"]]
        self.expect(r"Configurations: columns \['layers of what'\] have no place", r"model-sizes case \d: no document")

    def test_an_example_that_differs(self):
        for line in self.documents["000"]["lines"]:
            line["text"] = line["text"].replace("172.94 ms", "172.95 ms")
        self.expect(r"line 'Mean time: 172\.95 ms \(0\.172940 s\)': the document has '172\.95 ms'")

    def test_a_sentence_that_repeats_another_figure(self):
        for line in self.documents["003"]["lines"]:
            line["text"] = line["text"].replace("38.714ms", "38.715ms")
        self.expect(r"report 003, '.*': 38\.715 ms is in no table")

    def test_a_default_of_ours(self):
        for file in self.results.glob("h200-*/encoder-decoder/cases.jsonl"):
            self.change(file.parent.relative_to(self.results), 0, lambda r: r["params"].update(d_ff=256))
        self.expect(r"report 004, Scaling the Model, row `--dim-feedforward`: the document has '512', and .* has 256")


if __name__ == "__main__":
    unittest.main()
