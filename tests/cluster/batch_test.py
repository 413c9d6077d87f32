#!/usr/bin/env python3
"""Batches on a private Slurm: what a batch measures, and what becomes of it when jobs, nodes, the controller, the disk or
the submitting machine fail. Several clusters run at once: nearly all of the time is waiting. One file, above 500 lines,
since it starts itself once for each of its classes, the longest first.

  batch_test.py [--assay FILE --plugins FOLDER] [CLASS[.test]...]"""
import csv
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import batch  # pylint: disable=wrong-import-position
import cluster  # pylint: disable=wrong-import-position

TWO_SHAPES = """number = [0, 1, 2, 3, 4, 5]
[[sweep.zip]]
"cluster.nodes" = [1, 2]
"run.ranks" = [1, 2]
"""
BUSY = 73  # exit code of a second attempt at a shard


def columns_that_stay(text):
    """Rows of a table, without what differs from one run to the next: times and memory."""
    rows = list(csv.DictReader(io.StringIO(text)))
    kept = [name for name in rows[0] if not name.endswith(("_ms", "_s", "_percent", "_mib", "_us", ".ratio"))
            and name not in ("speedup", "started", "run", "host", "environment", "notes", "validity")]
    return sorted(tuple((name, row[name]) for name in kept) for row in rows)


def environment_of(pid):
    """Empty where the process has ended since it was listed."""
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Plain(batch.BatchTestCase):
    nodes = 3

    def test_table_is_that_of_one_machine(self):
        b = self.batch(TWO_SHAPES, run='bind = "none"', canary="true", params="elements = 100")
        b.submit()
        b.wait_over()
        self.slurm.shims.forget()
        b.status()
        b.collect()
        self.assertLessEqual(len(self.slurm.shims.calls("squeue")), 1)
        self.assert_all(b, count=12)
        self.assert_begun(b, {n: 2 for n in range(6)})  # once in each shape
        on_cluster = (b.run_folder / "table.csv").read_text()
        alone = b.assay("run", b.file, "--output", b.folder / "alone", "--quiet")
        self.assertEqual(alone.status, 0, alone)
        tables = list((b.folder / "alone").glob("**/table.csv"))
        self.assertEqual(columns_that_stay(on_cluster), columns_that_stay(tables[0].read_text()))
        self.assertEqual(self.slurm.shims.calls("sacct") + self.slurm.shims.calls("sacct", inside_jobs=True), [])

    def test_launchers_by_hand(self):
        b = self.batch('number = [0]', run="ranks = 2", params="elements = 100")
        command = [batch.HOME["assay"], "run", str(b.file), "--quiet", "--plugin-path", batch.HOME["plugins"], "--output"]
        done = self.slurm.run(["srun", "--nodes=2", "--ntasks-per-node=1", *command, str(b.folder / "srun")], cwd=b.folder)
        self.assertEqual(done.status, 0, done)
        done = self.slurm.run([*command, str(b.folder / "alone")], cwd=b.folder)
        self.assertEqual(done.status, 0, done)
        if any((pathlib.Path(p) / "mpirun").exists() for p in os.environ["PATH"].split(os.pathsep)):
            done = self.slurm.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", *command,
                                   str(b.folder / "mpirun")], cwd=b.folder)
            self.assertEqual(done.status, 0, done)
        for file in b.folder.glob("*/**/cases.jsonl"):
            self.assertEqual([(r["status"], r["ranks"]) for r in map(json.loads, file.read_text().splitlines())], [("ok", 2)])

    def test_one_question_to_the_scheduler(self):
        b = self.batch(cases=3)
        b.submit()
        self.assertLessEqual(len(self.slurm.shims.calls("squeue")), 1)
        for call in (b.again, b.status, b.collect):
            self.slurm.shims.forget()
            call()
            self.assertLessEqual(len(self.slurm.shims.calls("squeue")), 1, call)
        b.wait_over()
        self.slurm.shims.forget()
        b.resubmit("lost,failed")
        self.assertLessEqual(len(self.slurm.shims.calls("squeue")), 1)
        self.assert_all(b)

    def test_another_user_sees_that_the_jobs_live(self):
        other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", batch.HOME["assay"]]
        if self.slurm.run([*other, "status", "--help"]).status != 0:
            self.skipTest("another user cannot start this executable")
        b = self.batch(cases=2, params="seconds = 3")
        b.submit()
        b.wait_start(0)
        said = self.slurm.call(*other, "status", str(b.run_folder), "--json")
        self.assertEqual(json.loads(said)["counts"], {"queued": 1, "running": 1})
        b.wait_over()
        self.assert_all(b)

    def test_changed_plugin_or_experiment_is_refused(self):
        for what in ("plugin", "experiment"):
            with self.subTest(what):
                b = self.batch(cases=2)
                plugins = b.folder / "plugins"
                plugins.mkdir()
                (plugins / "misbehaving.so").write_bytes((pathlib.Path(batch.HOME["plugins"]) / "misbehaving.so").read_bytes())
                b.write_site(place='sbatch_extra = ["--hold"]')
                b.submit("--plugin-path", plugins)
                if what == "plugin":
                    with open(plugins / "misbehaving.so", "ab") as file:
                        file.write(b"changed")
                else:
                    with open(b.run_folder / "experiment.toml", "a", encoding="utf-8") as file:
                        file.write("# changed\n")
                self.slurm.call("scontrol", "release", b.job())
                status = b.wait_over()
                self.assertEqual([a["verdict"] for a in status["attempts"]], ["changed"], b.story())
                self.assertEqual(status["counts"], {"lost": 2})
                self.assertEqual(b.starts(0) + b.starts(1), [])

    def test_canary_that_fails_blocks_the_rest(self):
        b = self.batch(cases=4, canary="true", params='action = "fail"\ntimes = 1')
        b.submit()
        status = b.wait_over()
        self.assertEqual(status["counts"], {"failed": 1, "blocked": 3}, b.story())
        self.assertEqual(sum(len(b.starts(n)) for n in range(4)), 1)
        # The others fail in their first start, too; what they find makes them ok.
        for number in range(4):
            (b.marks / f"{number}.0").write_text("told to be ok\n")
        b.resubmit("failed,blocked")
        b.wait_over()
        records = b.collect()
        self.assertEqual([r["status"] for r in records.values()], ["ok"] * 4, b.story())
        self.assertEqual(b.counts(), {"ok": 4})


