// A workload that writes a file as the SDK's writers do, under a name for what is half written first, and may be killed
// in the middle of it.
#include <assay/plugin.hpp>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

class WritingWork {
 public:
  static constexpr auto id = "writing_work", summary = "writes a file";
  static constexpr auto params =
      assay::table(assay::Param::output_path("dump").help("what it writes"),
                   assay::Param::integer("number", 1).help("what stands in it"),
                   assay::Param::boolean("dies", false).help("killed with half of it written"));
  static constexpr std::uint32_t device_flags = ASSAY_DEVICE_CPU;

  explicit WritingWork(const assay::Case& c)
      : file_(c.get<std::string>("dump")), number_(c.get<std::int64_t>("number")), dies_(c.get<bool>("dies")) {}

  void setup(const assay::Launch&) {}
  void run(const assay::Launch&) {}

  void finish(const assay::Launch&) const {
    if (file_.empty()) return;
    std::filesystem::create_directories(file_.parent_path());
    const std::filesystem::path partial = file_.string() + ".partial";
    std::ofstream out(partial);
    out << number_ << std::flush;
    if (dies_) std::raise(SIGKILL);
    out.close();
    std::filesystem::rename(partial, file_);
  }

 private:
  std::filesystem::path file_;
  std::int64_t number_;
  bool dies_;
};

}  // namespace

ASSAY_PLUGIN("org.assay.test.writing_work", "1.0.0", WritingWork)
