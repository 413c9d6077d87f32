#include <cstdlib>
#include <fstream>
#include <set>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A script that reports a loss of as much as the step's number, in two phases.
constexpr const char* training = R"(
import assay, os
assert os.environ.get("MODE", "none") in ("none", "small", "large")
for step in assay.steps(alone=3):
    with assay.phase("forward"):
        sum(range(1000))
    with assay.phase("backward"), assay.phase("inner"):
        sum(range(1000))
    assay.metric("loss", step, unit="nats", better="lower")
assay.result("accuracy", 0.75, better="higher")
print("alone" if not assay.is_run_by_assay() else "measured")
)";

// All that a shell needs.
constexpr const char* shell_steps = R"(echo assay 1 >&3
while echo step >&3; read kind number <&3; [ "$kind" != end ]; do
  echo begin half >&3; echo end half >&3; echo "metric number $number" >&3
done
echo "result last 7 s" >&3
)";

class Command : public Sandbox {
 protected:
  Command() { set_variable("PYTHONPATH", CLIENT); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder() / name) << text; }
  // A step a run of the program.
  static ExperimentText whole(const std::string& params, const std::string& sweep = "") {
    return {.plugin = "command", .params = params + "\nstep_is = \"program\"", .sweep = sweep};
  }
  ExperimentText python(const std::string& text, const std::string& params = "") const {
    write("script.py", text);
    return {.plugin = "command", .params = "command = [\"python3\", \"{script}\"]\nscript = \"script.py\"\n" + params};
  }
};

TEST_F(Command, TheModuleNeedsNoCopy) {
  set_variable("PYTHONPATH", "/nowhere");
  const auto records =
      records_of(python("import assay, os\nassert os.environ['PYTHONPATH'].startswith('/nowhere:')\n"
                        "for step in assay.steps(alone=1): pass\n"));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].at("status"), "ok") << records[0];
}

TEST_F(Command, ItemsOfAStepComeFromAParameter) {
  const auto records = records_of(whole("command = \"true {batch}\"\nitems_per_step = \"{batch}\"", "batch = [8, 32]"));
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].at("work").at("items"), 8);
  EXPECT_EQ(records[1].at("params").at("items_per_step"), 32);
}

TEST_F(Command, IsTimedWithoutAFile) {
  const RunResult result =
      run({"time", "--runs", "3", "--warmup", "0", "--set", "sweep.seconds=[0.01, 0.02]", "--set",
           "measure.timeout=50s", "--output", "timed", "--", "sh", "-c", "sleep {seconds}; echo {other} {timeout}"});
  ASSERT_EQ(result.exit.code, 0) << result.output;
  EXPECT_TRUE(fs::exists(folder() / "timed/sh/latest/table.csv")) << result.output;
  const RunResult table = run({"table", "timed/sh/latest", "--json", "--columns", "seconds,step.n,command"});
  const json rows = json::parse(table.output);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].at("step.n"), 3);
  EXPECT_EQ(rows[1].at("seconds"), 0.02);
  EXPECT_PRED2(contains, rows[1].at("command").get<std::string>(), "{{other}} {{timeout}}");
  const RunResult missing = run({"time", "ls", "-l"});
  EXPECT_EQ(missing.exit.code, 2);
  EXPECT_PRED2(contains, missing.output, "options of the program stand behind --");
  const RunResult unknown = run({"time", "--output", "unknown", "--", "nosuchprog"});
  EXPECT_EQ(unknown.exit.code, 2);
  EXPECT_PRED2(contains, unknown.output, "there is no program 'nosuchprog'; name one on the PATH");
  EXPECT_FALSE(fs::exists(folder() / "unknown"));
}

TEST_F(Command, AProgramIsTimedAsAWhole) {
  const auto records = records_of(whole("command = \"sleep {seconds}\"", "seconds = [0.01, 0.05]"));
  ASSERT_EQ(records.size(), 2u);
  for (const json& record : records) {
    const json& step = record.at("phases").at("step");
    EXPECT_EQ(step.at("n"), 3);
    EXPECT_GE(step.at("min_ms").get<double>(), 1000 * record.at("axes").at("seconds").get<double>());
    EXPECT_EQ(record.at("verify").at("status"), "not checked");
    EXPECT_PRED2(contains, record.at("verify").at("text"), "the right result of the program is unknown");
  }
}

