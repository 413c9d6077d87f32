#!/usr/bin/env python3
"""every_launcher_test.py ASSAY PLUGINS [LAUNCHER...]: each launcher that is installed starts two and three ranks, and the rows
are those of ranks that assay starts itself. Then one rank is missing, doubled, or loses its process: the message names it.
Launchers are looked for in PATH; ASSAY_TEST_LAUNCHERS may name more folders. With a third argument, for these alone. Prints
what assay said, a row for each. Exit status 77 where there is none."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import launchers_test
from launchers_test import cluster

# Started by the launcher in place of assay, with what it is to do to rank 1.
RANK = """#!/bin/sh
what=$1; shift
for name in OMPI_COMM_WORLD_RANK PMI_RANK RANK SLURM_PROCID; do
  eval "rank=\\${$name-}"
  [ -n "$rank" ] && break
done
case $what-$rank in
  missing-1) exec sleep 20 ;;
  no_1-1) export $name=0 ;;
  no_2-2) export $name=1 ;;
  killed-1) echo $$ > rank1.pid ;;
esac
exec "$@"
"""

NAMED = {"missing": "rank 1 of 2 did not come within 4 s", "no_1": "calls itself rank 0, too", "no_2": "rank 1 of this launch is there already"}
KILLED = re.compile(r"signal:? 9\b|killed|exit ?code:? *-?9\b", re.IGNORECASE)
LONG = launchers_test.EXPERIMENT.replace('place = ["forward", "collective"]\nfault_rank = [9, 1]', "fault_rank = [9]").replace(
    "steps = 3", "steps = 10000000")


def version(program, pattern):
    """What the program says of itself, where it is the one that is meant."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return None
    found = re.search(pattern, done.stdout + done.stderr)
    return found.group(1) if found else None


class Started:
    """By a program of this machine."""

    def __init__(self, name, program, arguments, found):
        self.name, self.program, self.arguments, self.version = name, program, arguments, found

    def command(self, ranks):
        return [self.program] + [argument.format(ranks=ranks) for argument in self.arguments]

    def environment(self):
        return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


# name, programs, what tells its version, arguments
KINDS = [
    ("Open MPI", ["mpirun.openmpi", "mpirun"], r"\(Open MPI\) (\S+)", ["--oversubscribe", "-n", "{ranks}"]),
    ("MPICH", ["mpiexec.mpich", "mpiexec.hydra", "mpiexec"], r"HYDRA build details:\s+Version:\s+(\S+)", ["-n", "{ranks}"]),
    ("Intel MPI", ["mpiexec.hydra", "mpiexec"], r"Intel\(R\) MPI Library.*Version (\S+)", ["-n", "{ranks}"]),
    ("torchrun", ["torchrun"], None, ["--no_python", "--nproc_per_node", "{ranks}"]),
]