class Sites(batch.BatchTestCase):
    nodes = 2

    def test_wrong_values_are_named_and_nothing_is_queued(self):
        b = self.batch(cases=2)
        static = {'gpus_per_node = -1': "gpus_per_node", 'exclude = "n1"': "exclude", 'requeue = "yes"': "requeue",
                  'sbatch_extra = ["nice"]': "sbatch_extra", 'partitoin = "x"': "partitoin"}
        b.write_site(place="\n".join(static))
        lines = b.site.read_text().splitlines()
        done = b.submit("--check", status=2)
        for line, name in static.items():
            self.assertRegex(done.err, rf"site.toml:{lines.index(line) + 1}:\d+: .*{name}", done)
        asked = {"partition": 'partition = "debgu"', "constraint": 'constraint = "huge"', "exclude": 'exclude = ["n1", "n9"]',
                 "reservation": 'reservation = "none_such"', "gpus_per_node": "gpus_per_node = 5",
                 "sbatch_extra": 'sbatch_extra = ["--no-such-option"]', "time_max": 'time_max = "3h"'}
        for name, line in asked.items():
            settings = {"place": "", "partition": "debug", "time_max": "1m"}
            if name in ("partition", "time_max"):
                settings[name] = line.split('"')[1]
            else:
                settings["place"] = line
            b.write_site(**settings)
            done = b.submit("--check", status=2)
            self.assertIn(f"[slurm] {name}", done.err, done)
        b.write_site(place='srun_extra = ["--no-such-option"]', partition="debug", time_max="1m")
        self.assertIn("[slurm] srun_extra", b.submit("--check", status=2).err)
        b.write_site(place='srun_extra = ["--mpi=none"]\nsbatch_extra = ["--mem 100M"]')
        self.slurm.call("scontrol", "update", "PartitionName=debug", "State=DOWN")
        self.assertRegex(b.submit("--check", status=2).err, r"\[slurm\] partition is 'debug': it is down")
        self.slurm.call("scontrol", "update", "PartitionName=debug", "State=UP")
        b.submit("--check")
        self.assertEqual(self.slurm.states(), {})
        self.assertFalse((b.folder / "results").exists())

    def test_unknown_excluded_node_is_refused(self):
        b = self.batch(cases=2, place='exclude = ["n7"]')
        self.assertIn("n7", b.submit("--check", status=2).err)
        done = b.assay("submit", b.file, "--site", b.site)
        self.assertNotEqual(done.status, 0, done)
        self.assertIn("invalid", (done.out + done.err).lower())
        self.assertEqual(self.slurm.states(), {})


