// Files of other programs: made by google-benchmark 1.7.1, pytest-benchmark 5.3.1, mlperf-logging 4.1 and
// hyperfine 1.15, and shortened; those of nccl-tests -J, rccl-tests and nvbench on a CPU by their documents.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "imported_run.hpp"
#include "imports/formats.hpp"

namespace assay::host::imports {
namespace {

const std::string google_file = R"gb({
 "context": {
  "date": "2024-03-10T02:30:00-08:00",
  "host_name": "node7",
  "library_build_type": "debug",
  "load_avg": [
   7.98193,
   8.27051,
   7.22168
  ]
 },
 "benchmarks": [
  {
   "name": "BM_Copy/8/min_time:0.001/repeats:2",
   "family_index": 0,
   "per_family_instance_index": 0,
   "run_name": "BM_Copy/8/min_time:0.001/repeats:2",
   "run_type": "iteration",
   "repetitions": 2,
   "repetition_index": 0,
   "threads": 1,
   "iterations": 1,
   "real_time": 9372159.99874752,
   "cpu_time": 25048.00000000017,
   "time_unit": "ns",
   "Hits": 3.0,
   "bytes_per_second": 319386.777387414,
   "label": "x"
  },
  {
   "name": "BM_Copy/8/min_time:0.001/repeats:2",
   "family_index": 0,
   "per_family_instance_index": 0,
   "run_name": "BM_Copy/8/min_time:0.001/repeats:2",
   "run_type": "iteration",
   "repetitions": 2,
   "repetition_index": 1,
   "threads": 1,
   "iterations": 1,
   "real_time": 901.0036592371762,
   "cpu_time": 641.0000000000097,
   "time_unit": "ns",
   "Hits": 3.0,
   "bytes_per_second": 12480499.219968611,
   "label": "x"
  },
  {
   "name": "BM_Copy/8/min_time:0.001/repeats:2_mean",
   "family_index": 0,
   "per_family_instance_index": 0,
   "run_name": "BM_Copy/8/min_time:0.001/repeats:2",
   "run_type": "aggregate",
   "repetitions": 2,
   "threads": 1,
   "aggregate_name": "mean",
   "aggregate_unit": "time",
   "iterations": 2,
   "real_time": 4686530.501203379,
   "cpu_time": 12844.500000000091,
   "time_unit": "ns",
   "Hits": 3.0,
   "bytes_per_second": 6399942.998678013,
   "label": "x"
  },
  {
   "name": "BM_Copy/8/min_time:0.001/repeats:2_median",
   "family_index": 0,
   "per_family_instance_index": 0,
   "run_name": "BM_Copy/8/min_time:0.001/repeats:2",
   "run_type": "aggregate",
   "repetitions": 2,
   "threads": 1,
   "aggregate_name": "median",
   "aggregate_unit": "time",
   "iterations": 2,
   "real_time": 4686530.501203379,
   "cpu_time": 12844.500000000091,
   "time_unit": "ns",
   "Hits": 3.0,
   "bytes_per_second": 6399942.998678013,
   "label": "x"
  },
  {
   "name": "BM_Copy/8/min_time:0.001/repeats:2_stddev",
   "family_index": 0,
   "per_family_instance_index": 0,
   "run_name": "BM_Copy/8/min_time:0.001/repeats:2",
   "run_type": "aggregate",
   "repetitions": 2,
   "threads": 1,
   "aggregate_name": "stddev",
   "aggregate_unit": "time",
   "iterations": 2,
   "real_time": 6626480.783682357,
   "cpu_time": 17258.35520842018,
   "time_unit": "ns",
   "Hits": 0.0,
   "bytes_per_second": 8599205.074921263,
   "label": "x"
  },
  {
   "name": "BM_Copy/8/min_time:0.001/repeats:2_cv",
   "family_index": 0,
   "per_family_instance_index": 0,
   "run_name": "BM_Copy/8/min_time:0.001/repeats:2",
   "run_type": "aggregate",
   "repetitions": 2,
   "threads": 1,
   "aggregate_name": "cv",
   "aggregate_unit": "percentage",
   "iterations": 2,
   "real_time": 1.4139416743326112,
   "cpu_time": 1.34363776000779,
   "time_unit": "ns",
   "Hits": 0.0,
   "bytes_per_second": 1.34363776000779,
   "label": "x"
  },
  {
   "name": "BM_Skip",
   "family_index": 1,
   "per_family_instance_index": 0,
   "run_name": "BM_Skip",
   "run_type": "iteration",
   "repetitions": 1,
   "repetition_index": 0,
   "threads": 1,
   "error_occurred": true,
   "error_message": "no device",
   "iterations": 1,
   "real_time": 0.0,
   "cpu_time": 0.0,
   "time_unit": "ns"
  }
 ]
})gb";

