// One opened shared library: RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE through Boost.DLL.
#pragma once
#include <dlfcn.h>
#include <fmt/format.h>

#include <boost/dll/shared_library.hpp>
#include <filesystem>

#include "plugin/entry_check.hpp"

namespace assay::host::plugin {

// NOW: an undefined symbol is an error at loading, not a crash in the middle of a measurement. NODELETE: code that
// registered itself somewhere (OpenMP, CUDA) must not be unmapped while the process lives. Boost has no name for the
// last flag; its load modes are the dlopen flags, so the cast is exact on Linux. Throws PluginError with the loader's
// own words, in which `name` stands for the file.
inline boost::dll::shared_library open_shared_object(const std::filesystem::path& file, const std::string& name,
                                                     const char* remedy) {
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