def torch_version():
    done = subprocess.run(["python3", "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def launchers_here():
    folders = [f for f in os.environ.get("ASSAY_TEST_LAUNCHERS", "").split(":") if f] + os.environ["PATH"].split(":")
    for name, programs, pattern, arguments in KINDS:
        for path in [os.path.join(folder, program) for folder in folders for program in programs]:
            if not os.access(path, os.X_OK):
                continue
            found = version(path, pattern) if pattern else torch_version()
            if found:
                yield Started(name, path, arguments, found)
                break
        else:
            print(f"{name}: not installed")


class Trials:
    def __init__(self, work, assay, plugins):
        self.work, self.assay, self.plugins, self.count = work, assay, plugins, 0

    def case(self, ranks, experiment=launchers_test.EXPERIMENT):
        self.count += 1
        case = launchers_test.Case(self.work, f"c{self.count}", self.assay, self.plugins)
        (case.folder / "x.toml").write_text(experiment.replace("ranks = 2", f"ranks = {ranks}\nwireup_timeout = \"4s\""))
        (case.folder / "rank.sh").write_text(RANK)
        (case.folder / "rank.sh").chmod(0o755)
        return case

    def begin(self, launcher, case, ranks, what):
        command = launcher.command(ranks) + [str(case.folder / "rank.sh"), what] + case.command
        return subprocess.Popen(command, cwd=case.folder, env=launcher.environment(), stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def said(self, process, timeout=90):
        try:
            text = process.communicate(timeout=timeout)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError(f"no end: {process.communicate()[0]}") from None
        return process.returncode, text


def lines_of_assay(text):
    """Without what the launcher itself says."""
    kept = [line for line in text.splitlines() if "assay: " in line or re.search(r"rank \d", line)]
    return list(dict.fromkeys(re.sub(r"^\[[^]]*\]\S*\s*", "", line).strip() for line in kept))


def expect(condition, text):
    assert condition, text


class Srun(Started):
    """Slurm, which the test starts on this machine."""

    def __init__(self, slurm):
        super().__init__("Slurm, srun", "srun", ["-N", "{ranks}", "-n", "{ranks}"], slurm.run(["srun", "--version"]).out.strip())
        self.slurm = slurm

    def environment(self):
        return dict(super().environment(), **self.slurm.environment)


def try_launcher(trials, launcher, alone):
    row = [launcher.name, launcher.version]
    for ranks in (2, 3):
        case = trials.case(ranks)
        status, text = trials.said(trials.begin(launcher, case, ranks, "all"))
        expect(status != 0, text)
        launchers_test.expect_rows(case.records(text), alone[ranks], text)
        row.append("same rows")
    for what, ranks in (("missing", 2), ("no_1", 2), ("no_2", 3)):
        case = trials.case(ranks)
        status, text = trials.said(trials.begin(launcher, case, ranks, what))
        expect(status != 0, text)
        told = lines_of_assay(text)
        expect(any(NAMED[what] in line for line in told), text)
        row.append(" / ".join(told))
    case = trials.case(2, LONG)
    process = trials.begin(launcher, case, 2, "killed")
    end = time.monotonic() + 60
    while not list(case.folder.glob("results/ranks/*/logs/case-0001.rank1.log")):
        expect(time.monotonic() < end and process.poll() is None, "no second rank")
        time.sleep(0.1)
    os.kill(int((case.folder / "rank1.pid").read_text()), signal.SIGKILL)
    status, text = trials.said(process)
    expect(status != 0, text)
    records = [json.loads(line) for file in case.folder.glob("results/ranks/2*/cases.jsonl") for line in file.open()]
    told = lines_of_assay(text) + [f"record: {r['status']}: {r['reason'].split('; log')[0]}" for r in records]
    # A launcher may end every rank before assay can write a record: then it says itself what became of rank 1.
    named = all(r["status"] == "crashed" for r in records) if records else KILLED.search(text)
    expect(named, f"{records}\n{text}")
    row.append(" / ".join(told) or "ended by the launcher")
    print("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |", flush=True)


def main():
    # The hash of a case holds the threads of the CPU device, and mpirun gives each process a core of its own.
    os.environ["OMP_NUM_THREADS"] = "1"
    assay, plugins, *only = sys.argv[1:]
    launchers = [launcher for launcher in launchers_here() if not only or launcher.name in only]
    if not launchers:
        launchers_test.skip("no launcher is installed (package openmpi-bin or mpich, impi-rt or torch of PyPI)")
    with tempfile.TemporaryDirectory(prefix="assay-") as temporary:
        os.environ["TMPDIR"] = temporary
        trials, alone = Trials(pathlib.Path(temporary), assay, plugins), {}
        for ranks in (2, 3):
            case = trials.case(ranks)
            done = subprocess.run(case.command, cwd=case.folder, capture_output=True, text=True, timeout=120, check=False)
            alone[ranks] = case.records(done.stdout + done.stderr)
            assert [r["status"] for r in alone[ranks]] == ["ok", "crashed"] * 2, alone[ranks]
        print("| launcher | version | two ranks | three ranks | one missing | rank 0 twice | rank 1 twice | one killed |\n" + "| --- " * 8 + "|")
        for launcher in launchers:
            try_launcher(trials, launcher, alone)
        if (not only or "Slurm" in only) and not cluster.why_impossible():
            with cluster.MiniSlurm("--nodes=3") as slurm:
                try_launcher(trials, Srun(slurm), alone)
    print("ok")


if __name__ == "__main__":
    main()
