// The journal of an attempt, a line per event: begun before a case starts, ended after its record is on the
// disk. Whoever reads it needs no record.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/fd.hpp"

namespace assay::host::shard {

struct JournalEntry {
  enum class Event {
    begin,
    end,         // its record is on the disk
    left,        // given up at once because the job was asked to end: not the case's doing
    quarantine,  // not started again: it has taken its job with it before
  };
  Event event = Event::begin;
  std::int64_t case_index = 0;
  double at_s = 0;     // seconds since 1970
  std::string status;  // of an end: the word of the record
};

class Journal {
 public:
  // Throws StorageError.
  explicit Journal(std::filesystem::path file);
  // On the disk when it returns. Throws StorageError.
  void append(const JournalEntry& entry);

 private:
  std::filesystem::path file_;
  Fd fd_;
};

// The whole entries of the file, in its order; none where there is no file. A torn last line does not count.
std::vector<JournalEntry> read_journal(const std::filesystem::path& file);

}  // namespace assay::host::shard
