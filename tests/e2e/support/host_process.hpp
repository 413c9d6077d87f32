// The executable under test, as a child of the test. Sandbox::start is the only way to one.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay::test {

struct HostExit {
  int code = -1;   // of an ordinary exit
  int signal = 0;  // that killed it; 0: none
};

// Runs in its own process group. The test adopts the processes that the host leaves behind
// (PR_SET_CHILD_SUBREAPER), so that no worker can hide.
class HostProcess {
 public:
  HostProcess(HostProcess&& other) noexcept;
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;
  ~HostProcess();  // kills the host if it was not waited for

  void send(int signal) const;
  // Whether it reads or writes a file of this name at the moment.
  bool has_open(const std::string& file_name) const;
  // Nothing when it has not ended after two minutes.
  std::optional<HostExit> wait();

 private:
  friend class Sandbox;
  // `variables`: set in its environment, beside those of this process.
  HostProcess(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
              const std::filesystem::path& output_file, const std::map<std::string, std::string>& variables);

  pid_t pid_;
};

// After the host has ended: waits until no process is left that it started. False when one is there after a minute.
bool all_descendants_are_gone();

}  // namespace assay::test
