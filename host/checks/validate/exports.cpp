#include "validate/exports.hpp"

#include <assay/abi.h>
#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <optional>
#include <vector>

#include "common/files.hpp"

namespace assay::host::validate {
namespace {

template <class T>
std::optional<T> read_at(const std::string& bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string text_at(const std::string& bytes, std::uint64_t offset) {
  return offset < bytes.size() ? std::string(bytes.c_str() + offset) : "";
}

bool is_offered(const Elf64_Sym& symbol) {
  const auto binding = ELF64_ST_BIND(symbol.st_info);
  const auto visibility = ELF64_ST_VISIBILITY(symbol.st_other);
  return symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS && (binding == STB_GLOBAL || binding == STB_WEAK) &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

// Symbols of the linker and the run-time libraries: there in every library that is linked so.
bool is_of_toolchain(const std::string& name) {
  return name == "_init" || name == "_fini" || name == "_edata" || name == "_end" || name == "__bss_start" ||
         name.starts_with("__asan") || name.starts_with("__ubsan") || name.starts_with("__odr_asan");
}

std::string bytes_of(const std::filesystem::path& file) {
  // A pipe would wait for whoever writes to it.
  if (std::error_code error; !std::filesystem::is_regular_file(file, error)) return "";
  try {
    return read_file(file);
  } catch (const StorageError&) {
    return "";
  }
}

}  // namespace

bool is_cut_short(const std::filesystem::path& file) {
  const std::string bytes = bytes_of(file);
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  return header && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
         header->e_shoff + std::uint64_t{header->e_shnum} * header->e_shentsize > bytes.size();
}

std::string other_exports(const std::filesystem::path& file) {
  const std::string bytes = bytes_of(file);
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (!header) return "";
  const auto section = [&](std::uint64_t index) {
    return read_at<Elf64_Shdr>(bytes, header->e_shoff + index * header->e_shentsize);
  };
  std::vector<std::string> others;
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto symbols = section(i);
    if (!symbols || symbols->sh_type != SHT_DYNSYM) continue;
    const auto texts = section(symbols->sh_link);
    if (!texts) continue;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols->sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read_at<Elf64_Sym>(bytes, symbols->sh_offset + at);
      if (!symbol || !is_offered(*symbol)) continue;
      std::string name = text_at(bytes, texts->sh_offset + symbol->st_name);
      if (name != ASSAY_ENTRY_SYMBOL && !is_of_toolchain(name)) others.push_back(std::move(name));
    }
  }
  constexpr std::size_t most = 3;
  if (others.size() <= most) return fmt::format("{}", fmt::join(others, ", "));
  const std::size_t more = others.size() - most;
  others.resize(most);
  return fmt::format("{} and {} more", fmt::join(others, ", "), more);
}

}  // namespace assay::host::validate
