"""What the tests of batches share beyond cluster.py: an experiment and a site in a folder that all nodes see, the commands
`assay submit|status|collect|cancel` on them, and what must hold of the files at the end.

The executable and the plugin `misbehaving` are named by the environment variables ASSAY and ASSAY_TEST_PLUGINS, or by
--assay FILE and --plugins FOLDER."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import cluster

HOME = {"assay": os.environ.get("ASSAY", ""), "plugins": os.environ.get("ASSAY_TEST_PLUGINS", "")}

EXPERIMENT = """schema = 1
name = "{name}"
[workload]
plugin = "misbehaving"
[workload.params]
marks = "{marks}"
{params}
[sweep]
{sweep}
[measure]
warmup = 0
steps = 1
timeout = "{timeout}"
[run]
device = "cpu"
threads = 1
{run}
[cluster]
budget = "{budget}"
[output]
dir = "{results}"
formats = ["json", "csv"]
"""

SITE = """schema = 1
[slurm]
partition = "{partition}"
time_max = "{time_max}"
{place}
[slurm.limits]
array_parallel = {array_parallel}
attempts = 5
margin = "{margin}"
{limits}
[slurm.canary]
enable = {canary}
"""

DEFAULTS = {"params": "", "run": "", "timeout": "60s", "budget": "1s", "partition": "debug", "time_max": "1m",
            "place": "", "results": "results", "margin": "20s", "array_parallel": 16, "limits": "", "canary": "false"}
ACTIVE = {"queued", "running", "unknown"}


def take_options(arguments):
    """Takes --assay and --plugins out of the arguments. Exit status 2 where neither they nor the environment say."""
    for name in HOME:
        if f"--{name}" in arguments:
            at = arguments.index(f"--{name}")
            HOME[name] = str(pathlib.Path(arguments[at + 1]).resolve())
            del arguments[at:at + 2]
        if not HOME[name]:
            print("which executable? set ASSAY and ASSAY_TEST_PLUGINS, or give --assay FILE --plugins FOLDER")
            sys.exit(2)


def processes_of(slurm):
    """{process id: (name, job, command line)} of what the jobs of a cluster have started, wherever it has got to."""
    mark, found = f"SLURM_CONF={slurm.folder}/etc/slurm.conf".encode(), {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
            job = [line[13:].decode() for line in environment if line.startswith(b"SLURM_JOB_ID=")]
            if mark in environment and job and (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                name = (entry / "comm").read_text().strip()
                found[int(entry.name)] = (name, job[0], (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            pass  # gone meanwhile
    return found


def wait_no_process(slurm, seconds):
    deadline = time.monotonic() + seconds
    while left := processes_of(slurm):
        if time.monotonic() > deadline:
            raise AssertionError("processes are left:\n" + "\n".join(map(str, left.items())))
        time.sleep(0.1)


def processes_on(slurm, node):
    """The process ids of all that runs on a node, its slurmd too."""
    # Every process of a node is in its network namespace.
    slurmd = (slurm.folder / f"run/slurmd-{node}.pid").read_text().strip()
    space, found = os.readlink(f"/proc/{slurmd}/ns/net"), []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "ns/net") == space:
                found.append(int(entry.name))
        except OSError:
            pass  # gone meanwhile
    return found


def send(pid, which=signal.SIGKILL):
    try:
        os.kill(pid, which)
    except ProcessLookupError:
        pass


class Batch:
    """One experiment in work/NAME. `settings`: of DEFAULTS, and `sweep`."""

    def __init__(self, slurm, name, **settings):
        self.slurm = slurm
        self.name = name
        self.folder = slurm.folder / "work" / name
        self.marks = self.folder / "marks"
        self.marks.mkdir(parents=True)
        self.settings = {**DEFAULTS, **settings}
        self.file = self.folder / "x.toml"
        self.file.write_text(EXPERIMENT.format(name=name, marks=self.marks, **self.settings))
        self.site = self.folder / "site.toml"
        self.write_site()
        self.run_folder = None
        self.waiting = {}  # since when

    def write_site(self, **settings):
        self.settings.update(settings)
        self.site.write_text(SITE.format(**self.settings))

    def assay(self, *arguments, **options):
        command = [HOME["assay"], *arguments]
        of_run = self.run_folder is not None and self.run_folder in arguments  # it knows its plugin
        if arguments[0] in ("run", "submit", "collect") and "--plugin-path" not in arguments and not of_run:
            command += ["--plugin-path", HOME["plugins"]]
        return self.slurm.run(command, cwd=self.folder, **options)

    def submit(self, *options, status=0):
        """`assay submit` of the experiment. What it said."""
        done = self.assay("submit", self.file, "--site", self.site, *options)
        if done.status != status:
            raise AssertionError(str(done))
        self.find_run()
        return done

    def find_run(self):
        runs = sorted(path for path in (self.folder / self.settings["results"] / self.name).glob("*")
                      if (path / "experiment.toml").exists() and not path.is_symlink())
        self.run_folder = runs[-1] if runs else None

    def again(self, *options, status=0):
        done = self.assay("submit", self.run_folder, *options)
        if done.status != status:
            raise AssertionError(str(done))
        return done

    def resubmit(self, words, *options, status=0):
        return self.again("--resubmit", words, *options, status=status)

    def cancel(self):
        done = self.assay("cancel", self.run_folder)
        if done.status != 0:
            raise AssertionError(str(done))
        return done

    def status(self):
        done = self.assay("status", self.run_folder, "--json")
        if done.status != 0:
            raise AssertionError(str(done))
        return json.loads(done.out)

    def counts(self):
        return self.status()["counts"]

    def job(self, array=0):
        return (self.run_folder / f"batch/array-{array}.job").read_text().strip()

    def jobs(self):
        return [file.read_text().strip() for file in sorted(self.run_folder.glob("batch/array-*.job"))]

    def starts(self, number, rank=0):
        """A list [host, process, the one of assay that leads it, job, restarts] for each time that the case was begun."""
        file = self.marks / f"{number}.{rank}"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def wait_start(self, number, times=1, seconds=40.0):
        """The line of that start of a case."""
        self.wait(f"case {number} begins", lambda: len(self.starts(number)) >= times, seconds)
        return self.starts(number)[times - 1]

    def wait(self, what, reached, seconds=60.0):
        """As cluster.wait_until; jobs that were requeued start without their delay meanwhile."""
        begun = time.monotonic()
        while not (answer := reached()):
            if time.monotonic() > begun + seconds:
                raise AssertionError(f"{what}: not so within {seconds:g} s\n{self.story()}")
            self.release()
            time.sleep(0.3)
        return answer

    def release(self):
        """Lifts the delay of jobs that have waited for a second after a start. Without any, Slurm would take the end of that
        start for the end of the new one: the job is then over, FAILED."""
        waiting, now = self.slurm.waiting_starts(), time.monotonic()
        self.waiting = {start: self.waiting.get(start, now) for start in waiting}
        if waiting and all(since < now - 1 for since in self.waiting.values()):
            self.slurm.control("release")

    def wait_over(self, seconds=90.0):
        """The status once nothing of the batch runs or waits, in the queue either."""
        self.wait("the batch is over", self.is_quiet, seconds)
        return self.status()

    def is_quiet(self):
        return not set(self.slurm.states(*self.jobs()).values()) - cluster.OVER

    def story(self):
        """What there is to read when a test has failed."""
        parts = [str(self.assay("status", self.run_folder, "--all")), str(self.slurm.run(["squeue", "--states=all"]))]
        parts += [f"{log.name}:\n{log.read_text()[-3000:]}" for log in sorted(self.run_folder.glob("batch/log/*"))]
        return "\n".join(parts)

    def collect(self):
        """The table of the run: {index: record}. Fails where a case is there twice, or the summary says otherwise."""
        done = self.assay("collect", self.run_folder, "--json")
        if done.status not in (0, 1):
            raise AssertionError(str(done))
        records, lines = {}, (self.run_folder / "cases.jsonl").read_text().splitlines()
        for record in map(json.loads, lines):
            records[record["index"]] = record
        with open(self.run_folder / "table.csv", encoding="utf-8") as table:
            rows = len(table.read().strip().splitlines()) - 1
        if rows != len(records):
            raise AssertionError(f"the table has {rows} rows, and there are records of {len(records)} cases")
        return records


class BatchTestCase(cluster.TestCase):
    """Says how long each test took. At the end of each, no process and no job is left."""

    def setUp(self):
        self.begun = time.monotonic()
        self.batches = 0

    def batch(self, sweep=None, cases=3, **settings):
        self.batches += 1
        name = re.sub(r"[^a-z0-9]+", "-", self.id().split(".")[-1].removeprefix("test_")) + f"-{self.batches}"
        return Batch(self.slurm, name, sweep=sweep or f"number = {list(range(cases))}", **settings)

    def tearDown(self):
        print(f"  {self.id().split('.', 1)[-1]}: {time.monotonic() - self.begun:.1f} s", flush=True)
        left = self.slurm.states()
        cluster.TestCase.tearDown(self)
        wait_no_process(self.slurm, 20)
        active = {job: state for job, state in left.items() if state in ("PENDING", "RUNNING")}
        self.assertEqual(active, {}, "jobs were left in the queue")

    def assert_all(self, batch, status="ok", count=None):
        """Every case has one row, of this status; nothing is lost."""
        records = batch.collect()
        count = len(batch.status()["cases"]) if count is None else count
        self.assertEqual([r["status"] for r in records.values()], [status] * count, batch.story())
        lines = (batch.run_folder / "cases.jsonl").read_text().splitlines()
        self.assertEqual(len(lines), count, "a case has more than one record")
        return records

    def assert_begun(self, batch, times):
        """{number: how often}"""
        self.assertEqual({number: len(batch.starts(number)) for number in times}, times, batch.story())


def run_in_parallel(file, names, at_once):
    """Each test case of a program in a separate process, so many at once. Whether all went well."""
    waiting, running, good = list(names), {}, True
    while waiting or running:
        while waiting and len(running) < at_once:
            name = waiting.pop(0)
            running[name] = (time.monotonic(), subprocess.Popen(
                [sys.executable, file, "--assay", HOME["assay"], "--plugins", HOME["plugins"], name],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        for name, (begun, process) in list(running.items()):
            try:
                said, _ = process.communicate(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            del running[name]
            good = good and process.returncode == 0
            print(f"{name}: {'ok' if process.returncode == 0 else 'FAILED'} after {time.monotonic() - begun:.1f} s")
            print(said if process.returncode != 0 else "\n".join(re.findall(r"  [\w.]+: [\d.]+ s$", said, re.MULTILINE)),
                  flush=True)
    return good
