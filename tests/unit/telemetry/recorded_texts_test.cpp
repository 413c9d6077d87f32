#include "telemetry/recorded_texts.hpp"

#include <gtest/gtest.h>

using namespace std::string_literals;

namespace assay::host::telemetry {
namespace {

TEST(RecordedVariables, WhatSteersLibrariesThreadsAndAssay) {
  for (const char* name : {"OMP_NUM_THREADS",
                           "OMP_PROC_BIND",
                           "GOMP_SPINCOUNT",
                           "KMP_AFFINITY",
                           "MKL_NUM_THREADS",
                           "CUDA_VISIBLE_DEVICES",
                           "CUDA_LAUNCH_BLOCKING",
                           "CUDA_DEVICE_MAX_CONNECTIONS",
                           "CUDA_MODULE_LOADING",
                           "NVIDIA_TF32_OVERRIDE",
                           "CUBLAS_WORKSPACE_CONFIG",
                           "CUBLASLT_LOG_LEVEL",
                           "CUDNN_LOGLEVEL_DBG",
                           "ONEDNN_MAX_CPU_ISA",
                           "DNNL_VERBOSE",
                           "LD_PRELOAD",
                           "LD_LIBRARY_PATH",
                           "MALLOC_ARENA_MAX",
                           "GLIBC_TUNABLES",
                           "NCCL_ALGO",
                           "GLOO_SOCKET_IFNAME",
                           "UCX_TLS",
                           "OMPI_MCA_btl_tcp_if_include",
                           "OMPI_MCA_pml",
                           "ASSAY_MATMUL_TUNE",
                           "ASSAY_SHARED_TUNING",
                           "ASSAY_ATTENTION_TUNE",
                           "ASSAY_CACHE_DIR",
                           "ASSAY_CPU_ISA",
                           "ASSAY_PEAK_TRIAL",
                           "ASSAY_DEVICE_PATH",
                           "ASSAY_PLUGIN_PATH",
                           "ASSAY_COMM_PATH",
                           "SLURM_JOB_ID",
                           "SLURM_STEP_ID"})
    EXPECT_TRUE(is_recorded_variable(name)) << name;
}

TEST(RecordedVariables, NothingElse) {
  for (const char* name : {"HOME", "PATH", "NCCL", "NCCL_", "", "MY_NCCL_KEY", "SLURM_JWT", "AWS_SECRET_ACCESS_KEY",
                           "ASSAY_RANK", "ASSAY_RENDEZVOUS", "OMPI_MCA_ess_base_jobid", "LD_AUDIT_OF_MINE"})
    EXPECT_FALSE(is_recorded_variable(name)) << name;
}

TEST(RecordedVariables, NoSecretWhateverItsFamily) {
  for (const char* name :
       {"ASSAY_RENDEZVOUS_TOKEN", "ASSAY_RENDEZVOUS_TOKEN_FILE", "NCCL_AUTH", "NCCL_API_KEY", "UCX_SECRET_WORD",
        "CUDA_LICENSE_TOKEN", "MKL_PASSWORD", "NCCL_MYTOKEN", "OMP_X_Api_Key", "UCX_BEARER", "MKL_PWD", "GLOO_PAT"})
    EXPECT_FALSE(is_recorded_variable(name)) << name;
}

TEST(RecordedTexts, PasswordsInAddresses) {
  EXPECT_EQ(without_passwords("https://me:word@host:80/a@b"), "https://***@host:80/a@b");
  EXPECT_EQ(without_passwords("a=s3://k:s@x,b=s3://k@y/z"), "a=s3://***@x,b=s3://***@y/z");
  EXPECT_EQ(without_passwords("http://host/ me@there"), "http://host/ me@there");
  EXPECT_EQ(without_passwords("postgres://user:p/word@host/db"), "postgres://***@host/db");
  EXPECT_EQ(without_passwords("https://host:80/x?token=abc&x=1&sig=d 'a'"),
            "https://host:80/x?token=***&x=1&sig=*** 'a'");
  EXPECT_EQ(without_passwords("a?b&c=d"), "a?b&c=d");
  EXPECT_EQ(without_passwords("://"), "://");
  EXPECT_EQ(without_passwords(""), "");
}

TEST(RecordedTexts, TheCommandLineAsAShellTakesIt) {
  EXPECT_EQ(command_line("assay\0run\0x.toml\0--set\0size = 'a b'\0\0"s),
            "assay run x.toml --set 'size = '\\''a b'\\''' ''");
  EXPECT_EQ(command_line("assay\0run\0--set\0data=https://me:word@host/d\0"s),
            "assay run --set 'data=https://***@host/d'");
  EXPECT_EQ(command_line(""), "");
  EXPECT_EQ(command_line("[x]\0"s), "'[x]'") << "a shell would look for files";
}

}  // namespace
}  // namespace assay::host::telemetry
