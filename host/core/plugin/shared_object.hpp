// One opened shared library: RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE through Boost.DLL.
#pragma once
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>

#include <boost/dll/shared_library.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "plugin/entry_check.hpp"

namespace assay::host::plugin {

// The number by which ELF names the machine of a file of this one's byte order; nothing where it is no such file.
inline std::optional<unsigned> machine_of(const std::filesystem::path& file) {
  Elf64_Ehdr header{};
  std::ifstream stream(file, std::ios::binary);
  stream.read(reinterpret_cast<char*>(&header), EI_NIDENT + sizeof header.e_type + sizeof header.e_machine);
  const bool is_elf = stream && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
  return is_elf && header.e_ident[EI_DATA] == ELFDATA2LSB ? std::optional<unsigned>(header.e_machine) : std::nullopt;
}

// "aarch64"
inline std::string name_of_machine(unsigned machine) {
  switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "aarch64";
    case EM_PPC64: return "ppc64le";
    case EM_RISCV: return "riscv64";
    case EM_386: return "i386";
    default: return fmt::format("machine {} of ELF", machine);
  }
}

// The loader calls a library of another machine "No such file".
inline void check_machine(const std::filesystem::path& file, const std::string& name) {
  const auto here = machine_of("/proc/self/exe"), there = machine_of(file);
  if (here && there && *here != *there)
    throw PluginError(fmt::format("{}: is built for {}, and this machine is {}; build it here", name,
                                  name_of_machine(*there), name_of_machine(*here)),
                      Refusal::file);
}

// NOW: an undefined symbol is an error at loading, not a crash in the middle of a measurement. NODELETE: code that
// registered itself somewhere (OpenMP, CUDA) must not be unmapped while the process lives. Boost has no name for the
// last flag; its load modes are the dlopen flags, so the cast is exact on Linux. Throws PluginError with the loader's
// own words, in which `name` stands for the file.
inline boost::dll::shared_library open_shared_object(const std::filesystem::path& file, const std::string& name,
                                                     const char* remedy) {
  check_machine(file, name);
  const auto mode = static_cast<boost::dll::load_mode::type>(
      static_cast<int>(boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local) | RTLD_NODELETE);
  boost::dll::shared_library library;
  boost::dll::fs::error_code error;
  library.load(file, mode, error);
  if (!error && library.is_loaded()) return library;
  // Boost reports a bare errno and has taken the loader's text: ask again.
  const char* why = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) ? nullptr : dlerror();
  std::string text = why ? why : error.message();
  if (text.starts_with(file.string())) text.replace(0, file.string().size(), name);
  // A file that is not a library is reported separately, since installing something would not help.
  const bool is_library = text.find("invalid ELF header") == std::string::npos &&
                          text.find("file too short") == std::string::npos &&
                          text.find("wrong ELF class") == std::string::npos;
  throw PluginError(fmt::format("{}: cannot be loaded: {}; {}", name, text, remedy),
                    is_library ? Refusal::unresolved : Refusal::file);
}

}  // namespace assay::host::plugin
