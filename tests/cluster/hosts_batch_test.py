#!/usr/bin/env python3
"""Batches on a site of hosts that ssh reaches: a real sshd of this machine plays them. Exit status 77 where there is none.
The environment variables ASSAY and ASSAY_TEST_PLUGINS name the executable and the folder of the plugin `misbehaving`."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import batch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import ssh_hosts  # noqa: E402  pylint: disable=wrong-import-position

SITE = """schema = 1
[ssh]
hosts = ["a", "b"]
time_max = "1m"
prologue = ["{prologue}"]
[ssh.limits]
attempts = 2
margin = "20s"
[ssh.canary]
enable = {canary}
"""
SILENCE_S = 3


class Batch:
    def __init__(self, work, hosts, name, sweep, canary=False, params="", run="", prologue="true", **more):
        self.hosts, self.folder = hosts, work / name
        self.folder.mkdir()
        self.marks = self.folder / "marks"
        self.marks.mkdir()
        values = dict(batch.DEFAULTS, name=name, marks=self.marks, sweep=sweep, params=params, run=run, **more)
        (self.folder / "x.toml").write_text(batch.EXPERIMENT.format(**values))
        (self.folder / "site.toml").write_text(SITE.format(canary=str(canary).lower(), prologue=prologue))
        said = self.assay("submit", "x.toml", "--site", "./site.toml", "--plugin-path", batch.HOME["plugins"])
        self.run = pathlib.Path(said.split("run: ", 1)[1].splitlines()[0])

    def assay(self, *arguments, code=0):
        done = subprocess.run([batch.HOME["assay"], *arguments], cwd=self.folder, capture_output=True, text=True, timeout=120,
                              check=False, env=self.hosts.environment(ASSAY_HOSTS_SILENCE_S=str(SILENCE_S)))
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def status(self):
        return json.loads(self.assay("status", str(self.run), "--json"))

    def wait(self, is_so=lambda status: status["is_over"], seconds=60):
        deadline = time.monotonic() + seconds
        while not is_so(status := self.status()):
            assert time.monotonic() < deadline, f"{status}\n{self.logs()}"
            time.sleep(0.2)
        return status

    def logs(self):
        return "".join(f"{p.name}:\n{p.read_text()}" for p in sorted((self.run / "batch" / "log").iterdir()))

    def runner(self, host):
        return json.loads((self.run / "batch" / "hosts" / f"{host}.json").read_text())["pid"]

    def records(self):
        self.assay("collect", str(self.run))
        return [json.loads(line) for line in (self.run / "cases.jsonl").read_text().splitlines()]

    def starts(self, number):
        return sum(len(p.read_text().splitlines()) for p in self.marks.glob(f"{number}.0"))


def test_table(work, hosts):
    """All cases once, on both hosts, whatever becomes of the session that has submitted them."""
    one = Batch(work, hosts, "table", "number = [1, 2, 3, 4, 5, 6]", canary=True, params='action = "ok"\nseconds = 0',
                budget="15s")
    for host in ("a", "b"):
        for connection in hosts.connections(host):
            os.kill(connection, signal.SIGKILL)
    status = one.wait()
    assert status["counts"] == {"ok": 6}, f"{status}\n{one.logs()}"
    records = one.records()
    assert [r["axes"]["number"] for r in sorted(records, key=lambda r: r["index"])] == [1, 2, 3, 4, 5, 6], records
    assert all(one.starts(number) == 1 for number in range(1, 7))
    nodes = {node for attempt in status["attempts"] for node in attempt["nodes"]}
    assert nodes == {"a", "b"}, status["attempts"]
    if hosts.has_namespaces:
        assert {r["by_rank"][0]["host"] for r in records if r.get("by_rank")} <= {"a", "b"}
    assert "nothing of" in one.assay("cancel", str(one.run))


def test_ranks_over_hosts(work, hosts):
    one = Batch(work, hosts, "over", "number = [1, 2]", params="elements = 100", run='wireup_timeout = "20s"',
                budget='2s"\nnodes = 2\n#"')
    status = one.wait()
    assert status["counts"] == {"ok": 2}, f"{status}\n{one.logs()}"
    records = one.records()
    assert [r["ranks"] for r in records] == [2, 2], records
    if hosts.has_namespaces:
        assert all([rank["host"] for rank in r["by_rank"]] == ["a", "b"] for r in records), records


def test_losses(work, hosts):
    """A runner that is killed loses its case to nobody else; it goes on where it was. Cancel stops what runs."""
    long = 'action = "fail"\ntimes = 1\nseconds = 1000'
    one = Batch(work, hosts, "lost", "number = [1, 2]", params=long, budget="25s")
    one.wait(lambda s: s["counts"] == {"running": 2} and one.starts(1) and one.starts(2))
    runners = [one.runner(host) for host in ("a", "b")]
    for runner in runners:
        os.kill(runner, signal.SIGKILL)
    status = one.wait()
    assert status["counts"] == {"lost": 2}, status
    assert not [p for p in ssh_hosts.processes_with("ASSAY_JOB_ID=hosts-") if p not in runners], "nothing is left running"
    one.assay("submit", str(one.run))
    status = one.wait()
    assert status["counts"] == {"ok": 2} and [one.starts(n) for n in (1, 2)] == [2, 2], f"{status}\n{one.logs()}"

    one = Batch(work, hosts, "cancelled", "number = [1, 2]", params=long, budget="30s")
    one.wait(lambda s: s["counts"] == {"running": 2} and one.starts(1) and one.starts(2))
    assert "cancelled: 1 job" in one.assay("cancel", str(one.run))
    assert one.status()["counts"] == {"lost": 2}, one.status()
    one.assay("submit", str(one.run), "--resubmit", "lost")
    assert one.wait()["counts"] == {"ok": 2}, one.logs()


def test_canary(work, hosts):
    one = Batch(work, hosts, "canary", "number = [1, 2]", canary=True, params='action = "fail"', budget="15s")
    status = one.wait()
    assert status["counts"] == {"blocked": 1, "failed": 1}, f"{status}\n{one.logs()}"


def test_prologue(work, hosts):
    """A shard whose prologue fails does not begin, is not started again, and status says why."""
    one = Batch(work, hosts, "prologue", "number = [1]", prologue="ls /no/such/module", budget="25s")
    status = one.wait()
    assert status["counts"] == {"lost": 1} and not status["attempts"], f"{status}\n{one.logs()}"
    said = one.assay("status", str(one.run))
    assert "the prologue failed with exit status 2 at: ls /no/such/module" in said, said
    assert one.logs().count("prologue failed") == 1, one.logs()


def test_mistakes(work, hosts):
    folder = work / "mistakes"
    folder.mkdir()
    (folder / "x.toml").write_text(batch.EXPERIMENT.format(**dict(batch.DEFAULTS, name="m", marks="", sweep="number = [1]")))
    assay = [batch.HOME["assay"], "submit", "x.toml", "--site", "./s.toml", "--plugin-path", batch.HOME["plugins"]]
    hosts.entry("down", ssh_hosts.free_port())
    for text, options, code, expected in (
            ('hosts = ["a", "a:2"]', [], 2, "twice"), ("", [], 2, "[ssh] has no hosts"),
            ('hosts = ["a"]\npartition = "gpu"', [], 2, "unknown key 'partition' in [ssh]; known: gpus_per_node"),
            ('hosts = ["a"]\n[slurm]', [], 2, "a site has one kind"),
            ('hosts = ["down"]', [], 1, "down: ssh: connect to host"),
            ('hosts = ["down", "a"]', ["--check"], 2, "Connection refused"),
            ('hosts = ["a"]', ["--check", "--output", "checked"], 0, "the hosts would take jobs"),
            ('hosts = ["a"]', ["--check", "--output", "/proc/no-results"], 2, "a: cannot create the results folder"),
            ('hosts = ["a"]\ngpus_per_node = "h100:8"', ["--check"], 2, "expected gpus_per_node = 8"),
            ('hosts = ["a"]', ["--dry-run"], 0, "exec ")):
        (folder / "s.toml").write_text(f"schema = 1\n[ssh]\n{text}\n")
        done = subprocess.run(assay + options, cwd=folder, capture_output=True, text=True, timeout=60, check=False,
                              env=hosts.environment())
        assert done.returncode == code and expected in done.stdout + done.stderr, (text, options, done)
    assert not (folder / "checked").exists(), "a check leaves nothing"


def main():
    if why := ssh_hosts.why_impossible():
        print(f"skipped: {why}")
        sys.exit(77)
    batch.take_options(sys.argv)
    with tempfile.TemporaryDirectory(prefix="assay-hosts-") as folder, ssh_hosts.SshHosts(folder) as hosts:
        hosts.add("a")
        hosts.add("b")
        chosen = sys.argv[1:]
        try:
            for test in (test_table, test_ranks_over_hosts, test_losses, test_canary, test_prologue, test_mistakes):
                if not chosen or test.__name__ in chosen:
                    begin = time.monotonic()
                    test(pathlib.Path(folder), hosts)
                    print(f"{test.__name__}: ok, {time.monotonic() - begin:.1f} s")
        finally:
            for runner in ssh_hosts.processes_with(f"PATH={folder}/ssh/bin"):
                os.kill(runner, signal.SIGKILL)


if __name__ == "__main__":
    main()
