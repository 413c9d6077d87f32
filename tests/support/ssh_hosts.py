"""Hosts that a real sshd of this machine plays: each is a separate server on a port of the loopback, and as root it has a
name and mounts of its own (namespaces). `ssh` by its short name reaches them through a configuration of its own, and
nothing of the user's is read or written."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
SSH = shutil.which("ssh")


def why_impossible():
    if not SSHD:
        return "sshd is not installed (package openssh-server)"
    if not SSH or not shutil.which("ssh-keygen"):
        return "ssh is not installed (package openssh-client)"
    return ""


def can_unshare():
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "--uts", "true"], check=False,
                                                capture_output=True).returncode == 0


def free_port(address="127.0.0.1"):
    with socket_for(address) as s:
        s.bind((address, 0))
        return s.getsockname()[1]


def socket_for(address):
    return socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)


class SshHosts:
    """with SshHosts(work) as hosts: hosts.add("a"); subprocess.run([...], env=hosts.environment())"""

    def __init__(self, work, address="127.0.0.1"):
        self.work, self.address = pathlib.Path(work) / "ssh", address
        self.work.mkdir(mode=0o700)
        self.servers, self.ports = {}, {}
        self.has_namespaces = can_unshare()
        for name in ("host_key", "key", "stranger_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.work / name], check=True)
        shutil.copy(self.work / "key.pub", self.work / "authorized_keys")
        self.host_key = " ".join((self.work / "host_key.pub").read_text().split()[:2])
        (self.work / "known_hosts").touch()
        self.config = self.work / "config"
        self.config.write_text("")
        (self.work / "bin").mkdir()
        wrapper = self.work / "bin" / "ssh"
        wrapper.write_text(f"#!/bin/sh\nexec {SSH} -F {self.config} \"$@\"\n")
        wrapper.chmod(0o755)
        if os.geteuid() == 0:
            pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers.values():
            self._end(server)

    def add(self, name, mounts="", force="", known=True, key="key"):
        """`mounts`: shell commands in the host's own mount namespace. `force`: instead of what ssh asks for."""
        port = free_port(self.address)
        self.ports[name] = port
        config = self.work / f"sshd_{name}"
        lines = [f"Port {port}", f"ListenAddress {self.address}", f"HostKey {self.work}/host_key", "UsePAM no", "StrictModes no",
                 f"AuthorizedKeysFile {self.work}/authorized_keys", "PidFile none", "PasswordAuthentication no",
                 "KbdInteractiveAuthentication no", "PermitRootLogin prohibit-password", "UseDNS no"]
        if not self.has_namespaces:
            lines.append(f"SetEnv ASSAY_HOSTS_MACHINE={name}")
        if force:
            lines.append(f"ForceCommand {force}")
        config.write_text("\n".join(lines) + "\n")
        self.entry(name, port, known, key)
        server = [SSHD, "-D", "-e", "-f", str(config)]
        if self.has_namespaces:
            script = f"mount --make-rprivate / && hostname {name} && {mounts or 'true'} && exec {' '.join(server)}"
            server = ["unshare", "--mount", "--uts", "sh", "-c", script]
        elif mounts:
            raise RuntimeError("mounts need root")
        with open(self.work / f"log_{name}", "w", encoding="utf-8") as log:
            self.servers[name] = subprocess.Popen(server, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        for _ in range(200):
            with socket_for(self.address) as s:
                if s.connect_ex((self.address, port)) == 0:
                    return
            time.sleep(0.02)
        raise RuntimeError((self.work / f"log_{name}").read_text())

    def entry(self, name, port, known=True, key="key"):
        """What ssh's configuration says of the host."""
        with open(self.config, "a", encoding="utf-8") as config:
            config.write(f"Host {name}\n  HostName {self.address}\n  Port {port}\n  IdentityFile {self.work}/{key}\n"
                         "  IdentitiesOnly yes\n  GlobalKnownHostsFile /dev/null\n"
                         f"  UserKnownHostsFile {self.work}/{'known_hosts' if known else 'nobody'}\n")
        if known:
            with open(self.work / "known_hosts", "a", encoding="utf-8") as hosts:
                hosts.write(f"[{self.address}]:{port} {self.host_key}\n")

    def stop(self, name):
        self._end(self.servers.pop(name))

    @staticmethod
    def _end(server):
        # Each of its connections is a separate process, and ends with the programs that it runs.
        for pid in children(server.pid):
            os.kill(pid, signal.SIGKILL)
        server.kill()
        server.wait()

    def connections(self, name):
        """The processes of the server that serve connections."""
        return children(self.servers[name].pid)

    def environment(self, **more):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ASSAY_HOSTS", "ASSAY_RANK"))}
        return dict(kept, PATH=f"{self.work}/bin:{os.environ['PATH']}", HOME=str(self.work), **more)


def children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in task.read_text().split()]
        except OSError:
            pass
    return found


def processes_with(entry):
    """Those in whose environment this stands."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if entry.encode() in (folder / "environ").read_bytes() and (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            pass
    return found
