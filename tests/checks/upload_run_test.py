#!/usr/bin/env python3
"""upload_run_test.py SCRIPTS: what scripts/upload_run gives to the clients of MLflow and of Weights & Biases. Modules of their
names stand in for them, and have of their interfaces what the script calls; neither is a package of the tests."""
import json
import pathlib
import subprocess
import sys
import tempfile

CLIENT = '''
import collections, json, pathlib, types
LOG = pathlib.Path(__file__).parent.parent / "log.json"
class MlflowClient:
    def __init__(self, tracking_uri): self.kept = json.loads(LOG.read_text()) if LOG.exists() else {}
    def get_experiment_by_name(self, name): return None
    def create_experiment(self, name): return name
    def search_runs(self, numbers, text, max_results): return [k for k, run in self.kept.items() if repr(run.get("tag")) in text]
    def create_run(self, number, run_name):
        self.kept[run_name] = {"params": {}, "metrics": []}
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id=run_name))
    def log_batch(self, number, params=(), metrics=(), tags=()):
        run = self.kept[number]
        assert len(params) <= 100 and len(metrics) <= 1000
        run["params"].update(dict(params))
        run["metrics"] += [list(m) for m in metrics]
        for tag in tags: run["tag"] = tag[1]
        LOG.write_text(json.dumps(self.kept))
    def set_terminated(self, number, status): self.kept[number]["status"] = status
'''
ENTITIES = '''
def Metric(name, value, time, step): return name, value, step
def Param(name, value): return name, value
def RunTag(name, value): return name, value
'''


WANDB = '''
import json, pathlib
LOG = pathlib.Path(__file__).parent / "wandb.json"
def Settings(**settings): return settings
class init:
    def __init__(self, project, name, group, id, resume, mode, config, settings):
        self.kept = json.loads(LOG.read_text()) if LOG.exists() else {}
        assert resume == "allow" and mode == "offline"
        self.resumed, self.id, self.summary = id in self.kept, id, {}
        self.kept[id] = {"name": name, "group": group, "config": config, "summary": self.summary, "logged": []}
    def log(self, values, step): self.kept[self.id]["logged"].append([step, values])
    def finish(self, exit_code):
        self.kept[self.id]["exit_code"] = exit_code
        LOG.write_text(json.dumps(self.kept))
'''


def record(index, **changes):
    return {"schema": 1, "index": index, "axes": {"n": index}, "status": "ok", "workload": "w", "params": {"n": index}, **changes}


def main():
    script = pathlib.Path(sys.argv[1]) / "upload_run"
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "mlflow").mkdir()
        (folder / "mlflow/__init__.py").write_text(CLIENT)
        (folder / "mlflow/entities.py").write_text(ENTITIES)
        run = folder / "x" / "20261129T000000Z-aaaa"
        run.mkdir(parents=True)
        phases = {"step": {"mean_ms": 2.0, "cv": None, "samples_ms": [1.0, None, 3.0]}}
        lines = [record(0, status="failed"), record(1, repeat=2, params={f"p{i}": i for i in range(150)}), record(0, phases=phases)]
        (run / "cases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"torn')

        (folder / "wandb.py").write_text(WANDB)

        def upload(*to):
            return subprocess.run([sys.executable, str(script), str(run), "--to", *to], capture_output=True, text=True,
                                  env={"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}, check=True)

        done = upload("mlflow")
        assert "2 of 2 cases uploaded" in done.stdout and "cases.jsonl:4: no JSON" in done.stderr, done
        kept = json.loads((folder / "log.json").read_text())
        assert set(kept) == {"n=0", "n=1 repeat 2"}, kept
        first = kept["n=0"]
        assert (first["status"], first["params"]["status"], first["params"]["axis.n"]) == ("FINISHED", "ok", "0"), first
        assert first["metrics"] == [["ok", 1, 0], ["step/mean_ms", 2.0, 0], ["step/samples_ms", 1.0, 0], ["step/samples_ms", 3.0, 2]]
        assert len(kept["n=1 repeat 2"]["params"]) > 150
        assert "0 of 2 cases uploaded (2 are there already) to mlflow" in upload("mlflow").stdout, "nothing is uploaded twice"

        done = upload("wandb", "--offline")
        assert "2 of 2 cases uploaded to wandb, project x" in done.stdout, done
        kept = json.loads((folder / "wandb.json").read_text())
        first, second = kept.values()
        assert (first["name"], first["group"], second["name"]) == ("n=0", run.name, "n=1 repeat 2"), kept
        assert first["summary"] == {"ok": 1, "step/mean_ms": 2.0} and first["exit_code"] == 0, first
        assert first["logged"] == [[0, {"step/samples_ms": 1.0}], [2, {"step/samples_ms": 3.0}]], first
        assert "2 of 2 cases uploaded (2 of them once more) to wandb" in upload("wandb", "--offline").stdout
        assert json.loads((folder / "wandb.json").read_text()) == kept, "a case that is there is continued, not doubled"

        def uploaded(name, lines, status=0, keep=False):
            """What MLflow has of a new run's lines."""
            if not keep:
                (folder / "log.json").unlink()
            other = folder / "x" / name
            other.mkdir(exist_ok=True)
            (other / "cases.jsonl").write_text("".join(
                (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)) + "\n" for line in lines), encoding="utf-8")
            done = subprocess.run([sys.executable, str(script), str(other), "--to", "mlflow"], capture_output=True, text=True,
                                  env={"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}, check=False)
            assert done.returncode == status, done
            return json.loads((folder / "log.json").read_text())

        kept = uploaded("it's", [record(0, reason="a\u2028b\u2029"), record(1, params={"command": "x\u0085y"}), record(2)])
        assert len(kept) == 3, "line ends of texts end no record"
        assert len(uploaded("dropped", [record(0), '{"broken', record(1)], status=1)) == 2
        assert len(uploaded("dropped", [record(0), "[]"], status=1)) == 1
        assert len(uploaded("axes", [record(-1, axes={"n": n}) for n in (1, 2)])) == 2, "axes are the identity, not the index"
        assert uploaded("again", [record(0, status="failed")])["n=0"]["status"] == "FAILED"
        assert uploaded("again", [record(0, started="later")], keep=True)["n=0"]["status"] == "FINISHED", "resumed"
        params = uploaded("names", [record(0, params={"status": "a", "run": "b", "host": "c"}, host="h")])["n=0"]["params"]
        assert (params["status"], params["run"], params["host"], params["param.run"]) == ("ok", "names", "h", "b"), params
        wrong = record(0, status="wrong_result", phases=phases, rates={"items_per_s": 1.0}, metrics={"loss": {"value": 3}})
        assert uploaded("wrong", [wrong])["n=0"]["metrics"] == [["ok", 0, 0], ["metric/loss", 3, 0]]
        odd = [dict(record(0), index=None), record(1, metrics={"huge": {"value": 10**400}}), record(2, phases={"step": None}, rates=4),
               dict(record(3, phases=None, axes=None, params=None, metrics=[1], step_metrics={"loss": {"samples": 4}}), index="x")]
        assert len(uploaded("odd", odd)) == 4
    print("ok")


if __name__ == "__main__":
    main()
