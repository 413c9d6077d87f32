#!/usr/bin/env python3
"""Slurm's programs for several clusters that have no nodes: jobs wait, or have the state that a test gives them. Stands as
sbatch, squeue, scancel, scontrol and sinfo in a folder of PATH; $PLAYED_CLUSTERS is a folder with a folder for each
cluster, of which `east` is asked where no --clusters names another. Each has its own numbers of jobs, from 100. Programs that
$PLAYED_REFUSALS names fail."""
import json
import os
import pathlib
import re
import sys

HOME = pathlib.Path(os.environ["PLAYED_CLUSTERS"])


class Cluster:
    """The jobs of one cluster, by number: {"tasks": 3, "comment": "assay:...", "state": "PENDING"}"""

    def __init__(self, name):
        self.name, self.file = name, HOME / name / "jobs.json"

    def read(self):
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def write(self, jobs):
        self.file.write_text(json.dumps(jobs))

    def submit(self, script):
        text = pathlib.Path(script).read_text()
        used = HOME / self.name / "numbers"
        number = int(used.read_text()) + 1 if used.exists() else 100
        used.write_text(str(number))
        self.write({**self.read(), str(number): {
            "tasks": int(re.search(r"^#SBATCH.* --array=0-(\d+)", text, re.M).group(1)) + 1,
            "comment": re.search(r"^#SBATCH.* --comment=(\S+)", text, re.M).group(1), "state": "PENDING"}})
        return number

    def queue(self):
        """As squeue is asked for a line: of an array that waits one, else one for each task."""
        for number, job in self.read().items():
            if job["state"] == "PENDING":
                yield f"{number}|{number}|0-{job['tasks'] - 1}|PENDING||Resources|{job['comment']}"
                continue
            for task in range(job["tasks"]):
                yield f"{int(number) * 1000 + task}|{number}|{task}|{job['state']}|{self.name}1|None|{job['comment']}"

    def cancel(self, numbers):
        jobs = self.read()
        for number in numbers:
            if number not in jobs:
                return f"scancel: error: Invalid job id {number}"
            del jobs[number]
        self.write(jobs)
        return ""


def main():
    program, arguments = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
    with open(HOME / "calls", "a", encoding="utf-8") as calls:
        calls.write(" ".join([program] + arguments) + "\n")
    named = [a.split("=", 1)[1] for a in arguments if a.startswith("--clusters=")]
    words = [a for a in arguments if not a.startswith("-")]
    cluster = Cluster(named[0] if named else "east")
    if not (HOME / cluster.name).is_dir():
        sys.exit(f"{program}: error: '{cluster.name}' can't be reached now, or it is an invalid entry for --cluster.")
    if program in os.environ.get("PLAYED_REFUSALS", "").split():
        sys.exit(f"{program}: error: {program} is busy")
    if named and program in ("squeue", "sinfo"):
        print(f"CLUSTER: {cluster.name}")
    if program == "sbatch":
        print(f"{cluster.submit(words[-1])};{cluster.name}" if named else cluster.submit(words[-1]))
    elif program == "squeue":
        print("\n".join(cluster.queue()))
    elif program == "scancel":
        if complaint := cluster.cancel(words):
            sys.exit(complaint)
    elif program == "scontrol" and words == ["show", "config"]:
        print("MaxArraySize            = 1001")
    elif program == "sinfo":
        print(f"{cluster.name}1|idle|2|(null)|(null)|infinite|debug*")
    else:
        sys.exit(f"{program}: error: not played: {arguments}")


if __name__ == "__main__":
    main()
