#!/usr/bin/env bash
# ptxas 13.0.88: an arrival at another block's mbarrier with .release.cluster is a fence of the whole GPU, one with .release and no scope is none.
#
# Behaviour: both release what the thread wrote before, the first to the cluster, the second, by default, to its own block. For sm_90a the first becomes
# MEMBAR.ALL.GPU and ERRBAR before the arrival, though a cluster is smaller than the GPU; the second is the arrival alone. A wait with .acquire.cluster invalidates
# the L1 cache (CCTL.IVALL), one without a scope does not. In a matrix product whose warps arrive once for each stage of a ring, the scope took a third of the rate
# (680 to 450 TFLOP/s in bf16 on an H200, driver 580.159.04); copies and products of the asynchronous proxy are ordered by the barrier's phase without it.
# Seen with Python 3.11.7 on Debian 12 (no GPU needed):
#   arrive                   0 MEMBAR  0 CCTL
#   arrive.release.cta       0 MEMBAR  0 CCTL
#   arrive.release.cluster   2 MEMBAR  0 CCTL
#   try_wait                 0 MEMBAR  0 CCTL
#   try_wait.acquire.cluster 0 MEMBAR  1 CCTL
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check nvidia-cuda-nvcc==13.0.88 nvidia-cuda-nvdisasm==13.2.51
ptxas=$(find "$folder/python" -name ptxas -type f | head -n 1) nvdisasm=$(find "$folder/python" -name nvdisasm -type f | head -n 1)
chmod +x "$ptxas" "$nvdisasm"

counts_of() { # INSTRUCTION: of a kernel with it, "MEMBARs CCTLs"
  cat >"$folder/kernel.ptx" <<PTX
.version 9.0
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 out, .param .u32 block) .explicitcluster .reqnctapercluster 2, 1, 1
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<5>;
  .reg .pred %p;
  .shared .align 8 .u64 barrier;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [block];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  mov.u32 %r2, barrier;
  mapa.shared::cluster.u32 %r3, %r2, %r1;
  $1
  ld.global.u32 %r4, [%rd2+4];
  st.global.u32 [%rd2+8], %r4;
  ret;
}
PTX
  "$ptxas" -arch=sm_90a -o "$folder/kernel.cubin" "$folder/kernel.ptx"
  "$nvdisasm" -c "$folder/kernel.cubin" >"$folder/kernel.sass"
  echo "$(grep -c MEMBAR "$folder/kernel.sass" || true) $(grep -c CCTL "$folder/kernel.sass" || true)"
}

declare -A expected=([arrive]="0 0" [arrive.release.cta]="0 0" [arrive.release.cluster]="2 0" [try_wait]="0 0"
                     [try_wait.acquire.cluster]="0 1")
changed=0
for form in arrive arrive.release.cta arrive.release.cluster try_wait try_wait.acquire.cluster; do
  case $form in
    arrive*) instruction="mbarrier.$form.shared::cluster.b64 _, [%r3];" ;;
    try_wait) instruction="mbarrier.try_wait.parity.shared::cta.b64 %p, [%r2], 0;" ;;
    *) instruction="mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [%r2], 0;" ;;
  esac
  found=$(counts_of "$instruction")
  printf '%-24s %s MEMBAR  %s CCTL\n' "$form" ${found% *} ${found#* }
  [[ $found == "${expected[$form]}" ]] || changed=1
done
((changed == 0)) || { echo "the behaviour has changed" >&2; exit 1; }
