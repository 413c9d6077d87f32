#include "worker/loaded_libraries.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>
#include <vector>

namespace assay::host::worker {
namespace {

struct Listing {
  std::vector<std::uintptr_t> known;
  std::map<std::string, std::vector<std::string>> builds;  // by name
};

std::size_t padded(std::size_t bytes, std::size_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

// The build id among the notes of one segment; "" where there is none.
std::string build_id_in(const char* notes, std::size_t bytes, std::size_t alignment) {
  constexpr std::string_view owner("GNU", 4);  // with its end
  for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof note);
    const std::size_t name = at + sizeof note, text = name + padded(note.n_namesz, alignment);
    if (text + note.n_descsz > bytes) return "";
    if (note.n_type == NT_GNU_BUILD_ID && std::string_view(notes + name, note.n_namesz) == owner) {
      std::string id;
      for (std::size_t i = 0; i < note.n_descsz; ++i)
        id += fmt::format("{:02x}", static_cast<unsigned char>(notes[text + i]));
      return id;
    }
    at = text + padded(note.n_descsz, alignment);
  }
  return "";
}

bool holds(const dl_phdr_info& object, std::uintptr_t address) {
  for (std::size_t i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const std::uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address < begin + segment.p_memsz) return true;
  }
  return false;
}

std::string build_id_of(const dl_phdr_info& object) {
  for (std::size_t i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const char*>(object.dlpi_addr + segment.p_vaddr);
    const std::size_t alignment = segment.p_align == 8 ? 8 : 4;
    if (std::string id = build_id_in(notes, segment.p_memsz, alignment); !id.empty()) return id;
  }
  return "no build id";
}

int list_object(dl_phdr_info* object, std::size_t, void* into) {
  auto& listing = *static_cast<Listing*>(into);
  const std::string_view path = object->dlpi_name ? object->dlpi_name : "";
  const bool is_known = std::any_of(listing.known.begin(), listing.known.end(),
                                    [&](std::uintptr_t address) { return holds(*object, address); });
  if (path.empty() || is_known) return 0;
  std::vector<std::string>& builds = listing.builds[std::filesystem::path(path).filename().string()];
  if (std::string id = build_id_of(*object); std::find(builds.begin(), builds.end(), id) == builds.end())
    builds.push_back(std::move(id));
  return 0;
}

}  // namespace

record::Named<std::string> loaded_libraries(std::span<const void* const> known) {
  Listing listing;
  for (const void* address : known) listing.known.push_back(reinterpret_cast<std::uintptr_t>(address));
  listing.known.push_back(::getauxval(AT_SYSINFO_EHDR));
  ::dl_iterate_phdr(list_object, &listing);
  record::Named<std::string> libraries;
  for (auto& [name, builds] : listing.builds) {
    std::sort(builds.begin(), builds.end());
    std::string text;
    for (const std::string& build : builds) text += (text.empty() ? "" : " | ") + build;
    libraries.emplace_back(name, std::move(text));
  }
  return libraries;
}

}  // namespace assay::host::worker
