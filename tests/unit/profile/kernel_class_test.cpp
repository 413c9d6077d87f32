#include "profile/kernel_class.hpp"

#include <gtest/gtest.h>

namespace assay::host::profile {
namespace {

TEST(KernelClass, LibraryKernels) {
  for (const char* name :
       {"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
        "_ZN7cutlass7Kernel2I66cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4EEvNT_6ParamsE",
        "_ZN8cublasLt19splitKreduce_kernelILi32ELi16EiffffLb0ELb0EEEvNS_18cublasSplitKParamsIT3_EE"})
    EXPECT_STREQ(kernel_class(name), "matrix products") << name;
  for (const char* name :
       {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x64x64",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80", "attention_backward_gemm",
        "cudnn::fusion::compute_dot_do_o_specialized<true, 64>", "cudnn::fusion::convert_dq_to_16bits<true>"})
    EXPECT_STREQ(kernel_class(name), "attention") << name;
  EXPECT_STREQ(kernel_class("ncclDevKernel_AllReduce_Sum_bf16_RING_LL"), "communication");
}

TEST(KernelClass, OurKernels) {
  EXPECT_STREQ(kernel_class("_ZN5assay4cuda21cross_entropy_forwardEv"), "loss");
  EXPECT_STREQ(kernel_class("softmax_cross_entropy"), "loss");
  EXPECT_STREQ(kernel_class("rms_norm_backward"), "norms");
  EXPECT_STREQ(kernel_class("adamw_kernel"), "optimizer");
  EXPECT_STREQ(kernel_class("embedding_backward"), "embedding");
  EXPECT_STREQ(kernel_class("strided_copy"), "copies and fills");
  EXPECT_STREQ(kernel_class("fill"), "copies and fills");
  EXPECT_STREQ(kernel_class("swiglu_forward_kernel"), "element-wise");
  EXPECT_STREQ(kernel_class("cross_entropy_losses_kernel"), "loss");
  EXPECT_STREQ(kernel_class("embedding_forward_kernel"), "embedding");
  EXPECT_STREQ(kernel_class("softmax_forward_kernel"), "softmax");
  EXPECT_STREQ(kernel_class("flash_softmax_backward"), "attention");
  for (const char* name : {"route_forward_kernel", "route_backward_kernel", "finish_routing_losses_kernel",
                           "group_rows_place_kernel", "gather_rows_kernel", "combine_rows_kernel"})
    EXPECT_STREQ(kernel_class(name), "routing") << name;
  EXPECT_STREQ(kernel_class("weighted_gated_backward_kernel"), "element-wise");
}

TEST(ShortKernelName, DropsWhatTellsNothing) {
  EXPECT_EQ(short_kernel_name("_ZN5assay4cuda12_GLOBAL__N_13addIfLi4EEEvPKT_l"), "add<float, 4>");
  EXPECT_EQ(short_kernel_name("nvjet_hsh_128x256"), "nvjet_hsh_128x256");
  EXPECT_EQ(short_kernel_name(std::string(200, 'k'), 10), "kkkkkkk...");
}

}  // namespace
}  // namespace assay::host::profile
