// The readers of single formats (imports/formats.cpp), for tests that need no choice of the format.
#pragma once
#include "imports/formats.hpp"

namespace assay::host::imports {

ImportedRun read_nccl_tests(std::string_view text, const ImportOptions& options);
ImportedRun read_nvbench(std::string_view text, const ImportOptions& options);
ImportedRun read_hyperfine(std::string_view text, const ImportOptions& options);
ImportedRun read_pytorch(std::string_view text, const ImportOptions& options);
ImportedRun read_nccl_json(std::string_view text, const ImportOptions& options);
ImportedRun read_google_benchmark(std::string_view text, const ImportOptions& options);
ImportedRun read_pytest_benchmark(std::string_view text, const ImportOptions& options);
ImportedRun read_hyperfine_csv(std::string_view text, const ImportOptions& options);
ImportedRun read_nvbench_csv(std::string_view text, const ImportOptions& options);
ImportedRun read_mlperf(std::string_view text, const ImportOptions& options);
ImportedRun read_osu(std::string_view text, const ImportOptions& options);

}  // namespace assay::host::imports