// The same benchmarks, run with --benchmark_report_aggregates_only: a file with other figures, and without repetitions.
std::string google_aggregates() {
  const double figures[][3] = {{8571070.000471082, 11832.499999999985, 6047749.235500367},
                               {8571070.000471082, 11832.499999999985, 6047749.235500367},
                               {12119921.953104807, 15770.602540803258, 8060566.191381633},
                               {1.4140500488782235, 1.3328208359013969, 1.3328208359013969}};
  nlohmann::json file = nlohmann::json::parse(google_file), kept = nlohmann::json::array();
  for (nlohmann::json& entry : file["benchmarks"]) {
    const bool is_aggregate = entry["run_type"] == "aggregate";
    if (!is_aggregate && !entry.contains("error_message")) continue;
    if (is_aggregate) {
      const auto& [real_time, cpu_time, bytes_per_second] = figures[kept.size()];
      entry["real_time"] = real_time, entry["cpu_time"] = cpu_time, entry["bytes_per_second"] = bytes_per_second;
    }
    kept.push_back(entry);
  }
  file["benchmarks"] = kept;
  return file.dump(1);
}

const std::string pytest_file =
    R"pb({
           "machine_info": { "node": "node7" },
           "commit_info": { "id": "ab12cd", "dirty": true },
           "benchmarks":
           [ {
             "group": null,
             "name": "test_sum[10]",
             "fullname": "t/test_x.py::test_sum[10]",
             "params": { "n": 10 },
             "param": "10",
             "extra_info": { "device": { "name": "cpu" } },
             "options": {
               "disable_gc": false,
               "timer": "perf_counter",
               "min_rounds": 5,
               "max_time": 1.0,
               "min_time": 5e-06,
               "precision": null,
               "confidence": null,
               "warmup": false
             },
             "stats": {
               "min": 7.864982762839645e-07,
               "max": 1.582000550115481e-06,
               "mean": 1.220165965302537e-06,
               "stddev": 4.0258659076357815e-07,
               "rounds": 3,
               "median": 1.2919990695081651e-06,
               "iqr": 5.966267053736374e-07,
               "q1": 9.128734745900147e-07,
               "q3": 1.509500179963652e-06,
               "iqr_outliers": 0,
               "stddev_outliers": 1,
               "outliers": "1;0",
               "ld15iqr": 7.864982762839645e-07,
               "hd15iqr": 1.582000550115481e-06,
               "ops": 819560.6404675061,
               "total": 3.6604978959076107e-06,
               "data": [ 1.582000550115481e-06, 7.864982762839645e-07, 1.2919990695081651e-06 ],
               "iterations": 2
             }
           }],
           "datetime": "2026-11-29T09:01:45.006674+00:00",
           "version": "5.3.1"
         })pb";

const std::string mlperf_log =
    R"ml(:::MLLOG {"namespace": "", "time_ms": 1795942988802, "event_type": "POINT_IN_TIME", "key": "cache_clear", "value": true, "metadata": {"file": "train.py", "lineno": 5}}