class Recurring(batch.BatchTestCase):
    nodes = 1

    def test_cron_line_of_the_documentation(self):
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs/cluster.md").read_text()
        submits, cleans = [line.split(None, 5)[5] for line in page.splitlines() if line.startswith(("15   1", "45   1"))]
        on_end = page[page.index('on_end = ["cd'):].split("```")[0]
        b = self.batch(cases=2, place=on_end)
        home = self.slurm.folder / "work/home"
        (home / "bench").mkdir(parents=True)
        (home / "assay/bin").mkdir(parents=True)
        (home / "assay/bin/assay").symlink_to(batch.HOME["assay"])
        plugin = f'plugin = "{batch.HOME["plugins"]}/misbehaving.so"'
        (home / "bench/nightly.toml").write_text(b.file.read_text().replace('plugin = "misbehaving"', plugin)
                                                 .replace(f'name = "{b.name}"', 'name = "nightly"'))
        (home / "bench/site.toml").write_text(b.site.read_text())
        # As cron does.
        environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh",
                       "SLURM_CONF": self.slurm.environment["SLURM_CONF"]}
        for line in (submits, cleans):
            done = subprocess.run(["/bin/sh", "-c", line], env=environment, cwd=home, check=False)
            self.assertEqual(done.returncode, 0, (home / "bench/nightly.log").read_text())
        run = pathlib.Path((home / "bench/results/nightly/latest")).resolve()
        cluster.wait_until("what comes at the end has run", (home / "bench/slower").exists, 40)
        cluster.wait_until("no job is left", lambda: not set(self.slurm.states().values()) - cluster.OVER)
        self.assertEqual(len((run / "cases.jsonl").read_text().splitlines()), 2, "it has collected")
        self.assertTrue((run / "compare.md").exists())
        self.assertIn("nothing", subprocess.run([batch.HOME["assay"], "cancel", str(run)], env=environment,
                                                capture_output=True, text=True, check=True).stdout)


