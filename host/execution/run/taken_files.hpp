// The files that make a run's numbers, as they are when the run begins.
//
// Libraries are copied to FOLDER/files, and workers open the copies: whatever is written to the originals or moved over
// them meanwhile changes no case of this run. (What a backend or a communicator finds by its own place is linked:
// vendors' libraries are large.) The copies are real files, so that a debugger, a profiler and a sanitizer find them;
// they go when the run ends. Input files, which may be large, stay where they are: their content is hashed when the run
// begins, and looked at again before and after each case.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plugin/search.hpp"
#include "record/case_record.hpp"
#include "run/target.hpp"
#include "worker/case_spec.hpp"

namespace assay::host::run {

class TakenFiles {
 public:
  // `folder`: of the run, or of an attempt at a shard; nothing: the files are hashed where they are and not copied, for
  // a look at what a run would do. Throws StorageError and PluginError.
  TakenFiles(const RunTarget& target, const std::optional<std::filesystem::path>& folder);
  ~TakenFiles();
  TakenFiles(const TakenFiles&) = delete;
  TakenFiles& operator=(const TakenFiles&) = delete;

  // Takes the backends that [run] device may mean, and gives the folder to look for them in; what is not there is left
  // to the one who opens it, and to his words.
  std::filesystem::path take_devices(const std::string& wanted);

  // The SHA-256 of each file behind a case's numbers by its role: "host", "plugin", "plugin/libx.so", "device",
  // "comm.gloo".
  record::Named<std::string> hashes(const std::string& device_kind, std::int32_t ranks);
  // Says in a specification what its process is to open. Its device is known.
  void say_in(worker::CaseSpec& spec) const;

  // SHA-256 of a file that a parameter names, as it was when first asked for. Throws std::system_error, and
  // ReadingStopped as sha256_of_file does.
  const std::string& input_hash(const std::string& path, const std::atomic<int>* stop = nullptr);
  // Says that an input file is not what it was, in words; nothing while it is.
  std::optional<std::string> change_of_input(const std::string& path);

 private:
  struct Input {
    std::string hash, state;  // the state: size and times, by which a change shows without reading
  };
  // FOLDER/files: empty at first, and gone with this, also where taking fails halfway.
  class CopiesFolder;
  void copy(const plugin::LibraryCopy& copy, const std::string& group, bool with_needs);
  void take_communicators();

  std::unique_ptr<CopiesFolder> folder_;
  std::string host_hash_;
  std::filesystem::path plugin_, comm_folder_;
  record::Named<std::string> plugin_hashes_;                // the plugin's, and those of what lies beside it
  std::map<std::string, std::string> devices_;              // by kind
  std::optional<std::map<std::string, std::string>> comm_;  // by name: "gloo"
  std::vector<std::string> searched_;                       // where what the copies need is looked for
  std::vector<worker::CopiedFile> copies_;
  std::map<std::string, Input> inputs_;  // by path
};

// What a process that follows another one opens: the copies of the leading one, or, where it does not see them, its
// own, if they are the same.
class FollowedFiles {
 public:
  FollowedFiles() = default;
  ~FollowedFiles();  // removes its own
  FollowedFiles(const FollowedFiles&) = delete;
  FollowedFiles& operator=(const FollowedFiles&) = delete;
  // The specification with names that mean the same files here. Throws PluginError where this machine has other files
  // than the leading one, or another build of assay, and StorageError.
  worker::CaseSpec seen_from_here(worker::CaseSpec spec);

 private:
  bool sees(const worker::CopiedFile& file);
  void make(const worker::CopiedFile& file, const std::filesystem::path& own, const std::string& host);

  std::string own_host_hash_;
  std::map<std::string, std::string> hashes_;  // of the leading one's copies, by path
  std::set<std::filesystem::path> made_;
  std::filesystem::path own_folder_;  // empty: none was needed
};

}  // namespace assay::host::run