:::MLLOG {"namespace": "", "time_ms": 1795942988817, "event_type": "INTERVAL_START", "key": "init_start", "value": null, "metadata": {"file": "train.py", "lineno": 6}}
:::MLLOG {"namespace": "", "time_ms": 1795942988817, "event_type": "POINT_IN_TIME", "key": "submission_benchmark", "value": "llama2_70b_lora", "metadata": {"file": "train.py", "lineno": 7}}
:::MLLOG {"namespace": "", "time_ms": 1795942988817, "event_type": "POINT_IN_TIME", "key": "submission_org", "value": "org", "metadata": {"file": "train.py", "lineno": 7}}
:::MLLOG {"namespace": "", "time_ms": 1795942988817, "event_type": "POINT_IN_TIME", "key": "global_batch_size", "value": 64, "metadata": {"file": "train.py", "lineno": 8}}
:::MLLOG {"namespace": "", "time_ms": 1795942988817, "event_type": "POINT_IN_TIME", "key": "seed", "value": 7, "metadata": {"file": "train.py", "lineno": 8}}
:::MLLOG {"namespace": "", "time_ms": 1795942988817, "event_type": "POINT_IN_TIME", "key": "opt_base_learning_rate", "value": 0.0005, "metadata": {"file": "train.py", "lineno": 8}}
:::MLLOG {"namespace": "", "time_ms": 1795942988817, "event_type": "INTERVAL_END", "key": "init_stop", "value": null, "metadata": {"file": "train.py", "lineno": 9}}
:::MLLOG {"namespace": "", "time_ms": 1795942988817, "event_type": "INTERVAL_START", "key": "run_start", "value": null, "metadata": {"file": "train.py", "lineno": 10}}
:::MLLOG {"namespace": "", "time_ms": 1795942988817, "event_type": "INTERVAL_START", "key": "epoch_start", "value": null, "metadata": {"file": "train.py", "lineno": 12, "epoch_num": 0}}
:::MLLOG {"namespace": "", "time_ms": 1795942988841, "event_type": "POINT_IN_TIME", "key": "tracked_stats", "value": {"throughput": 10.0, "loss": 3.0}, "metadata": {"file": "train.py", "lineno": 13, "samples_count": 0}}
:::MLLOG {"namespace": "", "time_ms": 1795942988842, "event_type": "INTERVAL_END", "key": "epoch_stop", "value": null, "metadata": {"file": "train.py", "lineno": 14, "epoch_num": 0}}
:::MLLOG {"namespace": "", "time_ms": 1795942988842, "event_type": "INTERVAL_START", "key": "eval_start", "value": null, "metadata": {"file": "train.py", "lineno": 15}}
:::MLLOG {"namespace": "", "time_ms": 1795942988842, "event_type": "POINT_IN_TIME", "key": "eval_accuracy", "value": 0.5, "metadata": {"file": "train.py", "lineno": 15, "epoch_num": 0}}
:::MLLOG {"namespace": "", "time_ms": 1795942988842, "event_type": "INTERVAL_END", "key": "eval_stop", "value": null, "metadata": {"file": "train.py", "lineno": 15}}
:::MLLOG {"namespace": "", "time_ms": 1795942988842, "event_type": "INTERVAL_START", "key": "epoch_start", "value": null, "metadata": {"file": "train.py", "lineno": 12, "epoch_num": 1}}
:::MLLOG {"namespace": "", "time_ms": 1795942988862, "event_type": "POINT_IN_TIME", "key": "tracked_stats", "value": {"throughput": 11.0, "loss": 2.0}, "metadata": {"file": "train.py", "lineno": 13, "samples_count": 64}}
:::MLLOG {"namespace": "", "time_ms": 1795942988863, "event_type": "INTERVAL_END", "key": "epoch_stop", "value": null, "metadata": {"file": "train.py", "lineno": 14, "epoch_num": 1}}
:::MLLOG {"namespace": "", "time_ms": 1795942988863, "event_type": "INTERVAL_START", "key": "eval_start", "value": null, "metadata": {"file": "train.py", "lineno": 15}}
:::MLLOG {"namespace": "", "time_ms": 1795942988863, "event_type": "POINT_IN_TIME", "key": "eval_accuracy", "value": 0.6, "metadata": {"file": "train.py", "lineno": 15, "epoch_num": 1}}
:::MLLOG {"namespace": "", "time_ms": 1795942988863, "event_type": "INTERVAL_END", "key": "eval_stop", "value": null, "metadata": {"file": "train.py", "lineno": 15}}
:::MLLOG {"namespace": "", "time_ms": 1795942988863, "event_type": "INTERVAL_END", "key": "run_stop", "value": null, "metadata": {"file": "train.py", "lineno": 16, "status": "success"}}
)ml";

