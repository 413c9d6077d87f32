#!/usr/bin/env bash
# sanitizing_compiler_test.sh SCRIPTS WORK: which compiler scripts/setup-lib.sh configures build/dev with, and build/ci links
# the program with sanitizers with. CMake and clang are played: nothing is compiled.
set -euo pipefail
scripts=$1 work=$2
# shellcheck source-path=SCRIPTDIR source=failures.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/failures.sh"

rm -rf -- "$work"
mkdir -p -- "$work"/{bin,clang,tree/scripts}
cp -- "$scripts/setup-lib.sh" "$work/tree/scripts/"
echo '{}' >"$work/tree/CMakePresets.json"
# All programs of the machine but clang.
for folder in /usr/bin /bin; do ln -sf -- "$folder"/* "$work/bin/"; done
rm -f -- "$work"/bin/{clang,clang++,cmake,nvcc}

cat >"$work/bin/cmake" <<TEXT
#!/bin/bash
echo "\$*" >>"$work/called"
for argument; do
  [[ \$argument != --build ]] || exit 0
  [[ \$last != --preset ]] || preset=\$argument
  last=\$argument
done
mkdir -p "$work/tree/build/\$preset"
echo 'build all: phony' >"$work/tree/build/\$preset/build.ninja"
TEXT
# A clang whose program does nothing, and passes.
cat >"$work/clang/clang++" <<'TEXT'
#!/bin/bash
[[ -z ${PLAYED_ERROR:-} ]] || { echo "$PLAYED_ERROR" >&2; exit 1; }
printf '#!/bin/sh\n' >"${!#}" && chmod +x "${!#}"
TEXT
ln -s clang++ "$work/clang/clang"
chmod +x "$work"/{bin/cmake,clang/clang++}
with_clang=$work/clang:$work/bin

build() { # PRESET PATH [VARIABLE=VALUE...]; sets `said`, and `configured` to how CMake was called, empty if it was not
  local preset=$1 path=$2
  shift 2
  : >"$work/called"
  said=$(env -u CC -u CXX PATH="$path" ASSAY_CUDA=OFF "$@" \
    bash -c '. "$1/scripts/setup-lib.sh" && build_preset "$2"' _ "$work/tree" "$preset" 2>&1) ||
    fail "building $preset: exit status $?: $said"
  configured=$(grep -e --preset "$work/called" || true)
}
uses_clang() { [[ $configured == *" -DCMAKE_CXX_COMPILER=$work/clang/clang++"* ]]; }

build dev "$work/bin"
[[ -n $configured && $configured != *CMAKE_CXX_COMPILER=* ]] || fail "without clang: $configured"
[[ $said == *'g++ compiles build/dev'*': clang is not installed'* ]] || fail "without clang: $said"
build dev "$work/bin"
[[ -z $configured && $said != *'g++ compiles'* ]] || fail "configured twice without clang: $configured $said"

build dev "$with_clang" PLAYED_ERROR='cannot find libclang_rt.asan'
[[ $configured$said != *CMAKE_CXX_COMPILER=* ]] || fail "a clang without its runtime: $configured"
rm -rf -- "$work/tree/build"
build dev "$with_clang" PLAYED_ERROR='cannot find libclang_rt.asan'
[[ $said == *'g++ compiles build/dev'*'clang++ fails: cannot find libclang_rt.asan'* ]] ||
  fail "a clang without its runtime: $said"

# The folder has been configured with g++.
build dev "$with_clang"
uses_clang && [[ $configured == *" -DCMAKE_C_COMPILER=$work/clang/clang"* && $configured == *' --fresh '* ]] ||
  fail "clang in a folder that had g++: $configured"
[[ $said != *'g++ compiles'* ]] || fail "clang in a folder that had g++: $said"
build dev "$with_clang"
[[ -z $configured ]] || fail "configured twice with clang: $configured"

build dev "$with_clang" CXX=g++-12
[[ $configured == *' --fresh '* ]] && ! uses_clang || fail "CXX was given: $configured"
[[ $said != *'g++ compiles'* ]] || fail "CXX was given: $said"

build ci "$with_clang"
! uses_clang && [[ "$configured " == *" -DASSAY_SANITIZER_LINKER=$work/clang/clang++ "* ]] || fail "ci with clang: $configured"
build ci "$work/bin"
[[ "$configured " == *' -DASSAY_SANITIZER_LINKER= '* && $configured != *--fresh* ]] || fail "ci after clang has gone: $configured"
build release "$with_clang"
[[ -n $configured && $configured != *clang++* ]] || fail "release with clang: $configured"

# Packages that cannot be installed are no error, and are tried until the folder is configured without them.
cat >"$work/bin/played_install" <<TEXT
#!/bin/bash
echo "\${0##*/} \$*" >>"$work/called"
[[ \${0##*/} != sudo || \$2 != true ]] || exit 0
[[ \${0##*/} != sudo ]] || exec "\${@:2}"
echo "E: Unable to locate package" >&2
exit 100
TEXT
chmod +x "$work/bin/played_install"
rm -f -- "$work"/bin/{apt-get,sudo}
ln -s played_install "$work/bin/apt-get"
ln -s played_install "$work/bin/sudo"
try_packages() { # [VARIABLE=VALUE...]; sets `called`
  : >"$work/called"
  env -u CC -u CXX -u ASSAY_SKIP_PACKAGES PATH="$work/bin" "$@" \
    bash -c '. "$1/scripts/setup-lib.sh" && set -e && try_sanitizing_packages' _ "$work/tree" 2>/dev/null ||
    fail "packages that cannot be installed: exit status $?"
  called=$(grep '^apt-get ' "$work/called" || true)
}
try_packages
[[ -z $called ]] || fail "tried in a folder that is configured: $called"
rm -f -- "$work/tree/build/dev/.configured"
try_packages
[[ $called == *' install '*' clang'* ]] || fail "not tried: $called"
try_packages ASSAY_SKIP_PACKAGES=1
[[ -z $called ]] || fail "tried with ASSAY_SKIP_PACKAGES=1: $called"
try_packages CXX=g++-12
[[ -z $called ]] || fail "tried though CXX was given: $called"

((failures == 0)) && printf 'sanitizing_compiler: ok\n'
