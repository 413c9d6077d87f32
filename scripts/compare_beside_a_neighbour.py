#!/usr/bin/env python3
"""Times the decoder's step on the CPU alone and beside a neighbour that takes one processor, and PyTorch with the same
neighbour, in one interleaved run; prints a Markdown table.

Columns: one thread left alone, the default settings left alone, the default settings beside the neighbour, the last over the
first; the same for PyTorch in eager mode. The neighbour is a process that does nothing but count, bound to one processor of
those that this script may use; it begins before the program that is timed. A cell is the median over rounds of the round's
median step in ms, a ratio the median over rounds.

Needs: pip install torch (2.x), and a built assay. To see what a machine of two processors does: taskset -c 0,1 before it.
  scripts/compare_beside_a_neighbour.py --sizes tiny small --rounds 7
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import interleaving
from interleaving import ROOT, print_table

STEPS = {"tiny": 200, "small": 8}
WARMUP = {"tiny": 20, "small": 2}


class Neighbour:
    def __init__(self, wanted):
        self.wanted = wanted

    def __enter__(self):
        if self.wanted:
            cpu = max(os.sched_getaffinity(0))
            # It ends with this script, however that ends.
            count = f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
            self.process = subprocess.Popen([sys.executable, "-c", count])
            time.sleep(0.5)

    def __exit__(self, *_):
        if self.wanted:
            self.process.kill()
            self.process.wait()


def run_assay(a, size, threads, folder):
    experiment = (
        'schema = 1\nname = "compare"\n[workload]\nplugin = "decoder"\n[workload.params]\n'
        f'size = "{size}"\npass = "{a.passes}"\nprecision = "fp32"\nbatch_size = {a.batch}\ncontext_length = {a.context}\n'
        f'[measure]\nwarmup = {WARMUP[size]}\nsteps = {STEPS[size]}\n[run]\ndevice = "cpu"\n'
        + (f"threads = {threads}\n" if threads else ""))
    record = interleaving.run_assay(a.assay, experiment, folder)
    return statistics.median(record["phases"]["step"]["samples_ms"])


def run_peer(a, size, threads, folder):
    """A program that assay measures: it finds the neighbour when it starts, as assay's worker does. With threads = 0 it
    has PyTorch's own number of them."""
    threads_variable = f"OMP_NUM_THREADS={threads}" if threads else "OMP_NUM_THREADS"
    experiment = (
        'schema = 1\nname = "compare"\n[workload]\nplugin = "command"\n[workload.params]\n'
        f'command = ["{sys.executable}", "{{script}}", "--size", "{size}", "--step", "{a.passes}", '
        f'"--batch_size", "{a.batch}", "--context_length", "{a.context}"]\n'
        f'script = "{ROOT / "scripts/pytorch_decoder.py"}"\nvariables = ["GOMP_SPINCOUNT", "{threads_variable}"]\n'
        f'[measure]\nwarmup = {WARMUP[size]}\nsteps = {STEPS[size]}\n[run]\ndevice = "cpu"\n')
    record = interleaving.run_assay(a.assay, experiment, folder)
    return statistics.median(record["phases"]["step"]["samples_ms"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default=str(ROOT / "build/ci/bin/assay"))
    parser.add_argument("--sizes", nargs="+", default=["tiny", "small"], choices=STEPS)
    parser.add_argument("--passes", default="train_step", choices=["forward", "forward_backward", "train_step"])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    a = parser.parse_args()
    settings = [("one thread alone", 1, False), ("alone", 0, False), ("with neighbour", 0, True)]
    rows = []
    for size in a.sizes:
        times = {}
        parties = [(who, *setting) for who in ("assay", "PyTorch") for setting in settings]
        with tempfile.TemporaryDirectory() as folder:
            for order in interleaving.turns(parties, a.rounds):
                for who, name, threads, neighbour in order:
                    with Neighbour(neighbour):
                        if who == "assay":
                            ms = run_assay(a, size, threads, pathlib.Path(folder))
                        else:
                            ms = run_peer(a, size, threads, pathlib.Path(folder))
                    times.setdefault((who, name), []).append(ms)
                    print(json.dumps({"size": size, "who": who, "setting": name, "ms": ms}), file=sys.stderr, flush=True)
        for who in ("assay", "PyTorch"):
            median = {name: statistics.median(times[who, name]) for name, _, _ in settings}
            beside = [x / y for x, y in zip(times[who, "with neighbour"], times[who, "one thread alone"])]
            rows.append({"decoder": size, "program": who,
                         **{f"{name}, ms": f"{median[name]:.3g}" for name, _, _ in settings},
                         "with neighbour / one thread alone": interleaving.ratio_text(beside)})
    print_table(rows)


if __name__ == "__main__":
    main()
