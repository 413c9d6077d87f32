#!/usr/bin/env python3
"""Batches on two clusters of one Slurm, whose jobs have the same numbers; play_clusters.py plays the scheduler. The
environment variables ASSAY and ASSAY_TEST_PLUGINS name the executable and the folder of the plugin `misbehaving`."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import batch

SITE = """schema = 1
[slurm]
{cluster}
time_max = "1m"
[slurm.limits]
margin = "20s"
[slurm.canary]
enable = false
"""


class Clusters:
    def __init__(self, work):
        self.work = work
        self.home = work / "clusters"
        player = pathlib.Path(__file__).resolve().parent / "play_clusters.py"
        (work / "bin").mkdir()
        for name in ("sbatch", "squeue", "scancel", "scontrol", "sinfo"):
            (work / "bin" / name).symlink_to(player)
        for name in ("east", "west"):
            (self.home / name).mkdir(parents=True)
        (work / "east.toml").write_text(SITE.format(cluster=""))
        (work / "west.toml").write_text(SITE.format(cluster='cluster = "west"'))
        (work / "gone.toml").write_text(SITE.format(cluster='cluster = "gone"'))
        self.environment = dict(os.environ, PATH=f"{work}/bin:{os.environ['PATH']}", PLAYED_CLUSTERS=str(self.home))

    def assay(self, *arguments, code=0):
        (self.home / "calls").write_text("")
        done = subprocess.run([batch.HOME["assay"], *map(str, arguments)], cwd=self.work, capture_output=True, text=True,
                              timeout=60, check=False, env=self.environment)
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def calls(self, program):
        """Of the last command."""
        return [line for line in (self.home / "calls").read_text().splitlines() if line.startswith(program + " ")]

    def said_of_submit(self, name, site, numbers, code=0, device="cpu"):
        text = batch.EXPERIMENT.replace('device = "cpu"', f'device = "{device}"')
        (self.work / f"{name}.toml").write_text(text.format(**dict(
            batch.DEFAULTS, name=name, marks="", sweep=f"number = {numbers}", results=self.work / "results")))
        return self.assay("submit", f"{name}.toml", "--site", f"./{site}.toml", "--plugin-path", batch.HOME["plugins"], code=code)

    def submit(self, name, site, numbers, code=0):
        said = self.said_of_submit(name, site, numbers, code)
        return pathlib.Path(said.split("run: ", 1)[1].splitlines()[0]) if code == 0 else said

    def counts(self, run):
        return json.loads(self.assay("status", run, "--json"))["counts"]

    def jobs(self, cluster):
        return json.loads((self.home / cluster / "jobs.json").read_text())

    def set_state(self, cluster, number, state):
        """None: it has left the queue."""
        jobs = self.jobs(cluster)
        job = jobs.pop(number)
        if state:
            jobs[number] = dict(job, state=state)
        (self.home / cluster / "jobs.json").write_text(json.dumps(jobs))


def by_hand(clusters, run, code):
    return clusters.assay("run", run / "experiment.toml", "--shard", run / "batch/shards/0-0000", "--quiet", code=code)


def test_each_is_asked_for_its_own(clusters):
    """Two batches whose arrays have the same number."""
    west = clusters.submit("w", "west", [1, 2])
    assert [c.split()[1] for c in clusters.calls("sbatch")] == ["--clusters=west"], clusters.calls("sbatch")
    east = clusters.submit("e", "east", [1, 2])
    assert not any("--clusters" in call for call in clusters.calls("sbatch"))
    assert list(clusters.jobs("west")) == list(clusters.jobs("east")) == ["100"]
    assert (west / "batch/array-0.job").read_text().strip() == "100;west"
    scripts = {run: (run / "batch/array-0.sbatch").read_text() for run in (west, east)}
    assert "ASSAY_CLUSTER=west" in scripts[west] and "ASSAY_CLUSTER" not in scripts[east]

    assert clusters.counts(west) == clusters.counts(east) == {"queued": 2}
    clusters.set_state("east", "100", None)
    assert clusters.counts(west) == {"queued": 2}, "the other cluster's job of this number has left its queue"
    assert all("--clusters=west" in call for call in clusters.calls("squeue")) and clusters.calls("squeue")
    assert clusters.counts(east) == {"lost": 2}, "the other cluster's job of this number still waits"
    assert not any("--clusters" in call for call in clusters.calls("squeue"))
    assert "no case of" in clusters.assay("submit", west, "--resubmit", "lost"), "nothing is submitted twice"
    assert list(clusters.jobs("west")) == ["100"]
    clusters.assay("submit", east, "--resubmit", "lost")
    assert list(clusters.jobs("east")) == ["101"] and clusters.counts(east) == {"queued": 2}
    return west, east


def test_cancelled_there(clusters, west, east):
    """Numbers are cancelled on the cluster that has given them."""
    clusters.submit("w2", "west", [1])
    assert list(clusters.jobs("west")) == ["100", "101"]
    clusters.assay("cancel", east)
    assert not any("--clusters" in call for call in clusters.calls("scancel")) and clusters.calls("scancel")
    assert clusters.jobs("east") == {} and list(clusters.jobs("west")) == ["100", "101"]
    clusters.assay("cancel", west)
    assert clusters.calls("scancel") == ["scancel --clusters=west 100"], clusters.calls("scancel")
    assert list(clusters.jobs("west")) == ["101"] and clusters.counts(west) == {"cancelled": 2}


def test_an_attempt_lives_on_its_cluster(clusters):
    """Whether a shard's last job is over is for its own cluster to say."""
    west = clusters.submit("w3", "west", [1, 2])
    (number,) = [n for n in clusters.jobs("west") if n != "101"]
    clusters.set_state("west", number, "RUNNING")
    attempt = west / "batch/shards/0-0000/attempts/0001"
    attempt.mkdir(parents=True)
    claim = {"job": f"{int(number) * 1000}", "restart": 0, "host": "w1", "pid": 1, "nodes": ["w1"], "began_s": 1.0,
             "cluster": "west", "kind": "slurm"}
    (attempt / "claim.json").write_text(json.dumps(claim))
    before = sorted(p.name for p in attempt.parent.iterdir())
    by_hand(clusters, west, 73)  # the east knows no such job
    assert sorted(p.name for p in attempt.parent.iterdir()) == before
    east = clusters.jobs("west")[number]
    clusters.set_state("west", number, None)
    (clusters.home / "east/jobs.json").write_text(json.dumps({number: east}))  # and now has one
    by_hand(clusters, west, 0)
    assert clusters.counts(west) == {"ok": 2}
    assert "2 of them new" in clusters.assay("collect", west)


