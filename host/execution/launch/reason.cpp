#include "launch/reason.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <numeric>

#include "launch/log_tail.hpp"

namespace assay::host::launch {
namespace {

const char* meaning_of(int signal) {
  switch (signal) {
    case SIGSEGV: return "invalid memory access";
    case SIGBUS: return "memory access beyond a file or out of alignment";
    case SIGABRT: return "abort: a failed assertion or an exception that nothing caught";
    case SIGFPE: return "arithmetic error such as an integer division by zero";
    case SIGILL: return "invalid instruction; built for another processor?";
    case SIGKILL: return "killed from outside";
    case SIGTERM: return "asked to end from outside";
    case SIGINT: return "interrupted from outside";
    case SIGXCPU: return "limit on processor time";
    case SIGXFSZ: return "limit on file size";
    case SIGSYS: return "forbidden system call";
    case SIGTRAP: return "trap: a failed check";
    default: return nullptr;
  }
}

}  // namespace

std::string phase_name(const BoardView& where, const std::vector<std::string>& phase_names) {
  if (where.phase < 0) return "";
  const auto index = static_cast<std::size_t>(where.phase);
  if (index < phase_names.size()) return printable_utf8(phase_names[index]);
  return where.phase_name.empty() ? fmt::format("number {}", index) : where.phase_name;
}

std::string describe_position(const BoardView& where, const std::vector<std::string>& phase_names) {
  std::string text = fmt::format("stage {}", name_of(where.stage));
  const std::string phase = phase_name(where, phase_names);
  if (where.stage == Stage::warmup || where.stage == Stage::measure) {
    // The first step is step 1, as the first case is case 1. Behind the last one none has begun.
    const std::uint64_t step = where.total_steps > 0 ? std::min(where.step + 1, where.total_steps) : where.step + 1;
    return text + fmt::format(", phase {}, step {}", phase.empty() ? "-" : phase, step);
  }
  if (!phase.empty()) text += ", phase " + phase;
  return where.part.empty() ? text : text + ", part " + where.part;
}

std::string bytes_text(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= 1ULL << 30) return fmt::format("{:.2f} GiB", value / (1ULL << 30));
  if (bytes >= 1ULL << 20) return fmt::format("{:.0f} MiB", value / (1ULL << 20));
  if (bytes >= 1ULL << 10) return fmt::format("{:.0f} KiB", value / (1ULL << 10));
  return fmt::format("{} bytes", bytes);
}

std::string duration_text(std::chrono::milliseconds duration) {
  if (duration >= std::chrono::minutes(10) && duration % std::chrono::minutes(1) == std::chrono::milliseconds(0))
    return fmt::format("{} min", duration / std::chrono::minutes(1));
  return fmt::format("{:.1f} s", static_cast<double>(duration.count()) / 1000.0);
}

std::string describe_memory(const std::array<std::uint64_t, memory_kind_count>& bytes_by_kind) {
  std::array<std::size_t, memory_kind_count> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return bytes_by_kind[a] > bytes_by_kind[b]; });
  std::string text;
  for (const std::size_t kind : order) {
    if (bytes_by_kind[kind] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", memory_kind_name(kind), bytes_text(bytes_by_kind[kind]));
  }
  return text.empty() ? "nothing reported" : text;
}

std::string describe_signal(int signal) {
  const char* abbreviation = sigabbrev_np(signal);
  const std::string name = abbreviation ? fmt::format("SIG{}", abbreviation) : fmt::format("signal {}", signal);
  if (const char* meaning = meaning_of(signal)) return fmt::format("{} ({})", name, meaning);
  const char* words = sigdescr_np(signal);
  return words ? fmt::format("{} ({})", name, words) : name;
}

}  // namespace assay::host::launch
