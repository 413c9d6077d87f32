// What Hopper has for matrix products, as functions: barriers in shared memory that count arrivals and bytes, copies of
// boxes by tensor maps, bulk copies of lines, and products of a warpgroup. Names and operands are those of the PTX
// manual. Included by .cu files for sm_90a only.
#pragma once
#include <cuda.h>
#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

namespace assay::cuda::hopper {

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// ---- barriers ------------------------------------------------------------------------------------------------------

__device__ __forceinline__ void init_barrier(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void expect_bytes(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void wait(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra over;\n"
      "bra again;\n"
      "over:\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
// Of some of the block's threads, a multiple of 32; `name` from 1 on.
__device__ __forceinline__ void sync_threads(int name, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

// ---- copies --------------------------------------------------------------------------------------------------------

__device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
__device__ __forceinline__ void load_box(std::uint32_t to, const CUtensorMap* map, std::uint32_t barrier, int x,
                                         int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          to),
      "l"(map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ void load_box(std::uint32_t to, const CUtensorMap* map, std::uint32_t barrier, int x, int y,
                                         int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
          "r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
      : "memory");
}
// `bytes`, a multiple of 16, from shared to global memory; both addresses are multiples of 16.
__device__ __forceinline__ void store_line(void* to, std::uint32_t from, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
               : "memory");
}
// 16 bytes, from an address that is a multiple of that.
__device__ __forceinline__ void load_words(std::uint32_t from, std::uint32_t (&words)[4]) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(from)
               : "memory");
}
__device__ __forceinline__ void commit_lines() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until the lines that this thread has stored are read from shared memory.
__device__ __forceinline__ void wait_for_lines() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
// What threads have written to shared memory is seen by copies and products that begin behind a barrier after this.
__device__ __forceinline__ void fence_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- products of a warpgroup ---------------------------------------------------------------------------------------

template <int registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ __forceinline__ void leave_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

// A matrix in shared memory as boxes with a swizzle of 128 bytes leave it: lines of 128 bytes, in atoms of 8 lines.
// Of one whose lines lie along the summed dimension: `between_groups` from 8 lines to the next 8, `between_blocks` is
// not used. Of one whose lines lie across it: `between_blocks` from 64 elements of the other dimension to the next 64,
// `between_groups` from 8 lines to the next 8.
__device__ __forceinline__ std::uint64_t describe(std::uint32_t address, std::uint32_t between_blocks,
                                                  std::uint32_t between_groups) {
  constexpr std::uint64_t swizzle_128 = std::uint64_t{1} << 62;
  return swizzle_128 | (std::uint64_t{between_groups >> 4} << 32) | (std::uint64_t{between_blocks >> 4} << 16) |
         ((address & 0x3ffffU) >> 4);
}

__device__ __forceinline__ void fence_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int under_way>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(under_way) : "memory");
}

// d (+)= a b of 64 x 16 by 16 x 256 elements. `across`: lines of that operand lie across the summed dimension.
// Thread t of the warpgroup has d[4 j + i] of row 16 (t / 32) + t % 32 / 4 + 8 (i / 2), column 8 j + 2 (t % 4) + i % 2.
template <class T, bool a_across, bool b_across>
__device__ __forceinline__ void multiply_64x256(float (&d)[128], std::uint64_t a, std::uint64_t b, int adds) {
  // clang-format off
#define ASSAY_DETAIL_MULTIPLY(types) \
    asm volatile( \
        "{\n" \
        ".reg .pred p;\n" \
        "setp.ne.b32 p, %130, 0;\n" \
        "wgmma.mma_async.sync.aligned.m64n256k16.f32." types " {" \
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
        "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, " \
        "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
        "%62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, " \
        "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, " \
        "%101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, " \
        "%117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127" \
        "}, %128, %129, p, 1, 1, %131, %132;\n" \
        "}\n" \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), \
          "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), \
          "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), \
          "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), \
          "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), \
          "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), \
          "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), \
          "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), \
          "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), \
          "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), \
          "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), \
          "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), \
          "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), \
          "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), \
          "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), \
          "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), \
          "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), \
          "+f"(d[127]) \
        : "l"(a), "l"(b), "r"(adds), "n"(a_across ? 1 : 0), "n"(b_across ? 1 : 0))
  if constexpr (std::is_same_v<T, __nv_bfloat16>)
    ASSAY_DETAIL_MULTIPLY("bf16.bf16");
  else
    ASSAY_DETAIL_MULTIPLY("f16.f16");
#undef ASSAY_DETAIL_MULTIPLY
  // clang-format on
}

__device__ __forceinline__ void store_four_8x8(std::uint32_t to, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                               std::uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c),
               "r"(d)
               : "memory");
}

}  // namespace assay::cuda::hopper