TEST(ImportFormats, GoogleBenchmark) {
  const ImportedRun run = detected(google_file);
  ASSERT_EQ(run.records.size(), 3u) << "two repetitions, and one that was skipped; no aggregate";
  const record::CaseRecord& copy = run.records[0];
  EXPECT_EQ(copy.identity.workload, "google-benchmark:BM_Copy");
  EXPECT_EQ(param(copy, "arguments"), "8/min_time:0.001/repeats:2");
  EXPECT_DOUBLE_EQ(*step(copy).mean_ms, 9372159.99874752 * 1e-6);
  EXPECT_EQ(step(copy).n, 1);
  EXPECT_DOUBLE_EQ(metric(copy, "Hits"), 3);
  EXPECT_DOUBLE_EQ(metric(copy, "cpu_time_ms"), 25048.00000000017 * 1e-6);
  EXPECT_TRUE(copy.result.rates->gbytes_per_s);
  EXPECT_EQ(run.records[2].result.status, record::Status::failed);
  EXPECT_EQ(run.records[2].result.reason, "no device");
  EXPECT_EQ(run.host, "node7");
  EXPECT_EQ(run.started, "2024-03-10T02:30:00-08:00");
  EXPECT_NE(notes(run).find("aggregates left out, since their repetitions are cases: 4"), std::string::npos);
  EXPECT_NE(notes(run).find("left out of its context: load_avg"), std::string::npos);
  EXPECT_NE(notes(run).find("library_build_type debug"), std::string::npos);
}