class NodesThatAreNotReady(batch.BatchTestCase):
    nodes = 2

    def assert_unready(self, b, reason, starts=1):
        """Each job has begun no case, once, and `status` has the reason."""
        status = b.wait_over()
        self.assertEqual(status["counts"], {"lost": 2}, b.story())
        self.assertEqual(len(status["unready_starts"]), starts, b.story())
        self.assertRegex(status["unready_starts"][0]["reason"], reason)
        self.assertRegex(b.assay("status", b.run_folder).out, reason)
        self.assertEqual(b.starts(0) + b.starts(1), [])

    def test_what_a_node_lacks_is_told_once_and_at_once(self):
        module = "module() { echo ERROR: Unable to locate a modulefile for $2 >&2; return 1; }"
        for place, reason in ((f"prologue = ['{module}', 'module load cuda']", "exit status 1 at: module load cuda"),
                              ('sbatch_extra = ["--gres=gpu:1"]', "finds no GPU"),
                              ('environment = ["SUCH_A_HOME"]', "SUCH_A_HOME is not set"),
                              ('srun_extra = ["--export=NONE"]', "ASSAY_BATCH is not set"),
                              ('assay = "/nowhere/assay"', "/nowhere/assay.*No such file")):
            with self.subTest(place):
                b = self.batch(cases=2, place=place)
                if "gpu" in place:
                    b.file.write_text(b.file.read_text().replace('device = "cpu"', 'device = "auto"'))
                b.submit()
                self.assert_unready(b, reason)
                if "module" in place:
                    self.assertIn("  ERROR: Unable to locate a modulefile for cuda\n", b.assay("status", b.run_folder).out)
        b.collect()

    def test_prologue_arrives_without_the_submitters_environment(self):
        b = self.batch(cases=2, place='sbatch_extra = ["--export=NONE"]\nprologue = ["export CUDA_HOME=/x"]\n'
                                      'environment = ["CUDA_HOME=/x"]')
        b.submit()
        status = b.wait_over()
        self.assertEqual(status["counts"], {"ok": 2}, b.story())
        self.assertEqual([n["ready"] for n in status["nodes"]], [True])
        b.collect()
        environments = [json.loads(file.read_text()) for file in (b.run_folder / "environments").iterdir()]
        self.assertIn('"node_ready"', json.dumps(environments))

    def test_a_node_that_only_waits_is_not_named(self):
        other = self.slurm.submit("sleep 60", "--nodelist=n2", "--exclusive")
        self.slurm.wait_state(other, "RUNNING")
        b = self.batch("number = [0]")
        b.file.write_text(b.file.read_text().replace("[cluster]\n", "[cluster]\neach_node = true\n"))
        b.submit()
        b.wait("n1 is done", lambda: b.counts() == {"ok": 1, "queued": 1})
        said = b.assay("collect", b.run_folder).out
        self.assertNotIn("exclude", said)
        self.assertIn("nodes still to come, and not judged by what is missing: n2", said)
        b.cancel()
        self.slurm.call("scancel", other)
        b.wait_over()
        self.assertIn('exclude = ["n2"]', b.assay("collect", b.run_folder).out)

    def test_unhealthy_node_is_left_for_another(self):
        b = self.batch(cases=2, limits='[slurm.health]\nexperiment = "health/x.toml"')
        health = self.batch("number = [100]", params='action = "fail"\ntimes = 1')  # of the first node alone
        plugin = f'plugin = "{batch.HOME["plugins"]}/misbehaving.so"'
        (b.folder / "health").mkdir()
        (b.folder / "health/x.toml").write_text(health.file.read_text().replace('plugin = "misbehaving"', plugin))
        b.submit()
        status = b.wait_over()
        self.assertEqual(status["counts"], {"ok": 2}, b.story())
        (first, *_), (second, *_) = health.starts(100)
        self.assertEqual([(n["node"], "it was told to fail" in n["reason"]) for n in status["unhealthy"]], [(first, True)])
        self.assertEqual({b.starts(n)[0][0] for n in range(2)}, {second})
        hook = b.assay("status", b.run_folder, "--unhealthy")
        self.assertEqual((hook.status, [n["node"] for n in json.loads(hook.out)["nodes"]]), (1, [first]))

    def test_folder_that_a_node_does_not_see(self):
        b = self.batch(cases=2)
        for node in ("n1", "n2"):
            slurmd = (self.slurm.folder / f"run/slurmd-{node}.pid").read_text().strip()
            hidden = ["nsenter", "-t", slurmd, "-m"]
            subprocess.run([*hidden, "mount", "-t", "tmpfs", "none", str(b.folder)], check=True)
            self.addCleanup(subprocess.run, [*hidden, "umount", "-l", str(b.folder)], check=False)
        b.submit()
        status = b.wait_over()
        self.assertEqual(status["counts"], {"lost": 2}, b.story())
        self.assertRegex(b.assay("status", b.run_folder).out, "on n[12]\\): its node cannot open the log, .*see .*results")


class Limits(batch.BatchTestCase):
    nodes = 1

    def test_time_limit_divides_a_shard(self):
        # Slurm looks at limits every 30 s: it signals a job of 60 s after some 30 s that its end is near.
        b = self.batch(cases=7, params="seconds = 6", budget="3s")
        b.submit()
        verdicts = [a["verdict"] for a in b.wait_over(150)["attempts"]]
        self.assertGreaterEqual(len(verdicts), 2, b.story())
        self.assertEqual((set(verdicts[:-1]), verdicts[-1]), ({"more"}, "done"), b.story())
        self.assert_all(b)
        self.assert_begun(b, {n: 1 for n in range(7)})


class Outrunning(batch.BatchTestCase):
    nodes = 1

    def test_case_that_outruns_the_limit_takes_no_other_with_it(self):
        b = self.batch("number = [0, 1, 2, 3]\nseconds = [90]", budget="1s", timeout="10m", params="times = 1")
        for number in (0, 2, 3):
            (b.marks / f"{number}.0").write_text("ok\n")
        b.submit()
        b.wait("the others are done", lambda: b.counts().get("ok", 0) >= 3, 120)
        self.assert_begun(b, {0: 2, 2: 2, 3: 2})
        b.wait("it is begun again", lambda: b.counts().get("ok") == 4 or len(b.starts(1)) == 2, 30)
        b.wait_over()
        self.assert_all(b)


