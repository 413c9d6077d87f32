#include "run/counted_case.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <exception>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/device_kinds.hpp"
#include "common/files.hpp"
#include "launch/watched_worker.hpp"
#include "profile/counted_kernels.hpp"
#include "profile/ncu.hpp"
#include "profile/ncu_table.hpp"
#include "record/times.hpp"
#include "run/installed_ncu.hpp"

namespace assay::host::run {
namespace {

namespace fs = std::filesystem;

constexpr const char* no_times =
    "counted by ncu, which runs kernels alone and several times: this is no measurement, and the record has no times "
    "of steps";

// "" of a file that is not there, or no table: a pipe, or one of more bytes than launches have.
std::string counts_text(const fs::path& file) {
  constexpr std::uintmax_t most_bytes = std::uintmax_t{1} << 30;
  try {
    return fs::file_size(file) <= most_bytes ? read_regular_file(file) : "";
  } catch (const std::exception&) {
    return "";
  }
}

// Nothing has come of the case: no time, and no count.
void fail_uncounted(record::CaseResult& result, std::string reason) {
  result.status = record::Status::failed;
  result.reason = std::move(reason);
  result.stage = Stage::measure;
}

void write_for_people(const fs::path& file, record::CaseResult& result) {
  result.ncu->file = file.filename().string();
  std::ofstream out(file, std::ios::binary);
  out << profile::counted_markdown(result);
  out.close();
  if (out) return;
  result.ncu->file.clear();
  result.note(fmt::format("the table of counted kernels could not be written to {}; is the disk full?", file.string()));
}

}  // namespace

bool is_counted(const worker::CaseSpec& spec) { return spec.values.profile.ncu && has_nvidia_tools(spec.device_kind); }

fs::path table_of_ncu(const worker::CaseSpec& spec) { return spec.file_of_run("ncu_" + spec.file_stem() + ".csv"); }

void forget_counts(const worker::CaseSpec& spec) {
  std::error_code ignored;
  fs::remove(table_of_ncu(spec), ignored);
}

void take_counts(const worker::CaseSpec& spec, record::CaseResult& result) {
  const fs::path file = table_of_ncu(spec);
  const std::string text = counts_text(file);
  const std::string complaint = profile::ncu_complaint(fmt::format("{}\n{}", text, fmt::join(result.log_tail, "\n")));
  if (!result.is_ok()) {
    const bool is_lost = result.status == record::Status::crashed || result.status == record::Status::timeout;
    if (is_lost && !complaint.empty()) result.reason = fmt::format("ncu: {}; {}", complaint, result.reason);
    if (result.status == record::Status::timeout)
      result.reason +=
          "; under ncu each kernel of a step runs several times: raise measure.timeout, or lower profile.ncu_launches";
    return;
  }
  record::remove_times(result);
  const profile::NcuTable table = profile::read_ncu_table(text);
  if (!table.problem.empty() && !complaint.empty()) return fail_uncounted(result, "ncu: " + complaint);
  if (!table.problem.empty())
    return fail_uncounted(
        result, fmt::format("ncu: {} cannot be used: {}; logs/{}.log has what ncu has said", file.filename().string(),
                            text.empty() ? "it was not written" : table.problem, spec.file_stem()));
  // One that was killed between two rows leaves a table that looks whole.
  for (const std::string& note : result.notes.value_or(std::vector<std::string>{}))
    if (note.starts_with(launch::after_result_note))
      return fail_uncounted(result, fmt::format("ncu: {} may lack kernels: {}", file.filename().string(), note));
  record::CounterProfile& ncu = result.ncu.emplace();
  ncu.version = installed_ncu().version;
  ncu.launches = static_cast<std::int64_t>(table.launches.size());
  ncu.is_at_limit = ncu.launches >= spec.values.profile.ncu_launches;
  ncu.table = file.filename().string();
  ncu.kernels = profile::counted_kernels(table.launches);
  result.note(no_times);
  if (!complaint.empty()) result.note("ncu: " + complaint);
  for (const std::string& note : table.notes) result.note(fmt::format("ncu: {}: {}", ncu.table, note));
  write_for_people(spec.file_of_run("ncu_" + spec.file_stem() + ".md"), result);
}

}  // namespace assay::host::run
