#!/usr/bin/env python3
"""hosts_test.py ASSAY PLUGINS: ranks that assay starts over ssh, on hosts that a real sshd plays. Exit status 77 where
there is no sshd."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import launchers_test  # noqa: E402  pylint: disable=wrong-import-position
import ssh_hosts  # noqa: E402  pylint: disable=wrong-import-position

LONG = launchers_test.EXPERIMENT.replace('place = ["forward", "collective"]\nfault_rank = [9, 1]', "fault_rank = [9]").replace(
    "steps = 3", "steps = 10000000")


class Launches:
    def __init__(self, work, assay, plugins, hosts):
        self.work, self.assay, self.plugins, self.hosts = work, assay, plugins, hosts
        self.count = 0

    def folder(self, experiment=launchers_test.EXPERIMENT):
        self.count += 1
        case = launchers_test.Case(self.work, f"launch{self.count}", self.assay, self.plugins)
        (case.folder / "x.toml").write_text(experiment)
        return case

    def run(self, case, hosts, *options, **environment):
        if hosts is not None:
            (case.folder / "hosts").write_text("\n".join(hosts) + "\n")
            options = ("--hosts", "hosts") + options
        return subprocess.run(case.command + list(options), cwd=case.folder, env=self.hosts.environment(**environment),
                              capture_output=True, text=True, timeout=100, check=False)

    def begin(self, **environment):
        """A launch that goes on for long; returns once its first case measures."""
        case = self.folder(LONG)
        (case.folder / "hosts").write_text("a\nb\n")
        self.tag = f"TEST_TAG={case.folder}"
        near = subprocess.Popen(
            case.command + ["--hosts", "hosts"], cwd=case.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=self.hosts.environment(TEST_TAG=str(case.folder), ASSAY_HOSTS_ENVIRONMENT="TEST_TAG", **environment))
        wait_until(lambda: len(self.ranks()) >= 2 and len(self.workers()) >= 2, "the ranks of the launch")
        return case, near

    def of_launch(self):
        return [p for p in ssh_hosts.processes_with(self.tag) if is_alive(p)]

    def ranks(self, host=None):
        ranks = [p for p in self.of_launch() if b"\0run\0" in command_of(p) and variable(p, "ASSAY_HOSTS_RANK") is not None]
        return [p for p in ranks if host is None or variable(p, "ASSAY_HOSTS_RANK") == host]

    def workers(self):
        return [p for p in self.of_launch() if command_of(p).split(b"\0")[1:2] == [b"worker"]]

    def expect_nothing_left(self, seconds=20):
        wait_until(lambda: not [p for p in self.of_launch() if variable(p, "ASSAY_HOSTS_LAUNCH")],
                   "the end of all ranks, of which there are " + str([command_of(p) for p in self.of_launch()]), seconds)


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def variable(pid, name):
    try:
        for entry in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if entry.startswith(name.encode() + b"="):
                return entry.split(b"=", 1)[1].decode()
    except OSError:
        pass
    return None


def wait_until(is_so, what, seconds=30):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.05)


def test_rows(launches, alone):
    case = launches.folder()
    done = launches.run(case, ["a", "# a comment", "b slots=1"])
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    records = case.records(said)
    launchers_test.expect_rows(records, alone, said)
    assert done.stdout.count("results: ") == 1, said
    if launches.hosts.has_namespaces:
        assert launchers_test.hosts(records[0]) == ["a", "b"], records[0]["by_rank"]


def test_hosts_of_the_file(launches):
    """Three ranks of two hosts by [run] hosts, and variables that arrive."""
    case = launches.folder(launchers_test.EXPERIMENT.replace("ranks = 2", 'hosts = ["a:2", "b"]').replace(
        "fault_rank = [9, 1]", "fault_rank = [9]"))
    done = launches.run(case, None, "--json", OMP_WAIT_POLICY="passive")
    assert done.returncode == 0, done.stdout + done.stderr
    records = case.records(done.stderr)
    assert [(r["status"], r["ranks"]) for r in records] == [("ok", 3)] * 2, records
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()][-1], done.stdout
    run = next(p for p in (case.folder / "results" / "ranks").iterdir() if not p.is_symlink())
    assert "passive" in (run / "environment.json").read_text()
    assert not list(case.folder.glob("results/.assay-hosts-*")), "the file that all hosts must see is removed"


def test_wrong_hosts(launches):
    """All that is wrong with each host, in one pass, before anything runs."""
    hosts, case = launches.hosts, launches.folder()
    hosts.add("unknown", known=False)
    hosts.add("denied", key="stranger_key")
    hosts.entry("down", ssh_hosts.free_port())
    hosts.add("clock", force="sh -c \"$SSH_ORIGINAL_COMMAND\" | sed -u 's/\"time_s\":1/\"time_s\":2/'")
    expected = {
        "unknown": "Host key verification failed.*ssh unknown",
        "denied": "Permission denied.*ssh-copy-id denied",
        "down": "Connection refused.*Port",
        "clock": "its clock is [0-9]+ s ahead.*NTP",
        "no-such-host.invalid": "Could not resolve hostname.*HostName",
    }
    if hosts.has_namespaces:
        plugin = next(pathlib.Path(launches.plugins).glob("*faulty_rank*.so"))
        other = launches.work / "other"
        other.mkdir()
        for name, file in (("plugin", plugin), ("program", launches.assay), ("experiment", case.folder / "x.toml")):
            (other / name).write_bytes(pathlib.Path(file).read_bytes() + b"\n# other\n")
            (other / name).chmod(0o755)
        program = os.path.realpath(launches.assay)
        hosts.add("plugin", mounts=f"mount --bind {other}/plugin {plugin}")
        hosts.add("program", mounts=f"mount --bind {other}/program {program}")
        hosts.add("older", mounts=f"mount --bind /bin/false {program}")
        hosts.add("missing", mounts=f"mount -t tmpfs none {os.path.dirname(program)}")
        hosts.add("experiment", mounts=f"mount --bind {other}/experiment {case.folder}/x.toml")
        (case.folder / "results").mkdir()
        hosts.add("unshared", mounts=f"mount -t tmpfs none {case.folder}/results")
        hosts.add("empty", mounts=f"mount -t tmpfs none {case.folder}")
        both = r"SHA-256 [0-9a-f]+ there, [0-9a-f]+ here; copy it \(rsync -a .*\)"
        expected |= {
            "plugin": f"faulty_rank.*{both}",
            "program": f"{re.escape(program)} is another file there: {both}",
            "older": f"{re.escape(program)} is another file there: {both}",
            "missing": "cannot start .*install the same assay there",
            "experiment": f"x.toml is another file there: {both}",
            "unshared": "the results folder .* is not the one that a sees.*--output",
            "empty": "x.toml: No such file.*copy it",
        }
    done = launches.run(case, ["a"] + list(expected))
    assert done.returncode == 1, done.stdout + done.stderr
    for host, text in expected.items():
        lines = [line for line in done.stderr.splitlines() if f"{host}: " in line.removeprefix("assay: ")[: len(host) + 2]]
        assert any(re.search(text, line) for line in lines), f"{host}: {text}\n{done.stderr}"
    assert not [line for line in done.stderr.splitlines() if line.startswith(("a: ", "assay: a: "))], done.stderr
    assert not list(case.folder.glob("results/ranks*")), "nothing has run"


def test_mistakes(launches):
    case = launches.folder()
    for line, text in (("-oProxyCommand=x", "hosts:1: '-oProxyCommand=x'; expected a name that ssh takes"),
                       ("a slots=0", "hosts:1: 'a slots=0'; expected"), ("# none", "names no host"), ("a\na", "twice")):
        done = launches.run(case, [line])
        assert done.returncode == 2 and text in done.stderr, done.stderr
    done = launches.run(case, ["a"], OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2", PMIX_NAMESPACE="x")
    assert done.returncode == 2 and "--hosts names hosts, but Open MPI has started 2 ranks" in done.stderr, done.stderr
    # A dry run reaches no host.
    done = launches.run(case, ["a:2", "no-such-host"], "--dry-run")
    assert done.returncode == 0 and "4 cases" in done.stdout, done.stdout + done.stderr
    done = launches.run(case, None, "--set", 'run.hosts=["a b"]')
    assert done.returncode == 2 and "expected an array of texts, each a name that ssh takes" in done.stderr, done.stderr


def test_ends(launches):
    """Whatever is lost, no rank is left anywhere; finished cases and the reason are kept."""
    case, near = launches.begin()
    # The ranks' secret stands in a private file and on no command line.
    secret = next(case.folder.glob("results/.rendezvous-*"))
    tokens = re.findall("[0-9a-f]{32}", secret.read_text())
    assert tokens and secret.stat().st_mode & 0o077 == 0
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        assert tokens[0].encode() not in command_of(folder.name), command_of(folder.name)
    near.send_signal(signal.SIGINT)
    said, _ = near.communicate(timeout=60)
    assert near.returncode == 130, said
    launches.expect_nothing_left()

    _, near = launches.begin()
    near.kill()
    near.communicate()
    launches.expect_nothing_left()

    def keeper_of(rank):
        return int(pathlib.Path(f"/proc/{launches.ranks(rank)[0]}/stat").read_text().rsplit(")", 1)[1].split()[1])

    for what, find, text in (
            ("rank 1", lambda: launches.ranks("1"), "rank 1 on b was ended by SIGKILL; all ranks end"),
            ("keeper of b", lambda: [keeper_of("1")], "b is lost: "),
            ("connection of b", lambda: launches.hosts.connections("b"), "b is lost: .*"),
            ("ssh to b", lambda: [p for p in ssh_hosts.children(near.pid) if b"\0b\0" in command_of(p)],
             r"b is lost: the ssh process to b was killed \(signal 9\)"),
            ("connection of a", lambda: launches.hosts.connections("a"), r"a is lost: .*(\n.*)*finished cases are kept on a below .*; --resume")):
        case, near = launches.begin()
        for pid in find():
            os.kill(pid, signal.SIGKILL)
        said, _ = near.communicate(timeout=60)
        assert near.returncode == 1 and re.search(text, said), f"{what}: {near.returncode}\n{said}"
        launches.expect_nothing_left()
        if what != "connection of a":  # which has the records
            records = case.records(said)
            assert records[0]["status"] == "crashed" and records[0]["rank"] == 1, f"{what}: {records}"

    # A connection that is cut without an end: the keeper there misses the other side, and ends its ranks.
    _, near = launches.begin(ASSAY_HOSTS_SILENCE_S="2")
    stopped = [p for p in ssh_hosts.children(near.pid) if b"\0b\0" in command_of(p)]
    assert stopped
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: not launches.ranks("1"), "the end of rank 1, whose host hears nothing")
    near.kill()
    for pid in stopped:
        os.kill(pid, signal.SIGKILL)
    near.communicate()
    launches.expect_nothing_left()

    # Suspended for longer than that.
    _, near = launches.begin(ASSAY_HOSTS_SILENCE_S="2")
    near.send_signal(signal.SIGSTOP)
    wait_until(lambda: not launches.ranks("1"), "the end of rank 1, whose host hears nothing")
    near.send_signal(signal.SIGCONT)
    said, _ = near.communicate(timeout=60)
    assert near.returncode == 1 and "was silent for 2 s" in said, f"{near.returncode}\n{said}"
    launches.expect_nothing_left()


def main():
    assay, plugins = sys.argv[1:3]
    if why := ssh_hosts.why_impossible():
        launchers_test.skip(why)
    with tempfile.TemporaryDirectory(prefix="assay-hosts-") as folder:
        work = pathlib.Path(folder)
        alone = launchers_test.run_alone(work, assay, plugins)
        with ssh_hosts.SshHosts(work) as hosts:
            hosts.add("a")
            hosts.add("b")
            launches = Launches(work, assay, plugins, hosts)
            for test in (lambda: test_rows(launches, alone), lambda: test_hosts_of_the_file(launches),
                         lambda: test_wrong_hosts(launches), lambda: test_mistakes(launches), lambda: test_ends(launches)):
                test()
            if not hosts.has_namespaces:
                print("left out: hosts with other files (needs root, for namespaces)")
    print("ok")


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    main()
