#!/usr/bin/env python3
"""Batches as Indexed Jobs, played by play_jobs.py on this machine: no cluster is needed, and none has run them. The
environment variables ASSAY and ASSAY_TEST_PLUGINS name the executable and the folder of the plugin `misbehaving`."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import batch

SITE = """schema = 1
[kubernetes]
namespace = "training"
image = "registry.example/assay:1"
volume = "results"
mount = "{mount}"
gpus_per_node = {gpus}
time_max = "1m"
prologue = ["export FROM_PROLOGUE=yes"]
[kubernetes.limits]
attempts = 3
margin = "20s"
"""


class Site:
    def __init__(self, work):
        self.work = work
        (work / "jobs").mkdir()
        (work / "bin").mkdir()
        kubectl = work / "bin" / "kubectl"
        player = pathlib.Path(__file__).resolve().parent / "play_jobs.py"
        kubectl.write_text(f"#!/bin/sh\nexec {sys.executable} {player} \"$@\"\n")
        kubectl.chmod(0o755)
        self.environment = dict(os.environ, PATH=f"{work}/bin:{os.environ['PATH']}", PLAYED_JOBS=str(work / "jobs"))
        (work / "site.toml").write_text(SITE.format(mount=work, gpus=0))

    def assay(self, *arguments, code=0):
        done = subprocess.run([batch.HOME["assay"], *arguments], cwd=self.work, capture_output=True, text=True, timeout=60,
                              check=False, env=self.environment)
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def submit(self, name, sweep, *options, code=0, **values):
        (self.work / f"{name}.toml").write_text(batch.EXPERIMENT.format(**dict(batch.DEFAULTS, name=name, sweep=sweep, **values)))
        return self.assay("submit", f"{name}.toml", "--site", "./site.toml", "--plugin-path", batch.HOME["plugins"], *options,
                          code=code)

    def wait(self, run, is_so):
        deadline = time.monotonic() + 60
        while not is_so(status := json.loads(self.assay("status", run, "--json"))):
            assert time.monotonic() < deadline, f"{status}\n{self.logs()}"
            time.sleep(0.2)
        return status

    def logs(self):
        return "".join(f"{p}:\n{p.read_text()}" for p in (self.work / "jobs").glob("*/*.log"))


def run_of(said):
    return said.split("run: ", 1)[1].splitlines()[0]


def test_killed_pod(site):
    """Two shards; the pod of one is killed once its case runs, and its index goes on in another pod."""
    marks = site.work / "marks"
    marks.mkdir()
    run = run_of(site.submit("pods", "number = [1, 2]", marks=marks, params='action = "fail"\ntimes = 1\nseconds = 1000',
                             budget="25s"))
    site.wait(run, lambda s: s["counts"] == {"running": 2} and len(list(marks.iterdir())) == 2)
    for item in json.loads(next((site.work / "jobs").glob("*/status.json")).read_text()):
        if item["kind"] == "Pod":
            os.killpg(item["metadata"]["uid"], signal.SIGKILL)
    status = site.wait(run, lambda s: s["is_over"])
    assert status["counts"] == {"ok": 2}, f"{status}\n{site.logs()}"
    assert [a["restart"] for a in status["attempts"]] == [0, 1, 0, 1] and status["attempts"][0]["nodes"] == ["played"], status
    assert "2 records" in site.assay("collect", run) or len(
        pathlib.Path(run, "cases.jsonl").read_text().splitlines()) == 2
    assert [len((marks / f"{n}.0").read_text().splitlines()) for n in (1, 2)] == [2, 2]


def test_cancel(site):
    run = run_of(site.submit("cancelled", "number = [1, 2]", marks="", params='action = "fail"\nseconds = 1000', budget="25s"))
    site.wait(run, lambda s: s["counts"] == {"running": 2})
    assert "cancelled: 1 job" in site.assay("cancel", run)
    assert json.loads(site.assay("status", run, "--json"))["counts"] == {"cancelled": 2}


def test_prologue(site):
    """A line of the prologue that fails ends the shard, and no other pod is started for it."""
    whole = (site.work / "site.toml").read_text()
    (site.work / "site.toml").write_text(whole.replace("export FROM_PROLOGUE=yes", "ls /no/such/module"))
    run = run_of(site.submit("prologue", "number = [1]", marks="", budget="25s"))
    status = site.wait(run, lambda s: s["is_over"])
    assert status["counts"] == {"lost": 1} and not status["attempts"], status
    assert site.logs().count("the prologue failed with exit status 2 at: ls /no/such/module") == 1, site.logs()
    (site.work / "site.toml").write_text(whole)


def test_manifest(site):
    (site.work / "site.toml").write_text(SITE.format(mount=site.work, gpus=8))
    said = site.submit("manifest", "number = [1, 2, 3]", "--dry-run", marks="", budget="25s")
    job = json.loads(said[said.index("{\n"):said.rindex("\n}\n") + 2])
    assert (job["apiVersion"], job["kind"], job["metadata"]["namespace"]) == ("batch/v1", "Job", "training")
    spec = job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["backoffLimitPerIndex"]) == ("Indexed", 3, 2), spec
    container = spec["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"} and "export FROM_PROLOGUE=yes\n" in container["command"][-1]
    # `--check` says what `submit` does, which leaves no folder of a run.
    for options in ((), ("--check",)):
        said = site.submit("two", "number = [1]", *options, marks="", budget='2s"\nnodes = 2\n#"', code=2)
        assert said.count("runs each on one pod") == 1, said
    (site.work / "site.toml").write_text(SITE.format(mount="/elsewhere", gpus=0))
    for options in ((), ("--check",)):
        said = site.submit("outside", "number = [1]", *options, marks="", code=2)
        assert "lies outside of [kubernetes] mount" in said, said
    assert not [p for name in ("two", "outside") for p in (site.work / "results" / name).glob("*")]
    (site.work / "site.toml").write_text('schema = 1\n[kubernetes]\nimage = "a"\nvolume = "b"\n')
    assert "[kubernetes] has no mount" in site.submit("without", "number = [1]", marks="", code=2)


def main():
    batch.take_options(sys.argv)
    with tempfile.TemporaryDirectory(prefix="assay-pods-") as folder:
        site = Site(pathlib.Path(folder))
        for test in (test_killed_pod, test_cancel, test_prologue, test_manifest):
            test(site)
            print(f"{test.__name__}: ok")


if __name__ == "__main__":
    main()