TEST_F(Command, AScriptReportsStepsPhasesAndMetrics) {
  const auto records = records_of(python(training, "verify_metric = \"accuracy\"\nverify_min = 0.5"));
  ASSERT_EQ(records.size(), 1u);
  const json& record = records[0];
  std::vector<std::string> phases;
  for (const auto& [name, phase] : record.at("phases").items()) {
    phases.push_back(name);
    EXPECT_EQ(phase.at("n"), 3) << name;
  }
  EXPECT_EQ(std::set(phases.begin(), phases.end()), (std::set<std::string>{"step", "forward", "backward", "inner"}));
  // Three steps are measured, those before them are the warm-up: the last number is that of the last measured one.
  const json& loss = record.at("step_metrics").at("loss");
  ASSERT_EQ(loss.at("samples").size(), 3u);
  EXPECT_EQ(loss.at("samples")[2].get<double>() - loss.at("samples")[0].get<double>(), 2);
  EXPECT_EQ(loss.at("unit"), "nats");
  EXPECT_EQ(loss.at("direction"), -1);
  EXPECT_EQ(metric(record, "accuracy"), 0.75);
  EXPECT_EQ(record.at("metrics").size(), 1u) << "waited is of those that wait busily, and auto sleeps without a GPU";
  EXPECT_EQ(record.at("verify").at("status"), "ok");
  EXPECT_PRED2(contains, record.at("verify").at("text"), "accuracy is 0.75 in the end, as declared at least 0.5");
  EXPECT_TRUE(record.at("files").contains("input.script"));
  EXPECT_PRED2(contains, text_of(run_folder() / "logs/case-0001.log"), "measured");
}

TEST_F(Command, AMetricOfAnEarlierStepIsNotSaidToBeTheLasts) {
  ExperimentText text =
      python("import assay\nfor i, step in enumerate(assay.steps()):\n    if i % 2 == 0: assay.metric('x', 0.5)\n",
             "verify_metric = \"x\"\nverify_min = 0");
  text.measure = "warmup = 0\nsteps = 4";
  const auto records = records_of(text);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_PRED2(contains, records[0].at("verify").at("text"), "x is 0.5 in step 3 of 4, the last that reported it");
}

TEST_F(Command, TheSameScriptRunsAlone) {
  write("script.py", training);
  const fs::path out = folder() / "alone.txt";
  const std::string line = "cd '" + folder().string() + "' && PYTHONPATH='" CLIENT "' python3 script.py > alone.txt";
  ASSERT_EQ(std::system(line.c_str()), 0);
  EXPECT_EQ(text_of(out), "alone\n");
}

TEST_F(Command, AProgramInCAndOneInShellReport) {
  write("steps.sh", shell_steps);
  const auto records =
      records_of({.plugin = "command", .sweep = "command = [[\"" REPORTING_PROGRAM "\"], [\"sh\", \"steps.sh\"]]"});
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(metric(records[0], "measured"), 3);
  EXPECT_EQ(records[0].at("phases").at("work").at("n"), 3);
  EXPECT_EQ(metric(records[1], "last"), 7);
  EXPECT_EQ(records[1].at("phases").at("half").at("n"), 3);
  // What one program reports the other one does not have.
  EXPECT_FALSE(records[1].at("metrics").contains("measured"));
}

// Each says whether it was asked to wait busily, and reports after a wait of each kind: an answer that is there at
// once, and one that comes after the 0.1 s in which it is asked for, because the other rank takes longer.
TEST_F(Command, BothSidesWaitBusilyWhereTheyAreToldTo) {
  write("steps.sh", std::string("test \"$ASSAY_WAITING\" = busy || exit 9\n") + shell_steps);
  write("script.py",
        "import assay, os, time\nassert os.environ['ASSAY_WAITING'] == 'busy'\n"
        "for step in assay.steps():\n    time.sleep(0.15 * (os.environ.get('RANK') == '1'))\n");
  ExperimentText text{.plugin = "command",
                      .params = "waiting = \"busy\"",
                      .sweep = "command = [[\"" REPORTING_PROGRAM
                               "\"], [\"sh\", \"steps.sh\"], [\"python3\", \"script.py\"]]\n\"run.ranks\" = [1, 2]"};
  const auto records = records_of(text);
  ASSERT_EQ(records.size(), 6u);
  for (const json& record : records) EXPECT_EQ(record.at("metrics").at("waited").at("word"), "busy");
}

