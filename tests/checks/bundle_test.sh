#!/usr/bin/env bash
# bundle_test.sh SCRIPTS WORK: scripts/bundle packs no build whose kernels were not optimised, and says what to do.
set -euo pipefail
scripts=$1 work=$2
# shellcheck source-path=SCRIPTDIR source=failures.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/failures.sh"

rm -rf -- "$work"
library=lib/assay/devices/libassay_device_cuda.so
mkdir -p -- "$work"/{quick,optimised}/lib/assay/devices
printf 'ELF\0\0001.0.0 GNU 12.2.0 nvcc 13.0.88 for 90 Release kernels not optimised\0\n' >"$work/quick/$library"
printf 'ELF\0\0001.0.0 GNU 12.2.0 nvcc 13.0.88 for 90 Release\0\n' >"$work/optimised/$library"

status=0
said=$("$scripts/bundle" --build "$work/quick" 2>&1) || status=$?
[[ $status == 1 ]] || fail "a build of quick kernels: exit status $status, expected 1"
[[ $said == *"kernels are not optimised in $work/quick"*"ASSAY_QUICK_KERNELS=OFF"* ]] || fail "a build of quick kernels: $said"

# It is no build, which shows further on, and not as one of quick kernels.
status=0
said=$("$scripts/bundle" --build "$work/optimised" 2>&1) || status=$?
[[ $status != 0 ]] || fail "what is no build was packed"
[[ $said != *"not optimised"* ]] || fail "optimised kernels were refused: $said"

((failures == 0)) && printf 'bundle: ok\n'
