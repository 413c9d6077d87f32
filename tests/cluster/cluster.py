"""What the tests of batches on a cluster share: a private Slurm for each (mini_slurm), waiting with a deadline, commands
with their duration, and stand-ins for Slurm's commands that count the calls and can fail, hang or lose the answer.

  class Something(cluster.TestCase):
      nodes = 3                        # and whatever else `mini_slurm start` can be told, in `options`
      def test_it(self):
          job = self.slurm.submit("srun sleep 60", "--nodes=2")
          self.slurm.wait_state(job, "RUNNING")
          self.slurm.control("node-kill", "n2", "--noticed")

  if __name__ == "__main__":
      cluster.main()                   # exit status 77 where there can be no cluster
"""
import ctypes
import dataclasses
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
COMMANDS = ("squeue", "sbatch", "sacct", "scontrol", "scancel", "sinfo", "srun")
DAEMONS = ("munged", "slurmctld", "slurmd", "slurmstepd")
# A job of any other state waits, runs, or comes again.
OVER = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",
        "TIMEOUT"}
SKIPPED = 77
PR_SET_CHILD_SUBREAPER = 36


@dataclasses.dataclass
class Done:
    """A command that has ended."""
    command: list
    status: int
    out: str
    err: str
    seconds: float

    def __str__(self):
        return f"{shlex.join(self.command)}: exit status {self.status} after {self.seconds:.2f} s\n{self.out}{self.err}"


