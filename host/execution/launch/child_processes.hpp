// The children of this process, by async-signal-safe calls: for a process that was forked and has not called exec.
#pragma once
#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace assay::host::launch {

// "/proc/<pid>/<name>" without an allocation.
class ProcPath {
 public:
  ProcPath(pid_t pid, const char* name) {
    append("/proc/");
    std::array<char, 12> digits{};
    std::size_t first = digits.size() - 1;
    auto number = static_cast<unsigned>(pid);
    do digits[--first] = static_cast<char>('0' + number % 10);
    while ((number /= 10) > 0);
    append(digits.data() + first);
    append("/");
    append(name);
  }
  const char* text() const { return text_.data(); }

 private:
  void append(const char* part) {
    while (*part != '\0' && size_ + 1 < text_.size()) text_[size_++] = *part++;
  }
  std::array<char, 64> text_{};
  std::size_t size_ = 0;
};

// The beginning of a file, as a text; its length, or -1.
template <std::size_t size>
ssize_t read_beginning(const char* file, std::array<char, size>& text) {
  const int fd = open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const ssize_t n = read(fd, text.data(), size - 1);
  close(fd);
  text[n > 0 ? static_cast<std::size_t>(n) : 0] = '\0';
  return n;
}

inline void copy_process_name(pid_t pid, std::array<char, 16>& name) {
  if (read_beginning(ProcPath(pid, "comm").text(), name) <= 0) name[0] = '\0';
  if (char* newline = std::strchr(name.data(), '\n')) *newline = '\0';
}

inline pid_t number_of(const char* digits) {
  pid_t number = 0;
  while (*digits >= '0' && *digits <= '9') number = number * 10 + (*digits++ - '0');
  return number;
}

// The parent of a process; 0 when it is gone.
inline pid_t parent_process(pid_t pid) {
  std::array<char, 512> stat{};
  if (read_beginning(ProcPath(pid, "stat").text(), stat) <= 0) return 0;
  // The name may hold blanks and brackets: what follows its last bracket is "state ppid".
  const char* name_end = std::strrchr(stat.data(), ')');
  return name_end && std::strlen(name_end) > 4 ? number_of(name_end + 4) : 0;
}

// Calls `call` with each child of this single-threaded process. By the kernel's list of them; on a kernel built without
// such lists, by a look at every process.
template <class Call>
void for_each_child(Call call) {
  std::array<pid_t, 512> children{};  // more are found by the next call
  std::size_t count = 0;
  std::array<char, 8192> list{};
  if (const ssize_t n = read_beginning("/proc/thread-self/children", list); n >= 0) {
    // The last number may be half of one.
    const bool is_whole = static_cast<std::size_t>(n) < list.size() - 1;
    for (const char* text = list.data(); *text != '\0' && count < children.size();) {
      const char* end = text + std::strspn(text, "0123456789");
      if (end == text) break;
      if (*end != '\0' || is_whole) children[count++] = number_of(text);
      text = *end == '\0' ? end : end + 1;
    }
  } else if (const int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC); fd >= 0) {
    const pid_t self = getpid();
    alignas(dirent64) std::array<char, 8192> entries;
    for (long bytes = 0;
         count < children.size() && (bytes = syscall(SYS_getdents64, fd, entries.data(), entries.size())) > 0;)
      for (long at = 0; at < bytes && count < children.size();) {
        const auto* entry = reinterpret_cast<const dirent64*>(entries.data() + at);
        at += entry->d_reclen;
        const pid_t pid = number_of(entry->d_name);
        if (pid > 0 && parent_process(pid) == self) children[count++] = pid;
      }
    close(fd);
  }
  for (std::size_t i = 0; i < count; ++i) call(children[i]);
}

}  // namespace assay::host::launch
