#!/usr/bin/env python3
"""random_kills.py [--assay FILE --plugins FOLDER] N [SEED]: batches of short cases on private Slurm clusters, and N times
something of them is killed at a random moment: a worker, the process that leads it, srun, Slurm's daemons on a node, the
batch shell, a node, `assay submit` itself; or a job is requeued. Each time it goes on by itself, or as its user would have
it go on. In the end every case has one row in the table, nothing hangs, and nothing is left behind.

Exit status 77 where there can be no cluster."""
import collections
import os
import pathlib
import random
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import batch  # pylint: disable=wrong-import-position
import cluster  # pylint: disable=wrong-import-position

NODES = 4
CASES = 24
CLUSTERS_AT_ONCE = 3
BATCH_SECONDS = 240  # from its submission to its end, all kills and second submissions included
SWEEP = """[[sweep.zip]]
number = {numbers}
"cluster.nodes" = {shapes}
"run.ranks" = {shapes}
"""
WELL = ("idle", "alloc", "mix", "comp")


def parent_of(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def daemons_of(slurm, name):
    """The processes of this name that mini_slurm has started, or that they have."""
    mark, found = f"ASSAY_MINI_SLURM={slurm.folder}".encode(), []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "comm").read_text().strip() == name and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            pass  # gone meanwhile
    return found


