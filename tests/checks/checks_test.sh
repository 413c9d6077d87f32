#!/usr/bin/env bash
# checks_test.sh SCRIPTS WORK: the checks of scripts/check-* find what they are there to find. Mistakes are planted in a
# small tree that is right otherwise, and each must be reported at its line: a check reports all mistakes in one pass.
set -euo pipefail
scripts=$1 work=$2
# shellcheck source-path=SCRIPTDIR source=failures.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/failures.sh"

new_tree() {
  rm -rf -- "$work"
  mkdir -p "$work"/{host/core/measure,sdk/include/assay,sdk/compute/include/assay/compute,sdk/train/include/assay/train}
  mkdir -p "$work"/sdk/data/include/assay/data
  mkdir -p "$work"/{plugins/one,plugins/two,tests}
  cd "$work"
  printf '#include <stdint.h>\n' >sdk/include/assay/abi.h
  printf '#include <assay/abi.h>\n\n#include <vector>\n' >sdk/include/assay/plugin.hpp
  printf '#include <assay/abi.h>\n' >sdk/compute/include/assay/compute/tensor.hpp
  printf '#include <assay/compute/tensor.hpp>\n' >sdk/train/include/assay/train/layer.hpp
  printf '#include <assay/compute/tensor.hpp>\n' >sdk/data/include/assay/data/loader.hpp
  printf '#include <assay/abi.h>\n' >host/core/measure/stats.hpp
  printf '#include "measure/stats.hpp"\n\n#include <fmt/format.h>\n' >host/core/measure/stats.cpp
  printf '#pragma once\n' >plugins/one/model.hpp
  printf '#include <assay/train/layer.hpp>\n\n#include "model.hpp"\n' >plugins/one/one.cpp
  printf '#pragma once\n' >plugins/two/two.hpp
  cp -- "$scripts"/../host/rooms.txt host/
  cp -- "$scripts"/../sdk/rooms.txt sdk/
}

expect_clean() { # CHECK
  new_tree
  "$scripts/check-$1" "$work" >"$work/../said.txt" 2>&1 || fail "check-$1 refuses a tree without a mistake: $(cat ../said.txt)"
}

expect_mistakes() { # CHECK TEXT...
  local text
  if "$scripts/check-$1" "$work" >"$work/../said.txt" 2>&1; then
    fail "check-$1 overlooks: ${*:2}"
    return
  fi
  for text in "${@:2}"; do
    grep -qF -- "$text" "$work/../said.txt" || fail "check-$1 does not say '$text', but: $(cat "$work/../said.txt")"
  done
}

expected=()
planted() { # FILE LINE-TO-APPEND EXPECTED-TEXT
  printf '%s\n' "$2" >>"$1"
  expected+=("$1:$(wc -l <"$1"): $3")
}
expect_planted() { # CHECK
  expect_mistakes "$1" "${expected[@]}"
  expected=()
}

expect_clean layering
new_tree
planted sdk/include/assay/abi.h '#include <fmt/format.h>' "the border includes 'fmt/format.h'"
planted sdk/include/assay/plugin.hpp '#  include "abi.h"' "the border includes 'abi.h'"
planted sdk/include/assay/plugin.hpp '#include <assay/compute/tensor.hpp>' "the border includes 'assay/compute/tensor.hpp'"
expect_planted layering
new_tree
planted sdk/compute/include/assay/compute/tensor.hpp '#include "measure/stats.hpp"' "the sdk includes 'measure/stats.hpp'"
planted sdk/compute/include/assay/compute/tensor.hpp '#include <assay/train/layer.hpp>' 'sdk/compute includes'
planted sdk/compute/include/assay/compute/tensor.hpp '#include <assay/data/loader.hpp>' 'sdk/compute includes'
planted sdk/data/include/assay/data/loader.hpp '#include <assay/train/layer.hpp>' 'sdk/data includes'
planted sdk/train/include/assay/train/layer.hpp '#include <assay/models/mlp.hpp>' \
  "sdk/train includes 'assay/models/mlp.hpp'; it may use compute workload alone"
