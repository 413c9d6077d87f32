"""What the scripts share that time assay beside a peer in one interleaved run."""
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


class PeerProcess:
    """A process of the peer that lives through the rounds: a line of JSON to it, a line of JSON back."""

    def __init__(self, command, threads=0):
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads)) if threads else None
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def tell(self, what):
        print(json.dumps(what), file=self.process.stdin, flush=True)

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the peer's process ended with code {self.process.wait()}; its message is above")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Peer(PeerProcess):
    """Holds one case of the peer. It prints {"ready": version} or {"oom": 1}; to a number of steps it answers {"ms": [...],
    "peak_mib": x} or {"oom": 1}."""

    def __init__(self, command, case, threads=0):
        super().__init__(command, threads)
        self.tell(case)
        self.ms, self.peak_mib, self.last = [], 0.0, {}
        first = self.read()
        self.fits = "oom" not in first
        self.version = first.get("ready", "")

    def run(self, steps):
        """A round: remembers the median of its steps."""
        if not self.fits:
            return
        self.tell(steps)
        result = self.read()
        if "oom" in result:
            self.fits = False
            return
        self.last = result
        self.ms.append(statistics.median(result["ms"]))
        self.peak_mib = max(self.peak_mib, result["peak_mib"])


def turns(parties, rounds):
    """The parties of each round in their order: they take turns at being first, as who comes after another finds a warmer
    machine."""
    for turn in range(rounds):
        shift = turn % len(parties)
        yield parties[shift:] + parties[:shift]


class PeakMemory:
    """The peak of a peer in PyTorch from here on, without what compiling took: of its tensors on a GPU, of the process on the
    CPU (of all its life where the kernel does not let it begin anew)."""

    def __init__(self, torch, on_gpu):
        self.torch, self.on_gpu = torch, on_gpu
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
            return
        try:
            pathlib.Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            pass

    def mib(self):
        if self.on_gpu:
            return self.torch.cuda.max_memory_allocated() / 2**20
        status = pathlib.Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def run_cases(assay, experiment, folder, expected=("ok",)):
    """Runs the text of an experiment named "compare"; returns the records of its cases."""
    path = folder / "compare.toml"
    path.write_text(experiment)
    subprocess.run([assay, "run", str(path), "--output", str(folder), "--quiet"], stdout=subprocess.DEVNULL)
    lines = (folder / "compare" / "latest" / "cases.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    for record in records:
        if record["status"] not in expected:
            sys.exit(f"assay: {record['status']}: {record['reason']}")
    return records


def run_assay(assay, experiment, folder):
    """The same for an experiment of one case: its record."""
    return run_cases(assay, experiment, folder)[-1]


def ratio_text(ratios):
    return f"{statistics.median(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})"


def print_table(rows):
    print("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(row.values()) + " |")