def wait_until(what, reached, seconds=60.0, every=0.05):
    """What `reached` gives, once that is true. It is asked again and again; after `seconds` the test fails."""
    deadline = time.monotonic() + seconds
    while not (answer := reached()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not so within {seconds:g} s; the last answer was {answer!r}")
        time.sleep(every)
    return answer


class Shims:
    """A folder to be first in PATH, with a stand-in for each of COMMANDS: it notes the call, and goes on to the real one
    unless it was told otherwise. Jobs inherit the PATH they were submitted with, so calls from within jobs are seen too."""

    SCRIPT = """#!/bin/sh
at={at}
printf '%s\\t%s\\n' "${{SLURM_JOB_ID:-outside}}" "$*" >>"$at/calls"
if [ -e "$at/once" ]; then mv "$at/once" "$at/told.$$" 2>/dev/null && told=$at/told.$$; fi
[ -n "$told" ] || [ ! -e "$at/always" ] || told=$at/always
[ -z "$told" ] || . "$told"
exec {real} "$@"
"""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.real = {}
        for name in COMMANDS:
            at = self.folder / "of" / name
            at.mkdir(parents=True)
            self.real[name] = shutil.which(name) or "/nowhere/" + name
            script = self.folder / name
            script.write_text(self.SCRIPT.format(at=shlex.quote(str(at)), real=shlex.quote(self.real[name])))
            script.chmod(0o755)

    def calls(self, name, inside_jobs=False):
        """The arguments of each call so far, a string each: of those from outside of jobs, or of the others."""
        file = self.folder / "of" / name / "calls"
        lines = [line.split("\t", 1) for line in file.read_text().splitlines()] if file.exists() else []
        return [line[1] for line in lines if len(line) == 2 and (line[0] != "outside") == inside_jobs]

    def forget(self):
        """Counts from zero again."""
        for name in COMMANDS:
            (self.folder / "of" / name / "calls").unlink(missing_ok=True)

    def fail(self, name, text, status=1, once=False):
        """The command does nothing but say `text` on stderr and end with `status`."""
        self.tell(name, f"printf '%s\\n' {shlex.quote(text)} >&2; exit {status}", once)

    def hang(self, name, seconds=3600, once=False):
        """The command does nothing at all, for so long."""
        self.tell(name, f"exec sleep {seconds}", once)

    def lose(self, name, text="Socket timed out on send/recv operation", once=False):
        """The command does what it should, but its answer is lost on the way: `text`, and exit status 1."""
        self.tell(name, f"{shlex.quote(self.real[name])} \"$@\" >/dev/null 2>&1; "
                         f"printf '%s\\n' {shlex.quote(text)} >&2; exit 1", once)

    def restore(self, name):
        for file in ("once", "always"):
            (self.folder / "of" / name / file).unlink(missing_ok=True)

    def tell(self, name, script, once=False):
        """The command does this, as lines of a shell script, and then what it should, unless they end it."""
        file = self.folder / "of" / name / ("once" if once else "always")
        part = file.with_suffix(".part")
        part.write_text(script + "\n")
        part.rename(file)


class MiniSlurm:
    """with MiniSlurm("--nodes=3") as slurm: ...   A cluster of its own, in a folder of its own; `slurm.folder / "work"` is
    for the test, seen by all nodes. See mini_slurm for the options."""

    def __init__(self, *options):
        self.options = options
        self.folder = None
        self.shims = None
        self.environment = None

    def __enter__(self):
        # The daemons become children of this process, not of a container's first one, which may reap none.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-slurm-"))  # short: it holds sockets
        (self.folder / "work").mkdir()
        try:
            self.control("start", *self.options)
            os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
            self.shims = Shims(self.folder / "shims")
            self.environment = {name: value for name, value in os.environ.items()
                                if not name.startswith(("SLURM_", "SBATCH_", "SQUEUE_", "SINFO_", "SCONTROL_"))}
            self.environment["SLURM_CONF"] = str(self.folder / "etc/slurm.conf")
            self.environment["PATH"] = f"{self.folder / 'shims'}{os.pathsep}{os.environ['PATH']}"
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.control("stop")
        finally:
            reap_daemons()
            if os.environ.get("ASSAY_KEEP_SLURM") != "1":
                shutil.rmtree(self.folder, ignore_errors=True)

    def control(self, act, *arguments):
        """mini_slurm ACT DIR ...; where it fails, the test does."""
        done = subprocess.run([sys.executable, str(HERE / "mini_slurm"), act, str(self.folder), *arguments],
                              capture_output=True, text=True, timeout=180, check=False)
        if done.returncode != 0:
            raise AssertionError(f"mini_slurm {act} {shlex.join(arguments)}: exit status {done.returncode}\n{done.stderr}")

    def run(self, command, timeout=120, environment=(), cwd=None):
        """A command as a user of the cluster gives it."""
        command = [str(part) for part in command]
        begun = time.monotonic()
        done = subprocess.run(command, env={**self.environment, **dict(environment)}, cwd=cwd or self.folder / "work",
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False)
        return Done(command, done.returncode, done.stdout, done.stderr, time.monotonic() - begun)

    def call(self, *command, **options):
        """Its stdout; the test fails where the command does."""
        done = self.run(command, **options)
        if done.status != 0:
            raise AssertionError(str(done))
        return done.out

    def submit(self, script, *options):
        """The id of a job whose batch script has these lines; its output is work/ID.txt, or as the options say."""
        file = pathlib.Path(tempfile.mkstemp(dir=self.folder / "work", prefix="job-", suffix=".sh")[1])
        file.write_text(f"#!/bin/bash\n{script}\n")
        return self.call("sbatch", "--parsable", "--open-mode=append", "--output=%A.txt", *options, str(file)).strip()

    def states(self, *jobs):
        """{(job or array, task or ""): state} of these jobs, or of all. Not through the stand-ins, so it is not counted."""
        done = self.run([self.shims.real["squeue"], "--noheader", "--states=all", "--format=%F|%K|%T"],
                        environment={"SLURM_BITSTR_LEN": "0"})
        if done.status != 0:
            raise AssertionError(str(done))
        found = {}
        for line in done.out.splitlines():
            job, task, state = line.split("|")
            if not jobs or job in jobs:
                found[job, "" if task == "N/A" else task] = state
        return found

    def waiting_starts(self):
        """What waits, as {(job, task, how often it was started anew)}: the next start of a job is another one."""
        done = self.run([self.shims.real["squeue"], "--noheader", "--states=PENDING",
                         "--Format=ArrayJobID:|,ArrayTaskID:|,RestartCnt:|"], environment={"SLURM_BITSTR_LEN": "0"})
        if done.status != 0:
            raise AssertionError(str(done))
        return {tuple(line.split("|")[:3]) for line in done.out.splitlines()}

    def wait_state(self, job, state, task="", seconds=60.0):
        wait_until(f"job {job}{task and '_' + task} {state}", lambda: self.states(job).get((job, task)) == state, seconds)

    def output(self, job):
        file = self.folder / f"work/{job}.txt"
        return file.read_text() if file.exists() else ""


def reap_daemons():
    """Of the children that this process has inherited, those that were a cluster's."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            name, rest = (entry / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
            if int(rest.split()[1]) == os.getpid() and name in DAEMONS:
                os.waitpid(int(entry.name), os.WNOHANG)
        except (OSError, IndexError):
            pass


class TestCase(unittest.TestCase):
    """One cluster for all tests of a class, as `self.slurm`."""
    nodes = 3
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.slurm = MiniSlurm(f"--nodes={cls.nodes}", *cls.options)
        cls.slurm.__enter__()
        cls.addClassCleanup(cls.slurm.__exit__)

    def tearDown(self):
        """No job of one test is left for the next."""
        for name in COMMANDS:
            self.slurm.shims.restore(name)
        self.slurm.shims.forget()
        self.slurm.run([self.slurm.shims.real["scancel"], f"--user={os.getuid()}"])
        wait_until("no job left", lambda: not set(self.slurm.states().values()) - OVER)


def why_impossible():
    """Why there can be no cluster on this machine; "" where there can be one."""
    why = subprocess.run([sys.executable, str(HERE / "mini_slurm"), "possible"], capture_output=True, text=True, check=False)
    if why.returncode not in (0, SKIPPED):
        raise RuntimeError(why.stdout + why.stderr)
    return (why.stdout + why.stderr).strip() if why.returncode == SKIPPED else ""


def main():
    """unittest.main(), or exit status 77 and the reason where there can be no cluster."""
    if why := why_impossible():
        print(f"skipped: {why}")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
