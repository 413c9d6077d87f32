#!/usr/bin/env python3
"""A batch of very many cases: submitted, looked at and collected, with stand-ins for Slurm's commands that answer at once
and note each call, and with results of its shards made from one real record.

  many_cases.py ASSAY [--cases 10000] [--keep FOLDER] [--repeat 3] [--budget 600]

ASSAY: the program, with all_reduce among its plugins. It prints how long each command took beside Slurm's. What it checks
are counts, never times: each case once, one question to squeue a call, nothing new in a second collection. FOLDER is
where the run and the stand-ins are left; without --keep they are removed."""
import argparse
import copy
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

STEPS = 5
BEGAN_S = 1_700_000_000
ANSWER = """#!/bin/sh
echo "${{0##*/}} $*" >>'{folder}/calls'
case ${{0##*/}} in
  sbatch) N=$(cat '{folder}/next'); echo $((N + 1)) >'{folder}/next'; echo "$N" ;;
  squeue) cat '{folder}/queue' ;;
  scontrol) echo 'MaxArraySize            = 100001' ;;
  sinfo) echo 'n1|idle|2|(null)|(null)|infinite|debug*' ;;
esac
"""
SITE = """schema = 1
[slurm]
time_max = "1h"
[slurm.limits]
case_budget = "{budget_s}s"
"""
EXPERIMENT = """schema = 1
name = "many"
[workload]
plugin = "all_reduce"
[workload.params]
backend = "gloo"
[sweep]
size_bytes = [{sizes}]
collective = ["all_reduce", "reduce_scatter"]
in_place = [true, false]
[measure]
warmup = 1
steps = {steps}
[run]
device = "cpu"
ranks = 2
[output]
dir = "{results}"
"""


