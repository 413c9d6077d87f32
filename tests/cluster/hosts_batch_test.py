#!/usr/bin/env python3
"""Batches on a site of hosts that ssh reaches: a real sshd of this machine plays them. Exit status 77 where there is none.
The environment variables ASSAY and ASSAY_TEST_PLUGINS name the executable and the folder of the plugin `misbehaving`."""
import contextlib
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
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
{place}
[ssh.limits]
attempts = {attempts}
margin = "20s"
[ssh.canary]
enable = {canary}
"""
SILENCE_S = 3


class Batch:
    def __init__(self, work, hosts, name, sweep, canary=False, params="", run="", prologue="true",
                 place="", attempts=2, **more):
        self.hosts, self.folder = hosts, work / name
        self.folder.mkdir()
        self.marks = self.folder / "marks"
        self.marks.mkdir()
        values = dict(batch.DEFAULTS, name=name, marks=self.marks, sweep=sweep, params=params, run=run, **more)
        (self.folder / "x.toml").write_text(batch.EXPERIMENT.format(**values))
        (self.folder / "site.toml").write_text(SITE.format(
            canary=str(canary).lower(), prologue=prologue, place=place, attempts=attempts))
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
    assert [n["node"] for n in status["nodes"]] == ["a", "b"], "each host was looked at"
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
    assert one.status()["counts"] == {"cancelled": 2}, one.status()
    one.assay("submit", str(one.run), "--resubmit", "cancelled")
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


def test_unhealthy_host(work, hosts):
    """A host that fails the health check gives its shard back; the others run it, and no later submission asks it."""
    health = work / "health.toml"
    plugin = f'plugin = "{batch.HOME["plugins"]}/misbehaving.so"'
    (work / "checked").mkdir()
    health.write_text(batch.EXPERIMENT.format(**dict(
        batch.DEFAULTS, name="check", marks=work / "checked", sweep="number = [100]",
        params='action = "fail"\ntimes = 1')).replace('plugin = "misbehaving"', plugin))  # of the first host alone
    one = Batch(work, hosts, "unhealthy", "number = [1, 2, 3]", budget="15s", place=f'health = {{ experiment = "{health}" }}')
    status = one.wait()
    assert status["counts"] == {"ok": 3}, f"{status}\n{one.logs()}"
    (unhealthy,) = status["unhealthy"]
    assert "it was told to fail" in unhealthy["reason"] and unhealthy["node"] in ("a", "b"), unhealthy
    assert {node for a in status["attempts"] for node in a["nodes"]} == {"a", "b"} - {unhealthy["node"]}, status
    assert {n["node"] for n in status["nodes"]} == {"a", "b"}, status["nodes"]
    said = json.loads(one.assay("status", str(one.run), "--unhealthy", code=1))
    assert [n["node"] for n in said["nodes"]] == [unhealthy["node"]], said
    assert all(r["environment"] for r in one.records())
    environments = "".join(p.read_text() for p in (one.run / "environments").glob("*"))
    assert '"node_ready"' in environments + (one.run / "environment.json").read_text()


def test_no_healthy_host(work, hosts):
    """The batch ends, the next one has the hosts, and no case is submitted again to hosts that failed."""
    health = work / "health-of-all.toml"
    plugin = f'plugin = "{batch.HOME["plugins"]}/misbehaving.so"'
    health.write_text(batch.EXPERIMENT.format(**dict(
        batch.DEFAULTS, name="check", marks=work, sweep="number = [100]", params='action = "fail"')).replace(
            'plugin = "misbehaving"', plugin))
    one = Batch(work, hosts, "none-healthy", "number = [1, 2]", canary=True, budget="15s", attempts=5,
                place=f'health = {{ experiment = "{health}" }}')
    status = one.wait()
    assert status["counts"] == {"blocked": 1, "lost": 1}, f"{status}\n{one.logs()}"
    said = one.assay("status", str(one.run))
    assert all(f"unhealthy, and left out: {host} (" in said for host in ("a", "b")), said
    before = sorted((one.run / "batch").rglob("*"))
    for options in ((), ("--resubmit", "lost,blocked"), ("--resubmit", "lost", "--dry-run")):
        said = one.assay("submit", str(one.run), *options, code=2)
        assert "no usable host is left: a, b failed the health check" in said, said
        assert f"{one.run}/batch/unhealthy/a, {one.run}/batch/unhealthy/b" in said, said
    assert sorted((one.run / "batch").rglob("*")) == before, "nothing was moved"
    health.write_text(health.read_text().replace('"fail"', '"ok"'))
    (one.run / "batch/unhealthy/b").unlink()
    one.assay("submit", str(one.run), "--resubmit", "lost,blocked")
    assert one.wait()["counts"] == {"ok": 2}, one.logs()
    nxt = Batch(work, hosts, "next", "number = [1]", budget="15s")
    assert nxt.wait()["counts"] == {"ok": 1}, nxt.logs()


def test_node_that_is_not_ready(work, hosts):
    one = Batch(work, hosts, "unready", "number = [1]", budget="25s", place='environment = ["NOT_THERE"]')
    status = one.wait()
    assert status["counts"] == {"lost": 1} and not status["attempts"], status
    assert "NOT_THERE is not set" in one.assay("status", str(one.run)), status


# As podman's: what runs in the container is no child of the process that stands for it, and outlives its SIGKILL.
FAKE_PODMAN = """#!/bin/bash
echo "$*" >>{log}
while [ "$1" != image:1 ]; do
  case $1 in -v) [ -e "${{2%%:*}}" ] || {{ echo "no such mount: $2" >&2; exit 125; }} ;; -w) cd "$2" || exit 125 ;; esac
  shift
