#!/usr/bin/env bash
# google-benchmark 1.7.1: a row of the coefficient of variation has a share in JSON and a number of nanoseconds in CSV.
#
# Expected: the aggregate "cv" is stddev / mean in every format: 0.333 for times of 2, 3 and 4 s.
# Behaviour: the CSV reporter treats it as a sum of times: it divides by the row's "iterations", which is the number of repetitions, and scales
# to the time unit. The share comes out as 1.11111e+08 ns, with nothing in the row that says so.
# Why it matters: a reader of the CSV that believes the unit has a scatter of 0.1 s in place of a third, and one that takes it for a share
# refuses it or shows 11,111,100,000%.
# Seen on Debian 12:
#   JSON cv: 0.333333
#   CSV cv: 1.11111e+08 ns in a row of 3 repetitions
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
cd -- "$folder"
apt-get download -qq libbenchmark-dev=1.7.1-1 libbenchmark1debian=1.7.1-1 2>/dev/null
for package in *.deb; do dpkg -x "$package" .; done
cat >times.cpp <<'CPP'
#include <benchmark/benchmark.h>

static void two_three_four_seconds(benchmark::State& state) {
  static double seconds = 2;
  for (auto _ : state) state.SetIterationTime(seconds);
  seconds += 1;
}
BENCHMARK(two_three_four_seconds)->UseManualTime()->Iterations(1)->Repetitions(3)->ReportAggregatesOnly();
BENCHMARK_MAIN();
CPP
g++ -std=c++17 -O1 -Iusr/include times.cpp -Lusr/lib/x86_64-linux-gnu -lbenchmark -lpthread -o times
export LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu
json=$(./times --benchmark_format=json 2>/dev/null |
  python3 -c 'import json, sys; print("%.6g" % [b for b in json.load(sys.stdin)["benchmarks"] if b.get("aggregate_name") == "cv"][0]["real_time"])')
csv=$(./times --benchmark_format=csv 2>/dev/null | awk -F, '/_cv"/ { print $3 " " $5 " in a row of " $2 " repetitions" }')
echo "JSON cv: $json"
echo "CSV cv: $csv"
[[ $json == 0.333333 && $csv == "1.11111e+08 ns in a row of 3 repetitions" ]] || { echo "the behaviour has changed" >&2; exit 1; }
