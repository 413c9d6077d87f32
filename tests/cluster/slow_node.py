#!/usr/bin/env python3
"""Which node is slow: the node checks on a private Slurm, with nothing slow, with a slow processor, with a slow network.

  slow_node.py ASSAY CONFIGS [--runs N] [--cpu PERCENT] [--rate RATE]

Runs node-check.toml N times (20) on three equal nodes: nobody should be named. Then with n2 held to PERCENT (30) of a core,
and node-check-pairs.toml with n2's network at RATE (50mbit): n2, and n2 alone, should be. For the hand and the eye: on a
busy machine the nodes are not equal, so no test of the suite asks for times.
"""
import argparse
import json
import pathlib
import sys
import time

import cluster

SITE = """schema = 1
[slurm]
time_max = "10m"
exclusive = true
sbatch_extra = ["--dependency=singleton"]   # the nodes share this machine: one after the other
[slurm.limits]
margin = "20s"
[slurm.canary]
enable = false
"""
SMALL = ["--set", "run.device=cpu", "--set", "size=384", "--set", "bytes=8388608", "--set", "measure.steps=20",
         "--set", "run.threads=1", "--set", "cluster.budget=15s"]
PAIRS = ["--set", "run.device=cpu", "--set", "bytes=1048576", "--set", "measure.steps=20", "--set", "run.threads=1",
         "--set", "cluster.budget=30s"]


def named(slurm, assay, config, settings, show=False):
    """The nodes that collect names, and how long it took."""
    begun = time.monotonic()
    work = slurm.folder / "work"
    (work / "site.toml").write_text(SITE)
    out = slurm.call(assay, "submit", str(config), "--site", "./site.toml", "--output", str(work / "results"), *settings)
    run = next(line.removeprefix("run: ") for line in out.splitlines() if line.startswith("run: "))
    cluster.wait_until("the batch over", lambda: json.loads(slurm.call(assay, "status", run, "--json"))["is_over"],
                       seconds=600, every=1)
    done = slurm.run([assay, "collect", run, "--json"])
    events = [json.loads(line) for line in done.out.splitlines()]
    ranking = [event for event in events if event.get("event") == "node_ranking"]
    if not ranking:
        raise AssertionError(f"collect ranked no node\n{done}")
    if show:
        text = slurm.run([assay, "collect", run]).out
        print(text[text.index("\nnode "):])
    return ranking[0]["slow_or_failing"], time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assay")
    parser.add_argument("configs", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--cpu", default="30")
    parser.add_argument("--rate", default="50mbit")
    options = parser.parse_args()
    check, pairs = options.configs.resolve() / "node-check.toml", options.configs.resolve() / "node-check-pairs.toml"
    assay = str(pathlib.Path(options.assay).resolve())
    with cluster.MiniSlurm("--nodes=3", "--cpus=2") as slurm:
        found = []
        for number in range(options.runs):
            names, seconds = named(slurm, assay, check, SMALL)
            found.append(names)
            print(f"run {number + 1} of {options.runs}, nothing slow: named {names or 'nobody'}, {seconds:.0f} s", flush=True)
        slurm.control("throttle", "n2", "--cpu", options.cpu)
        slow_cpu, seconds = named(slurm, assay, check, SMALL, show=True)
        print(f"n2 at {options.cpu}% of a core: named {slow_cpu}, {seconds:.0f} s", flush=True)
        slurm.control("unthrottle", "n2")
        slurm.control("throttle", "n2", "--rate", options.rate)
        slow_net, seconds = named(slurm, assay, pairs, PAIRS, show=True)
        print(f"n2's network at {options.rate}: named {slow_net}, {seconds:.0f} s", flush=True)
        slurm.control("unthrottle", "n2")
        pairs_names, seconds = named(slurm, assay, pairs, PAIRS)
        print(f"pairs, nothing slow: named {pairs_names or 'nobody'}, {seconds:.0f} s", flush=True)
    wrong = sum(1 for names in found if names)
    print(f"{wrong} of {len(found)} runs with nothing slow named somebody")
    sys.exit(0 if not wrong and slow_cpu == ["n2"] and slow_net == ["n2"] and not pairs_names else 1)


if __name__ == "__main__":
    main()
