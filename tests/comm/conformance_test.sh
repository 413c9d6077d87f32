#!/bin/sh
# conformance_test.sh ASSAY EXPERIMENT PLUGIN_FOLDER DEVICE: runs the conformance suite and shows what it checked. Exit
# status 77 where the device is not there.
set -eu
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
"$1" run "$2" --plugin-path "$3" --set run.device="$4" --output "$results" --quiet || {
  cat "$results"/*/latest/cases.jsonl
  ! grep -q '"status":"unsupported"' "$results"/*/latest/cases.jsonl || exit 77
  exit 1
}
grep -o '[0-9]* collectives equal their references[^"]*' "$results"/*/latest/cases.jsonl
