#!/usr/bin/env python3
"""Plays what a cluster does with Indexed Jobs, on this machine: `kubectl` by this program is

    create -f MANIFEST -o name | get jobs,pods -l LABEL -o json | delete jobs --wait=false NAME...

A pod is a process group with the manifest's command, its working folder, and the variables that Kubernetes sets. An
index that fails gets another pod, as often as backoffLimitPerIndex says, unless podFailurePolicy has its exit code.
Images, volumes and resources are not played. PLAYED_JOBS names the folder of its state; `--namespace=...` is noted
there and otherwise left out."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

STATE = pathlib.Path(os.environ["PLAYED_JOBS"])


def play(manifest_file, folder):
    """Until all indexes are completed or have failed; the state is in status.json, replaced as a whole."""
    manifest = json.loads(pathlib.Path(manifest_file).read_text())
    spec, name = manifest["spec"], manifest["metadata"]["name"]
    pod = spec["template"]["spec"]
    container = pod["containers"][0]
    waiting, running, completed, failed = list(range(spec["completions"])), {}, set(), set()
    starts = dict.fromkeys(waiting, 0)
    final = [code for rule in spec["podFailurePolicy"]["rules"] if rule["action"] == "FailIndex"
             for code in rule["onExitCodes"]["values"]]

    def write():
        job = dict(manifest, status={"completedIndexes": ",".join(map(str, sorted(completed))),
                                     "failedIndexes": ",".join(map(str, sorted(failed)))})
        if len(completed) + len(failed) == spec["completions"]:
            job["status"]["conditions"] = [{"type": "Failed" if failed else "Complete", "status": "True"}]
        pods = [{"kind": "Pod",
                 "metadata": {"name": f"{name}-{index}", "uid": process.pid,
                              "labels": dict(manifest["metadata"]["labels"], **{"batch.kubernetes.io/job-name": name}),
                              "annotations": {"batch.kubernetes.io/job-completion-index": str(index)}},
                 "spec": {"nodeName": "played"}, "status": {"phase": "Running"}} for index, process in running.items()]
        part = folder / "part"
        part.write_text(json.dumps([job] + pods))
        part.rename(folder / "status.json")

    write()
    while waiting or running:
        while waiting and len(running) < spec["parallelism"]:
            index = waiting.pop(0)
            starts[index] += 1
            environment = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LD_LIBRARY_PATH")}
            environment |= {"JOB_COMPLETION_INDEX": str(index), "HOSTNAME": f"{name}-{index}", "NODE_NAME": "played"}
            running[index] = subprocess.Popen(container["command"], cwd=container["workingDir"], env=environment,
                                              start_new_session=True, stdin=subprocess.DEVNULL,
                                              stdout=open(folder / f"{index}.{starts[index]}.log", "wb"),
                                              stderr=subprocess.STDOUT)
        for index, process in list(running.items()):
            if process.poll() is None:
                continue
            del running[index]
            if process.returncode == 0:
                completed.add(index)
            elif process.returncode in final or starts[index] > spec["backoffLimitPerIndex"]:
                failed.add(index)
            else:
                waiting.append(index)
        write()
        time.sleep(0.05)


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--namespace")]
    if words[0] == "create":
        manifest = pathlib.Path(words[words.index("-f") + 1])
        name = json.loads(manifest.read_text())["metadata"]["name"]
        folder = STATE / name
        folder.mkdir()
        player = subprocess.Popen([sys.executable, __file__, "play", manifest, folder], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=open(folder / "player.log", "wb"), start_new_session=True)
        (folder / "player").write_text(str(player.pid))
        while not (folder / "status.json").exists() and player.poll() is None:
            time.sleep(0.02)
        print(f"job.batch/{name}")
    elif words[0] == "play":
        play(words[1], pathlib.Path(words[2]))
    elif words[0] == "get":
        items = [item for file in sorted(STATE.glob("*/status.json")) for item in json.loads(file.read_text())]
        print(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    elif words[0] == "delete":
        for name in words[3:]:
            os.kill(int((STATE / name / "player").read_text()), signal.SIGKILL)
            for item in json.loads((STATE / name / "status.json").read_text()):
                if item["kind"] == "Pod":
                    os.killpg(item["metadata"]["uid"], signal.SIGKILL)
            (STATE / name / "status.json").unlink()
    else:
        sys.exit(f"not played: {words}")


if __name__ == "__main__":
    main()