class Deaths(batch.BatchTestCase):
    nodes = 2

    def test_case_that_kills_its_leader_is_quarantined(self):
        b = self.batch('[[sweep.zip]]\nnumber = [0, 1, 2, 3]\naction = ["ok", "kill_leader", "ok", "ok"]')
        b.submit()
        status = b.wait_over()
        self.assertEqual(status["counts"], {"ok": 3, "quarantined": 1}, b.story())
        self.assert_begun(b, {0: 1, 1: 2, 2: 1, 3: 1})
        records = b.collect()
        self.assertEqual([records[i]["status"] for i in range(4)], ["ok", "crashed", "ok", "ok"])
        self.assertIn("quarantined", records[1]["reason"])

    def test_case_that_kills_another_rank_is_quarantined(self):
        b = self.batch('[[sweep.zip]]\nnumber = [0, 1, 2]\naction = ["ok", "kill_follower", "ok"]', run="ranks = 2",
                       params="elements = 100")
        b.file.write_text(b.file.read_text().replace("[cluster]\n", "[cluster]\nnodes = 2\n"))
        b.submit()
        status = b.wait_over()
        self.assertEqual(status["counts"], {"ok": 2, "quarantined": 1}, b.story())
        self.assert_begun(b, {0: 1, 1: 2, 2: 1})
        self.assertIn("is gone", status["attempts"][0]["reason"])
        self.assertRegex(b.collect()[1]["reason"], "the last time: the assay process of rank 1 on n[12] is gone")

    def test_controller_away_when_a_job_is_to_start_again(self):
        b = self.batch(cases=3, params='action = "kill_leader"\ntimes = 1')
        for number in (0, 2):
            (b.marks / f"{number}.0").write_text("ok\n")
        b.submit()
        self.slurm.shims.fail("scontrol", "slurm_load_jobs error: Unable to contact slurm controller", once=True)
        b.wait_over()
        self.assert_all(b)
        self.assert_begun(b, {0: 2, 1: 2, 2: 2})

    def test_killed_batch_shell(self):
        b = self.batch(cases=3, params="seconds = 3\ntimes = 1")
        b.submit()
        b.wait_start(1)
        shells = [pid for pid, (name, _, _) in batch.processes_of(self.slurm).items() if name == "slurm_script"]
        self.assertEqual(len(shells), 1)
        batch.send(shells[0])
        status = b.wait_over()
        self.assertEqual(status["counts"], {"ok": 1, "lost": 2}, b.story())
        b.resubmit("lost")
        b.wait_over()
        self.assert_all(b)
        self.assert_begun(b, {0: 1, 1: 2})


# A cluster each: a node that comes back is not always what it was.
class DyingNode(batch.BatchTestCase):
    nodes = 3

    def test_node_that_dies(self):
        b = self.batch(cases=3, params="seconds = 4\ntimes = 1")
        b.submit()
        node = b.wait_start(1)[0]
        self.slurm.control("node-kill", node, "--noticed")
        b.wait_over()
        self.assert_all(b)
        self.assert_begun(b, {0: 1, 1: 2, 2: 1})
        self.assertNotEqual(b.starts(1)[1][0], node)


class KilledNodes(batch.BatchTestCase):
    nodes = 3

    def test_case_that_kills_its_nodes_is_quarantined(self):
        b = self.batch("number = [0, 1, 2]", params="seconds = 2")
        b.submit()
        for time_of_death in (1, 2):
            node = b.wait_start(1, time_of_death)[0]
            self.slurm.control("node-kill", node, "--noticed")
        b.wait_over()
        self.assertEqual(b.counts(), {"ok": 2, "quarantined": 1}, b.story())
        self.assert_begun(b, {0: 1, 1: 2, 2: 1})
        self.assertEqual(len(b.collect()), 3)