TEST(ImportFormats, AFileThatIsEmptyOrNotWhole) {
  EXPECT_EQ(problem([] { detected("\n"); }), "the file is empty");
  for (const char* text : {R"({"results": [{"command")", R"({"results": [{"command": "a)"})
    EXPECT_EQ(problem([&] { detected(text); }),
              "its JSON ends early: the file is not whole; import one whose program has ended")
        << text;
}

TEST(ImportFormats, GoogleBenchmarkOfAggregatesAlone) {
  const ImportedRun run = detected(google_aggregates());
  ASSERT_EQ(run.records.size(), 2u);
  EXPECT_DOUBLE_EQ(*step(run.records[0]).mean_ms, 8571070.000471082 * 1e-6);
  EXPECT_EQ(step(run.records[0]).n, 2) << "repetitions, not iterations";
  EXPECT_DOUBLE_EQ(*step(run.records[0]).cv, 12119921.953104807 / 8571070.000471082) << "a share";
}

TEST(ImportFormats, PytestBenchmark) {
  const ImportedRun run = detected(pytest_file);
  ASSERT_EQ(run.records.size(), 1u);
  EXPECT_EQ(param(run.records[0], "test"), "t/test_x.py::test_sum[10]");
  EXPECT_EQ(param(run.records[0], "n"), "10");
  EXPECT_EQ(param(run.records[0], "device.name"), "cpu");
  ASSERT_EQ(step(run.records[0]).samples_ms.size(), 3u);
  EXPECT_DOUBLE_EQ(step(run.records[0]).samples_ms[0], 1.582000550115481e-06 * 1e3);
  EXPECT_EQ(run.revision, "ab12cd with changes");
  EXPECT_EQ(detected(with(pytest_file, "\"data\": [", "\"data\": [\"soon\", ")).records[0].result.status,
            record::Status::failed);
}

TEST(ImportFormats, MlperfLog) {
  const ImportedRun run = detected("0: " + mlperf_log);
  ASSERT_EQ(run.records.size(), 1u);
  const record::CaseRecord& record = run.records[0];
  EXPECT_EQ(record.identity.workload, "mlperf:llama2_70b_lora");
  EXPECT_EQ(param(record, "global_batch_size"), "64");
  EXPECT_EQ(param(record, "opt_base_learning_rate"), "0.0005");
  EXPECT_DOUBLE_EQ(*step(record).mean_ms, 46) << "the time to train";
  const record::StepMetric* accuracy = record::find(record.result.step_metrics, "eval_accuracy");
  ASSERT_TRUE(accuracy);
  EXPECT_EQ(accuracy->samples, (std::vector<double>{0.5, 0.6}));
  EXPECT_EQ(record::find(record.result.step_metrics, "throughput")->samples.size(), 2u);
  EXPECT_EQ(record::find(record.result.step_metrics, "epoch_ms")->samples.size(), 2u);
  EXPECT_EQ(notes(run), "");
  const ImportedRun doubled = detected(mlperf_log + mlperf_log);
  EXPECT_EQ(doubled.records.size(), 1u) << "each rank has logged the same lines";
  EXPECT_NE(notes(doubled).find("count once: 22"), std::string::npos) << notes(doubled);
  EXPECT_EQ(detected(with(mlperf_log, "\"status\": \"success\"", "\"status\": \"aborted\"")).records[0].result.reason,
            "run_stop has the status 'aborted'");
  // Points behind the end are of the run; intervals of one name may overlap.
  const auto line = [](int time_ms, const char* type, const char* key, const std::string& rest) {
    return fmt::format(R"(:::MLLOG {{"namespace": "", "time_ms": {}, "event_type": "{}", "key": "{}", {}}})", time_ms,
                       type, key, rest) +
           "\n";
  };
  const auto epoch = [](int number) {
    return fmt::format(R"("value": null, "metadata": {{"epoch_num": {}}})", number);
  };
  const ImportedRun overlapped = detected(
      line(1000, "INTERVAL_START", "run_start", R"("value": null)") +
      line(1000, "INTERVAL_START", "epoch_start", epoch(1)) + line(1010, "INTERVAL_START", "epoch_start", epoch(2)) +
      line(1100, "INTERVAL_END", "epoch_stop", epoch(1)) + line(1210, "INTERVAL_END", "epoch_stop", epoch(2)) +
      line(1300, "INTERVAL_END", "run_stop", R"("value": null, "metadata": {"status": "success"})") +
      line(1301, "POINT_IN_TIME", "tracked_stats", R"("value": {"throughput": 7.5})"));
  ASSERT_EQ(overlapped.records.size(), 1u);
  EXPECT_EQ(record::find(overlapped.records[0].result.step_metrics, "epoch_ms")->samples,
            (std::vector<double>{100, 200}));
  EXPECT_EQ(record::find(overlapped.records[0].result.step_metrics, "throughput")->samples, (std::vector<double>{7.5}));
  EXPECT_EQ(overlapped.started, "1970-01-01T00:00:01Z");
  const std::string cut = mlperf_log.substr(0, mlperf_log.find("\"run_stop\""));
  EXPECT_EQ(detected(cut).records[0].result.status, record::Status::failed);
  EXPECT_NE(notes(detected(cut)).find("torn by other output and left out: 1"), std::string::npos);
}

TEST(ImportFormats, HyperfineCsv) {
  const ImportedRun run = detected(
      "command,mean,stddev,median,user,system,min,max,parameter_n\n"
      "\"echo a,b\",0.004,0.001,0.0037,0.0006,0.0004,0.0033,0.0051,1\nsleep,0.02,,0.02,0,0,0.02,0.02,2\n");
  ASSERT_EQ(run.records.size(), 2u);
  EXPECT_EQ(param(run.records[0], "command"), "echo a,b");
  EXPECT_EQ(param(run.records[1], "n"), "2");
  EXPECT_DOUBLE_EQ(*step(run.records[0]).std_ms, 1);
  EXPECT_DOUBLE_EQ(*step(run.records[0]).max_ms, 5.1);
  EXPECT_DOUBLE_EQ(metric(run.records[0], "user_ms"), 0.6);
  EXPECT_FALSE(step(run.records[1]).std_ms);
  EXPECT_NE(problem([] { detected("command,mean,stddev\na,0.1\n"); }).find("row 2 has 2 fields"), std::string::npos);
}

const std::string nccl_j =
    R"({"version":1,"args":["./all_reduce_perf","-J","o.json"],"env":["NCCL_ALGO=Ring","SLURM_JOB_ID=7"],"nccl_version":22907,
"config":{"nthreads":1,"ngpus":2,"iterations":20,"devices":[{"rank":0,"group":0,"hostname":"node-a","device_info":"NVIDIA H800"},
{"rank":1,"group":0,"hostname":"node-b","device_info":"NVIDIA H800"}]},"results":[{"size":1048576,"count":262144,"type":"float",
"redop":"sum","root":"    -1","out_of_place":{"time":18.68,"alg_bw":56.13,"bus_bw":56.13,"nwrong":0.0},"in_place":{"time":18.35,
"alg_bw":57.14,"bus_bw":57.14,"nwrong":0.0},"experiment_name":"AllReduce"}],"out_of_bounds":{"count":0,"okay":"true"},
"average_bus_bandwidth":{"bandwidth":56.6,"okay":"unchecked"},"errors":[]})";

