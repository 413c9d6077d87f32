#include "e2e/support/sandbox.hpp"

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

namespace assay::test {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Sandbox::Sandbox(fs::path plugin_folder) : plugin_folder_(std::move(plugin_folder)) {
  std::string name = (fs::temp_directory_path() / "assay-e2e-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
  folder_ = name;
}

Sandbox::~Sandbox() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void Sandbox::write_experiment(const ExperimentText& text) {
  name_ = text.name;
  std::ofstream out(folder_ / "x.toml");
  out << "schema = 1\nname = \"" << text.name << "\"\n[workload]\nplugin = \"" << text.plugin
      << "\"\n[workload.params]\n"
      << text.params << "\n"
      << (text.sweep.empty() ? "" : "[sweep]\n" + text.sweep + "\n") << "[measure]\n"
      << text.measure << "\n[run]\ndevice = \"cpu\"\n"
      << text.run << "\n";
}

std::vector<std::string> Sandbox::run_arguments(std::vector<std::string> more) const {
  std::vector<std::string> arguments{"run", "x.toml", "--plugin-path", plugin_folder_.string()};
  if (std::find(more.begin(), more.end(), "--output") == more.end()) more.insert(more.begin(), {"--output", "out"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

RunResult Sandbox::run(const std::vector<std::string>& arguments) const {
  HostProcess host(arguments, folder_, output_file());
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

std::vector<fs::path> Sandbox::run_folders() const {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator i(folder_ / "out" / name_, error), end; !error && i != end; i.increment(error))
    if (i->is_directory() && !i->is_symlink()) folders.push_back(i->path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::vector<std::string> Sandbox::case_lines() const {
  const std::vector<fs::path> folders = run_folders();
  if (folders.empty()) return {};
  const std::string text = text_of(folders.back() / "cases.jsonl");
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  return lines;
}

std::vector<nlohmann::json> Sandbox::cases() const {
  std::vector<nlohmann::json> records;
  for (const std::string& line : case_lines()) {
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