class HangingNode(batch.BatchTestCase):
    nodes = 3

    def test_hanging_node_of_two(self):
        b = self.batch("number = [0, 1]", run="ranks = 2\nstall_timeout = \"4s\"", params="elements = 100\nseconds = 3\ntimes = 1",
                       place="", timeout="8s")
        b.file.write_text(b.file.read_text().replace("[cluster]\n", "[cluster]\nnodes = 2\n"))
        b.submit()
        node = b.wait_start(0, seconds=20)[0]
        other = b.wait("rank 1 begins", lambda: b.starts(0, 1))[0][0]
        self.assertNotEqual(node, other)
        stopped = batch.processes_on(self.slurm, other)
        for pid in stopped:
            batch.send(pid, signal.SIGSTOP)
        try:
            b.wait("the job leaves the node", lambda: b.is_quiet() or len(b.starts(0)) + len(b.starts(1)) > 2, 60)
        finally:
            for pid in stopped:
                batch.send(pid)
            self.slurm.control("node-kill", other, "--noticed")
        b.wait_over()
        if b.counts().get("lost"):
            b.resubmit("lost")
            b.wait_over()
        self.assertEqual(sum(b.counts().values()), 2)
        self.assertNotIn("lost", b.counts(), b.story())
        self.assertEqual(len(b.collect()), 2)
        print("  hanging node:", b.counts(), [(a["verdict"], round(a["seconds"], 1)) for a in b.status()["attempts"]])


class Preemption(batch.BatchTestCase):
    nodes = 2
    options = ("--preempt",)

    def test_preempted_job_goes_on(self):
        b = self.batch(cases=3, params="seconds = 3\ntimes = 1\nelements = 100", partition="low", run=f"ranks = {self.nodes}")
        b.file.write_text(b.file.read_text().replace("[cluster]\n", f"[cluster]\nnodes = {self.nodes}\n"))
        b.submit()
        b.wait_start(1)
        high = self.slurm.submit("true", "--partition=debug", "--exclusive", f"--nodes={self.nodes}")
        self.slurm.wait_state(high, "COMPLETED")
        b.wait_over()
        self.assert_all(b)
        self.assert_begun(b, {0: 1, 1: 2, 2: 1})
        # No process has died: all of them were asked to end.
        self.assertEqual([c for c in b.status()["cases"] if "times_it_took_its_job_with_it" in c], [], b.story())


class PreemptionWithGrace(Preemption):
    """The steps get the signal at once, the batch shell only after the grace time."""
    nodes = 1
    options = ("--preempt", "--grace=8")


class Cancelling(batch.BatchTestCase):
    nodes = 2

    def test_stops_and_stays_stopped(self):
        for how in ("assay cancel", "scancel"):
            with self.subTest(how):
                b = self.batch(cases=3, params="seconds = 2\ntimes = 1")
                b.submit()
                b.wait_start(1)
                if how == "scancel":
                    self.slurm.call("scancel", b.job())
                else:
                    b.cancel()
                word = "lost" if how == "scancel" else "cancelled"
                self.assertEqual(b.wait_over()["counts"], {"ok": 1, word: 2}, b.story())
                time.sleep(1)
                self.slurm.control("release")
                self.assertEqual(b.counts(), {"ok": 1, word: 2})
                b.resubmit(word)
                b.wait_over()
                self.assert_all(b)
                self.assert_begun(b, {0: 1, 1: 2})
                self.assertIn("nothing", b.cancel().out)


