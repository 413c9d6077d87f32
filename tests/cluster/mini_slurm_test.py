#!/usr/bin/env python3
"""The private Slurm of the tests itself: its nodes are apart and know each other, they die, come back and become slow; and
nothing is left of it, however it ends."""
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cluster  # pylint: disable=wrong-import-position

MINI_SLURM = [sys.executable, str(cluster.HERE / "mini_slurm")]


def left_of(folder):
    """What a cluster in this folder has on the machine: interfaces, namespaces, mounts, control groups and processes."""
    import hashlib
    tag = hashlib.sha256(str(pathlib.Path(folder).resolve()).encode()).hexdigest()[:6]
    path = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])
    found = []
    for command in (["ip", "-o", "link"], ["ip", "netns", "list"]):
        said = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True).stdout
        found += re.findall(rf"\bas[bp]?{tag}\w*", said)
    found += [line for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()
              if f"as{tag}" in line or str(folder) in line]
    found += map(str, pathlib.Path("/sys/fs/cgroup").glob(f"**/assay-{tag}-*"))
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"ASSAY_MINI_SLURM={folder}".encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().decode())
        except OSError:
            pass
    return found


class Nodes(cluster.TestCase):
    nodes = 3

    def test_are_apart_and_know_each_other(self):
        said = self.slurm.call("srun", "--nodes=3", "sh", "-c", "hostname; getent hosts n1 n2 n3 | wc -l")
        self.assertEqual(sorted(said.split()), ["3", "3", "3", "n1", "n2", "n3"])

    def test_that_dies_loses_its_job_which_starts_again_elsewhere(self):
        job = self.slurm.submit('hostname; srun sleep 60 & wait', "--nodes=2", "--requeue", "--exclusive", "--nodelist=n2")
        self.slurm.wait_state(job, "RUNNING")
        cluster.wait_until("the script has begun", lambda: self.slurm.output(job))
        self.slurm.control("node-kill", "n2", "--noticed")
        self.slurm.wait_state(job, "PENDING")
        self.slurm.call("scontrol", "update", f"JobId={job}", "NodeList=")
        self.slurm.control("release")
        self.slurm.wait_state(job, "RUNNING")
        cluster.wait_until("the script begins again", lambda: len(re.findall(r"^n\d$", self.slurm.output(job), re.M)) == 2)
        self.slurm.control("node-start", "n2")
        cluster.wait_until("n2 is back", lambda: "down" not in self.slurm.call("sinfo", "-hN", "-n", "n2", "-o", "%T"))

    def test_that_dies_is_noticed(self):
        job = self.slurm.submit("sleep 60", "--no-requeue", "--nodelist=n3")
        self.slurm.wait_state(job, "RUNNING")
        self.slurm.control("node-kill", "n3")
        self.slurm.wait_state(job, "NODE_FAIL")
        self.slurm.control("node-start", "n3")
        cluster.wait_until("n3 is back", lambda: self.slurm.call("sinfo", "-hN", "-n", "n3", "-o", "%T").strip() == "idle")

    def test_with_a_slow_cpu(self):
        work = ["srun", "--nodelist=n2", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; times | tail -n 2 | head -n 1"]
        self.slurm.control("throttle", "n2", "--cpu", "20")
        slow = self.slurm.run(work)
        self.slurm.control("unthrottle", "n2")
        self.assertEqual(slow.status, 0, slow)
        # Compared with the CPU time of the same run: what else the machine does can only make the run longer.
        shell = subprocess.run(["sh", "-c", work[-1].replace("times | tail -n 2 | head -n 1", "times | head -n 1")],
                               capture_output=True, text=True, check=True).stdout
        minutes, seconds = re.match(r"(\d+)m([\d.]+)s", shell).groups()
        self.assertGreater(slow.seconds, 2 * (60 * int(minutes) + float(seconds)), (shell, slow))

    def send(self, node, size):
        """The seconds that it takes to bring `size` bytes from this machine to a node, and from the node here."""
        network = re.search(r"\((10\.\d+\.\d+)\.1\)", pathlib.Path(self.slurm.environment["SLURM_CONF"]).read_text())[1]
        seconds = []
        with socket.socket() as here:
            here.bind((f"{network}.1", 0))
            here.listen()
            program = (f"import socket; s = socket.create_connection(('{network}.1', {here.getsockname()[1]}));"
                       f"n = {size}\nwhile n: n -= len(s.recv(min(n, 65536)))\ns.sendall(b'.')\ns.sendall(bytes({size}))")
            runner = threading.Thread(target=self.slurm.run, args=(["srun", f"--nodelist={node}", sys.executable, "-c", program],))
            runner.start()
            with here.accept()[0] as there:
                begun = time.monotonic()
                there.sendall(bytes(size))
                there.recv(1)
                seconds.append(time.monotonic() - begun)
                begun, rest = time.monotonic(), size
                while rest:
                    rest -= len(there.recv(min(rest, 65536)))
                seconds.append(time.monotonic() - begun)
            runner.join()
        return seconds

    def test_with_a_slow_network(self):
        size = 2_000_000  # 1.6 s of 10 Mbit/s, less what the shaper lets pass at once
        self.slurm.control("throttle", "n3", "--rate", "10mbit")
        slow = self.send("n3", size)
        self.slurm.control("unthrottle", "n3")
        fast = self.send("n3", size)
        self.assertGreater(min(slow), 1.0)
        self.assertLess(max(fast), 1.0)


class Preemption(cluster.TestCase):
    nodes = 1
    options = ("--preempt", "--max-array-size=11", "--requeue-delay=600")

    def test_requeues_and_the_delay_can_be_lifted(self):
        low = self.slurm.submit("echo ${SLURM_RESTART_COUNT:-0}; sleep 60", "--partition=low", "--exclusive", "--requeue")
        self.slurm.wait_state(low, "RUNNING")
        high = self.slurm.submit("true", "--partition=debug", "--exclusive")
        self.slurm.wait_state(high, "COMPLETED")
        self.slurm.wait_state(low, "PENDING")
        self.slurm.control("release")
        self.slurm.wait_state(low, "RUNNING")
        cluster.wait_until("its second start", lambda: self.slurm.output(low).split()[-1:] == ["1"])

    def test_array_is_limited(self):
        refused = self.slurm.run(["sbatch", "--array=0-11", "--wrap=true"])
        self.assertIn("Invalid job array specification", refused.err)

    def test_commands_are_counted_and_fail_as_told(self):
        shims = self.slurm.shims
        self.slurm.call("squeue", "--noheader", "--format=%A")
        job = self.slurm.submit("squeue >/dev/null")
        self.slurm.wait_state(job, "COMPLETED")
        self.assertEqual(shims.calls("squeue"), ["--noheader --format=%A"])
        self.assertEqual(shims.calls("squeue", inside_jobs=True), [""])
        shims.fail("squeue", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)", once=True)
        failed = self.slurm.run(["squeue"])
        self.assertEqual((failed.status, failed.out), (1, ""))
        self.assertIn("Unable to contact", failed.err)
        self.assertEqual(self.slurm.run(["squeue"]).status, 0)
        shims.hang("squeue")
        with self.assertRaises(subprocess.TimeoutExpired):
            self.slurm.run(["squeue"], timeout=0.5)
        shims.lose("sbatch")
        before = len(self.slurm.states())
        lost = self.slurm.run(["sbatch", "--wrap=true"])
        self.assertEqual((lost.status, lost.out), (1, ""))
        self.assertEqual(len(self.slurm.states()), before + 1)

    def test_controller_and_authentication_go_and_come_back(self):
        for daemon in ("slurmctld", "munged"):
            self.slurm.control("daemon-kill", daemon)
            # With munged's socket still there, squeue tries for 50 s.
            failed = self.slurm.run(["timeout", "8", "squeue"])
            self.assertIn(failed.status, (1, 124), failed)
            self.slurm.control("daemon-start", daemon)
            self.slurm.call("squeue")


class Stopping(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="assay-slurm-")
        self.addCleanup(folder.cleanup)
        self.addCleanup(lambda: subprocess.run([*MINI_SLURM, "stop", folder.name], check=True))
        self.folder = folder.name

    def stop(self):
        subprocess.run([*MINI_SLURM, "stop", self.folder], check=True)
        cluster.reap_daemons()

    def test_leaves_nothing(self):
        with cluster.MiniSlurm("--nodes=2", "--rate=1gbit") as other:
            subprocess.run([*MINI_SLURM, "start", self.folder, "--nodes=2"], check=True, stdout=subprocess.DEVNULL)
            environment = {**os.environ, "SLURM_CONF": f"{self.folder}/etc/slurm.conf"}
            subprocess.run(["sbatch", "-N2", "-o/dev/null", "--wrap=trap '' TERM; srun sleep 600"], env=environment, check=True,
                           stdout=subprocess.DEVNULL)
            self.assertTrue(left_of(self.folder))
            self.stop()
            self.assertEqual(left_of(self.folder), [])
            self.stop()
            self.assertEqual(other.call("srun", "--nodes=2", "true"), "")
            folder = other.folder
        self.assertEqual(left_of(folder), [])

    def test_leaves_nothing_of_half_a_start(self):
        for pause in (0.05, 0.1, 0.2, 0.3, 0.4):
            with self.subTest(pause=pause), subprocess.Popen([*MINI_SLURM, "start", self.folder],
                                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as starting:
                time.sleep(pause)
                starting.send_signal(signal.SIGKILL)
                starting.wait()
                self.stop()
                cluster.wait_until("nothing left", lambda: not left_of(self.folder), seconds=5)


if __name__ == "__main__":
    cluster.main()
