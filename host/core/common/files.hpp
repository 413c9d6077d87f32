// Writing files so that a reader, a full disk or a kill never meets half of one.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace assay::host {

// The disk refused. The text names the file, what was tried, why it failed and the remedy.
class StorageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What the user can do about `error_number`, as the last clause of a message.
std::string storage_remedy(int error_number);
// "cannot <action> <path>: <reason>; <remedy>". Takes the value of errno, since building text may change it.
[[noreturn]] void throw_storage_error(std::string_view action, const std::filesystem::path& path, int error_number);

struct WriteOutcome {
  std::size_t written_bytes = 0;
  int error_number = 0;  // 0: all of it was written
};
// Writes all of `text`, going on after signals.
WriteOutcome write_all(int fd, std::string_view text) noexcept;

enum class Durable { no, yes };
// Replaces `path` in one step, by a temporary file beside it and a rename; the temporary one is new, whatever stands at
// names like it. `Durable::yes` waits for the disk: for the text before the rename, and for the folder after it. Throws
// StorageError, and leaves no temporary file.
void write_file_atomically(const std::filesystem::path& path, std::string_view text, Durable durable = Durable::no);

// Waits until the file is on the disk. After many files were written, doing so for each of them costs about as much as
// for the first: file systems flush together what was changed together. Throws StorageError.
void flush_to_disk(const std::filesystem::path& path);

// Waits until the names in a folder are on the disk: a file that was made or renamed there, however well its text was
// flushed, is otherwise not there after a crash of the machine. No error where the file system cannot do so. Throws
// StorageError.
void flush_folder(const std::filesystem::path& folder);
// flush_folder() of the folder that holds `path`.
void flush_name(const std::filesystem::path& path);
// Makes the folders that are missing on the way to `folder`, and it; each of their names is on the disk then. Throws
// StorageError; `what` is for its text: "create the results folder".
void create_folders(const std::filesystem::path& folder, std::string_view what = "create the folder");
// The same for callers with their own text: gives 0, or the errno of what stands in the way.
int try_creating_folders(const std::filesystem::path& folder);

// For tests: what waits for the disk from here on, in place of fsync; null: that again. `fd` is open.
using FlushCall = int (*)(int fd);
void set_flush_call(FlushCall call);

// Whether write_file_atomically() could begin: 0, or the errno of what stands in its way. Leaves nothing behind.
int try_writing(const std::filesystem::path& path);

// The whole file, or what a pipe gives until it is closed; throws StorageError.
std::string read_file(const std::filesystem::path& path);
// The same for a file that was found and not named by the user: a pipe that nobody writes to would hold the caller for
// ever, and is an error.
std::string read_regular_file(const std::filesystem::path& path);

// What this user may still write on the file system of `path`; nothing if unknown.
std::optional<std::uint64_t> free_bytes(const std::filesystem::path& path);
// A line for the user when less than `wanted_bytes` are free, nothing otherwise.
std::optional<std::string> low_space_note(const std::filesystem::path& path,
                                          std::uint64_t wanted_bytes = std::uint64_t{64} << 20);

}  // namespace assay::host
