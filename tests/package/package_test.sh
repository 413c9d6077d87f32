#!/usr/bin/env bash
# package_test.sh STEP [ARGUMENT...]: the steps of a stranger's way, from `cmake --install` to the results of his own plugin.
# Each is a test; they share the folder $WORK, which `install` makes anew. From the environment: WORK, SOURCE_DIR,
# BUILD_DIR, CMAKE, CONFIG, C_COMPILER, CXX_COMPILER, CUDA_COMPILER (empty: there is none), CUDA_HOST_COMPILER. Exit status
# 77: skipped, for the reason in the last line.
set -euo pipefail

here=$SOURCE_DIR/tests/package
# With a space: nothing may split a path.
prefix="$WORK/moved here"

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

configure() { # SOURCE BUILD [CXX-COMPILER [OPTION...]]; with prefix set
  "$CMAKE" -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE="$CONFIG" -DCMAKE_CXX_COMPILER="${3:-$CXX_COMPILER}" \
    -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF "${@:4}"
}
# What is built to be run once.
quick=-DCMAKE_CXX_FLAGS_RELEASE=-O1

# Runs the host of $prefix with nothing in the environment that could lead it elsewhere.
host() {
  env -i HOME="$WORK" PATH=/usr/bin:/bin ${ASAN_OPTIONS:+ASAN_OPTIONS="$ASAN_OPTIONS"} "$prefix/bin/assay" "$@"
}

step_install() {
  rm -rf -- "$WORK"
  mkdir -p -- "$WORK"
  "$CMAKE" --install "$BUILD_DIR" --prefix "$WORK/first" >"$WORK/install.log"
  mv -- "$WORK/first" "$prefix"
  local expected
  for expected in bin/assay lib/assay/devices/libassay_device_cpu.so lib/assay/plugins/decoder.so \
    include/assay/{abi.h,device.h,plugin.hpp,compute/backend.hpp} share/assay/configs/quickstart.toml \
    lib/cmake/assay/{assayConfig,assayConfigVersion,assayTargets,AssayAddPlugin,AssayPluginTest}.cmake \
    lib/cmake/assay/assay_plugin.map share/assay/templates/{c,compute,cpu,cuda,ranks,train}/my_plugin.toml \
    share/doc/assay/{README.md,docs/tutorial.md}; do
    [[ -f $prefix/$expected ]] || fail "the installed tree has no $expected"
  done
}