done
shift
setsid "$@" & CHILD=$!
trap 'kill -TERM $CHILD' TERM
while kill -0 $CHILD 2>/dev/null; do wait $CHILD; R=$?; done
exit $R
"""


def table_of(one):
    return sorted((r["axes"]["number"], r["status"], r.get("metrics")) for r in one.records())


def container_of(one, hosts, begin):
    """What a batch in a container leaves is as alone; a container whose process outside is killed ends with it."""
    alone = Batch(one.parent, hosts, one.name + "-alone", "number = [1, 2, 3, 4]", budget="15s")
    assert alone.wait()["counts"] == {"ok": 4}, alone.logs()
    inside = begin(one.name + "-inside", "number = [1, 2, 3, 4]", budget="15s")
    status = inside.wait()
    assert status["counts"] == {"ok": 4}, f"{status}\n{inside.logs()}"
    assert table_of(inside) == table_of(alone), (table_of(inside), table_of(alone))
    assert {n["node"] for n in status["nodes"]} <= {"a", "b"} and status["nodes"], status

    lost = begin(one.name + "-lost", "number = [1]", params='action = "fail"\ntimes = 1\nseconds = 1000', budget="25s")
    lost.wait(lambda s: s["counts"] == {"running": 1} and lost.starts(1))
    workers = ssh_hosts.processes_with(f"ASSAY_JOB_ID={lost.status()['cases'][0]['job']}")
    for host in ("a", "b"):
        with contextlib.suppress(ProcessLookupError):  # of the host that had nothing to do
            os.kill(lost.runner(host), signal.SIGKILL)
    deadline = time.monotonic() + 30
    while [p for p in workers if pathlib.Path(f"/proc/{p}").exists()]:
        assert time.monotonic() < deadline, "what ran in the container goes on"
        time.sleep(0.2)
    lost.wait()
    lost.assay("submit", str(lost.run))
    assert lost.wait()["counts"] == {"ok": 1}, lost.logs()


def test_container(work, hosts):
    log = work / "podman.log"
    fake = work / "ssh" / "bin" / "podman"
    fake.write_text(FAKE_PODMAN.format(log=log))
    fake.chmod(0o755)
    place = 'container = { image = "image:1", runtime = "podman", mounts = ["/usr:/usr:ro"] }'
    container_of(work / "container", hosts, lambda *a, **k: Batch(work, hosts, *a, place=place, **k))
    assert "--pid=host" in log.read_text() and " -v /usr:/usr:ro " in log.read_text(), log.read_text()
    # A program that is another one in there.
    other = work / "other"
    other.write_bytes(pathlib.Path(batch.HOME["assay"]).read_bytes() + b"x")
    other.chmod(0o755)
    one = Batch(work, hosts, "other-program", "number = [1]", budget="25s", place=place.replace(" }", f', assay = "{other}" }}'))
    one.wait()
    assert "is another program than the one that submitted" in one.assay("status", str(one.run)), one.logs()
    fake.unlink()


def test_real_podman(work, hosts):
    """An image without a file, and this machine's programs mounted into it."""
    if not shutil.which("podman") or os.geteuid() != 0:
        return "skipped: needs podman, and root"
    conf, image = work / "containers.conf", "localhost/assay-cluster-test"
    limits = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1] for name in ("nofile", "nproc")}
    # As low as any user may have them: podman's own are above what some machines allow.
    ulimits = [f"{name}={min(limit, 4096) if limit > 0 else 4096}" for name, limit in limits.items()]
    runtime = "runc" if shutil.which("runc") else "crun"
    conf.write_text(f"[containers]\ndefault_ulimits = {json.dumps(ulimits)}\n[engine]\nruntime = \"{runtime}\"\n")
    environment = dict(os.environ, CONTAINERS_CONF=str(conf))
    skeleton = work / "image.tar"
    with tarfile.open(skeleton, "w") as tar:
        for name in ("usr", "tmp", "etc", "proc", "sys", "dev"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(entry)
        for name in ("bin", "lib", "lib64", "sbin"):
            if pathlib.Path("/" + name).is_symlink():
                entry = tarfile.TarInfo(name)
                entry.type, entry.linkname = tarfile.SYMTYPE, "usr/" + name
                tar.addfile(entry)
    made = subprocess.run(["podman", "import", skeleton, image], capture_output=True, text=True, check=False, env=environment)
    tried = subprocess.run(["podman", "run", "--rm", "--network=host", "--pid=host", "-v", "/usr:/usr:ro", image, "true"],
                           capture_output=True, text=True, check=False, env=environment)
    try:
        if made.returncode or tried.returncode:
            return f"skipped: podman runs no container here: {(made.stderr + tried.stderr).strip().splitlines()[-1]}"

        def begin(name, *arguments, **more):
            mounts = json.dumps(["/usr:/usr:ro", "/etc:/etc:ro", f"{work / name / 'marks'}"])
            place = f'container = {{ image = "{image}", runtime = "podman", mounts = {mounts} }}'
            return Batch(work, hosts, name, *arguments, place=place, prologue=f"export CONTAINERS_CONF={conf}", **more)

        container_of(work / "real", hosts, begin)
    finally:
        subprocess.run(["podman", "rmi", "-f", image], capture_output=True, check=False, env=environment)
    return "ok"


def test_mistakes(work, hosts):
    folder = work / "mistakes"
    folder.mkdir()
    (folder / "x.toml").write_text(batch.EXPERIMENT.format(**dict(batch.DEFAULTS, name="m", marks="", sweep="number = [1]")))
    assay = [batch.HOME["assay"], "submit", "x.toml", "--site", "./s.toml", "--plugin-path", batch.HOME["plugins"]]
    hosts.entry("down", ssh_hosts.free_port())
    hosts.entry("same", hosts.ports["a"])
    for text, options, code, expected in (
            ('hosts = ["a", "a"]', [], 2, "[ssh] hosts has a twice"),
            ('hosts = ["u@a:2"]', ["--dry-run"], 2, '[ssh] hosts has "u@a:2"; expected "u@a": '), ("", [], 2, "[ssh] has no hosts"),
            ('hosts = ["a"]\npartition = "gpu"', [], 2, "unknown key 'partition' in [ssh]; known: gpus_per_node"),
            ('hosts = ["a"]\n[slurm]', [], 2, "a site has one kind"),
            ('hosts = ["a", "n[1-3]"]', [], 2, "one machine and no pattern of several"),
            ('hosts = ["a", "b", "same"]', ["--check"], 2, "same: it is the same machine as a; remove same from [ssh] hosts"),
            ('hosts = ["down"]', [], 1, "down: ssh: connect to host"),
            ('hosts = ["down", "a"]', ["--check"], 2, "Connection refused"),
            ('hosts = ["a"]', ["--check", "--output", "checked"], 0, "the hosts would take jobs"),
            ('hosts = ["a"]', ["--check", "--output", "/proc/no-results"], 2, "a: cannot create the results folder"),
            ('hosts = ["a"]\ngpus_per_node = "h100:8"', ["--check"], 2, "expected gpus_per_node = 8"),
            ('hosts = ["a"]\ncontainer = { image = "/no/x.sif", runtime = "apptainer" }', ["--check"], 2, "a: /no/x.sif: No such"),
            ('hosts = ["a"]\ncontainer = { image = "/etc/passwd", runtime = "apptainer" }', ["--check"], 0, "the hosts would"),
            ('hosts = ["a"]\ncontainer = { image = "x.sif", runtime = "apptainer" }', ["--check"], 2, "expected a path from /"),
            ('hosts = ["a"]\nhealth = { experiment = "none.toml" }', ["--check"], 2,
             f": [ssh.health] experiment: {folder}/none.toml"),
            ('hosts = ["a"]\nhealth = { experiment = "none.toml" }', ["--dry-run"], 2, "s.toml:4:"),
            ('hosts = ["a"]', ["--dry-run"], 0, "exec ")):
        (folder / "s.toml").write_text(f"schema = 1\n[ssh]\n{text}\n")
        done = subprocess.run(assay + options, cwd=folder, capture_output=True, text=True, timeout=60, check=False,
                              env=hosts.environment())
        assert done.returncode == code and expected in done.stdout + done.stderr, (text, options, done)
    assert not (folder / "checked").exists(), "a check leaves nothing"
    (folder / "x.toml").write_text((folder / "x.toml").read_text().replace("[cluster]", "[cluster]\nnodes = 2"))
    (folder / "s.toml").write_text('schema = 1\n[ssh]\nhosts = ["a", "b"]\n'
                                   'container = { image = "image:1", runtime = "podman" }\n')
    before = sorted((folder / "results").rglob("*"))  # of the host that was down: it may be up when it goes on
    for options in ([], ["--check"]):
        done = subprocess.run(assay + options, cwd=folder, capture_output=True, text=True, timeout=60, check=False,
                              env=hosts.environment())
        assert done.returncode == 2 and "has each case in a container of one host" in done.stderr, (options, done)
    assert sorted((folder / "results").rglob("*")) == before, "a refused submission leaves nothing"


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
            for test in (test_table, test_ranks_over_hosts, test_losses, test_canary, test_prologue,
                         test_unhealthy_host, test_no_healthy_host, test_node_that_is_not_ready, test_container, test_real_podman, test_mistakes):
                if not chosen or test.__name__ in chosen:
                    begin = time.monotonic()
                    said = test(pathlib.Path(folder), hosts) or "ok"
                    print(f"{test.__name__}: {said}, {time.monotonic() - begin:.1f} s")
        finally:
            for runner in ssh_hosts.processes_with(f"PATH={folder}/ssh/bin"):
                os.kill(runner, signal.SIGKILL)


if __name__ == "__main__":
    main()
