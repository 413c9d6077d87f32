// Where the records of all runs stand: which file, at which byte, of which series. An index, and never the truth: it
// holds no figure, is made from the records, and is made anew where it is gone, damaged, or of another version.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "history/sqlite.hpp"

namespace assay::host::history {

// A record of a case that counts: the last one of its case in its run.
struct IndexedRecord {
  std::filesystem::path run;  // the run's folder, or a summary
  std::int64_t offset = 0;    // in cases.jsonl; of a summary the number of the record in it
  std::int64_t bytes = 0;     // of its line; 0: of a summary
  std::string experiment, workload;
  std::string series;  // the same text for the same case on the same kind of device
  std::string started, host, status;
  bool of_ab = false;  // a turn of `assay ab`
};

struct IndexedRun {
  std::filesystem::path run;
  std::string experiment, revision, first_started, last_started;  // of its records
  std::vector<std::string> hosts;
  std::size_t records = 0, ok = 0;
};

class Index {
 public:
  // Below the folder of what is remembered (ASSAY_CACHE_DIR, XDG_CACHE_HOME); empty where nothing is.
  static std::filesystem::path usual_file();

  // An empty path: in memory, for as long as this object lives. Where the file cannot be used, in memory likewise, and
  // `warnings` say why.
  Index(const std::filesystem::path& file, std::vector<std::string>& warnings);

  // Makes it say what lies below these folders now. A file that has not changed (size and time) is not read again.
  // Returns how many were read. `warnings` names what cannot be read.
  std::size_t refresh(const std::vector<std::filesystem::path>& folders, std::vector<std::string>& warnings);

  // Below the folders that were refreshed last. By time, then by place.
  std::vector<IndexedRecord> records() const;
  std::vector<IndexedRun> runs() const;

 private:
  void prepare();
  void add(const std::filesystem::path& run, const std::filesystem::path& file, std::vector<std::string>& warnings);
  bool is_below(const std::filesystem::path& run) const;

  Database database_;
  std::vector<std::filesystem::path> folders_;
};

}  // namespace assay::host::history