# Nothing in the tree names the folder of the sources, of the build, or of the first installation.
step_relocatable() {
  local path file found=0
  for path in "$WORK/first" "$BUILD_DIR" "$SOURCE_DIR"; do
    grep -rIlF -- "$path" "$prefix" && fail "the files above name $path"
  done
  while IFS= read -r -d '' file; do
    found=$((found + 1))
    path=$(readelf -d "$file" | sed -nE 's/.*\((RPATH|RUNPATH)\).*\[(.*)\]/\2/p')
    # The vendor's libraries are where the vendor's installer puts them, not in the tree.
    if [[ $file == */libassay_device_cuda.so || $file == */libassay_comm_nccl.so ]] && [[ $file != */planned/* ]]; then
      [[ $path =~ ^\$ORIGIN(:/[^:]+)*$ && $path != *"$BUILD_DIR"* && $path != *"$WORK"* ]] ||
        fail "$file has the run path '$path'; expected \$ORIGIN and the folders of the vendor's libraries"
      continue
    fi
    [[ -z $path || $path =~ ^\$ORIGIN(/[^:]*)?$ ]] || fail "$file has the run path '$path'; expected \$ORIGIN/..."
  done < <(find "$prefix" -type f \( -name '*.so' -o -path '*/bin/*' \) -print0)
  ((found >= 3)) || fail "only $found programs and libraries were found below $prefix"
}

# The moved host finds its plugins, its devices and the installed experiments.
step_moved_host() {
  host --version | grep -F '1.1.0'
  host list | tee "$WORK/list.txt"
  grep -q '\bdecoder\b' "$WORK/list.txt" || fail "the moved host does not list the decoder plugin"
  grep -q '\bcpu\b' "$WORK/list.txt" || fail "the moved host does not list the CPU device"
  host run "$prefix/share/assay/configs/quickstart.toml" --dry-run
}

step_build_plugin() { # BUILD CXX-COMPILER
  configure "$here/axpy" "$WORK/$1" "$2"
  "$CMAKE" --build "$WORK/$1"
  local exported
  exported=$(nm -D --defined-only "$WORK/$1/axpy.so" | awk '{print $NF}')
  [[ $exported == assay_entry_v1 ]] || fail "axpy.so exports '$exported'; expected assay_entry_v1 alone"
}

step_run_plugin() { # BUILD
  host run "$here/axpy/axpy.toml" --plugin-path "$WORK/$1" --output "$WORK/results_$1"
  local table
  table=$(find "$WORK/results_$1" -name table.csv) # `latest` is a link, which find does not follow
  [[ -f $table ]] || fail "expected one table.csv below $WORK/results_$1, found '$table'"
  cat -- "$table"
  [[ $(head -n 1 "$table") == n,step.mean_ms,verify,status,run,experiment,* ]] || fail "the table does not begin with the columns asked for"
  # A time above zero, verified, ok: three rows, in the order of the sweep.
  [[ $(awk -F, 'NR > 1 && $2 > 0 && $3 == "ok" && $4 == "ok" {print $1}' "$table" | tr -d '\r' | tr '\n' ' ') == \
    '1000 4096 65536 ' ]] || fail "expected rows that are ok for n = 1000, 4096, 65536"
}

step_refuses_version_2() {
  if configure "$here/asks_for_2" "$WORK/asks_for_2" >"$WORK/asks_for_2.log" 2>&1; then
    fail "find_package(assay 2.0) was answered by version 1"
  fi
  # The reason must be the version, and the refused package the moved one. CMake breaks its lines where it likes.
  local said
  said=$(tr -s '[:space:]' ' ' <"$WORK/asks_for_2.log")
  [[ $said == *'compatible with requested version "2.0"'* &&
    $said == *"$prefix/lib/cmake/assay/assayConfig.cmake, version: 1."* ]] || {
    cat "$WORK/asks_for_2.log"
    fail "find_package(assay 2.0) failed for another reason than the version"
  }
}

# What the pages link to is there, as in the sources.
step_documents() {
  "$SOURCE_DIR/scripts/check-documents" --links "$prefix/share/doc/assay"
}

# Runs the tests of a project that was built, and shows what they print. Exit status 77 when all of them were skipped.
tests_of() { # BUILD TEST-COUNT
  local log=$1/ctest.log
  (cd "$1" && ctest --verbose --no-tests=error) >"$log" 2>&1 || {
    cat -- "$log"
    fail "the tests of $1"
  }
  grep -E '^[0-9]+: ' "$log" || true
  [[ $(grep -cE '^ *[0-9]+/[0-9]+ Test ' "$log") == "$2" ]] || fail "expected $2 tests in $1"
  if [[ $(grep -cF '***Skipped' "$log") == "$2" ]]; then
    grep -oE 'skipped: .*' "$log"
    exit 77
  fi
}

# The table of the one run below FOLDER has that many rows, all of them ok and verified.
expect_table() { # FOLDER ROWS
  local table
  table=$(find "$1" -name table.csv) # `latest` is a link, which find does not follow
  [[ -f $table ]] || fail "expected one table.csv below $1, found '$table'"
  [[ $(grep -cE ',ok,ok,' "$table") == "$2" && $(wc -l <"$table") == $(($2 + 1)) ]] ||
    fail "expected $2 rows that are ok and verified: $(cat -- "$table")"
}

new_project() { # TEMPLATE NAME
  rm -rf -- "${WORK:?}/$2"
  (cd "$WORK" && host new plugin "$2" --template "$1")
  ! grep -rnE 'my_plugin|MyPlugin|/path/to/assay' "$WORK/$2" || fail "a word of the template was not replaced"
}

# What `assay new plugin` writes builds, passes its own tests, runs and is installed as it is: against the moved tree, and
# against the build tree, for a host that was never installed.
step_template() { # TEMPLATE NAME ROWS [PREFIX]
  prefix=${4:-$prefix}
  local options=("$quick")
  if [[ $1 == cuda ]]; then
    if [[ ! $CUDA_COMPILER ]]; then
      echo 'skipped: there is no CUDA compiler'
      exit 77
    fi
    # One architecture: nothing is compiled twice.
    options+=(-DCMAKE_CUDA_COMPILER="$CUDA_COMPILER" -DCMAKE_CUDA_HOST_COMPILER="$CUDA_HOST_COMPILER"
      -DCMAKE_CUDA_ARCHITECTURES=90)
  elif [[ $1 == c ]]; then
    options=(-DCMAKE_C_COMPILER="$C_COMPILER" -DCMAKE_C_FLAGS_RELEASE=-O1)
  fi
  new_project "$1" "$2"
  configure "$WORK/$2" "$WORK/$2/build" "$CXX_COMPILER" "${options[@]}"
  "$CMAKE" --build "$WORK/$2/build" -j2
  "$CMAKE" --install "$WORK/$2/build" --prefix "$WORK/$2/installed"
  host describe "$WORK/$2/installed/lib/assay/plugins/$2.so"
  if [[ $1 != cuda ]]; then # its tests are another one of ours, where there is a GPU
    tests_of "$WORK/$2/build" 2
    expect_table "$WORK/$2/build/assay_tests/$2" "$3"
  fi
}

step_run_cuda_template() { # NAME ROWS
  [[ -d $WORK/$1/build ]] || {
    echo 'skipped: the plugin was not compiled'
    exit 77
  }
  tests_of "$WORK/$1/build" 2
  expect_table "$WORK/$1/build/assay_tests/$1" "$2"
}

step_template_mistakes() {
  local said name
  said=$(host new plugin demo --template trian --output "$WORK/no_such" 2>&1) && fail "accepted: --template trian"
  [[ $said == *"no template 'trian'; expected c, compute, cpu, cuda, ranks, train; did you mean 'train'?"* ]] ||
    fail "--template trian is refused with: $said"
  for name in Big 2d test; do
    said=$(host new plugin "$name" --output "$WORK/no_such" 2>&1) && fail "accepted: $name"
    [[ $said == *"'$name' cannot name a plugin"* ]] || fail "'$name' is refused with: $said"
  done
  said=$(host new plugin tensor --template compute --output "$WORK/no_such" 2>&1) && fail "accepted: tensor"
  [[ $said == *"whose sources already have a Tensor"* ]] || fail "'tensor' is refused with: $said"
  [[ ! -e $WORK/no_such ]] || fail "$WORK/no_such was written"
  mkdir -p -- "$WORK/occupied" && touch -- "$WORK/occupied/file"
  said=$(host new plugin demo --output "$WORK/occupied" 2>&1) && fail "wrote into a folder that is not empty"
  [[ $said == *'exists and is not empty'* && $(ls "$WORK/occupied") == file ]] || fail "an occupied folder: $said"
}

# The files of docs/tutorial.md: what stands between ```LANGUAGE NAME and ```, pieces of one file after each other.
step_tutorial() {
  local folder=$WORK/tutorial toml
  rm -rf -- "$folder"
  mkdir -p -- "$folder"
  awk -v folder="$folder" '/^```/ { file = NF == 2 ? folder "/" $2 : ""; next } file { print > file }' \
    "$prefix/share/doc/assay/docs/tutorial.md"
  configure "$folder" "$folder/build" "$CXX_COMPILER" "$quick"
  "$CMAKE" --build "$folder/build" -j2
  tests_of "$folder/build" 3
  for toml in checked device mlp; do
    expect_table "$folder/build/assay_tests/$toml" 3
  done
  # Its first stage verifies nothing, which a test would not let pass.
  host run "$folder/loop.toml" --plugin-path "$folder/build" --output "$folder/results/"
}

# A test of assay_add_plugin_test fails for what `assay run` lets pass, too: run by hand, as ctest runs it.
step_plugin_test_fails() {
  local said
  printf '%s\n' 'schema = 1' 'name = "unverified"' '[workload]' 'plugin = "nothing"' '[measure]' 'steps = 2' '[run]' \
    'device = "cpu"' >"$WORK/unverified.toml"
  sed 's/nothing/bad_wrong_result/; s/unverified/wrong/' "$WORK/unverified.toml" >"$WORK/wrong.toml"
  said=$(plugin_test "$WORK/unverified.toml" "$WORK/uses_sdk") && fail "passes without a verification: $said"
  [[ $said == *"case 1: its verification is 'not checked', expected 'ok'"* ]] || fail "without a verification: $said"
  said=$(plugin_test "$WORK/wrong.toml" "$BUILD_DIR/tests/plugins_bad") && fail "passes with a wrong result: $said"
  [[ $said == *'exit status 1 of assay, 0 cases ok'* ]] || fail "with a wrong result: $said"
  said=$(plugin_test "$WORK/unverified.toml" "$WORK") && fail "passes without the plugin: $said"
  [[ $said == *'has left no records (exit status 2)'* ]] || fail "without the plugin: $said"
}

plugin_test() { # EXPERIMENT PLUGINS
  "$CMAKE" -D "HOST=$prefix/bin/assay" -D "EXPERIMENT=$1" -D "PLUGINS=$2" -D "RESULTS=$WORK/plugin_test" -D OPTIONS= \
    -P "$prefix/lib/cmake/assay/AssayPluginTest.cmake" 2>&1 | tr -s '[:space:]' ' '
}

# Each mistake in the use of assay_add_plugin is refused, with the remedy.
step_add_plugin_mistakes() {
  rm -rf -- "$WORK/mistaken"
  local package='find_package(assay 1.0 CONFIG REQUIRED)'
  mistaken_project C 'assay_add_plugin(one one.cpp)' \
    'does not enable CXX, in which its sources are written (one.cpp); write project(... LANGUAGES C CXX)'
  mistaken_project CXX 'assay_add_plugin(one one.cpp two.c)' 'write project(... LANGUAGES C CXX)'
  mistaken_project CXX 'assay_add_plugin(one one.cu)' \
    'does not enable CUDA, in which its sources are written (one.cu); write project(... LANGUAGES CXX CUDA)'
  mistaken_project C 'assay_add_plugin(one one.o)' 'does not enable CXX, which plugins are linked as'
  mistaken_project CXX 'assay_add_plugin_test(one one.toml)' "there is no plugin 'one'"
  mistaken_project CXX 'assay_add_plugin_validation(one)' "there is no plugin 'one'"
  package='find_package(assay 1.0 CONFIG REQUIRED COMPONENTS train trian)'
  mistaken_project CXX '' "has no component 'trian'; it has sdk, compute, comm, data, workload, train, models, parallel, verification, mesh"
  package='find_package(assay 1.0 CONFIG REQUIRED COMPONENTS train)'
  mistaken_project C '' "its component 'train' is C++, which the project does not enable; write project(... LANGUAGES CXX)"
  bare_installation
  package='find_package(assay 1.0 CONFIG REQUIRED COMPONENTS cuda)'
  prefix=$WORK/bare mistaken_project CXX '' "has no component 'cuda'; it has sdk, compute, comm, data, workload, train, models, parallel, verification, mesh. It was built without"
  package='find_package(assay 1.0 CONFIG REQUIRED)'
  mistaken_project CXX 'assay_add_plugin(one)' 'expected assay_add_plugin(one file.cpp...)'
  mistaken_project CXX 'assay_add_plugin("two words" one.cpp)' "'two words' is not a name for a plugin"
  mistaken_project CXX 'assay_add_plugin(a/b one.cpp)' "'a/b' is not a name for a plugin"
}

# The package alone, as an installation without devices and communicators has it.
bare_installation() {
  rm -rf -- "$WORK/bare"
  mkdir -p -- "$WORK/bare/lib"
  cp -r -- "$prefix/lib/cmake" "$WORK/bare/lib/"
  ln -s -- "$prefix"/lib/*.a "$WORK/bare/lib/"
  ln -s -- "$prefix/include" "$prefix/bin" "$WORK/bare/"
}

# Projects of one language and one installation share a folder: CMake looks for their compilers once.
mistaken_project() { # LANGUAGES LINE EXPECTED-TEXT; with package set
  local folder=$WORK/mistaken/$1-${prefix##*/}
  mkdir -p -- "$folder"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' "project(mistaken LANGUAGES $1)" \
    "$package" "$2" >"$folder/CMakeLists.txt"
  if configure "$folder" "$folder/build" >"$folder/log" 2>&1; then
    fail "accepted: $package $2"
  fi
  local said
  said=$(tr -s '[:space:]' ' ' <"$folder/log")
  [[ $said == *"$3"* ]] || fail "'$2' is refused without '$3', but with: $said"
}

# All of the SDK's headers and libraries, not only what axpy needs.
step_uses_sdk() {
  configure "$here/uses_sdk" "$WORK/uses_sdk" "$CXX_COMPILER" "$quick" -DPROJECT_SOURCES="$SOURCE_DIR"
  "$CMAKE" --build "$WORK/uses_sdk"
}

step=$1
shift
"step_$step" "$@"
