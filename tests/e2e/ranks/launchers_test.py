#!/usr/bin/env python3
"""launchers_test.py mpirun|slurm ASSAY PLUGINS: one experiment file, started by assay alone and by a launcher: the same
rows, in one results folder. Exit status 77 when the launcher is not there."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cluster"))
import cluster  # noqa: E402  pylint: disable=wrong-import-position

EXPERIMENT = """
schema = 1
name = "ranks"
[workload]
plugin = "faulty_rank"
[workload.params]
fault = "kill"
elements = 1000
[sweep]
place = ["forward", "collective"]
fault_rank = [9, 1]
[measure]
warmup = 0
steps = 3
timeout = "60s"
[run]
device = "cpu"
ranks = 2
threads = 1
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


class Case:
    """A folder with the experiment, and the command that runs it there."""

    def __init__(self, work, name, assay, plugins):
        self.folder = work / name
        self.folder.mkdir()
        (self.folder / "x.toml").write_text(EXPERIMENT)
        self.command = [assay, "run", "x.toml", "--plugin-path", plugins]

    def records(self, said):
        """Of the one run, which a killed rank has failed; nothing but its folder is left."""
        output = self.folder / "results"
        assert output.is_dir(), said
        assert sorted(p.name for p in output.iterdir()) == ["ranks"], list(output.iterdir())
        runs = [p for p in (output / "ranks").iterdir() if not p.is_symlink()]
        assert len(runs) == 1, runs
        return [json.loads(line) for line in (runs[0] / "cases.jsonl").read_text().splitlines()]


def row(record):
    """What may not depend on how the ranks were started."""
    kept = [record[key] for key in ("axes", "hash", "status", "rank", "ranks", "stage", "phase")]
    kept += [record.get("step"), record.get("log_tail"), [r["rank"] for r in record["by_rank"]]]
    if record["status"] != "ok":
        kept += [record["reason"].split(": ", 1)[1].split("; log: ")[0], [r["status"] for r in record["by_rank"]]]
    return kept


def hosts(record):
    return [rank["host"] for rank in record["by_rank"]]


def run_alone(work, assay, plugins):
    case = Case(work, "alone", assay, plugins)
    done = subprocess.run(case.command, cwd=case.folder, capture_output=True, text=True, timeout=120, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    records = case.records(said)
    assert [r["status"] for r in records] == ["ok", "crashed"] * 2, records
    assert all(r["ranks"] == 2 for r in records)
    return records


def expect_rows(records, alone, said):
    assert [row(r) for r in records] == [row(r) for r in alone], f"{records}\n{alone}\n{said}"


def test_mpirun(work, assay, plugins):
    if not shutil.which("mpirun"):
        skip("mpirun is not installed (package openmpi-bin)")
    alone = run_alone(work, assay, plugins)
    case = Case(work, "mpirun", assay, plugins)
    environment = dict(os.environ, TMPDIR=str(work), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run(["mpirun", "--oversubscribe", "-n", "2"] + case.command, cwd=case.folder, env=environment,
                          capture_output=True, text=True, timeout=120, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    expect_rows(case.records(said), alone, said)
    assert said.count("results: ") == 1, said


def test_slurm(work, assay, plugins):
    if why := cluster.why_impossible():
        skip(why)
    alone = run_alone(work, assay, plugins)
    with cluster.MiniSlurm("--nodes=2") as slurm:
        case = Case(work, "srun", assay, plugins)
        done = slurm.run(["srun", "-N", "2", "-n", "2"] + case.command, cwd=case.folder)
        said = done.out + done.err
        assert done.status == 1, said
        records = case.records(said)
        expect_rows(records, alone, said)
        assert all(hosts(r) == ["n1", "n2"] for r in records), records
        killed = [r for r in records if r["status"] == "crashed"]
        assert all(r["reason"].startswith("rank 1 on n2: killed by SIGKILL") for r in killed), killed

        # In a batch script Slurm's own variables say rank 0 of 2, but nobody else has started.
        case = Case(work, "sbatch", assay, plugins)
        script = case.folder / "job.sh"
        script.write_text("#!/bin/sh\nexec " + " ".join(case.command) + "\n")
        done = slurm.run(["sbatch", "--wait", "-N", "2", "-n", "2", "-o", "said.txt", str(script)], cwd=case.folder)
        said = done.out + done.err + (case.folder / "said.txt").read_text()
        records = case.records(said)
        expect_rows(records, alone, said)
        assert all(hosts(r) == ["n1", "n1"] for r in records), records

        if not shutil.which("mpirun"):
            print("without mpirun in a batch script: mpirun is not installed (package openmpi-bin)")
            return
        case = Case(work, "mpirun_in_sbatch", assay, plugins)
        script = case.folder / "job.sh"
        script.write_text("#!/bin/sh\nexport OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n"
                          "exec mpirun --oversubscribe -n 2 " + " ".join(case.command) + "\n")
        done = slurm.run(["sbatch", "--wait", "-N", "1", "-n", "2", "-o", "said.txt", str(script)], cwd=case.folder)
        said = done.out + done.err + (case.folder / "said.txt").read_text()
        expect_rows(case.records(said), alone, said)


if __name__ == "__main__":
    # The hash of a case holds the threads of the CPU device, and mpirun gives each process its own core.
    os.environ["OMP_NUM_THREADS"] = "1"
    launcher, executable, plugin_folder = sys.argv[1:]
    # A short path: it holds sockets, whose names are limited.
    with tempfile.TemporaryDirectory(prefix="assay-") as temporary:
        {"mpirun": test_mpirun, "slurm": test_slurm}[launcher](pathlib.Path(temporary), executable, plugin_folder)
    print("ok")
