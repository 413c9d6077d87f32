#!/usr/bin/env python3
"""ipv6_test.py ASSAY PLUGINS: ranks on a machine whose only address is ::1, in a network of the test's: started by assay
itself, by variables as a launcher sets them, and over ssh. Exit status 77 where this user may not make such a network."""
import errno
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import launchers_test  # noqa: E402  pylint: disable=wrong-import-position
import ssh_hosts  # noqa: E402  pylint: disable=wrong-import-position

INSIDE = "ASSAY_TEST_IN_NETWORK"
TOKEN = "0123456789abcdef0123456789abcdef"


def enter():
    """Runs this test again in a network that has ::1 alone."""
    ip = shutil.which("ip", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not ip or not shutil.which("unshare"):
        launchers_test.skip("ip or unshare is not installed (packages iproute2, util-linux)")
    unshare = ["unshare", "--net", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    make = f"{ip} link set lo up && {ip} addr del 127.0.0.1/8 dev lo && {ip} -6 addr show dev lo | grep -q ::1/128"
    tried = subprocess.run(unshare + ["sh", "-c", make], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        launchers_test.skip(f"no network with ::1 alone can be made here: {tried.stderr.strip()}")
    os.execvpe(unshare[0], unshare + ["sh", "-c", make + ' && exec "$@"', "sh", sys.executable] + sys.argv,
               dict(os.environ, **{INSIDE: "1"}))


def expect_no_ipv4():
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", 0))
        except OSError as e:
            assert e.errno == errno.EADDRNOTAVAIL, e
            return
    raise AssertionError("127.0.0.1 is there")


def test_variables(work, assay, plugins, alone, rendezvous):
    """Rank 1 first, which waits for rank 0."""
    case = launchers_test.Case(work, "rendezvous-" + rendezvous.strip("[]").replace(":", "_"), assay, plugins)
    environment = dict(os.environ, ASSAY_RANKS="2", ASSAY_LOCAL_RANKS="2", ASSAY_RENDEZVOUS_TOKEN=TOKEN,
                       ASSAY_RENDEZVOUS=f"{rendezvous}:{ssh_hosts.free_port('::1')}")
    ranks = {rank: subprocess.Popen(case.command, cwd=case.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    env=dict(environment, ASSAY_RANK=str(rank), ASSAY_LOCAL_RANK=str(rank)))
             for rank in (1, 0)}
    said = "".join(ranks[rank].communicate(timeout=100)[0] for rank in (0, 1))
    assert ranks[0].returncode == 1, said
    launchers_test.expect_rows(case.records(said), alone, said)


def test_hosts(work, assay, plugins, alone):
    if why := ssh_hosts.why_impossible():
        print(f"left out: hosts over ssh: {why}")
        return
    if not ssh_hosts.can_unshare():
        print("left out: hosts over ssh (they need root, for namespaces)")
        return
    with ssh_hosts.SshHosts(work, "::1") as hosts:
        hosts.add("a")
        hosts.add("b")
        case = launchers_test.Case(work, "hosts", assay, plugins)
        (case.folder / "hosts").write_text("a\nb\n")
        done = subprocess.run(case.command + ["--hosts", "hosts"], cwd=case.folder, env=hosts.environment(), capture_output=True,
                              text=True, timeout=100, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == 1, said
        records = case.records(said)
        launchers_test.expect_rows(records, alone, said)
        assert launchers_test.hosts(records[0]) == ["a", "b"], json.dumps(records[0]["by_rank"])


def main():
    assay, plugins = sys.argv[1:3]
    if INSIDE not in os.environ:
        enter()
    expect_no_ipv4()
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        work = pathlib.Path(folder)
        (work / "names").write_text("::1 localhost\n")
        subprocess.run(["mount", "--bind", work / "names", "/etc/hosts"], check=True)
        alone = launchers_test.run_alone(work, assay, plugins)
        for rendezvous in ("[::1]", "localhost"):
            test_variables(work, assay, plugins, alone, rendezvous)
        test_hosts(work, assay, plugins, alone)
    print("ok")


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    main()