planted host/core/measure/stats.hpp '#include <assay/models/mlp.hpp>' "the host includes 'assay/models/mlp.hpp'"
planted host/core/measure/stats.hpp '#include <assay/data/loader.hpp>' "the host includes 'assay/data/loader.hpp'"
planted host/core/measure/stats.cpp '#include "../../sdk/data/include/assay/data/loader.hpp"' 'the host includes'
planted host/core/measure/stats.hpp '#include <assay/compute/tensor.hpp>' "the host includes 'assay/compute/tensor.hpp'"
planted host/core/measure/stats.cpp '#include "../../sdk/train/include/assay/train/layer.hpp"' 'the host includes'
planted host/core/measure/stats.cpp '#include "plugins/one/model.hpp"' "the host includes 'plugins/one/model.hpp'"
planted plugins/one/one.cpp '#include "measure/stats.hpp"' "a plugin includes 'measure/stats.hpp' of host/"
planted plugins/one/one.cpp '#include "host/core/measure/stats.hpp"' "a plugin includes 'host/core/measure/stats.hpp' of host/"
planted plugins/one/one.cpp '#include "../../host/core/measure/stats.hpp"' 'a plugin includes'
planted plugins/one/one.cpp '#include "../two/two.hpp"' "a plugin includes '../two/two.hpp' of plugins/two"
expect_planted layering
new_tree
mkdir -p host/core/{record,nook} host/execution/launch host/cli
printf '#pragma once\n' | tee host/core/record/record.hpp host/execution/launch/board.hpp >/dev/null
printf '#include "measure/stats.hpp"\n' | tee host/core/record/record.cpp host/execution/launch/board.cpp host/cli/main.cpp >/dev/null
"$scripts/check-layering" "$work" >/dev/null || fail 'check-layering refuses arrows inside host/ that are allowed'
mkdir -p host/core/common host/batch sdk/attic
planted host/core/measure/stats.hpp '#include "record/record.hpp"' "host/core/measure includes 'record/record.hpp'; of its wing it may use"
planted host/core/measure/stats.hpp '#include "launch/board.hpp"' \
  "host/core includes 'launch/board.hpp' of host/execution; it may use nothing alone"
for include in '"record/record.hpp"' '"../record/record.hpp"' '"core/record/record.hpp"' '"host/core/record/record.hpp"'; do
  planted host/core/common/first.cpp "#include $include" ''
done
planted host/batch/batch.cpp '#include "core/record/record.hpp"' \
  "the host includes 'core/record/record.hpp'; name a header of it by its room"
planted host/core/nook/nook.cpp '#include "record/record.hpp"' 'host/core/nook is unknown to host/rooms.txt'
planted sdk/attic/old.cpp '#include <assay/train/layer.hpp>' 'sdk/attic is unknown to sdk/rooms.txt'
expect_planted layering
new_tree
rm host/rooms.txt
expect_mistakes layering 'has no host/rooms.txt'
new_tree
rm sdk/include/assay/abi.h
expect_mistakes layering 'expected the root of the sources'

if command -v git >/dev/null; then
  new_tree
  git init -q .
  "$scripts/check-size" "$work" >/dev/null || fail 'check-size refuses a tree of small files'
  head -c 1048576 /dev/zero >plugins/one/weights.bin
  "$scripts/check-size" "$work" >/dev/null || fail 'check-size refuses a file of 1 MiB exactly'
  printf 'x' >>plugins/one/weights.bin
  expect_mistakes size 'plugins/one/weights.bin: 1048577 bytes'
fi

# A tree whose documents are right; a separate script draws the picture.
new_documents() {
  new_tree
  mkdir -p configs docs/pictures docs/seeds scripts tests/package/axpy
  printf 'int x;\n' >tests/package/axpy/axpy.cpp
  printf '# Title\n\n[list](docs/experiments.md#some-heading), [command](docs/command.md)\n\n```cpp\nint x;\n```\n' >README.md
  printf '# Some `heading`\n\n[one](../configs/one.toml), [out](https://example.org/x)\n' >docs/experiments.md
  printf '# Command\n\n```diff\n x = 1\n-print(x)\n+for step in [x]:\n+    print(x)\n```\n' >docs/command.md
  printf '# Pages\n\n[one](000.md)\n' >docs/seeds/README.md
  printf '# One\n\n| %0130d |\n' 0 >docs/seeds/000.md
  printf 'schema = 1\n' >configs/one.toml
  printf 'import sys\nopen(sys.argv[1], "w").write("drawn")\n' >scripts/make_readme_picture
  printf 'drawn' >docs/pictures/training-step.svg
}

new_documents
"$scripts/check-documents" "$work" >"$work/../said.txt" 2>&1 ||
  fail "check-documents refuses documents without a mistake: $(cat ../said.txt)"