class Killer:
    def __init__(self, slurm, chance):
        self.slurm = slurm
        self.chance = chance
        self.killed = collections.Counter()
        self.outlived = collections.Counter()  # processes of Slurm's, by name
        self.away = {}  # node: when it is to come back
        self.kinds = [self.worker, self.keeper, self.leader, self.srun, self.step_daemon, self.shell, self.node_daemon, self.node_down,
                      self.node, self.requeue, self.submission]

    def kill(self, b):
        """Something that is there."""
        for kind in self.chance.sample(self.kinds, len(self.kinds)):
            if kind(b):
                self.killed[kind.__name__] += 1
                return

    def one_of(self, pids):
        pids = sorted(pids)
        if pids:
            batch.send(self.chance.choice(pids))
        return bool(pids)

    def named(self, name):
        return [pid for pid, (found, _, _) in batch.processes_of(self.slurm).items() if found == name]

    def worker(self, _):
        keepers = self.named("assay-keeper")
        return self.one_of(pid for pid in batch.processes_of(self.slurm) if parent_of(pid) in keepers)

    def keeper(self, _):
        return self.one_of(self.named("assay-keeper"))

    def leader(self, _):
        return self.one_of(self.named("assay"))

    def srun(self, _):
        return self.one_of(self.named("srun"))

    def step_daemon(self, _):
        return self.one_of(daemons_of(self.slurm, "slurmstepd"))

    def shell(self, _):
        return self.one_of(self.named("slurm_script"))

    def any_node(self):
        nodes = [f"n{i + 1}" for i in range(NODES) if f"n{i + 1}" not in self.away]
        if len(nodes) < 3:
            return None
        node = self.chance.choice(nodes)
        self.away[node] = time.monotonic() + self.chance.uniform(0.5, 4)
        return node

    def node_daemon(self, _):
        node = self.any_node()
        if not node:
            return False
        file = self.slurm.folder / f"run/slurmd-{node}.pid"
        batch.send(int(file.read_text()))
        return True

    def node_down(self, _):
        node = self.any_node()
        if node:
            self.slurm.run(["scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test"])
        return bool(node)

    def node(self, _):
        node = self.any_node()
        if node:
            self.slurm.control("node-kill", node, *self.chance.choice([[], ["--noticed"]]))
        return bool(node)

    def requeue(self, _):
        running = sorted(job for job, state in self.slurm.states().items() if state == "RUNNING")
        if running:
            job, task = self.chance.choice(running)
            self.slurm.run(["scontrol", "requeue", f"{job}_{task}"])
        return bool(running)

    def submission(self, b):
        command = [batch.HOME["assay"], "submit", str(b.run_folder), "--resubmit", "lost,quarantined,blocked"]
        with subprocess.Popen(command, cwd=b.folder, env=self.slurm.environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            time.sleep(self.chance.uniform(0, 0.1))
            process.kill()
        return True

    def end_what_outlived_its_daemon(self):
        """An srun or a shell whose slurmstepd was killed may hang without end. Where control groups track processes Slurm
        ends them; this cluster has none. The processes of assay itself have to end."""
        deadline = time.monotonic() + 15
        while batch.processes_of(self.slurm) and time.monotonic() < deadline:
            time.sleep(0.2)
        for pid, (name, _, _) in batch.processes_of(self.slurm).items():
            if name in ("srun", "sleep", "slurm_script"):
                self.outlived[name] += 1
                batch.send(pid)

    def heal(self, everything=False):
        """Nodes come back when it is time; what Slurm leaves to the administrator is done."""
        for node, when in list(self.away.items()):
            if everything or when < time.monotonic():
                if not daemons_on(self.slurm, node):
                    self.slurm.control("node-start", node)
                del self.away[node]
        for line in self.slurm.run(["sinfo", "-hN", "-o", "%N %T"]).out.splitlines():
            node, state = line.split()
            if node not in self.away and not state.startswith(WELL):
                self.slurm.run(["scontrol", "update", f"NodeName={node}", "State=RESUME"])
        for line in self.slurm.run(["squeue", "-h", "-t", "PENDING", "-o", "%A %r"]).out.splitlines():
            if "held" in line.lower():
                self.slurm.run(["scontrol", "release", line.split()[0]])


def daemons_on(slurm, node):
    """Whether the node's slurmd lives."""
    try:
        pid = int((slurm.folder / f"run/slurmd-{node}.pid").read_text())
        return pid in daemons_of(slurm, "slurmd")
    except (OSError, ValueError):
        return False


def submit(b, chance):
    """In one of three batches `assay submit` is killed while it submits, and goes on."""
    if chance.random() < 1 / 3:
        command = [batch.HOME["assay"], "submit", str(b.file), "--site", str(b.site), "--plugin-path", batch.HOME["plugins"]]
        with subprocess.Popen(command, cwd=b.folder, env=b.slurm.environment, stdout=subprocess.DEVNULL) as process:
            cluster.wait_until("the submission is written", lambda: list(b.folder.glob("results/*/*/batch/submission.json")))
            time.sleep(chance.uniform(0, 0.05))
            process.kill()
        b.find_run()
        b.again()
        return 1
    b.submit()
    return 0


def run_batch(slurm, killer, number, kills):
    """How many kills there were."""
    chance = killer.chance
    shapes = [1 + i % 3 // 2 for i in range(CASES)]
    b = batch.Batch(slurm, f"random-{number}", sweep=SWEEP.format(numbers=list(range(CASES)), shapes=shapes), budget="8s",
                    timeout="20s", run='stall_timeout = "10s"\nwireup_timeout = "10s"', params="seconds = 0.7\nelements = 100")
    begun = time.monotonic()
    done = submit(b, chance)
    killer.killed["submission"] += done
    next_kill = time.monotonic() + chance.uniform(0, 2)
    while True:
        killer.heal()
        b.release()
        if done < kills and time.monotonic() > next_kill and not b.is_quiet():
            killer.kill(b)
            done += 1
            next_kill = time.monotonic() + chance.uniform(0, 2)
        if b.is_quiet():
            killer.heal(everything=True)
            b.again()
            counts = b.counts()
            if counts == {"ok": CASES}:
                break
            b.resubmit("lost,quarantined,failed,blocked")
        if time.monotonic() > begun + BATCH_SECONDS:
            raise AssertionError(f"a batch hangs, {BATCH_SECONDS} s after its submission\n{b.story()}")
        time.sleep(0.1)
    killer.heal(everything=True)
    records = b.collect()
    if len(records) != CASES or {r["status"] for r in records.values()} != {"ok"}:
        raise AssertionError(f"{len(records)} of {CASES} cases are in the table\n{b.story()}")
    killer.end_what_outlived_its_daemon()
    batch.wait_no_process(slurm, 15)
    left = set(slurm.states().values()) & {"PENDING", "RUNNING", "COMPLETING", "SUSPENDED"}
    if left:
        raise AssertionError(f"jobs are left: {slurm.states()}")
    return done


def run_cluster(kills, seed):
    begun, chance = time.monotonic(), random.Random(seed)
    with cluster.MiniSlurm(f"--nodes={NODES}") as slurm:
        killer, done, batches = Killer(slurm, chance), 0, 0
        try:
            while done < kills:
                done += run_batch(slurm, killer, batches, kills - done)
                batches += 1
        finally:
            print(f"  seed {seed}: {done} kills in finished batches {dict(sorted(killer.killed.items()))}, {batches} batches of "
                  f"{CASES} cases, outlived their slurmstepd: {dict(killer.outlived)}, {time.monotonic() - begun:.0f} s", flush=True)


def main():
    batch.take_options(sys.argv)
    why = subprocess.run([sys.executable, str(cluster.HERE / "mini_slurm"), "possible"], capture_output=True, text=True,
                         check=False)
    if why.returncode != 0:
        print(f"skipped: {(why.stdout + why.stderr).strip()}")
        return cluster.SKIPPED if why.returncode == cluster.SKIPPED else 1
    kills = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int.from_bytes(os.urandom(3), "little")
    if len(sys.argv) > 3:  # one of several clusters
        run_cluster(kills, seed)
        return 0
    print(f"{kills} kills, seed {seed}", flush=True)
    begun = time.monotonic()
    clusters = min(CLUSTERS_AT_ONCE, kills)
    shares = [kills // clusters + (i < kills % clusters) for i in range(clusters)]
    running = [subprocess.Popen([sys.executable, __file__, "--assay", batch.HOME["assay"], "--plugins", batch.HOME["plugins"],
                                 str(share), str(seed + i), "one"]) for i, share in enumerate(shares)]
    codes = [process.wait() for process in running]
    print(f"{kills} kills, seed {seed}: {'ok' if not any(codes) else 'FAILED'} after {time.monotonic() - begun:.0f} s")
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
