// Reads the dynamic section of an ELF file, as far as the loader's search by $ORIGIN goes.
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "common/fd.hpp"

#include "plugin/library_copy.hpp"

namespace assay::host::plugin {
namespace {

namespace fs = std::filesystem;

// Reads a few places of a file that may be large.
class ElfFile {
 public:
  explicit ElfFile(const fs::path& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

  // What the dynamic section says, or nothing where this is no such file.
  std::vector<Elf64_Dyn> dynamic_section() {
    const auto header = at<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64)
      return {};
    std::optional<Elf64_Phdr> dynamic;
    for (std::size_t i = 0; i < header->e_phnum; ++i) {
      const auto segment = at<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
      if (!segment) return {};
      if (segment->p_type == PT_LOAD) loaded_.push_back(*segment);
      if (segment->p_type == PT_DYNAMIC) dynamic = *segment;
    }
    std::vector<Elf64_Dyn> entries;
    for (std::size_t i = 0; dynamic && i < dynamic->p_filesz / sizeof(Elf64_Dyn); ++i) {
      const auto entry = at<Elf64_Dyn>(dynamic->p_offset + i * sizeof(Elf64_Dyn));
      if (!entry || entry->d_tag == DT_NULL) break;
      entries.push_back(*entry);
    }
    return entries;
  }

  // The text at an offset into the table of strings that is loaded at `table`.
  std::string text(Elf64_Addr table, Elf64_Xword offset) const {
    for (const Elf64_Phdr& segment : loaded_) {
      if (table < segment.p_vaddr || table - segment.p_vaddr >= segment.p_filesz) continue;
      std::string text(longest_text, '\0');
      const ssize_t read = ::pread(file_.get(), text.data(), text.size(),
                                   static_cast<off_t>(segment.p_offset + (table - segment.p_vaddr) + offset));
      text.resize(static_cast<std::size_t>(std::max<ssize_t>(read, 0)));
      const std::size_t end = text.find('\0');
      return end == std::string::npos ? "" : text.substr(0, end);
    }
    return "";
  }

 private:
  template <class T>
  std::optional<T> at(std::size_t offset) const {
    T value;
    const ssize_t read = ::pread(file_.get(), &value, sizeof value, static_cast<off_t>(offset));
    return read == static_cast<ssize_t>(sizeof value) ? std::optional(value) : std::nullopt;
  }

  static constexpr std::size_t longest_text = 8192;  // of a run path
  Fd file_;
  std::vector<Elf64_Phdr> loaded_;
};

// The folders of a run path that $ORIGIN stands in, with `origin` in its place.
std::vector<fs::path> folders_by_origin(const std::string& run_path, const std::string& origin) {
  std::vector<fs::path> folders;
  for (std::size_t begin = 0; begin <= run_path.size();) {
    const std::size_t end = std::min(run_path.find(':', begin), run_path.size());
    std::string folder = run_path.substr(begin, end - begin);
    for (const std::string_view name : {"${ORIGIN}", "$ORIGIN"})
      if (const std::size_t place = folder.find(name); place != std::string::npos) {
        folder.replace(place, name.size(), origin);
        folders.emplace_back(folder);
        break;
      }
    begin = end + 1;
  }
  return folders;
}

std::vector<fs::path> found_beside(const fs::path& file) {
  ElfFile elf(file);
  const std::vector<Elf64_Dyn> entries = elf.dynamic_section();
  Elf64_Addr table = 0;
  for (const Elf64_Dyn& entry : entries)
    if (entry.d_tag == DT_STRTAB) table = entry.d_un.d_ptr;
  std::error_code error;
  const std::string origin = fs::weakly_canonical(file, error).parent_path().string();
  std::vector<fs::path> folders;
  std::vector<std::string> needs;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NEEDED) needs.push_back(elf.text(table, entry.d_un.d_val));
    if (entry.d_tag == DT_RUNPATH || entry.d_tag == DT_RPATH)
      for (fs::path& folder : folders_by_origin(elf.text(table, entry.d_un.d_val), origin))
        folders.push_back(std::move(folder));
  }
  std::vector<fs::path> found;
  for (const std::string& need : needs)
    for (const fs::path& folder : folders)
      if (!need.empty() && fs::is_regular_file(folder / need, error)) {
        found.push_back((folder / need).lexically_normal());
        break;
      }
  return found;
}

}  // namespace

std::vector<fs::path> libraries_beside(const fs::path& file) {
  std::vector<fs::path> found = found_beside(file);
  std::set<fs::path> known(found.begin(), found.end());
  for (std::size_t i = 0; i < found.size(); ++i)
    for (fs::path& more : found_beside(fs::path(found[i])))
      if (known.insert(more).second) found.push_back(std::move(more));
  return found;
}

}  // namespace assay::host::plugin
