#!/usr/bin/env bash
# bisect_test.sh ASSAY docs/ab.md PLUGINS SLOW_PLUGINS: `git bisect run` with the step of docs/ab.md finds the commit of a
# small repository whose build makes the slow plugin, past one that does not build.
#
# A step sleeps for 6 ms, and the slow plugin's for 30: who else computes on this machine hardly changes that. All steps of
# a run take less than the 0.2 s from which on the host knows who else had the processor: of that little that a sleeping
# step computes, any share may be spent waiting, which would be no reason to mistrust its time.
set -euo pipefail
assay=$1 page=$2 plugins=$3 slow=$4
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
export HOME=$folder GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
mkdir "$folder/bin" "$folder/repository" "$folder/good"
ln -s "$assay" "$folder/bin/assay"
export PATH=$folder/bin:$PATH
# The step as the page has it, outside of what is bisected.
sed -n '/^#!\/bin\/sh$/,/^```$/{/^```/d;p}' "$page" >"$folder/bisect-step"
[[ -s $folder/bisect-step ]] || { echo "$page has no script that begins with #!/bin/sh"; exit 1; }
chmod +x "$folder/bisect-step"
cat >"$folder/bench.toml" <<'TOML'
schema = 1
name = "bench"
[workload]
plugin = "measured_work"
[workload.params]
work = 0
rest_ms = 6
[measure]
warmup = 1
steps = 4
[run]
device = "cpu"
TOML

cd "$folder/repository"
git init -q .
commit() { # WHAT: the folder whose plugin the build of this commit makes, or "broken"
  printf '#!/bin/sh\n[ %s = broken ] && exit 1\nmkdir -p build && cp %s/measured_work.so build/\n' "$1" "$1" >build.sh
  chmod +x build.sh
  number=$((${number:-0} + 1))
  echo "$number" >number
  echo build >.gitignore
  git add -A
  git commit -q -m "commit $number: ${1##*/}"
}
for what in "$plugins" "$plugins" broken "$plugins" "$slow" "$slow" "$slow"; do commit "$what"; done
cp "$plugins/measured_work.so" "$folder/good/"

export GOOD_PLUGINS=$folder/good BENCH=$folder/bench.toml
git bisect start HEAD "$(git rev-list --max-parents=0 HEAD)" >/dev/null
git bisect run "$folder/bisect-step" >"$folder/log" 2>&1 && grep -q 'is the first bad commit' "$folder/log" ||
  { cat "$folder/log"; exit 1; }
[[ $(git show -s --format=%s refs/bisect/bad) == "commit 5: plugins_slow" ]] ||
  { cat "$folder/log"; echo 'expected commit 5 to be found'; exit 1; }
echo 'bisected to commit 5'