TEST_F(Command, WaitedIsANameOfAssaysOwn) {
  for (const char* report : {"result('waited', 1)", "metric('waited', 5.0, unit='ms')"}) {
    const auto records =
        records_of(python("import assay\nfor step in assay.steps():\n    assay." + std::string(report) + "\n"), 1);
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].at("status"), "failed");
    EXPECT_PRED2(contains, records[0].at("reason"), "'waited', a metric of assay's own; give it another name");
  }
  const RunResult refused = run_experiment(python("import assay", "variables = \"ASSAY_WAITING=asleep\""));
  EXPECT_PRED2(contains, refused.output,
               "sets ASSAY_WAITING, which is assay's to set; remove it, and set the parameter waiting");
}

TEST_F(Command, WaitingIsOfReportedStepsAlone) {
  const RunResult refused = run_experiment(whole("command = \"true\"\nwaiting = \"busy\""));
  EXPECT_NE(refused.exit.code, 0);
  EXPECT_PRED2(contains, refused.output, "step_is = \"program\" does not have; remove waiting");
}

TEST_F(Command, ParametersStandInArgumentsAndVariables) {
  const auto records = records_of(
      whole(R"(command = ["sh", "-c", 'test "$1 $MODE $HOME" = "a {1}{ {{rate}} 0.001 true small " || exit 9', "sh",)"
            R"( "a {1}{ {{rate}} {rate} {flag}"])"
            "\nvariables = \"MODE={mode} HOME=\"\nrate = 0.001\nflag = true",
            "mode = [\"small\"]"));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].at("params").at("mode"), "small");
}

TEST_F(Command, AProgramFindsItsOwnLibraries) {
  set_variable("LD_LIBRARY_PATH", "/no/such/folder");
  records_of(whole(
      R"(command = ["sh", "-c", 'test "$LD_LIBRARY_PATH" = /no/such/folder && test -z "$ASSAY_OUTER_LIBRARY_PATH"'])"));
}

TEST_F(Command, MistakesOfTheExperimentAreToldBeforeAnythingRuns) {
  const RunResult slip = run_experiment(whole("comand = \"true\"\ncommand = \"true\""));
  EXPECT_EQ(slip.exit.code, 2);
  EXPECT_PRED2(contains, slip.output, "did you mean 'command'");
  const RunResult array = run_experiment(whole("command = [1, 2]"));
  EXPECT_PRED2(contains, array.output, "expected a string, or an array of strings (required)");
  const RunResult unknown = run_experiment(whole("command = \"true\""),
                                           {"--dry-run", "--set", R"(output.columns=["rank_loss", "step.mean_ms"])"});
  EXPECT_EQ(unknown.exit.code, 0) << unknown.output;
  EXPECT_PRED2(contains, unknown.output,
               "note: column 'rank_loss' of [output] columns is unknown to assay: it stays empty "
               "unless the program reports");
  EXPECT_FALSE(contains(unknown.output, "column 'step.mean_ms'")) << unknown.output;
  const RunResult plan = run_experiment(whole("command = \"true\"\nrate = 1"), {"--dry-run"});
  EXPECT_EQ(plan.exit.code, 2) << plan.output;
  EXPECT_PRED2(contains, plan.output, "the parameter 'rate' reaches the program nowhere; write {rate} in command");
}

