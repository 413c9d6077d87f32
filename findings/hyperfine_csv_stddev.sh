#!/usr/bin/env bash
# hyperfine 1.15.0: of a single run its JSON has no standard deviation (null), and its CSV has one of 0.
#
# Expected: an empty field, as of one run nobody knows how it scatters; or the same in both exports.
# Behaviour: the CSV writer puts 0 for what the JSON writer leaves out.
# Why it matters: a reader of the CSV takes one run for a perfectly steady one, and an interval around it has no width. assay's import of
# the CSV cannot know better from that column alone.
# Seen on Debian 12:
#   JSON stddev: null
#   CSV stddev: 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
cd -- "$folder"
apt-get download -qq hyperfine=1.15.0-2 2>/dev/null
dpkg -x hyperfine_*.deb .
usr/bin/hyperfine --shell=none --runs 1 --export-csv one.csv --export-json one.json /bin/true >/dev/null 2>&1
json=$(python3 -c 'import json; print(json.dumps(json.load(open("one.json"))["results"][0]["stddev"]))')
csv=$(awk -F, 'NR == 2 { print $3 }' one.csv)
echo "JSON stddev: $json"
echo "CSV stddev: $csv"
[[ $(head -n 1 one.csv) == command,mean,stddev,* && $json == null && $csv == 0 ]] || { echo "the behaviour has changed" >&2; exit 1; }