class Submitting(batch.BatchTestCase):
    nodes = 2

    def arrays(self):
        """{comment: arrays that have it} of all that Slurm has ever seen here."""
        said = self.slurm.call(self.slurm.shims.real["squeue"], "-h", "--states=all", "--format=%F %k")
        found = {}
        for line in said.splitlines():
            job, comment = line.split(None, 1)
            found.setdefault(comment, set()).add(job)
        return {comment: jobs for comment, jobs in found.items() if comment.startswith("assay:")}

    def assert_no_array_twice(self, before, count):
        new = {comment: jobs for comment, jobs in self.arrays().items() if comment not in before}
        self.assertEqual([len(jobs) for jobs in new.values()], [1] * count, new)

    def test_lost_answer_of_sbatch(self):
        before = self.arrays()
        b = self.batch(TWO_SHAPES)
        self.slurm.shims.lose("sbatch", once=True)
        done = b.assay("submit", b.file, "--site", b.site)
        self.assertNotEqual(done.status, 0, done)
        self.assertIn("continue with: assay submit", done.err)
        b.find_run()
        b.again()
        self.assert_no_array_twice(before, 2)
        b.wait_over()
        self.assert_all(b, count=12)
        b.again()
        self.assert_no_array_twice(before, 2)

    def test_killed_between_arrays(self):
        before = self.arrays()
        b = self.batch(TWO_SHAPES)
        real = self.slurm.shims.real["sbatch"]
        self.slurm.shims.tell("sbatch", f"{real} \"$@\"; touch {b.folder}/submitted; exec sleep 60", once=True)
        command = [batch.HOME["assay"], "submit", str(b.file), "--site", str(b.site), "--plugin-path", batch.HOME["plugins"]]
        with subprocess.Popen(command, cwd=b.folder, env=self.slurm.environment, stdout=subprocess.DEVNULL) as submitting:
            cluster.wait_until("an array is queued", (b.folder / "submitted").exists)
            submitting.kill()
            submitting.wait()
        for pid in list(map(int, subprocess.run(["pgrep", "-f", "^sleep 60$"], capture_output=True, text=True,
                                                check=False).stdout.split())):
            if f"SLURM_CONF={self.slurm.folder}" in environment_of(pid):
                batch.send(pid)
        b.find_run()
        b.again()
        self.assert_no_array_twice(before, 2)
        b.wait_over()
        self.assert_all(b, count=12)

    def test_sbatch_that_outlives_its_submission(self):
        before = self.arrays()
        b = self.batch(cases=2)
        real = self.slurm.shims.real["sbatch"]
        self.slurm.shims.tell("sbatch", f"touch {b.folder}/called; sleep 3; exec {real} \"$@\"", once=True)
        command = [batch.HOME["assay"], "submit", str(b.file), "--site", str(b.site), "--plugin-path", batch.HOME["plugins"]]
        with subprocess.Popen(command, cwd=b.folder, env=self.slurm.environment, stdout=subprocess.DEVNULL) as submitting:
            cluster.wait_until("sbatch is called", (b.folder / "called").exists)
            submitting.kill()
            submitting.wait()
        b.find_run()
        b.again()
        time.sleep(4)
        self.assert_no_array_twice(before, 1)
        b.wait_over()
        self.assert_all(b)


    def test_canary_that_went_without_a_word(self):
        b = self.batch(cases=3, canary="true", params="seconds = 3\ntimes = 1")
        self.slurm.shims.lose("sbatch", once=True)
        self.assertNotEqual(b.assay("submit", b.file, "--site", b.site).status, 0)
        b.find_run()
        b.wait("the canary begins", lambda: any(map(b.starts, range(3))), 20)
        for pid, (name, _, _) in batch.processes_of(self.slurm).items():
            if name == "slurm_script":
                batch.send(pid)
        cluster.wait_until("it is gone", lambda: not {"RUNNING", "COMPLETING"} & set(self.slurm.states().values()))
        b.again()
        # Nobody knows whether the rest would be right: nothing starts before a canary is ok.
        self.assertEqual(b.wait_over()["counts"], {"blocked": 2, "lost": 1}, b.story())
        b.resubmit("lost,blocked")
        b.wait_over()
        self.assert_all(b)


class Attempts(batch.BatchTestCase):
    nodes = 2

    def by_hand(self, b, *more, environment=()):
        shard = b.run_folder / "batch/shards/0-0000"
        return b.assay("run", b.run_folder / "experiment.toml", "--shard", shard, *more, environment=environment)

    def test_second_attempt_is_refused(self):
        b = self.batch(cases=2, params="seconds = 3")
        b.submit()
        b.wait_start(0)
        done = self.by_hand(b)
        self.assertEqual(done.status, BUSY, done)
        self.assertIn("of this shard is running", done.out + done.err)
        self.assertIn(b.job(), done.out + done.err)
        b.wait_over()
        self.assert_all(b)
        self.assert_begun(b, {0: 1, 1: 1})
        self.assertEqual(self.by_hand(b).status, 0)
        self.assert_begun(b, {0: 1, 1: 1})

    def test_zombie_is_superseded(self):
        b = self.batch(cases=4, params="seconds = 4")
        b.submit()
        job = b.wait_start(0)[3]
        # As if Slurm had given the node up, and started the job again while the first start still goes on.
        again = self.by_hand(b, environment={"SLURM_JOB_ID": job, "SLURM_RESTART_COUNT": "1"}.items())
        self.assertEqual(again.status, 0, again)
        status = b.wait_over()
        self.assertIn("superseded", [a["verdict"] for a in status["attempts"]], b.story())
        records = b.collect()
        self.assertEqual([r["status"] for r in records.values()], ["ok"] * 4)
        self.assert_begun(b, {0: 2, 1: 1, 2: 1, 3: 1})