class Batch:
    """A folder with an experiment, a site and stand-ins for Slurm's commands."""

    def __init__(self, assay, folder, cases, budget_s):
        self.assay, self.folder = str(pathlib.Path(assay).resolve()), folder
        self.run_folder = None
        tools = folder / "tools"
        tools.mkdir(parents=True)
        for name in ("sbatch", "squeue", "scontrol", "sinfo"):
            (tools / name).write_text(ANSWER.format(folder=folder))
            (tools / name).chmod(0o755)
        (folder / "next").write_text("100\n")
        (folder / "queue").write_text("")
        (folder / "site.toml").write_text(SITE.format(budget_s=budget_s))
        self.write_experiment("many.toml", cases)
        self.write_experiment("one.toml", 4)
        self.environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}

    def write_experiment(self, name, cases):
        sizes = ", ".join(str(1024 * (i + 1)) for i in range(cases // 4))
        results = self.folder / ("results" if name == "many.toml" else "model")
        (self.folder / name).write_text(EXPERIMENT.format(sizes=sizes, steps=STEPS, results=results))

    def command(self, *arguments, codes=(0,)):
        """What assay said, how long it took, and what Slurm's commands were asked meanwhile."""
        calls = self.folder / "calls"
        calls.write_text("")
        began = time.monotonic()
        done = subprocess.run([self.assay, *map(str, arguments)], env=self.environment, capture_output=True, text=True,
                              check=False)
        seconds = time.monotonic() - began
        if done.returncode not in codes:
            raise AssertionError(f"{arguments}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout, seconds, [line.split()[0] for line in calls.read_text().splitlines()]

    def real_record(self):
        """Of the first case of the same experiment, run here."""
        self.command("run", self.folder / "one.toml", "--filter", "size_bytes=1024", "--filter", "in_place=true",
                     "--filter", "collective=all_reduce", "--quiet")
        file = next((self.folder / "model").glob("one/2*/cases.jsonl"), None) or next(
            (self.folder / "model").glob("many/2*/cases.jsonl"))
        return json.loads(file.read_text().splitlines()[0]), (file.parent / "environment.json").read_text()


def record_of(model, index):
    """The record of a case, as the sweep's order has it."""
    size, rest = divmod(index, 4)
    axes = {"size_bytes": 1024 * (size + 1), "collective": ("all_reduce", "broadcast")[rest // 2],
            "in_place": rest % 2 == 0}
    record = copy.copy(model)
    record["index"], record["axes"] = index, axes
    record["params"] = {**model["params"], **axes}
    started = datetime.datetime.fromtimestamp(BEGAN_S + index, datetime.timezone.utc)
    record["started"] = started.strftime("%Y-%m-%dT%H:%M:%SZ")
    return record


def lines(entries):
    """As assay writes them."""
    return "".join(json.dumps(each, separators=(",", ":"), ensure_ascii=False) + "\n" for each in entries)


def finish_shard(folder, model, environment, job):
    """What a job leaves that has carried out all cases of a shard."""
    plan = json.loads((folder / "shard.json").read_text())
    attempt = folder / "attempts" / "0001"
    attempt.mkdir(parents=True)
    (attempt / "claim.json").write_text(lines([{"job": str(job), "restart": 0, "host": "n1", "pid": 1, "nodes": ["n1"],
                                                "began_s": BEGAN_S}]))
    journal = []
    for index in plan["cases"]:
        journal += [{"t": BEGAN_S + index, "case": index, "event": "begin"},
                    {"t": BEGAN_S + index + 1, "case": index, "event": "end", "status": "ok"}]
    (attempt / "journal.jsonl").write_text(lines(journal))
    (attempt / "cases.jsonl").write_text(lines(record_of(model, index) for index in plan["cases"]))
    (attempt / "environment.json").write_text(environment)
    (attempt / "end.json").write_text(lines([{"verdict": "done", "reason": "", "ended_s": BEGAN_S + 60}]))
    return len(plan["cases"])


def queue_line(array, tasks, state, job):
    """As squeue is asked for one."""
    return f"{job}|{array}|{tasks}|{state}|{'n1' if state == 'RUNNING' else ''}|None|(null)\n"


def check(what, found, expected):
    """Raises when they differ."""
    if found != expected:
        raise AssertionError(f"{what}: {found!r}; expected {expected!r}")


def timed(batch, name, repeat, *arguments, codes=(0,)):
    """The answers of several calls, with the time of the fastest."""
    results = [batch.command(*arguments, codes=codes) for _ in range(repeat)]
    out, _, calls = results[-1]
    took = ", ".join(f"{seconds:.2f}" for _, seconds, _ in results)
    print(f"{name:<42} {took} s   {len(calls)} call(s) of Slurm's commands: {' '.join(calls)}", flush=True)
    return out, calls


def shards_of(run):
    """The folders of the shards, in order."""
    return sorted((run / "batch" / "shards").iterdir(), key=lambda folder: [int(n) for n in folder.name.split("-")])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assay")
    parser.add_argument("--cases", type=int, default=10000)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--budget", type=int, default=600, help="seconds of a case: how many cases a shard has")
    given = parser.parse_args()
    folder = (given.keep or pathlib.Path(tempfile.mkdtemp(prefix="assay-many-"))).resolve()
    try:
        measure(Batch(given.assay, folder, given.cases, given.budget), given)
    finally:
        if not given.keep:
            shutil.rmtree(folder, ignore_errors=True)


def measure(batch, given):
    """Submits, lets jobs end, and asks after each."""
    model, environment = batch.real_record()
    print(f"{given.cases} cases, a record of {len(lines([model]))} bytes")
    site = ("--site", batch.folder / "site.toml")
    timed(batch, "assay submit --dry-run", given.repeat, "submit", batch.folder / "many.toml", *site, "--dry-run")
    said, calls = timed(batch, "assay submit", 1, "submit", batch.folder / "many.toml", *site)
    run = pathlib.Path(next(line[5:] for line in said.splitlines() if line.startswith("run: ")))
    check("calls of submit", sorted(calls), ["sbatch"] * 2 + ["scontrol"])
    arrays = {f"{array['number']}": 100 + array["number"]
              for array in json.loads((run / "batch/submission.json").read_text())["arrays"]}
    folders = shards_of(run)
    print(f"{len(folders)} shards")

    # The canary and half of the others have ended; 16 run; the rest waits.
    ended = folders[:1 + len(folders) // 2]
    finished = sum(finish_shard(each, model, environment, 1000 + i) for i, each in enumerate(ended))
    open_tasks = [int(each.name.split("-")[1]) for each in folders[len(ended):]]
    running, waiting = open_tasks[:16], open_tasks[16:]
    queue = "".join(queue_line(arrays["1"], task, "RUNNING", 5000 + task) for task in running)
    if waiting:
        queue += queue_line(arrays["1"], f"{waiting[0]}-{waiting[-1]}%16", "PENDING", arrays["1"])
    (batch.folder / "queue").write_text(queue)
    said, calls = timed(batch, "assay status, half of it done", given.repeat, "status", run)
    check("calls of status", calls, ["squeue"])
    told = json.loads(batch.command("status", run, "--json")[0])
    check("counts", told["counts"], {"ok": finished, "queued": given.cases - finished})
    timed(batch, "assay collect, half of it done", 1, "collect", run, "--quiet", codes=(0, 1))
    check("records", len((run / "cases.jsonl").read_text().splitlines()), finished)

    for i, each in enumerate(folders[len(ended):]):
        finish_shard(each, model, environment, 5000 + i)
    (batch.folder / "queue").write_text("")
    said, calls = timed(batch, "assay status, all done", given.repeat, "status", run)
    check("calls of status", calls, ["squeue"])
    check("counts", json.loads(batch.command("status", run, "--json")[0])["counts"], {"ok": given.cases})
    _, calls = timed(batch, "assay collect, all done", 1, "collect", run, "--quiet")
    check("calls of collect", calls, [])
    before = (run / "cases.jsonl").read_bytes()
    check("cases", [json.loads(line)["index"] for line in before.splitlines()], list(range(given.cases)))
    rows = (run / "table.csv").read_text().splitlines()
    check("rows of the table", len(rows), given.cases + 1)
    timed(batch, "assay collect, again", given.repeat, "collect", run, "--quiet")
    check("collecting again changes nothing", (run / "cases.jsonl").read_bytes() == before, True)
    print(f"cases.jsonl: {len(before) / 1e6:.1f} MB")


if __name__ == "__main__":
    sys.exit(main())
