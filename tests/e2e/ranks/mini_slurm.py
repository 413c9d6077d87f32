"""A Slurm cluster of a few nodes on this machine, from the distribution's packages: each node is a network namespace
with a hostname of its own. Needs root. Everything lies in one folder, and the names of interfaces and namespaces hold this
process's number, so that two of these do not meet."""
import ctypes
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import time

PR_SET_CHILD_SUBREAPER = 36
PROGRAMS = ("slurmctld", "slurmd", "srun", "sbatch", "scontrol", "sinfo", "munged", "ip", "unshare")


def missing():
    """Why there can be no cluster here, or "" when there can."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    lacking = [name for name in PROGRAMS if not shutil.which(name, path=path)]
    if lacking:
        return f"{', '.join(lacking)} not installed (packages slurm-wlm, munge, iproute2)"
    if os.geteuid() != 0:
        return "a small Slurm cluster needs root"
    probe = f"assay-probe{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True)
    if made.returncode != 0:
        return f"no network namespaces here: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", probe], check=False, capture_output=True)
    return ""


class MiniSlurm:
    """with MiniSlurm(folder, nodes) as cluster: cluster.run(["srun", ...])"""

    def __init__(self, folder, nodes=2):
        self.folder = pathlib.Path(folder)
        self.nodes = nodes
        number = os.getpid() % 100000
        self.bridge = f"asb{number}"
        self.names = [f"as{number}n{i}" for i in range(1, nodes + 1)]  # of namespaces; with a "v", of interfaces
        # Of the 254 networks 10.x.77.0 one that nobody here has. The controller, though, listens in all networks.
        taken = subprocess.run(["ip", "-4", "route"], capture_output=True, text=True, check=True).stdout
        self.network = random.choice([n for n in (f"10.{x}.77" for x in range(1, 255)) if f"{n}." not in taken])
        with socket.socket() as any_port:
            any_port.bind(("", 0))
            self.controller_port = any_port.getsockname()[1]
        self.environment = dict(os.environ, SLURM_CONF=str(self.folder / "etc/slurm.conf"))
        self.environment["PATH"] = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def run(self, command, **options):
        options.setdefault("timeout", 120)
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, **options)

    def _call(self, *command):
        done = self.run(list(command))
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
        return done.stdout

    def _start(self):
        # The daemons become children of this process, not of a container's first one, which may reap none.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for part in ("etc", "run", "state", "log", "munge"):
            (self.folder / part).mkdir(parents=True)
        for i in range(1, self.nodes + 1):
            (self.folder / f"spool/n{i}").mkdir(parents=True)
            (self.folder / f"tmp/n{i}").mkdir(parents=True)
        self._start_munge()
        self._write_configuration()
        self._call("ip", "link", "add", self.bridge, "type", "bridge")
        self._call("ip", "addr", "add", f"{self.network}.1/24", "dev", self.bridge)
        self._call("ip", "link", "set", self.bridge, "up")
        self._call("slurmctld", "-i")
        self._wait("the controller", lambda: "is UP" in self.run(["scontrol", "ping"]).stdout)
        for i, name in enumerate(self.names, 1):
            self._start_node(i, name)
        self._wait("the nodes", lambda: self.run(["sinfo", "-hN", "-o", "%T"]).stdout.split() == ["idle"] * self.nodes)

    def _start_munge(self):
        key = self.folder / "munge/key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        at = {name: f"--{name}={self.folder / place}" for name, place in (
            ("key-file", "munge/key"), ("socket", "run/munge.sock"), ("pid-file", "run/munged.pid"),
            ("log-file", "log/munged.log"), ("seed-file", "munge/seed"))}
        self._call("munged", "--force", *at.values())

    def _start_node(self, i, name):
        interface = f"{name}v"
        self._call("ip", "netns", "add", name)
        self._call("ip", "link", "add", interface, "type", "veth", "peer", "name", "eth0", "netns", name)
        self._call("ip", "link", "set", interface, "master", self.bridge, "up")
        self._call("ip", "-n", name, "addr", "add", f"{self.network}.{10 + i}/24", "dev", "eth0")
        self._call("ip", "-n", name, "link", "set", "eth0", "up")
        self._call("ip", "-n", name, "link", "set", "lo", "up")
        self._call("ip", "netns", "exec", name, "unshare", "-u", "sh", "-c", f"hostname n{i} && exec slurmd -N n{i}")

    def _write_configuration(self):
        at, host = self.folder, os.uname().nodename.split(".")[0]
        lines = [
            "ClusterName=assay", f"SlurmctldHost={host}({self.network}.1)", "SlurmUser=root", "SlurmdUser=root",
            f"AuthInfo=socket={at}/run/munge.sock", f"SlurmctldPort={self.controller_port}", "SlurmdPort=16818",
            f"StateSaveLocation={at}/state", f"SlurmdSpoolDir={at}/spool/%n", f"TmpFS={at}/tmp/%n",
            f"SlurmctldPidFile={at}/run/slurmctld.pid", f"SlurmdPidFile={at}/run/slurmd-%n.pid",
            f"SlurmctldLogFile={at}/log/slurmctld.log", f"SlurmdLogFile={at}/log/slurmd-%n.log",
            "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_CPU", "ReturnToService=2", "SlurmdParameters=config_overrides", "KillWait=5",
            "SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2",
            f"PlugStackConfig={at}/etc/plugstack.conf"]
        lines += [f"NodeName=n{i} NodeHostname=n{i} NodeAddr={self.network}.{10 + i} CPUs=2 RealMemory=1000"
                  for i in range(1, self.nodes + 1)]
        lines += [f"PartitionName=debug Nodes=n[1-{self.nodes}] Default=YES MaxTime=60 DefaultTime=5 State=UP"]
        (at / "etc/slurm.conf").write_text("\n".join(lines) + "\n")
        (at / "etc/plugstack.conf").write_text("")
        (at / "etc/cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")

    def _wait(self, what, reached):
        deadline = time.monotonic() + 60
        while not reached():
            if time.monotonic() > deadline:
                logs = "\n".join(f"{log}:\n{log.read_text()[-2000:]}" for log in (self.folder / "log").glob("*.log"))
                raise RuntimeError(f"{what} did not come up within 60 s\n{logs}")
            time.sleep(0.05)

    def stop(self):
        """Ends every process and removes every interface; leaves the folder."""
        # The authentication last: the others need it to end in order.
        for file in sorted((self.folder / "run").glob("*.pid"), key=lambda f: "munged" in f.name):
            end_process(file.read_text())
        for name in self.names:
            # What a job has left in a node, its step's shepherd for one, would keep the namespace alive.
            pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False).stdout
            for number in pids.split():
                end_process(number)
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "delete", self.bridge], check=False, capture_output=True)
        try:
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            pass


def end_process(number):
    """Of a descendant of this process: asks it to end, after 5 s makes it end, and reaps it."""
    deadline = time.monotonic() + 5
    wanted = signal.SIGTERM
    while True:
        try:
            os.kill(int(number), wanted)
            if os.waitpid(int(number), os.WNOHANG)[0] != 0:
                return
        except (OSError, ValueError):
            return  # it is gone, or somebody else's child
        if time.monotonic() > deadline:
            wanted = signal.SIGKILL
        time.sleep(0.02)