TEST(ImportFormats, NcclTestsJsonIsAsThePrintedTable) {
  const ImportedRun run = detected(nccl_j);
  ASSERT_EQ(run.records.size(), 2u);
  EXPECT_EQ(run.records[1].identity.workload, "nccl-tests:all_reduce");
  EXPECT_EQ(run.records[1].identity.ranks, 2);
  EXPECT_EQ(run.records[1].host, "node-a, node-b");
  EXPECT_EQ(param(run.records[1], "root"), "-1");
  EXPECT_EQ(param(run.records[1], "NCCL_ALGO"), "Ring");
  EXPECT_EQ(record::find(run.records[1].identity.params, "SLURM_JOB_ID"), nullptr);
  EXPECT_DOUBLE_EQ(*step(run.records[1]).mean_ms, 0.01835);
  EXPECT_EQ(run.records[1].result.verify->status, record::Verification::ok);
  EXPECT_EQ(notes(run), "variables of the environment that are not NCCL's, left out: 1\n");
  // A process with two ranks names the first one's device.
  EXPECT_EQ(detected(with(nccl_j, "{\"rank\":1,", "{\"rank\":2,")).records[1].identity.ranks, 4);
  EXPECT_EQ(param(detected(with(nccl_j, "\"iterations\":20", "\"iterations\":20,\"graph\":4")).records[0], "graph"),
            "true");
  const ImportedRun failed = detected(with(nccl_j, "\"count\":0,\"okay\":\"true\"", "\"count\":2,\"okay\":\"false\""));
  EXPECT_EQ(failed.records[0].result.status, record::Status::wrong_result);
}

TEST(ImportFormats, RcclTestsLines) {
  const std::string line =
      R"({"#wrong":"0","algBw":0.053,"busBw":0.080,"gpus":4,"inPlace":0,"name":"AllReduce","redop":"sum","size":1024,"time":19.18,"type":"float"})";
  const ImportedRun run =
      detected(line + "\n" + with(with(line, "\"0\"", "\"2\""), "\"inPlace\":0", "\"inPlace\":1") + "\n");
  ASSERT_EQ(run.records.size(), 2u);
  EXPECT_EQ(run.records[0].identity.ranks, 4);
  EXPECT_DOUBLE_EQ(*step(run.records[0]).mean_ms, 0.01918);
  EXPECT_DOUBLE_EQ(metric(run.records[0], "busbw_gbytes_per_s"), 0.08);
  EXPECT_EQ(run.records[1].result.status, record::Status::wrong_result);
}

TEST(ImportFormats, DevicesOfOneNvbenchFileAreCasesOfTheirOwn) {
  const auto state = [](const char* device, const char* tag) {
    return std::string(R"({"device": )") + device + R"(, "axis_values": [], "summaries": [{"tag": ")" + tag +
           R"(", "data": [{"name": "value", "type": "float64", "value": "1e-05"}]}]})";
  };
  const std::string gpus =
      R"({"devices": [{"id": 0, "name": "A"}, {"id": 1, "name": "A"}], "benchmarks": [{"name": "b", "states": [)" +
      state("0", "nv/cold/time/gpu/mean") + "," + state("1", "nv/cold/time/gpu/mean") + "]}]}";
  const ImportedRun run = detected(gpus);
  ASSERT_EQ(run.records.size(), 2u);
  EXPECT_EQ(param(run.records[0], "device"), "0 A");
  EXPECT_EQ(param(run.records[1], "device"), "1 A");
  const ImportedRun cpu = detected(R"({"devices": [], "benchmarks": [{"name": "b", "states": [)" +
                                   state("null", "nv/cpu_only/time/cpu/mean") + "]}]}");
  EXPECT_EQ(cpu.records[0].result.device->kind, "cpu");
  EXPECT_DOUBLE_EQ(*step(cpu.records[0]).mean_ms, 0.01);
}

