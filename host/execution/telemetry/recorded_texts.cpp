#include "telemetry/recorded_texts.hpp"

#include <algorithm>
#include <array>

namespace assay::host::telemetry {
namespace {

// Threads, the CUDA libraries, oneDNN, communication, and the allocator: all that they have steers. Of Open MPI the
// parts that choose the transport: the others give a process its place in the job.
constexpr auto kFamilies = std::to_array<std::string_view>({
    "OMP_",         "GOMP_",        "KMP_",         "MKL_",         "CUDA_",         "CUBLAS_", "CUBLASLT_",
    "CUDNN_",       "ONEDNN_",      "DNNL_",        "NCCL_",        "MALLOC_",       "GLOO_",   "UCX_",
    "OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_mtl", "OMPI_MCA_osc", "OMPI_MCA_coll",
});

// Of assay's own those that choose code or where it comes from. The others name ranks, the service between them, and
// its token.
constexpr auto kNames = std::to_array<std::string_view>({
    "NVIDIA_TF32_OVERRIDE",
    "NVIDIA_VISIBLE_DEVICES",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "GLIBC_TUNABLES",
    "LD_BIND_NOW",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "ASSAY_ATTENTION_TUNE",
    "ASSAY_CACHE_DIR",
    "ASSAY_COMM_PATH",
    "ASSAY_CPU_ISA",
    "ASSAY_DEVICE_PATH",
    "ASSAY_MATMUL_TUNE",
    "ASSAY_PEAK_TRIAL",
    "ASSAY_PLUGIN_PATH",
    "ASSAY_ALGORITHMS",
    "ASSAY_SHARED_TUNING",
});

// Wherever they stand in a name, however it is written. (PAT stands alone: PATH is none.)
constexpr auto kSecretParts =
    std::to_array<std::string_view>({"TOKEN", "SECRET", "PASSW", "PASSPHRASE", "PWD", "KEY", "CREDENTIAL", "AUTH",
                                     "COOKIE", "JWT", "BEARER", "SIGNATURE"});

bool names_a_secret(std::string_view name) {
  std::string upper;
  for (const char c : name) upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const auto is_in = [&upper](std::string_view part) { return upper.find(part) != std::string::npos; };
  return std::any_of(kSecretParts.begin(), kSecretParts.end(), is_in) || upper.ends_with("_PAT") || upper == "SIG";
}

// "?token=abc&x=1" -> "?token=***&x=1"
std::string without_secret_queries(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; (at = text.find_first_of("?&")) != std::string_view::npos;) {
    result += text.substr(0, at + 1);
    text.remove_prefix(at + 1);
    const std::size_t equals = text.find_first_of("=&? \t\n'\"");
    if (equals == std::string_view::npos || text[equals] != '=' || !names_a_secret(text.substr(0, equals))) continue;
    result.append(text.substr(0, equals + 1)).append("***");
    text.remove_prefix(std::min(text.find_first_of("& \t\n'\"", equals), text.size()));
  }
  return result.append(text);
}

// As a shell takes it back.
std::string as_shell_word(std::string_view argument) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!argument.empty() && argument.find_first_not_of(plain) == std::string_view::npos) return std::string(argument);
  std::string text = "'";
  for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

bool is_recorded_variable(std::string_view name) {
  if (names_a_secret(name)) return false;
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kFamilies.begin(), kFamilies.end(), [&](std::string_view family) {
           return name.starts_with(family) && (name.size() > family.size() || !family.ends_with('_'));
         });
}

std::string without_passwords(std::string_view text) {
  constexpr std::string_view before = "://";
  std::string result;
  for (std::size_t at = 0; (at = text.find(before)) != std::string_view::npos;) {
    at += before.size();
    result += text.substr(0, at);
    text.remove_prefix(at);
    const std::string_view rest = text.substr(0, text.find_first_of(" \t\n'\""));
    std::string_view place = rest.substr(0, rest.find_first_of("/?#"));
    // A password may have a slash in it: "user:p/word@host", which is no port.
    const std::size_t colon = place.find(':');
    if (colon != std::string_view::npos && place.find_first_not_of("0123456789", colon + 1) != std::string_view::npos)
      place = place.find('@') == std::string_view::npos ? rest : place;
    if (const std::size_t sign = place.rfind('@'); sign != std::string_view::npos) {
      result += "***";
      text.remove_prefix(sign);
    }
  }
  return without_secret_queries(result.append(text));
}

std::string command_line(std::string_view cmdline) {
  std::string line;
  while (!cmdline.empty()) {
    const std::size_t end = std::min(cmdline.find('\0'), cmdline.size());
    if (!line.empty()) line += ' ';
    line += as_shell_word(without_passwords(cmdline.substr(0, end)));
    cmdline.remove_prefix(std::min(end + 1, cmdline.size()));
  }
  return line;
}

}  // namespace assay::host::telemetry