def test_a_cluster_that_nobody_knows(clusters):
    """Refused before there is a run."""
    before = sorted((clusters.work / "results").iterdir())
    said = clusters.submit("g", "gone", [1], code=1)
    assert "'gone' can't be reached now" in said, said
    assert sorted((clusters.work / "results").iterdir()) == before


def test_only_a_note_needs_the_nodes(clusters):
    """A scheduler that does not say what nodes have still takes jobs."""
    clusters.environment["PLAYED_REFUSALS"] = "sinfo"
    said = clusters.said_of_submit("n", "east", [1], device="auto")
    assert clusters.calls("sinfo") and clusters.calls("sbatch"), said
    assert "note: whether nodes have GPUs that no job asks for is not known: " in said and "sinfo is busy" in said, said
    del clusters.environment["PLAYED_REFUSALS"]
    assert "is not known" not in clusters.said_of_submit("n2", "east", [1], device="auto")


def main():
    with tempfile.TemporaryDirectory(prefix="assay-clusters-") as folder:
        clusters = Clusters(pathlib.Path(folder))
        runs = test_each_is_asked_for_its_own(clusters)
        test_cancelled_there(clusters, *runs)
        test_an_attempt_lives_on_its_cluster(clusters)
        test_a_cluster_that_nobody_knows(clusters)
        test_only_a_note_needs_the_nodes(clusters)
    print("ok")


if __name__ == "__main__":
    batch.take_options(sys.argv)
    main()
