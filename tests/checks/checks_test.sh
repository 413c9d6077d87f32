#!/usr/bin/env bash
# checks_test.sh SCRIPTS WORK: the checks of scripts/check-* find what they are there to find. Each mistake is planted
# alone in a small tree that is right otherwise, and must be reported at its line.
set -euo pipefail
scripts=$1 work=$2
failures=0

fail() {
  printf 'FAILED: %s\n' "$*"
  failures=$((failures + 1))
}

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

expect_mistake() { # CHECK TEXT
  if "$scripts/check-$1" "$work" >"$work/../said.txt" 2>&1; then
    fail "check-$1 overlooks: $2"
  elif ! grep -qF -- "$2" "$work/../said.txt"; then
    fail "check-$1 does not say '$2', but: $(cat "$work/../said.txt")"
  fi
}

planted() { # FILE LINE-TO-APPEND EXPECTED-TEXT
  new_tree
  printf '%s\n' "$2" >>"$1"
  expect_mistake layering "$1:$(wc -l <"$1"): $3"
}

expect_clean layering
planted sdk/include/assay/abi.h '#include <fmt/format.h>' "the border includes 'fmt/format.h'"
planted sdk/include/assay/plugin.hpp '#  include "abi.h"' "the border includes 'abi.h'"
planted sdk/include/assay/plugin.hpp '#include <assay/compute/tensor.hpp>' "the border includes 'assay/compute/tensor.hpp'"
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
new_tree
mkdir -p host/core/{record,nook} host/execution/launch host/cli
printf '#pragma once\n' | tee host/core/record/record.hpp host/execution/launch/board.hpp >/dev/null
printf '#include "measure/stats.hpp"\n' | tee host/core/record/record.cpp host/execution/launch/board.cpp host/cli/main.cpp >/dev/null
"$scripts/check-layering" "$work" >/dev/null || fail 'check-layering refuses arrows inside host/ that are allowed'
printf '#include "record/record.hpp"\n' >>host/core/measure/stats.hpp
expect_mistake layering "host/core/measure/stats.hpp:2: host/core/measure includes 'record/record.hpp'; of its wing it may use"
printf '#pragma once\n#include "launch/board.hpp"\n' >host/core/measure/stats.hpp
expect_mistake layering "host/core/measure/stats.hpp:2: host/core includes 'launch/board.hpp' of host/execution; it may use nothing alone"
printf '#pragma once\n' >host/core/measure/stats.hpp
mkdir -p host/core/common host/batch
for include in '"record/record.hpp"' '"../record/record.hpp"' '"core/record/record.hpp"' '"host/core/record/record.hpp"'; do
  printf '#include %s\n' "$include" >host/core/common/first.cpp
  expect_mistake layering "host/core/common/first.cpp:1: "
done
rm host/core/common/first.cpp
printf '#include "core/record/record.hpp"\n' >host/batch/batch.cpp
expect_mistake layering "host/batch/batch.cpp:1: the host includes 'core/record/record.hpp'; name a header of it by its room"
rm host/batch/batch.cpp
printf '#include "record/record.hpp"\n' >host/core/nook/nook.cpp
expect_mistake layering 'host/core/nook is unknown to host/rooms.txt'
new_tree
mkdir -p sdk/attic && printf '#include <assay/train/layer.hpp>\n' >sdk/attic/old.cpp
expect_mistake layering 'sdk/attic is unknown to sdk/rooms.txt'
planted plugins/one/one.cpp '#include "measure/stats.hpp"' "a plugin includes 'measure/stats.hpp' of host/"
planted plugins/one/one.cpp '#include "host/core/measure/stats.hpp"' "a plugin includes 'host/core/measure/stats.hpp' of host/"
planted plugins/one/one.cpp '#include "../../host/core/measure/stats.hpp"' 'a plugin includes'
planted plugins/one/one.cpp '#include "../two/two.hpp"' "a plugin includes '../two/two.hpp' of plugins/two"
new_tree
rm host/rooms.txt
expect_mistake layering 'has no host/rooms.txt'
new_tree
rm sdk/include/assay/abi.h
expect_mistake layering 'expected the root of the sources'

if command -v git >/dev/null; then
  new_tree
  git init -q .
  "$scripts/check-size" "$work" >/dev/null || fail 'check-size refuses a tree of small files'
  head -c 1048576 /dev/zero >plugins/one/weights.bin
  "$scripts/check-size" "$work" >/dev/null || fail 'check-size refuses a file of 1 MiB exactly'
  printf 'x' >>plugins/one/weights.bin
  expect_mistake size 'plugins/one/weights.bin: 1048577 bytes'
fi

