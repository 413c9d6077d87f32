"""compare_records finds each difference that is planted in a set of results, at its place, and is silent about what may
differ. Every test plants one thing in a copy of a small set that is made here."""

import contextlib
import copy
import importlib.machinery
import importlib.util
import io
import json
import pickle
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True


def load(name):
    loader = importlib.machinery.SourceFileLoader(name, str(HERE / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


compare_records = load("compare_records")

PHASE = {"mean_ms": 1.5, "std_ms": 0.1, "n": 3, "confidence": 0.95, "samples_ms": [1.4, 1.5, 1.6], "share": 1.0}
RECORD = {
    "schema": 1,
    "environment": "0123456789abcdef",
    "efficiency": {"measured": {"gflop_per_s": 2.5, "text": "a kernel"}, "mfu_measured": 0.5, "bound_percent_measured": 50.5},
    "index": 0,
    "hash": "00aa",
    "axes": {"size": "tiny", "measure.warmup": 1},
    "status": "ok",
    "reason": "",
    "stage": "done",
    "phase": "",
    "rank": None,
    "ranks": 2,
    "plugin": {"id": "org.assay.x", "version": "1.0.0", "build": "GNU", "file_hash": "1"},
    "params": {"lr": 0.5, "layers": 2},
    "settings": {"measure.steps": 3, "run.seed": 1},
    "notes": ["the step time's cv is 7.1%, above 5%: more warm-up", "stopped after 8 steps of 12"],
    "wall_s": {"case": 1.25, "setup": 0.5},
    "memory": {"peak_mib": {"parameters": 11.75, "data": 0.25}, "process_peak_mib": 65.5},
    "contention": {"window_s": 0.1},
    "verify": {"status": "ok", "text": "loss 9.2 near 9.2"},
    "phases": {"step": PHASE, "forward": dict(PHASE, share=0.5)},
    "step_metrics": {"loss": {"unit": "", "mean": 9.25, "samples": [9.25, 9.125]}},
    "metrics": {"loss": {"value": 9.25, "unit": ""}, "exposed_ms": {"value": 1.5, "unit": "ms"}},
    "by_rank": [{"rank": 0, "step_mean_ms": 1.5, "phases": {"forward": 1.0}}, {"rank": 1, "step_mean_ms": 1.5}],
    "started": "2026-01-01T00:00:00Z",
}
FAILED = {
    "schema": 1,
    "index": 1,
    "status": "crashed",
    "reason": "killed by SIGSEGV in stage measure; log: /one/out/20260101T000000Z-00aa/logs/case-0002.log",
    "stage": "measure",
    "step": 1,
    "by_rank": [{"rank": 0, "step": 1, "reason": "lost its peer"}],
}
ENVIRONMENT = {"schema": 1, "cpu": {"model": "M", "usable_cores": 2}, "load_average": [0.5, 0.25], "variables": {}}
SUMMARY = {"schema": 1, "config": {"run": {"seed": 1}}, "cases": [RECORD], "summary": {"lines": ["ok step 1.5 ms"]}}
EVENTS = [
    {"event": "run_started", "cases": 1},
    {"event": "stage", "stage": "setup"},
    {"event": "run_finished", "exit_code": 0},
]
TOML = 'schema = 1\n\n[run]\nseed = 1\nallow = []\n'
TERMINAL = """\
           step   step
size   .mean_ms  .host  note
─────  ────────  ─────  ────
tiny      1.500      2  a b
small     12.25      3
case 1 (size=tiny): note: the step time's cv is 7.1%, above 5%: more warm-up
case 2 (size=small): crashed: in step 3
results: out/x/20260101T000000Z-00aa
"""
SNAPSHOT = {
    "segments": [
        {"address": 1, "total_size": 64, "frames": [{"name": "a"}], "blocks": [{"address": 1, "size": 64}]},
        {"address": 2, "total_size": 32, "frames": [{"name": "b"}], "blocks": [{"address": 2, "size": 32}]},
    ],
    "device_traces": [[{"addr": 1, "size": 64, "time_us": 5}]],
}


def first_set():
    """The files of a set, as values that a test may change."""
    return copy.deepcopy(
        {
            "a/x/run/cases.jsonl": [RECORD, FAILED],
            "a/x/run/environment.json": ENVIRONMENT,
            "a/x/run/bench_M_0gpu_20260101T000000Z.json": SUMMARY,
            "a/x/run/experiment.toml": TOML,
            "a/x/run/table.csv": "size,parameters,step.mean_ms,status\ntiny,3,1.5,ok\nsmall,4,,crashed\n",
            "a/x/run/table.md": "| size | step.mean_ms |\n| ---- | -----------: |\n| tiny | 1.500 |\n",
            "a/x/run/logs/case-0001.log": "one\nafter 3 s\n",
            "a/x/run/memory_case-0001.pickle": SNAPSHOT,
            "a/x/run/step.safetensors": b"\x00\x01",
            "a/x/stdout.txt": TERMINAL,
            "a/x/exact.txt": "usage: 3\n",
            "a/x/events.jsonl": EVENTS,
            "a/x/exit_code.txt": "1\n",
        }
    )


def write_set(files, root, name):
    for path, value in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".jsonl"):
            value = "".join(json.dumps(line) + "\n" for line in value)
        elif path.endswith(".json"):
            value = json.dumps(value)
        elif path.endswith(".pickle"):
            value = pickle.dumps(value)
        file.write_bytes(value if isinstance(value, bytes) else value.replace("/one", name).encode())
    (root / "roots.json").write_text(json.dumps({name: "<out>"}))


def compared(second):
    """What compare_records prints and returns for the first set and another."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before", Path(folder) / "after"
        write_set(first_set(), before, "/one")
        write_set(second, after, "/two/elsewhere")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = compare_records.main([str(before), str(after)])
        return code, output.getvalue()


def reordered(value):
    return dict(reversed(value.items()))


CASES, SUMMARY_FILE = "a/x/run/cases.jsonl", "a/x/run/bench_M_0gpu_20260101T000000Z.json"


def record(change):
    return lambda files: change(files[CASES][0])


def text(path, old, new):
    def change(files):
        assert old in files[path], (path, old)
        files[path] = files[path].replace(old, new, 1)

    return change


# What is planted, and how it is reported.
DIFFERENCES = {
    "the environment": (record(lambda r: r.pop("environment")), "the key 'environment' is gone"),
    "an environment that is none": (record(lambda r: r.update(environment="")), "'' is not of the form"),
    "all efficiency": (record(lambda r: r.pop("efficiency")), "efficiency: no record of the second set has it"),
    "a part of efficiency": (record(lambda r: r["efficiency"].pop("mfu_measured")), "the key 'mfu_measured' is gone"),
    "an efficiency that is none": (record(lambda r: r["efficiency"].update(mfu_measured=None)), "became null"),
    "a key removed": (record(lambda r: r.pop("verify")), "the key 'verify' is gone"),
    "a key removed deep inside": (record(lambda r: r["phases"]["step"].pop("n")), "line 1: phases/step: the key 'n'"),
    "a key added": (record(lambda r: r.update(more=1)), "the key 'more' is new"),
    "the order of keys": (lambda f: f[CASES].__setitem__(0, reordered(f[CASES][0])), "the order of the keys changed"),
    "the order of phases": (record(lambda r: r.update(phases=reordered(r["phases"]))), "phases: the order of the keys"),
    "the order of axes": (record(lambda r: r.update(axes=reordered(r["axes"]))), "axes: the order of the keys"),
    "a status": (record(lambda r: r.update(status="failed")), "status: 'ok' became 'failed'"),
    "a reason": (record(lambda r: r.update(reason="because")), "reason: '' became 'because'"),
    "a number in a reason": (
        lambda f: f[CASES][1].update(reason=f[CASES][1]["reason"].replace("case-0002", "case-0003")),
        "case-0003",
    ),
    "a stage": (lambda f: f[CASES][1].update(stage="warmup"), "stage: 'measure' became 'warmup'"),
    "the step of a failure": (lambda f: f[CASES][1].update(step=2), "line 2: step: 1 became 2"),
    "a rank that was none": (record(lambda r: r.update(rank=0)), "rank: null (NoneType) became 0 (int)"),
    "an integer that became a float": (record(lambda r: r["params"].update(layers=2.0)), "2 (int) became 2.0 (float)"),
    "a float that became an integer": (record(lambda r: r["params"].update(lr=1)), "0.5 (float) became 1 (int)"),
    "a time that became an integer": (record(lambda r: r["phases"]["step"].update(mean_ms=2)), "became 2 (int)"),
    "a time that became none": (record(lambda r: r["phases"]["step"].update(mean_ms=None)), "became null"),
    "the number of samples": (record(lambda r: r["phases"]["step"]["samples_ms"].pop()), "3 entries became 2"),
    "the number of steps": (record(lambda r: r["phases"]["step"].update(n=4)), "phases/step/n: 3 became 4"),
    "a loss": (record(lambda r: r["metrics"]["loss"].update(value=9.250001)), "metrics/loss/value: 9.25 became"),
    "a step's loss": (record(lambda r: r["step_metrics"]["loss"]["samples"].__setitem__(1, 9.0)), "samples/1: 9.125"),
    "a metric's name": (record(lambda r: r["metrics"].update(lost=r["metrics"].pop("loss"))), "'loss' is gone"),
    "memory by a byte": (
        record(lambda r: r["memory"]["peak_mib"].update(parameters=11.75 + 2**-20)),
        "memory/peak_mib/parameters: 11.75 became",
    ),
    "a setting": (record(lambda r: r["settings"].update({"run.seed": 2})), "settings/run.seed: 1 became 2"),
    "a verification's words": (record(lambda r: r["verify"].update(text="loss 9.3 near 9.2")), "verify/text"),
    "a note": (record(lambda r: r["notes"].append("something else")), "notes: 1 entries became 2"),
    "a note's words": (record(lambda r: r["notes"].__setitem__(1, "ended after 8 steps of 12")), "notes/0"),
    "a rank's entry": (record(lambda r: r["by_rank"].pop()), "by_rank: 2 entries became 1"),
    "a line of records": (lambda f: f[CASES].pop(), "2 lines became 1"),
    "a record in the summary": (lambda f: f[SUMMARY_FILE]["cases"][0].update(status="oom"), "cases/0/status: 'ok'"),
    "a line of the summary": (lambda f: f[SUMMARY_FILE]["summary"]["lines"].__setitem__(0, "bad step 1 ms"), "lines/0"),
    "a value of the configuration": (lambda f: f[SUMMARY_FILE]["config"]["run"].update(seed=2), "config/run/seed"),
    "a key of the environment": (lambda f: f["a/x/run/environment.json"]["cpu"].pop("model"), "'model' is gone"),
    "the machine": (lambda f: f["a/x/run/environment.json"]["cpu"].update(usable_cores=3), "usable_cores: 2 became 3"),
    "a resolved setting": (text("a/x/run/experiment.toml", "seed = 1", "seed = 2"), "experiment.toml: line 4"),
    "a resolved setting that is new": (text("a/x/run/experiment.toml", "seed", "sprout = 1\nseed"), "experiment.toml"),
    "a column": (text("a/x/run/table.csv", "size,parameters", "parameters,size"), "table.csv: header"),
    "a cell": (text("a/x/run/table.csv", "tiny,3,", "tiny,5,"), "row 1, parameters: '3' became '5'"),
    "a time that was none": (text("a/x/run/table.csv", "4,,", "4,7,"), "row 2, step.mean_ms: '' became '7'"),
    "a row": (text("a/x/run/table.csv", "small,4,,crashed\n", ""), "2 rows became 1"),
    "a column's alignment": (text("a/x/run/table.md", "-----------: |", "------------ |"), "alignment"),
    "a time that is a word": (text("a/x/run/table.md", "1.500", "fast"), "row 1, step.mean_ms: '1.500' became 'fast'"),
    "a log": (text("a/x/run/logs/case-0001.log", "one", "two"), "case-0001.log: line 1: 'one' became 'two'"),
    "a log's end": (text("a/x/run/logs/case-0001.log", "after 3 s\n", ""), "2 lines became 1"),
    "a tensor's size": (
        lambda f: f["a/x/run/memory_case-0001.pickle"]["device_traces"][0][0].update(size=65),
        "device_traces/0/0/size: 64 became 65",
    ),
    "a dump": (lambda f: f.update({"a/x/run/step.safetensors": b"\x00\x02"}), "are not the same"),
    "a header on the terminal": (text("a/x/stdout.txt", ".mean_ms", " .p50_ms"), "table, header"),
    "a cell on the terminal": (text("a/x/stdout.txt", "tiny ", "tine "), "row 1, size: 'tiny' became 'tine'"),
    "a line on the terminal": (text("a/x/stdout.txt", "crashed", "failed"), "case 2 (size=small): crashed"),
    "the number of a case": (text("a/x/stdout.txt", "case 2 (", "case 3 ("), "case 2 (size=small)"),
    "a number in exact text": (text("a/x/exact.txt", "3", "4"), "exact.txt: line 1"),
    "an event": (lambda f: f["a/x/events.jsonl"][2].update(exit_code=1), "exit_code: 0 became 1"),
    "an event less": (lambda f: f["a/x/events.jsonl"].pop(), "2 lines became 1"),
    "an exit code": (text("a/x/exit_code.txt", "1", "0"), "exit_code.txt: line 1: '1' became '0'"),
    "a file less": (lambda f: f.pop("a/x/exit_code.txt"), "exit_code.txt: is missing in the second set"),
    "a file more": (lambda f: f.update({"a/x/run/core": b""}), "core: is new in the second set"),
}


def another_run(files):
    files["a/x/run/bench_M_0gpu_20270202T020202Z.json"] = files.pop(SUMMARY_FILE)


SILENT = {
    "nothing": lambda f: None,
    "another environment": record(lambda r: r.update(environment="f" * 16)),
    "efficiency": record(lambda r: r["efficiency"].update(mfu_measured=0.75, measured={"gflop_per_s": 3.5, "text": "a kernel"})),
    "efficiency of one record": lambda f: (f[CASES][0].pop("efficiency"), f[CASES][1].update(efficiency={"mfu_measured": 0.5})),
    "a time": record(lambda r: r["phases"]["forward"].update(mean_ms=99.5)),
    "samples": record(lambda r: r["phases"]["step"].update(samples_ms=[9.5, 8.5, 7.5])),
    "an identity": record(lambda r: r.update(hash="ffff", plugin=dict(r["plugin"], file_hash="2", version="1.1.0"))),
    "when it began": record(lambda r: r.update(started="2027-01-01T00:00:00Z", wall_s={"case": 2.5, "setup": 1.5})),
    "memory of the process": record(lambda r: r["memory"].update(process_peak_mib=70.25)),
    "contention": record(lambda r: r["contention"].update(others_share=0.5)),
    "no contention": record(lambda r: r.pop("contention")),
    "a note of noise": record(lambda r: r["notes"].insert(0, "contended: other processes took 99% of the processors")),
    "a note of a rank's noise": record(lambda r: r["notes"].append("rank 1: the step time's cv is 9%, above 5%: more")),
    "no note of noise": record(lambda r: r["notes"].pop(0)),
    "a number in a note": record(lambda r: r["notes"].__setitem__(1, "stopped after 9 steps of 12")),
    "a time that is whole": record(lambda r: r["metrics"]["exposed_ms"].update(value=0)),
    "a rank's time": record(lambda r: r["by_rank"][1].update(step_mean_ms=7.5)),
    "how far another rank was": lambda f: f[CASES][1]["by_rank"][0].update(step=2),
    "the run's name": lambda f: f[CASES][1].update(
        reason=f[CASES][1]["reason"].replace("20260101T000000Z-00aa", "20270101T000000Z-ffff")
    ),
    "the summary's name": another_run,
    "the load": lambda f: f["a/x/run/environment.json"].update(load_average=[7.5, 6.5]),
    "a new setting": lambda f: (
        f[CASES][0]["settings"].update({"run.log_limit": "64MiB"}),
        f[SUMMARY_FILE]["config"]["run"].update(log_limit="64MiB"),
        text("a/x/run/experiment.toml", "seed = 1", 'seed = 1\nlog_limit = "64MiB"')(f),
    ),
    "a cell that is a time": text("a/x/run/table.csv", ",1.5,", ",2.75,"),
    "a rounded cell": text("a/x/run/table.md", "1.500", "1,234"),
    "a number in a log": text("a/x/run/logs/case-0001.log", "after 3 s", "after 12.5 s"),
    "the order of the fields of a record that failed": lambda f: f[CASES].__setitem__(
        1, reordered(f[CASES][1])
    ),
    "addresses and their order": lambda f: f["a/x/run/memory_case-0001.pickle"].update(
        segments=[dict(s, address=s["address"] + 7) for s in reversed(SNAPSHOT["segments"])]
    ),
    "a stage that was not seen": lambda f: f["a/x/events.jsonl"].pop(1),
    "times on the terminal": text("a/x/stdout.txt", "1.500      2", "1,500      2"),
    "a header that is broken elsewhere": text(
        "a/x/stdout.txt",
        "           step   step\nsize   .mean_ms  .host  note\n─────  ────────  ─────  ────\ntiny      1.500      2",
        "                      step\nsize   step.mean_ms  .host  note\n─────  ────────────  ─────  ────\n"
        "tiny          1.500      2",
    ),
    "a unit that fits": text("a/x/run/table.md", "step.mean_ms |", "step.mean_us |"),
    "a verdict on the terminal": text("a/x/stdout.txt", "results: out", "all 2 cases: validity unknown: why\nresults: out"),
    "a note of several cases": text(
        "a/x/stdout.txt", "case 1 (size=tiny): note: the", "cases 1, 2: note: the"),
    "a note on the terminal": text("a/x/stdout.txt", "the step time's cv is 7.1%", "the step time's cv is 9%"),
}


class CompareRecords(unittest.TestCase):
    def test_planted_differences_are_found(self):
        for name, (plant, expected) in DIFFERENCES.items():
            with self.subTest(name):
                files = first_set()
                plant(files)
                code, output = compared(files)
                self.assertEqual(code, 1, output)
                self.assertIn(expected, output)

    def test_what_may_differ_is_silent(self):
        for name, change in SILENT.items():
            with self.subTest(name):
                files = first_set()
                change(files)
                code, output = compared(files)
                self.assertEqual((code, output), (0, "13 files are equal\n"))

    def test_an_empty_set_is_not_equal(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "roots.json").write_text("{}")
            with contextlib.redirect_stdout(io.StringIO()) as output:
                self.assertEqual(compare_records.main([folder, folder]), 1)
            self.assertIn("holds no results", output.getvalue())

    def test_every_exception_has_a_reason(self):
        rules = compare_records.allowed
        for table in (rules.RECORD, rules.ENVIRONMENT, rules.SUMMARY, rules.COLUMNS, rules.SNAPSHOT):
            self.assertTrue(table)
            for rule in table:
                self.assertTrue(rule.reason, rule.pattern)
        self.assertIn("phases/*/samples_ms/*", rules.explain())

    def test_wrong_usage(self):
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(compare_records.main(["one"]), 2)
            self.assertEqual(compare_records.main(["absent", "absent"]), 2)


if __name__ == "__main__":
    unittest.main()