TEST_F(Command, IsAPluginAsAnyOther) {
  write("steps.sh", shell_steps);
  const RunResult result = run(
      {"validate", "command", "--set", "command=sh steps.sh", "--set", "verify_metric=last", "--set", "verify_min=1"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  EXPECT_PRED2(contains, result.output, " passed, 0 errors, 0 warnings\n");
  const RunResult described = run({"describe", "command"});
  EXPECT_PRED2(contains, described.output, "and those that an experiment gives it beside these");
}

struct Fault {
  const char* program;
  const char* status;
  std::vector<const char*> reason;
};

TEST_F(Command, FaultsHaveClearReasons) {
  const std::string begin = "import assay,os,sys\nfor step in assay.steps():\n    ";
  const std::vector<Fault> faults = {
      {"print('first', file=sys.stderr); print('last words', file=sys.stderr); sys.exit(3)",
       "failed",
       {"the program in step 1 ended with exit status 3; the end of its standard error:\nfirst\nlast words"}},
      {"os.kill(os.getpid(), 11)", "failed", {"was ended by signal 11 (Segmentation fault)"}},
      {"sys.exit(0)",
       "failed",
       {"exited (status 0) during step 1 and wrote nothing to standard error. Keep iterating assay.steps()"}},
      {"os.write(3, b'\\x00\\xffgarbage\\n'); ",
       "failed",
       {"the program wrote \"??garbage\" to ASSAY_FD; expected step, begin NAME"}},
      {"os.write(3, b'x' * 100000); ", "failed", {"more than 65536 bytes to ASSAY_FD without the end of a line"}},
      {"os.write(3, b'metric x 1\\n' * 110000); ", "failed", {"wrote more than 100000 lines to ASSAY_FD"}},
      {"os.close(3); import time; time.sleep(60)",
       "failed",
       {"has closed its end of ASSAY_FD in step 1 and is still running"}},
      {"os.write(3, b'end x\\n')", "failed", {"ended the phase 'x', but none is open"}},
      {"os.write(3, b'step\\nstep\\n')",
       "failed",
       {"wrote more to ASSAY_FD after it had asked for a step; it is to wait"}},
      {"os.write(3, b'begin x\\n')", "failed", {"asked for a step within the phase 'x'"}},
      {"assay.metric('status', 1)", "failed", {"a metric cannot be called 'status': every table has a column"}},
      {"assay.metric('x', step, unit=str(step))", "failed", {"reported 'x' with another unit, direction or kind"}},
      {"raise MemoryError('no room for 7 elephants')", "oom", {"no room for 7 elephants"}},
      {"assay.fail('unsupported', 'needs two of them')", "unsupported", {"needs two of them"}},
      {"assay.metric('x', float('nan'))", "wrong_result", {"x is nan in the end; expected at least 0 and at most 1"}},
      {"assay.metric('y', 1)", "failed", {"never reported 'x', which verify_metric names; it reported y"}},
  };
  std::string sweep;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const std::string name = "fault" + std::to_string(i) + ".py";
    write(name, begin + faults[i].program + "\n");
    sweep += (i == 0 ? "command = [" : ", ") + ("\"python3 " + name + "\"");
  }
  write("silent.sh", "exit 0\n");
  write("early.py", "import assay\nassay.metric('x', 1)\n");
  write("plain.sh", "exit 0\n");
  write("odd.sh", "#!/no/such/shell\n");
  fs::permissions(folder() / "odd.sh", fs::perms::owner_all);
  sweep += ", \"sh silent.sh\", \"python3 early.py\", \"/no/such/program\", \"./plain.sh\", \"./odd.sh\", \"/usr\"]";
  const auto records = records_of(
      {.plugin = "command", .params = "verify_metric = \"x\"\nverify_min = 0\nverify_max = 1", .sweep = sweep}, 1);
  ASSERT_EQ(records.size(), faults.size() + 6);
  for (std::size_t i = 0; i < faults.size(); ++i) {
    EXPECT_EQ(records[i].at("status"), faults[i].status) << records[i].at("reason");
    for (const char* part : faults[i].reason) EXPECT_PRED2(contains, records[i].at("reason").get<std::string>(), part);
    EXPECT_FALSE(records[i].contains("phases")) << i;
  }
  const auto reason = [&](std::size_t more) { return records[faults.size() + more].at("reason").get<std::string>(); };
  EXPECT_PRED2(contains, reason(0), "It reported nothing: let it report its steps");
  EXPECT_PRED2(contains, reason(1), "reported the metric 'x' outside of the steps; use result");
  EXPECT_PRED2(contains, reason(2), "the program '/no/such/program' cannot be started: No such file or directory");
  EXPECT_PRED2(contains, reason(3), "'./plain.sh' cannot be started: Permission denied; chmod +x ./plain.sh makes it");
  EXPECT_PRED2(contains, reason(4), "the interpreter of its first line is not there: /no/such/shell");
  EXPECT_PRED2(contains, reason(5), "the program '/usr' cannot be started: it is a folder; name a program in it");
}

TEST_F(Command, AHangIsATimeoutThatNamesThePhase) {
  ExperimentText text = python(
      "import assay, time\nfor step in assay.steps():\n    with assay.phase('forward'):\n"
      "        time.sleep(0 if step < 2 else 100)\n");
  text.measure = "warmup = 1\nsteps = 3\ntimeout = \"3s\"";
  const auto records = records_of(text, 1);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].at("status"), "timeout");
  EXPECT_EQ(records[0].at("phase"), "forward") << records[0].at("reason");
}