new_documents
printf '[gone](docs/gone.md)\n' >>docs/experiments.md
rm docs/pictures/training-step.svg
said=$("$scripts/check-documents" --links "$work") && fail 'check-documents --links overlooks a link'
[[ $said == "docs/experiments.md:4: links to 'docs/docs/gone.md', which does not exist"*'1 mistake(s)' ]] ||
  fail "check-documents --links does not say where one link leads, but: $said"
new_documents
planted README.md "$(printf 'x%.0s' {1..101})" 'has 101 columns'
planted README.md '[gone](docs/gone.md)' "links to 'docs/gone.md', which does not exist"
planted README.md '<img src="docs/gone.svg">' "links to 'docs/gone.svg', which does not exist"
printf 'x\n%.0s' {1..100} >>README.md
expected+=('README.md:101: has')
planted docs/experiments.md '[x](#other-heading)' 'links to'
planted docs/command.md 'See `host/core/nowhere.cpp`.' "names 'host/core/nowhere.cpp'"
planted docs/seeds/000.md '[gone](../gone.md)' "links to 'docs/seeds/../gone.md'"
planted docs/seeds/000.md "$(printf 'x%.0s' {1..121})" 'has more than 120 columns'
printf 'schema = 1\n' >configs/two.toml
printf '# Five\n' >docs/seeds/005.md
printf '# New\n' >docs/new.md
printf '// more\n' >>tests/package/axpy/axpy.cpp
expected+=('configs/two.toml: is not listed' 'docs/seeds/005.md: is not listed in docs/seeds/README.md'
  'docs/new.md: README.md does not lead to it' 'README.md:5: its plugin is not')
if command -v python3 >/dev/null; then
  printf '<!-- -->\n' >>docs/pictures/training-step.svg
  expected+=('training-step.svg: is not what the records give')
fi
expect_planted documents
new_documents
printf '[arch](docs/architecture.md)\n' >>README.md
sed -n '/^host\/ /,/^sdk\/ /p; /^| folder of sdk/,/^A header/p' "$scripts/../docs/architecture.md" >docs/architecture.md
said=$("$scripts/check-documents" "$work" || true)
[[ $said != *'architecture.md: '* ]] || fail "check-documents refuses the tables of rooms: $said"
sed -i 's/^checks: /checks: attic /' host/rooms.txt
sed -i -E 's,^  (checks/),    \1,; s,^ +(wireup/),        \1,' docs/architecture.md
expect_mistakes documents "has no row '| checks | attic, doctor, validate, plan | core, execution |'; host/rooms.txt has it" \
  "its tree has no 'attic/'" "its tree has no 'checks/' two blanks deep" "its tree has no 'wireup/' four blanks deep"
new_documents
printf '[ranks](docs/ranks.md)\n' >>README.md
printf '# Ranks\n\n```\nof its own\n```\n\nA rank has a log, and `spread` names the difference.\n\n' >docs/ranks.md
"$scripts/check-documents" "$work" >"$work/../said.txt" 2>&1 ||
  fail "check-documents refuses a page without a phrase that is avoided: $(cat ../said.txt)"
planted docs/ranks.md 'Each rank has a log of its own.' "has 'of its own'"
planted docs/ranks.md "$(printf '\nA rank')$(printf ' word%.0s' {1..39})." 'has a sentence of 41 words'
printf '\n' >>docs/ranks.md
planted docs/ranks.md "$(printf 'One word, and others. %.0s' {1..23})" 'has a paragraph of 92 words'
expect_planted documents
changed_script() { # LINES-OF-THE-DIFF EXPECTED-TEXT...
  new_documents
  printf '# Command\n\n```diff\n x = 1\n%s\n```\n' "$1" >docs/command.md
  expect_mistakes documents "${@:2}"
}
python_says() { ! command -v python3 >/dev/null || printf "docs/command.md: in its diff the lines with ' ' and '%s' are no Python" "$1"; }
changed_script "$(printf '+x = 2\n%.0s' {1..10})"$'\n+    y = 1' 'docs/command.md: its diff adds 11 lines' "$(python_says +)"
changed_script '-def f(:' 'docs/command.md: its diff adds 0 lines' "$(python_says -)"

expect_format_clean=0
new_tree
"$scripts/check-format" "$work" >/dev/null 2>&1 || expect_format_clean=$?
case $expect_format_clean in
  77) ;; # no clang-format 14 here
  0)
    printf 'int  f( ){return 1;}\n' >host/core/measure/stats.cpp
    expect_mistakes format 'host/core/measure/stats.cpp:1'
    ;;
  *) fail 'check-format refuses a formatted tree' ;;
esac

((failures == 0)) || exit 1
echo 'the checks find every planted mistake'