planted_in_documents() { # FILE LINE-TO-APPEND EXPECTED-TEXT
  new_documents
  printf '%s\n' "$2" >>"$1"
  expect_mistake documents "$3"
}

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
planted_in_documents README.md "$(printf 'x%.0s' {1..101})" 'README.md:8: has 101 columns'
planted_in_documents README.md "$(printf 'x\n%.0s' {1..100})" 'README.md:101: has'
planted_in_documents README.md '[gone](docs/gone.md)' "README.md:8: links to 'docs/gone.md', which does not exist"
planted_in_documents README.md '<img src="docs/gone.svg">' "README.md:8: links to 'docs/gone.svg', which does not exist"
planted_in_documents docs/experiments.md '[x](#other-heading)' 'docs/experiments.md:4: links to'
planted_in_documents configs/two.toml 'schema = 1' 'configs/two.toml: is not listed'
planted_in_documents docs/command.md 'See `host/core/nowhere.cpp`.' "docs/command.md:9: names 'host/core/nowhere.cpp'"
new_documents
printf '[arch](docs/architecture.md)\n' >>README.md
sed -n '/^host\/ /,/^sdk\/ /p; /^| folder of sdk/,/^A header/p' "$scripts/../docs/architecture.md" >docs/architecture.md
said=$("$scripts/check-documents" "$work" || true)
[[ $said != *'architecture.md: '* ]] || fail "check-documents refuses the tables of rooms: $said"
sed -i 's/^checks: /checks: attic /' host/rooms.txt
expect_mistake documents "has no row '| checks | attic, doctor, validate, plan | core, execution |'; host/rooms.txt has it"
expect_mistake documents "its tree has no 'attic/'"
planted_in_documents docs/new.md '# New' 'docs/new.md: README.md does not lead to it'
rewritten_page() { # LINE: docs/ranks.md ends with it, and README.md leads to the page
  new_documents
  printf '[ranks](docs/ranks.md)\n' >>README.md
  printf '# Ranks\n\n```\nof its own\n```\n\n%s\n' "$1" >docs/ranks.md
}
rewritten_page 'A rank has a log, and `spread` names the difference.'
"$scripts/check-documents" "$work" >"$work/../said.txt" 2>&1 ||
  fail "check-documents refuses a page without a phrase that is avoided: $(cat ../said.txt)"
rewritten_page 'Each rank has a log of its own.'
expect_mistake documents "docs/ranks.md:7: has 'of its own'"
rewritten_page "A rank$(printf ' word%.0s' {1..39})."
expect_mistake documents 'docs/ranks.md:7: has a sentence of 41 words'
rewritten_page "$(printf 'One word, and others.\n%.0s' {1..23})"
expect_mistake documents 'docs/ranks.md:7: has a paragraph of 92 words'
planted_in_documents docs/seeds/000.md '[gone](../gone.md)' "docs/seeds/000.md:4: links to 'docs/seeds/../gone.md'"
planted_in_documents docs/seeds/000.md "$(printf 'x%.0s' {1..121})" 'docs/seeds/000.md:4: has more than 120 columns'
planted_in_documents docs/seeds/005.md '# Five' 'docs/seeds/005.md: is not listed in docs/seeds/README.md'
planted_in_documents tests/package/axpy/axpy.cpp '// more' 'README.md:5: its plugin is not'
changed_script() { # LINES-OF-THE-DIFF EXPECTED-TEXT
  new_documents
  printf '# Command\n\n```diff\n x = 1\n%s\n```\n' "$1" >docs/command.md
  expect_mistake documents "docs/command.md: $2"
}
changed_script "$(printf '+x = 2\n%.0s' {1..11})" 'its diff adds 11 lines'
changed_script '-x = 2' 'its diff adds 0 lines'
if command -v python3 >/dev/null; then
  changed_script '+    y = 1' "in its diff the lines with ' ' and '+' are no Python"
  changed_script $'-def f(:\n+y = 1' "in its diff the lines with ' ' and '-' are no Python"
  planted_in_documents docs/pictures/training-step.svg '<!-- -->' 'training-step.svg: is not what the records give'
fi

expect_format_clean=0
new_tree
"$scripts/check-format" "$work" >/dev/null 2>&1 || expect_format_clean=$?
case $expect_format_clean in
  77) ;; # no clang-format 14 here
  0)
    printf 'int  f( ){return 1;}\n' >host/core/measure/stats.cpp
    expect_mistake format 'host/core/measure/stats.cpp:1'
    ;;
  *) fail 'check-format refuses a formatted tree' ;;
esac

((failures == 0)) || exit 1
echo 'the checks find every planted mistake'