// Sandbox sees to it that none of them outlives the run.
TEST_F(Command, WhatAProgramForksDoesNotHoldUpTheCase) {
  const auto records =
      records_of(python("import assay, os, subprocess, time\n"
                        "if os.fork() == 0:\n    time.sleep(100)\n    os._exit(0)\n"
                        "subprocess.Popen(['sleep', '100'], start_new_session=True)\n"
                        "for step in assay.steps():\n"
                        "    if os.fork() == 0:\n        os._exit(0)\n    os.wait()\n"));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].at("status"), "ok");
}

TEST_F(Command, TwoRanksFindEachOtherByTheVariablesOfTorchrun) {
  ExperimentText text = python(R"(
import assay, os, socket, time
rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
assert count == 2 and os.environ["LOCAL_RANK"] == str(rank) and os.environ["LOCAL_WORLD_SIZE"] == "2"
if rank == 0:
    other = socket.create_server(where).accept()[0]
else:
    for attempt in range(500):
        try:
            other = socket.create_connection(where)
            break
        except OSError:
            time.sleep(0.02)
for step in assay.steps():
    with assay.phase("exchange"):
        other.sendall(bytes([rank]))
        got = other.recv(1)[0]
    assay.metric("sum", rank + got)
)",
                               "verify_metric = \"sum\"\nverify_min = 1\nverify_max = 1");
  text.run = "ranks = 2";
  const auto records = records_of(text);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].at("ranks"), 2);
  EXPECT_EQ(records[0].at("verify").at("status"), "ok");
  EXPECT_EQ(records[0].at("step_metrics").at("sum").at("mean"), 1);
  EXPECT_EQ(records[0].at("phases").at("exchange").at("n"), 3);

  // One of them fails while the other one waits for it.
  ExperimentText failing = python(
      "import assay, os, sys, time\nfor step in assay.steps():\n"
      "    sys.exit('rank 1 is ill') if os.environ['RANK'] == '1' else time.sleep(100)\n");
  failing.run = "ranks = 2";
  const auto failed = records_of(failing, 1);
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].at("rank"), 1) << failed[0].at("reason");
  EXPECT_PRED2(contains, failed[0].at("reason").get<std::string>(), "rank 1 is ill");
}

TEST_F(Command, ARuleAndSeveralStepsASampleWorkAsWithOtherWorkloads) {
  ExperimentText text = python(training);
  text.measure = "warmup = 5\ninner = 4\n[measure.until]\nrelative_error = 0.9\nmin_steps = 5\nmax_steps = 7";
  const auto records = records_of(text);
  ASSERT_EQ(records.size(), 1u);
  const json& step = records[0].at("phases").at("step");
  EXPECT_GE(step.at("n").get<int>(), 5);
  EXPECT_LE(step.at("n").get<int>(), 7);
  EXPECT_EQ(records[0].at("sampling").at("inner"), 4);
  EXPECT_EQ(records[0].at("step_metrics").at("loss").at("samples").size(), step.at("n").get<std::size_t>());
}

}  // namespace
}  // namespace assay::test