class Disk(batch.BatchTestCase):
    nodes = 1

    @classmethod
    def setUpClass(cls):
        # Before the nodes, which see what is mounted when they begin. There is room for the libraries that an attempt takes.
        cls.disk = pathlib.Path(tempfile.mkdtemp(prefix="assay-disk-"))
        cls.addClassCleanup(cls.disk.rmdir)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(cls.disk)], check=True)
        cls.addClassCleanup(subprocess.run, ["umount", "-l", str(cls.disk)], check=True)
        super().setUpClass()

    def fill(self, ballast):
        with open(ballast, "wb", buffering=0) as file:
            for size in (4096, 1):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    pass

    def test_full(self):
        b = self.batch(cases=4, params="seconds = 2", results=str(self.disk))
        b.submit()
        b.wait_start(1)
        ballast = self.disk / "ballast"
        self.fill(ballast)
        b.wait("it is told", lambda: "No space left" in b.story(), 40)
        begun = sum(len(b.starts(n)) for n in range(4))
        time.sleep(6)
        self.slurm.control("release")
        time.sleep(6)
        self.assertLessEqual(sum(len(b.starts(n)) for n in range(4)), begun + 1, "cases run although nothing can be kept")
        b.cancel()
        b.wait_over()
        ballast.unlink()
        self.assertEqual(b.counts(), {"ok": 1, "lost": 3}, b.story())
        b.resubmit("lost")
        b.wait_over()
        self.assert_all(b)


class Controller(batch.BatchTestCase):
    nodes = 1

    def test_that_cannot_be_asked(self):
        # The job outlives the absence: Slurm holds a job whose end it has missed.
        b = self.batch("[[sweep.zip]]\nnumber = [0, 1, 2]\nseconds = [0, 9, 9]")
        b.submit()
        b.wait_start(1)
        self.slurm.shims.fail("squeue", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
        status = b.status()
        self.assertEqual(status["scheduler"], "unknown", status)
        self.assertEqual(status["counts"], {"ok": 1, "unknown": 2}, status)
        self.assertIn("scheduler unknown", b.assay("status", b.run_folder).out)
        refused = b.assay("submit", b.run_folder, "--resubmit", "lost")
        self.assertNotEqual(refused.status, 0, refused)
        self.assertIn("squeue failed", refused.err)
        self.slurm.shims.restore("squeue")
        time.sleep(6)  # it writes down every 5 s what it knows
        self.slurm.control("daemon-kill", "slurmctld")
        self.assertEqual(b.status()["counts"].get("lost"), None)
        self.slurm.control("daemon-start", "slurmctld")
        cluster.wait_until("the controller answers", lambda: self.slurm.run(["squeue"]).status == 0)
        b.wait_over()
        self.assert_all(b)
        self.assertEqual(len(b.jobs()), 1)


class SmallArrays(batch.BatchTestCase):
    nodes = 3
    options = ("--max-array-size=3",)
    arrays = 2  # of shards 0, 1 and 2; indices go to MaxArraySize - 1

    def test_all_cases_are_done(self):
        # Each shard has room for one case: 40 s.
        b = self.batch(cases=5, budget="30s")
        b.submit()
        self.assertEqual(len(b.jobs()), self.arrays, b.jobs())
        b.wait_over()
        self.assert_all(b)
        self.assert_begun(b, {n: 1 for n in range(5)})


class NoArrays(SmallArrays):
    options = ("--max-array-size=1",)
    arrays = 5


if __name__ == "__main__":
    batch.take_options(sys.argv)
    chosen = [name for name in sys.argv[1:] if not name.startswith("-")]
    if chosen:
        cluster.main()
    why = subprocess.run([sys.executable, str(cluster.HERE / "mini_slurm"), "possible"], capture_output=True, text=True,
                         check=False)
    if why.returncode != 0:
        print(f"skipped: {(why.stdout + why.stderr).strip()}")
        sys.exit(cluster.SKIPPED if why.returncode == cluster.SKIPPED else 1)
    classes = [name for name, thing in globals().items()
               if isinstance(thing, type) and issubclass(thing, unittest.TestCase) and thing.__module__ == "__main__"]
    # The longest first.
    classes.sort(key=lambda name: name not in ("Outrunning", "HangingNode", "Limits"))
    sys.exit(0 if batch.run_in_parallel(__file__, classes, at_once=6) else 1)
