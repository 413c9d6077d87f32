#include "verify.hpp"

#include <assay/plugin.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <vector>

#include "crc32c.hpp"
#include "files.hpp"
#include "generate.hpp"
#include "shard_workers.hpp"

namespace assay::data {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t read_bytes = 1 << 20;
constexpr const char* remedy = "; remedy: restore the file, or remove the folder to have the data set generated anew";

// One line for each shard, with what changes when a file's content does. (ctime, since mtime can be set back.) The
// checksum ties the lines to their manifest.
std::string fingerprint(const fs::path& folder, const Manifest& manifest) {
  const std::string text = text_of(manifest);
  std::string lines = "manifest crc32c " + crc_text(crc32c(0, text.data(), text.size())) + "\n";
  for (const Shard& shard : manifest.shards) {
    const fs::path file = folder / shard.name;
    struct stat s = {};
    const int error = ::stat(file.c_str(), &s) == 0 ? 0 : errno;
    if (error == ENOENT) refuse(file, "is missing; the manifest lists it with " + bytes_text(shard.bytes) + remedy);
    if (error != 0) fail(file, "asking for its size", error);
    if (!S_ISREG(s.st_mode)) refuse(file, std::string("is no regular file") + remedy);
    if (static_cast<std::uint64_t>(s.st_size) != shard.bytes)
      refuse(file, "has " + std::to_string(s.st_size) + " bytes; the manifest says " + std::to_string(shard.bytes) +
                       (static_cast<std::uint64_t>(s.st_size) < shard.bytes ? ": it was cut short" : "") + remedy);
    const auto time = [](const timespec& t) { return std::to_string(t.tv_sec) + "." + std::to_string(t.tv_nsec); };
    lines += shard.name + " bytes " + std::to_string(s.st_size) + " mtime " + time(s.st_mtim) + " ctime " +
             time(s.st_ctim) + " inode " + std::to_string(s.st_ino) + "\n";
  }
  return lines;
}

std::uint32_t crc_of(const fs::path& file, std::uint64_t bytes, const Tell& tell) {
  const File open = open_to_read(file);
  std::vector<std::byte> chunk(std::min<std::uint64_t>(read_bytes, bytes));
  std::uint32_t crc = 0;
  for (std::uint64_t done = 0; done < bytes;) {
    const std::size_t size = std::min<std::uint64_t>(chunk.size(), bytes - done);
    read_all(open, file, chunk.data(), size, done);
    crc = crc32c(crc, chunk.data(), size);
    done += size;
    if (!tell(size)) break;  // another shard has failed, and its error will be reported
  }
  return crc;
}

void remember_lines(const fs::path& folder, const std::string& lines) {
  try {
    write_text(folder / verified_name, lines);
  } catch (const Error&) {
    // A full disk, for one. The data set is sound; the next call computes the checksums once more.
  }
}

}  // namespace

void verify(const fs::path& folder, const Manifest& manifest, bool remember, const Progress& progress) {
  const std::string lines = fingerprint(folder, manifest);
  if (read_text(folder / verified_name) == lines) return;
  std::vector<std::string> wrong(manifest.shards.size());
  for_each_shard(manifest.shards.size(), manifest.bytes(), progress, [&](std::size_t i, const Tell& tell) {
    const Shard& shard = manifest.shards[i];
    const std::uint32_t crc = crc_of(folder / shard.name, shard.bytes, tell);
    if (crc != shard.crc) wrong[i] = crc_text(crc);
  });
  for (std::size_t i = 0; i < wrong.size(); ++i)
    if (!wrong[i].empty())
      refuse(folder / manifest.shards[i].name, "has the checksum (crc32c) " + wrong[i] + "; the manifest says " +
                                                   crc_text(manifest.shards[i].crc) + ": its content was changed" +
                                                   remedy);
  if (remember) remember_lines(folder, lines);
}

void remember_as_verified(const fs::path& folder, const Manifest& manifest) {
  remember_lines(folder, fingerprint(folder, manifest));
}

}  // namespace assay::data
