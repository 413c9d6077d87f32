#include "e2e/support/sandbox.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

namespace assay::test {

namespace fs = std::filesystem;

namespace {

// The address sanitizer of a sanitized build writes what it finds to files of this name, one a process.
constexpr const char* finding_name = "finding";

// The undefined-behaviour sanitizer knows no such file beside the other one: it writes to standard error, which is the
// output of a host and the log of a worker.
bool has_finding(const fs::path& file) {
  if (file.filename().string().starts_with(finding_name)) return true;
  if (file.extension() != ".log" && file.extension() != ".txt") return false;
  return contains(text_of(file), ": runtime error: ");
}

Variables usual_variables(const fs::path& folder) {
  const std::string log = "log_path=" + (folder / finding_name).string();
  // A plugin's crash must end the worker as it does in any other build, and a leak is not the subject.
  return {{"ASAN_OPTIONS",
           log + ":handle_segv=0:handle_sigbus=0:handle_abort=0:detect_leaks=0:allocator_may_return_null=1"},
          {"UBSAN_OPTIONS", "print_stacktrace=1"},
          // Of a case of a few milliseconds the trial would be nine tenths.
          {"ASSAY_PEAK_TRIAL", "brief"}};
}

}  // namespace

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

double metric(const nlohmann::json& record, const char* name) { return record.at("metrics").at(name).at("value"); }

Sandbox::Sandbox(fs::path plugin_folder)
    : plugin_folder_(std::move(plugin_folder)), variables_(usual_variables(folder_.path())) {}

Sandbox::~Sandbox() {
  EXPECT_TRUE(all_descendants_are_gone()) << "a process outlived the host";
  for (const std::string& finding : take_findings()) ADD_FAILURE() << "a sanitizer has found:\n" << finding;
}

std::vector<std::string> Sandbox::take_findings() const {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder(), fs::directory_options::skip_permission_denied))
    if (entry.is_regular_file() && !entry.is_symlink() && has_finding(entry.path())) files.push_back(entry.path());
  std::vector<std::string> findings;
  for (const fs::path& file : files) {
    findings.push_back(text_of(file));
    fs::remove(file);
  }
  return findings;
}

HostProcess Sandbox::start(const std::vector<std::string>& arguments, const Variables& variables,
                           const std::string& output_name) const {
  Variables all = variables;
  all.insert(variables_.begin(), variables_.end());
  return HostProcess(arguments, folder(), folder() / output_name, all);
}

void Sandbox::write_experiment(const ExperimentText& text) {
  name_ = text.name;
  std::ofstream out(folder() / "x.toml");
  out << "schema = 1\nname = \"" << text.name << "\"\n[workload]\nplugin = \"" << text.plugin
      << "\"\n[workload.params]\n"
      << text.params << "\n"
      << (text.sweep.empty() ? "" : "[sweep]\n" + text.sweep + "\n") << "[measure]\n"
      << text.measure << "\n[run]\ndevice = \"" << text.device << "\"\n"
      << text.run << "\n";
}

std::vector<std::string> Sandbox::run_arguments(std::vector<std::string> more) const {
  std::vector<std::string> arguments{"run", "x.toml"};
  if (!plugin_folder_.empty()) arguments.insert(arguments.end(), {"--plugin-path", plugin_folder_.string()});
  if (std::find(more.begin(), more.end(), "--output") == more.end()) more.insert(more.begin(), {"--output", "out"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

RunResult Sandbox::run(const std::vector<std::string>& arguments) const {
  HostProcess host = start(arguments);
  const std::optional<HostExit> exit = host.wait();
  RunResult result{exit.value_or(HostExit{}), output()};
  EXPECT_TRUE(exit.has_value()) << "the host did not end\n" << result.output;
  EXPECT_EQ(result.exit.signal, 0) << "the host was killed\n" << result.output;
  if (exit) {
    EXPECT_TRUE(all_descendants_are_gone()) << "a process outlived the host";
  }
  return result;
}

RunResult Sandbox::run_experiment(const ExperimentText& text, std::vector<std::string> more) {
  write_experiment(text);
  return run(run_arguments(std::move(more)));
}

RunResult Sandbox::run_alone(const ExperimentText& text, std::vector<std::string> more) {
  fs::remove_all(folder() / "out");
  return run_experiment(text, std::move(more));
}

std::vector<nlohmann::json> Sandbox::records_of(const ExperimentText& text, int expected_code,
                                                std::vector<std::string> more) {
  const RunResult result = run_alone(text, std::move(more));
  EXPECT_EQ(result.exit.code, expected_code) << result.output;
  return cases();
}

std::vector<fs::path> Sandbox::run_folders(const std::string& name) const {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator i(folder() / "out" / name, error), end; !error && i != end; i.increment(error))
    if (i->is_directory() && !i->is_symlink()) folders.push_back(i->path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

fs::path Sandbox::run_folder(const std::string& name) const {
  const std::vector<fs::path> folders = run_folders(name);
  EXPECT_FALSE(folders.empty()) << "there is no run of '" << name << "'\n" << output();
  return folders.empty() ? folder() / "out" / name / "none" : folders.back();
}

std::vector<std::string> Sandbox::case_lines(const std::string& name) const {
  const std::vector<fs::path> folders = run_folders(name);
  if (folders.empty()) return {};
  const std::string text = text_of(folders.back() / "cases.jsonl");
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  return lines;
}

std::vector<nlohmann::json> Sandbox::cases(const std::string& name) const {
  std::vector<nlohmann::json> records;
  for (const std::string& line : case_lines(name)) {
    records.push_back(nlohmann::json::parse(line, nullptr, false));
    EXPECT_FALSE(records.back().is_discarded()) << "not JSON: " << line;
  }
  return records;
}

bool Sandbox::wait_until(const std::function<bool()>& reached) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!reached()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace assay::test
