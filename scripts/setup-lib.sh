# shellcheck shell=bash
# What scripts/run and scripts/test share: install the packages that are missing, configure a preset, build it.
# Sourced, not run. Everything it says goes to stderr; stdout belongs to the program that is run in the end.
#
#   ensure_packages PACKAGE...   installs those that are missing, or prints the command and exits 2
#   try_sanitizing_packages      installs what clang++ needs to compile build/dev; goes on where it cannot
#   build_preset PRESET [TARGET...]
#                                configures build/PRESET and builds these targets, or all; what the tools say goes to
#                                build/PRESET/build.log. Where there is an nvcc 13, brings cudnn-frontend's headers first
#
#                                assay_unit_tests=OFF before it: without the programs of tests labelled unit
#
# Environment: ASSAY_JOBS=N (compilers at once), ASSAY_SKIP_PACKAGES=1 (leave the system's packages alone),
# ASSAY_ONEDNN=build (runs build_onednn first; without it or when it fails, the distribution's oneDNN serves),
# ASSAY_CUDA=ON|OFF (the CUDA device must be built, or must not; otherwise it is where all it needs is there, and in the
# preset release where there is a GPU too), CUDAARCHS (the GPUs that it is built for), ASSAY_QUICK_KERNELS=1 (in the preset ci
# they are compiled quickly and not optimised: only to see that they compile).

if [[ -z ${BASH_VERSION:-} ]]; then
  echo "assay: the scripts need bash" >&2
  exit 2
fi

assay_root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)

# Present under these names in Debian 12 and Ubuntu 24.04. Boost.DLL is header-only (libboost-dev); oneDNN's CMake
# package asks for OpenCL (ocl-icd-opencl-dev) where it was built with it, although the CPU engine never uses it. node-d3 is
# one file of JavaScript that becomes part of the executable.
packages_to_build=(
  g++ cmake ninja-build
  libboost-dev libboost-program-options-dev libtomlplusplus-dev nlohmann-json3-dev libfmt-dev libsodium-dev libsqlite3-dev
  libdnnl-dev ocl-icd-opencl-dev libgloo-dev node-d3
)
# Slurm's (slurm-wlm munge) are for the tests that make their own cluster on this machine, openssh-server for those that
# reach hosts; see without_daemons.
# shellcheck disable=SC2034  # read by scripts/test
packages_to_test=("${packages_to_build[@]}" libgtest-dev libgmock-dev git openmpi-bin slurm-wlm munge iproute2 openssh-server)
# What these packages would start, now and whenever the machine starts. The tests start their own.
unwanted_daemons=(munge slurmctld slurmd ssh)

say() { printf 'assay: %s\n' "$*" >&2; }

die() { # STATUS TEXT...
  local status=$1
  shift
  say "$@"
  exit "$status"
}

# ---- packages ----------------------------------------------------------------------------------------------------------

# A tool may come from elsewhere (pip, /usr/local, a module system): what counts is that it is there.
has_package() { # PACKAGE, with `installed` set to the installed packages, one a line
  case $1 in
    g++) command -v g++ && return ;;
    cmake) command -v cmake && return ;;
    ninja-build) command -v ninja && return ;;
    git) command -v git && return ;;
  esac >/dev/null
  grep -qxF -- "$1" <<<"$installed"
}

distribution() { # "debian 12"
  (
    ID=unknown VERSION_ID=
    # shellcheck disable=SC1091
    [[ ! -r /etc/os-release ]] || . /etc/os-release
    printf '%s %s' "$ID" "$VERSION_ID"
  )
}