// As nvbench's csv_printer.cu writes it: without quotes, a separate column for powers of two, and two of Samples and
// Noise.
TEST(ImportFormats, NvbenchCsv) {
  const std::string head =
      "Benchmark,Device,Device Name,T,n (pow2),n,Skipped,Samples,CPU Time (sec),Noise,GPU Time (sec),Noise,"
      "Elem/s (elem/sec),GlobalMem BW (bytes/sec),BWUtil,Samples,Batch GPU (sec)\n";
  const std::string row = "copy,0,NVIDIA H200,F32,2^10,1024,No,50,2e-05,0.1,1.25e-05,0.02,8e7,2e12,0.4,600,1.2e-05\n";
  const ImportedRun run = detected(head + row + "copy,0,NVIDIA H200,F32,2^11,2048,Yes,,,,,,,,,,\n" +
                                   with(row, "2e-05,0.1,1.25e-05,0.02", "2e-05,inf,,"));
  ASSERT_EQ(run.records.size(), 3u);
  const record::CaseRecord& copy = run.records[0];
  EXPECT_EQ(copy.identity.workload, "nvbench:copy");
  EXPECT_EQ(param(copy, "n"), "1024");
  EXPECT_EQ(param(copy, "n (pow2)"), "") << "the same once more";
  EXPECT_EQ(copy.result.device->name, "NVIDIA H200");
  EXPECT_DOUBLE_EQ(*step(copy).mean_ms, 0.0125);
  EXPECT_DOUBLE_EQ(*step(copy).std_ms, 0.00025);
  EXPECT_DOUBLE_EQ(*step(copy).host_mean_ms, 0.02);
  EXPECT_EQ(step(copy).n, 50);
  EXPECT_DOUBLE_EQ(*copy.result.rates->gbytes_per_s, 2000);
  EXPECT_DOUBLE_EQ(metric(copy, "BWUtil"), 0.4);
  EXPECT_DOUBLE_EQ(metric(copy, "CPU-Time-Noise"), 0.1);
  EXPECT_DOUBLE_EQ(metric(copy, "Batch-GPU-sec"), 1.2e-05);
  EXPECT_DOUBLE_EQ(metric(copy, "BWUtil-Samples"), 600);
  EXPECT_EQ(run.records[1].result.status, record::Status::unsupported);
  EXPECT_DOUBLE_EQ(*step(run.records[2]).mean_ms, 0.02) << "of a CPU alone";
  EXPECT_NE(notes(run).find("figures that are no numbers, left out: CPU-Time-Noise"), std::string::npos) << notes(run);
  EXPECT_NE(problem([&] { detected(head + "copy,0,a name, with a comma" + row); }).find("row 2 has"),
            std::string::npos);
}

TEST(ImportFormats, NestedConfigurationTellsCasesApart) {
  const auto entry = [](const char* block, const char* gpu) {
    return std::string(R"({"benchmark": {"name": "b", "extra_info": {"config": {"block": )") + block +
           R"(}}}, "model": {"name": "m", "extra_info": {"config": {"block": 1}}}, "runners": [{"name": ")" + gpu +
           R"("}], "metric": {"name": "latency_ms", "benchmark_values": [1]}})";
  };
  const ImportedRun run = detected("[" + entry("1", "A") + "," + entry("2", "A") + "," + entry("1", "B") + "]");
  ASSERT_EQ(run.records.size(), 3u);
  EXPECT_EQ(param(run.records[1], "config.block"), "1");
  EXPECT_EQ(param(run.records[1], "benchmark.config.block"), "2");
  EXPECT_EQ(param(run.records[2], "runner.name"), "B");
}

// Python writes them, JSON has none.
TEST(ImportFormats, NanHidesNothingElse) {
  const ImportedRun run = detected(
      R"([{"benchmark": {"name": "b"}, "metric": {"name": "latency_ms", "benchmark_values": [1]}},
          {"benchmark": {"name": "b NaN"}, "metric": {"name": "speedup", "benchmark_values": [NaN, -Infinity]}}])");
  ASSERT_EQ(run.records.size(), 1u);
  EXPECT_NE(notes(run).find("left out, since they have no value"), std::string::npos);
  EXPECT_NE(
      problem([] { detected("[\n {\"benchmark\": {\"name\": \"b\"}, \"benchmark_values\": [1}\n]"); }).find("line 2"),
      std::string::npos);
}

}  // namespace
}  // namespace assay::host::imports
