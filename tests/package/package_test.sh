#!/usr/bin/env bash
# package_test.sh STEP [ARGUMENT...]: the steps of a stranger's way, from `cmake --install` to the results of a plugin of his own.
# Each is a test; they share the folder $WORK, which `install` makes anew. From the environment: WORK, SOURCE_DIR,
# BUILD_DIR, CMAKE, CONFIG, CXX_COMPILER.
set -euo pipefail

here=$SOURCE_DIR/tests/package
# With a space: nothing may split a path.
prefix="$WORK/moved here"

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

configure() { # SOURCE BUILD [CXX-COMPILER]; with prefix set
  "$CMAKE" -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE="$CONFIG" -DCMAKE_CXX_COMPILER="${3:-$CXX_COMPILER}" \
    -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
}

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
    lib/cmake/assay/{assayConfig,assayConfigVersion,assayTargets,AssayAddPlugin}.cmake \
    lib/cmake/assay/assay_plugin.map; do
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
    if [[ $file == */libassay_device_cuda.so || $file == */libassay_comm_nccl.so ]]; then
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
  host --version | grep -F '1.0.0'
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
    $said == *"$prefix/lib/cmake/assay/assayConfig.cmake, version: 1.0"* ]] || {
    cat "$WORK/asks_for_2.log"
    fail "find_package(assay 2.0) failed for another reason than the version"
  }
}

# What `assay new plugin` writes builds and runs as it is: against the moved tree, and against the build tree, for a host
# that was never installed.
step_new_plugin() { # NAME [PREFIX]
  prefix=${2:-$prefix}
  rm -rf -- "${WORK:?}/$1"
  host new plugin "$1" --output "$WORK/$1"
  configure "$WORK/$1" "$WORK/$1/build"
  "$CMAKE" --build "$WORK/$1/build"
  host run "$WORK/$1/$1.toml" --output "$WORK/$1/results" --set measure.steps=3
  local table
  table=$(find "$WORK/$1/results" -name table.csv)
  [[ -f $table ]] || fail "expected one table.csv below $WORK/$1/results, found '$table'"
  [[ $(grep -cw ok "$table") == 3 && $(wc -l <"$table") == 4 ]] || fail "expected 3 rows that are ok: $(cat "$table")"
}

# Each mistake in the use of assay_add_plugin is refused, with the remedy.
step_add_plugin_mistakes() {
  mistaken_project C 'assay_add_plugin(one one.c)' 'project(... LANGUAGES CXX)'
  mistaken_project CXX 'assay_add_plugin(one)' 'expected assay_add_plugin(one file.cpp...)'
  mistaken_project CXX 'assay_add_plugin("two words" one.cpp)' "'two words' is not a name for a plugin"
  mistaken_project CXX 'assay_add_plugin(a/b one.cpp)' "'a/b' is not a name for a plugin"
}

mistaken_project() { # LANGUAGE LINE EXPECTED-TEXT
  local folder=$WORK/mistaken
  rm -rf -- "$folder"
  mkdir -p -- "$folder"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' "project(mistaken LANGUAGES $1)" \
    'find_package(assay 1.0 CONFIG REQUIRED)' "$2" >"$folder/CMakeLists.txt"
  if configure "$folder" "$folder/build" >"$folder/log" 2>&1; then
    fail "accepted: $2"
  fi
  local said
  said=$(tr -s '[:space:]' ' ' <"$folder/log")
  [[ $said == *"$3"* ]] || fail "'$2' is refused without '$3', but with: $said"
}

# All of the SDK's headers and libraries, not only what axpy needs.
step_uses_sdk() {
  configure "$here/uses_sdk" "$WORK/uses_sdk"
  "$CMAKE" --build "$WORK/uses_sdk"
}

step=$1
shift
"step_$step" "$@"