ensure_packages() { # PACKAGE...
  [[ ${ASSAY_SKIP_PACKAGES:-0} != 1 ]] || return 0
  local distribution installed package status=0
  local -a missing=() as_root=() new_daemons=()
  distribution=$(distribution)
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "'$distribution' is not a system whose packages this script can install; going on with what is there."
    say "expected, by their names in Debian 12: $*"
    return 0
  fi

  # dpkg-query fails when it does not know one of the names: to be expected here.
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' || true)
  for package in "$@"; do
    has_package "$package" || missing+=("$package")
  done
  ((${#missing[@]} > 0)) || return 0

  case $distribution in
    'debian 12' | 'ubuntu 24.04') ;;
    *) say "'$distribution' is not tested (Debian 12 and Ubuntu 24.04 are); trying the same package names." ;;
  esac
  if ((EUID != 0)); then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      say "packages are missing: ${missing[*]}"
      say "installing them needs root, or sudo without a password. Run this, then call again:"
      printf '  sudo apt-get update && sudo apt-get install -y --no-install-recommends %s\n' "${missing[*]}" >&2
      exit 2
    fi
  fi

  say "installing ${missing[*]}"
  local log
  log=$(mktemp)
  # An update can fail because of a foreign source that has nothing to do with us: the install decides.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 update >"$log" 2>&1 ||
    say "apt-get update failed ($(tail -n 1 "$log")); trying to install from the lists that are there"
  for package in "${unwanted_daemons[@]}"; do
    has_service "$package" || new_daemons+=("$package")
  done
  without_daemons env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1 || status=1
  disable_daemons >>"$log" 2>&1
  if ((status)); then
    tail -n 20 "$log" >&2
    die 1 "installing packages failed, see above (all of it: $log). On Ubuntu, 'universe' must be enabled."
  fi
  rm -f -- "$log"
}

# Packages that build/dev does without. The name of clang's runtime has clang's version. They are tried until build/dev is
# configured, so that a machine without them is not asked at each call.
try_sanitizing_packages() {
  [[ ${ASSAY_SKIP_PACKAGES:-0} != 1 && -z ${CC:-}${CXX:-} ]] && command -v apt-get >/dev/null || return 0
  ! grep -qs '^compilers ' "$assay_root/build/dev/.configured" || return 0
  local -a as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null || return 0
    as_root=(sudo -n)
  fi
  local why='' package
  ! clang_sanitizes || return 0
  say "installing clang, which compiles build/dev in less time"
  for package in clang libomp-dev 'libclang-rt-%s-dev'; do
    [[ $package != *%s* ]] || package=${package/\%s/$(clang++ -dumpversion 2>/dev/null | cut -d. -f1)}
    # The lists that are there may be out of date, or none.
    try_package "$package" || { "${as_root[@]}" apt-get update && try_package "$package"; } || return 0
  done >/dev/null 2>&1 </dev/null
}

try_package() { # PACKAGE, with `as_root` set
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$1"
}

has_service() { # NAME
  [[ -e /etc/init.d/$1 || -e /lib/systemd/system/$1.service || -e /etc/systemd/system/$1.service ]]
}

# A command that installs packages, during which the daemons that are new on this machine are not started: the file that
# Debian asks about it says no. Where there is such a file already, as in containers, it decides. Nobody is hurt by one that
# is left behind by a kill: it speaks of these daemons alone, and only while this process lives.
without_daemons() ( # COMMAND..., with `as_root` and `new_daemons` set
  policy=/usr/sbin/policy-rc.d
  if ((${#new_daemons[@]} > 0)) && [[ ! -e $policy ]]; then
    trap '"${as_root[@]}" rm -f -- "$policy"' EXIT
    trap 'exit 130' HUP INT TERM
    {
      printf '#!/bin/sh\n# Of scripts/test of assay, while it installs packages; may be deleted.\n'
      printf '[ -d /proc/%d ] || exit 0\n' "$$"
      # shellcheck disable=SC2016  # for the policy to expand
      printf 'case " %s " in *" ${1%%.service} "*) exit 101 ;; esac\nexit 0\n' "${new_daemons[*]}"
    } | "${as_root[@]}" tee -- "$policy" >/dev/null && "${as_root[@]}" chmod 755 -- "$policy"
  fi
  "${as_root[@]}" "$@"
)

# They do not start with the machine either, and are stopped where the machine's own policy has let them start.
disable_daemons() { # with `as_root` and `new_daemons` set
  local name
  for name in "${new_daemons[@]}"; do
    has_service "$name" || continue
    if [[ -d /run/systemd/system ]]; then
      "${as_root[@]}" systemctl disable --now "$name" || true
      # Ubuntu's ssh is started by its socket.
      [[ ! -e /lib/systemd/system/$name.socket ]] || "${as_root[@]}" systemctl disable --now "$name.socket" || true
    else
      "${as_root[@]}" update-rc.d "$name" disable || true
      ! command -v systemctl >/dev/null || "${as_root[@]}" systemctl disable "$name" || true
    fi
  done
}

# ---- CUDA --------------------------------------------------------------------------------------------------------------

cudnn_frontend_version=1.23.0

# The nvcc that CMake would take, when it is of version 13.
nvcc_13() {
  local nvcc
  nvcc=${CUDACXX:-$(command -v nvcc || true)}
  [[ -n $nvcc ]] || nvcc=/usr/local/cuda/bin/nvcc
  [[ $("$nvcc" --version 2>/dev/null) == *'release 13.'* ]] && printf '%s' "$nvcc"
}

# The headers through which cuDNN is used come in no package of a distribution: they are taken from NVIDIA's Python wheel,
# by pip or, where that fails or is not there, by Python alone. Without them assay is built without CUDA.
ensure_cudnn_frontend() {
  local target=$assay_root/.deps/cudnn_frontend part log status=0
  [[ ${ASSAY_CUDA:-AUTO} != OFF && ! -f $target/include/cudnn_frontend.h ]] || return 0
  nvcc_13 >/dev/null || return 0
  local requirement=nvidia-cudnn-frontend==$cudnn_frontend_version
  mkdir -p -- "$assay_root/.deps"
  part=$(mktemp -d -- "$assay_root/.deps/.part.XXXXXX") || return 0
  log=$part/log
  say "fetching $requirement (headers of cuDNN's frontend) into .deps/cudnn_frontend"
  {
    { python3 -m pip --disable-pip-version-check --retries 1 --timeout 30 download --no-deps --only-binary=:all: \
      "$requirement" -d "$part" || fetch_wheel nvidia-cudnn-frontend "$cudnn_frontend_version" "$part"; } &&
      python3 -m zipfile -e "$part"/*.whl "$part/unpacked" && [[ -f $part/unpacked/include/cudnn_frontend.h ]]
  } >"$log" 2>&1 || status=1
  if ((!status)); then
    # By one rename: an interrupted call leaves no half of it. Another call may have been faster, with the same content.
    mv -T -- "$part/unpacked" "$target" 2>/dev/null || [[ -f $target/include/cudnn_frontend.h ]] || status=1
  fi
  if ((status)); then
    say "fetching it failed: $(tail -n 1 -- "$log" 2>/dev/null || true)"
    say "going on without. By hand: python3 -m pip install --no-deps --target '$target' $requirement"
  fi
  rm -rf -- "$part"
}

# A wheel of this kind of machine from the index that pip would use, checked against the index's own checksum. For which
# Python does not matter: the headers are the same.
fetch_wheel() { # PACKAGE VERSION FOLDER
  python3 - "$@" <<'TEXT'
import hashlib, html, os, platform, re, sys, urllib.parse, urllib.request

package, version, folder = sys.argv[1:]
index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/") + f"/{package}/"
request = urllib.request.Request(index, headers={"Accept": "text/html"})
with urllib.request.urlopen(request, timeout=30) as reply:
    page, base = reply.read().decode(), reply.geturl()
begin, end = f"{package.replace('-', '_')}-{version}-", f"_{platform.machine()}.whl"
for link, checksum in re.findall(r'href="([^"#]+)#sha256=([0-9a-f]{64})"', page):
    url = urllib.parse.urljoin(base, html.unescape(link))
    name = url.rsplit("/", 1)[-1]
    if name.startswith(begin) and name.endswith(end) and "manylinux" in name:
        break
else:
    sys.exit(f"{index} has no wheel {begin}...manylinux...{end}")
with urllib.request.urlopen(url, timeout=300) as reply:
    content = reply.read()
if hashlib.sha256(content).hexdigest() != checksum:
    sys.exit(f"{name} is not what the index says")
with open(os.path.join(folder, name), "wb") as out:
    out.write(content)
TEXT
}

# The GPUs of this machine that the CUDA device can run on, as CMake names what is compiled for them: "80-real;90-real".
# Nothing without a GPU, or without a driver that answers.
gpu_architectures() {
  local capability
  local -a found=()
  while read -r capability; do
    [[ $capability =~ ^([0-9]+)\.([0-9])$ ]] || continue
    ((BASH_REMATCH[1] < 8)) || found+=("${BASH_REMATCH[1]}${BASH_REMATCH[2]}-real")
  done < <(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sort -u)
  local IFS=';'
  printf '%s' "${found[*]}"
}

# What of CUDA is built, for configuring a preset, one option a line. A folder remembers, so the defaults are given too.
# The preset release is for this machine; the others are for every GPU that is supported. The preset with the sanitizers
# has no CUDA in any case.
cuda_options() { # PRESET
  [[ $1 != dev ]] || return 0
  local wanted=${ASSAY_CUDA:-AUTO} architectures=
  if [[ $1 == release && $wanted != OFF && -z ${CUDAARCHS:-} ]]; then
    architectures=$(gpu_architectures)
    [[ -n $architectures || $wanted == ON ]] || wanted=OFF
  fi
  printf '%s\n' "-DASSAY_CUDA=$wanted"
  if [[ -n $architectures ]]; then
    printf '%s\n' "-DCMAKE_CUDA_ARCHITECTURES=$architectures"
  else
    printf '%s\n' -UCMAKE_CUDA_ARCHITECTURES # CUDAARCHS, or those of cmake/AssayCuda.cmake
  fi
  local quick=OFF
  [[ $1 != ci || ${ASSAY_QUICK_KERNELS:-0} != 1 ]] || quick=ON
  printf '%s\n' "-DASSAY_QUICK_KERNELS=$quick"
}

# ---- sanitizers --------------------------------------------------------------------------------------------------------

# Whether the clang++ of this machine compiles, links and runs what build/dev needs. Its packages come apart: the runtime of
# the sanitizers and OpenMP may be missing. Otherwise sets `why`.
clang_sanitizes() { # with `why` declared
  if ! command -v clang++ >/dev/null || ! command -v clang >/dev/null; then
    why='clang is not installed'
    return 1
  fi
  local work text
  work=$(mktemp -d) || return 1
  cat >"$work/probe.cpp" <<'TEXT'
#include <omp.h>
#include <vector>
static_assert(__clang_major__ >= 14, "expected clang 14 or later");
int main() {
  std::vector<int> thread(4);
#pragma omp parallel for
  for (int i = 0; i < 4; ++i) thread[i] = omp_get_thread_num();
  return thread[0];
}
TEXT
  if text=$({ clang++ -std=c++20 -fsanitize=address,undefined -fopenmp "$work/probe.cpp" -o "$work/probe" &&
    "$work/probe"; } 2>&1); then
    rm -rf -- "$work"
    return 0
  fi
  rm -rf -- "$work"
  why="clang++ fails: $(grep -m 1 . <<<"${text//"$work/"/}" || echo 'without a message')"
  return 1
}

# Sets `sanitizing` to the clang++ that compiles build/dev, in two thirds of the time that g++ takes, and links the program
# that build/ci makes for it: one process has the sanitizers' runtime of one compiler. Empty, with `why` set, where the
# compiler of the other builds does it; without a reason where the user has chosen that one.
choose_sanitizing_compiler() { # PRESET, with folder set
  sanitizing='' why=''
  [[ $1 == @(ci|dev) && -z ${CC:-}${CXX:-} ]] || return 0
  # The folder remembers a clang that has passed: to ask it takes a third of a second.
  local tried=$folder/.sanitizes clang
  clang=$(readlink -f -- "$(command -v clang++ || true)" || true)
  if [[ -z $clang || $(cat -- "$tried" 2>/dev/null) != "$clang" ]]; then
    rm -f -- "$tried"
    clang_sanitizes || return 0
    printf '%s\n' "$clang" >"$tried"
  fi
  sanitizing=$(command -v clang++)
}

# ---- building ----------------------------------------------------------------------------------------------------------

# Compilers at once: as many as there are CPUs, and one per 1.5 GiB of the memory that is free, as far as the container
# may use it.
jobs() {
  if [[ -n ${ASSAY_JOBS:-} ]]; then
    [[ $ASSAY_JOBS =~ ^[1-9][0-9]*$ ]] || die 2 "ASSAY_JOBS is '$ASSAY_JOBS'; expected an integer >= 1"
    printf '%s' "$ASSAY_JOBS"
    return
  fi
  local cpus kib limit used by_memory
  cpus=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) # nproc heeds these two; a compiler does not
  kib=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo 2>/dev/null || true)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || true)
  used=$(cat /sys/fs/cgroup/memory.current 2>/dev/null || true)
  if [[ $limit =~ ^[0-9]+$ && $used =~ ^[0-9]+$ ]]; then
    limit=$(((limit - used) / 1024))
    [[ -n $kib ]] && ((kib < limit)) || kib=$limit
  fi
  by_memory=$((${kib:-1572864} / 1572864))
  ((by_memory >= 1)) || by_memory=1
  printf '%s' $((cpus < by_memory ? cpus : by_memory))
}

# Runs a command with all it says appended to $log. On a terminal its last line is shown as it goes.
logged() { # COMMAND...
  if [[ -t 2 ]]; then
    local line width
    width=$(tput cols 2>/dev/null || echo 80)
    "$@" 2>&1 | tee -a -- "$log" | while IFS= read -r line; do
      printf '\r\033[K%s' "${line:0:$((width - 1))}" >&2
    done
    printf '\r\033[K' >&2
  else
    "$@" >>"$log" 2>&1
  fi
}

# A build folder remembers its compilers: for others it is configured afresh.
compilers() { # PRESET, with sanitizing set
  local of_preset=''
  [[ $1 != dev ]] || of_preset=$sanitizing
  printf '%s' "compilers ${CC:-} ${CXX:-} $of_preset"
}

# All that decides how a build folder is configured, apart from what CMake itself watches.
configuration() { # PRESET, with cuda, launcher and sanitizing set
  printf '%s\n' "preset $1" "source $assay_root" "launcher ${launcher[*]}"
  printf '%s\n' "cmake $(command -v cmake)" "ninja $(command -v ninja)" "$(compilers "$1")" "sanitizers by $sanitizing"
  # Without CUDA at first, and with it once its last part is there.
  printf '%s\n' "cuda ${cuda[*]} $(nvcc_13 || true) ${CUDAHOSTCXX:-} ${CUDAARCHS:-}"
  printf '%s\n' "unit tests ${assay_unit_tests:-ON}" "operations' tests of build/ci"
  printf '%s\n' "linker $(command -v mold || command -v ld.lld || true)"
  ls -d -- "$assay_root"/.deps/* 2>/dev/null || true
  sha256sum <"$assay_root/CMakePresets.json"
}

configure() { # [--fresh]; with preset, folder, log, cuda, launcher and sanitizing set
  local -a sanitized=()
  grep -qsxF -- "$(compilers "$preset")" "$folder/.configured" || set -- --fresh
  rm -f -- "$folder/.configured"
  # The tests of operations are compiled once, in the preset ci, which scripts/test builds first.
  case $preset in
    ci) sanitized=("-DASSAY_SANITIZER_LINKER=$sanitizing") ;;
    dev)
      sanitized=("-DASSAY_CONFORMANCE_PROGRAM=$assay_root/build/ci/bin/assay_conformance_sanitized")
      [[ -z $sanitizing ]] || sanitized+=("-DCMAKE_C_COMPILER=$(command -v clang)" "-DCMAKE_CXX_COMPILER=$sanitizing")
      ;;
  esac
  logged cmake -S "$assay_root" --preset "$preset" "$@" "${launcher[@]}" "${cuda[@]}" \
    "-DASSAY_UNIT_TESTS=${assay_unit_tests:-ON}" "${sanitized[@]}" || return
  # A device that is no longer built must not be found.
  [[ ${cuda[0]:-} != -DASSAY_CUDA=OFF ]] ||
    rm -f -- "$folder"/lib/assay/{devices/libassay_device_cuda,comm/libassay_comm_nccl}.so
  configuration "$preset" >"$folder/.configured"
}

# Succeeds if the build folder's state went wrong, not the sources: no step of the build has failed (then it never got
# to one), or a step met a file that an interrupted build or a full disk has cut short. A build that was ended from
# outside proves nothing about its folder.
folder_is_broken() { # STATUS
  (($1 < 128)) || return 1
  ! grep -qE '^ninja: build stopped: interrupted by user|^Terminated' "$log" || return 1
  ! grep -q 'error: unknown target' "$log" || return 1
  ! grep -q '^FAILED: ' "$log" ||
    grep -qE 'file truncated|file too short|file not recognized|file format not recognized|file in wrong format|malformed archive' "$log"
}

# In a subshell: what it locks and sets ends with it.
# shellcheck disable=SC2030
build_preset() ( # PRESET [TARGET...]
  local preset=$1 folder=$assay_root/build/$1 log=$assay_root/build/$1/build.log
  shift
  local -a targets=("${@:-all}") cuda
  local sanitizing why
  [[ ${ASSAY_CUDA:-AUTO} =~ ^(AUTO|ON|OFF)$ ]] || die 2 "ASSAY_CUDA is '$ASSAY_CUDA'; expected ON, OFF or AUTO"
  mapfile -t cuda < <(cuda_options "$preset")
  [[ -z ${cuda[*]} || ${cuda[0]} == -DASSAY_CUDA=OFF ]] || ensure_cudnn_frontend
  if [[ ${ASSAY_ONEDNN:-} == build && ! -d $assay_root/.deps/onednn ]]; then
    "$assay_root/scripts/build_onednn" || say "going on with the distribution's oneDNN"
  fi
  # Always given, empty too: a build folder remembers a ccache that has since been removed.
  local ccache
  ccache=$(command -v ccache || true)
  local -a launcher=("-DCMAKE_C_COMPILER_LAUNCHER=$ccache" "-DCMAKE_CXX_COMPILER_LAUNCHER=$ccache")
  # Files that start from precompiled headers are kept only if ccache is asked to; CMake writes those headers anew for
  # each build folder, so their times prove nothing.
  export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:+$CCACHE_SLOPPINESS,}pch_defines,time_macros,include_file_mtime,include_file_ctime
  mkdir -p -- "$folder" || die 1 "cannot write to $folder; the build needs a writable source folder"

  # Two calls at once in one folder would spoil it: the second waits, and then finds nothing left to do.
  local lock
  exec {lock}>"$folder/.lock"
  if ! flock -n "$lock"; then
    say "another call is building $folder; waiting for it"
    flock "$lock"
  fi

  choose_sanitizing_compiler "$preset"
  : >"$log"
  # The rule of all targets is among the last lines: a file cut short lacks it, and would pass for one with no work.
  if ! grep -qs '^build all:' "$folder/build.ninja" ||
    [[ $(cat -- "$folder/.configured" 2>/dev/null) != "$(configuration "$preset")" ]]; then
    say "configuring build/$preset"
    if [[ ${cuda[0]:-} == -DASSAY_CUDA=OFF && ${ASSAY_CUDA:-AUTO} == AUTO ]] && nvcc_13 >/dev/null; then
      say "no GPU here: building for the CPU alone (ASSAY_CUDA=ON builds the CUDA device too; CUDAARCHS=90 for one GPU)"
    fi
    [[ $preset != dev || -z $why ]] ||
      say "g++ compiles build/dev, which takes longer than clang++ (packages clang, libclang-rt-*-dev, libomp-dev): $why"
    if ! configure; then
      : >"$log"
      configure --fresh || build_failed configuring
    fi
  fi
  [[ -x $folder/bin/assay ]] || say "building build/$preset (the first time takes minutes; log: $log)"
  local count
  count=$(jobs)
  local status=0
  logged cmake --build "$folder" -j "$count" --target "${targets[@]}" || status=$?
  if ((status != 0)); then
    if ((count > 1)) && grep -qE 'Killed signal|internal compiler error: Killed' "$log"; then
      say "a compiler was killed for want of memory; building one file at a time"
      : >"$log"
      ! logged cmake --build "$folder" -j 1 --target "${targets[@]}" || return 0
    fi
    folder_is_broken "$status" || build_failed building
    say "build/$preset is damaged; configuring and building it anew"
    : >"$log"
    rm -rf -- "${folder:?}"/{bin,lib,host,sdk,plugins,tests,CMakeFiles,.ninja_deps,.ninja_log,build.ninja}
    configure --fresh || build_failed configuring
    logged cmake --build "$folder" -j "$count" --target "${targets[@]}" || build_failed building
  fi
)

# shellcheck disable=SC2031  # called inside build_preset alone
build_failed() { # WHAT; with preset and log set
  tail -n 40 -- "$log" >&2
  die 1 "$1 build/$preset failed; the last lines are above, all of them in $log"
}
