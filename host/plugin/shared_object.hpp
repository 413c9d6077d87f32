// One opened shared library: RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE through Boost.DLL.
#pragma once
#include <dlfcn.h>

#include <boost/dll/shared_library.hpp>
#include <filesystem>

namespace assay::host {

// NOW: an undefined symbol is an error at loading, not a crash in the middle of a measurement. NODELETE: code that
// registered itself somewhere (OpenMP, CUDA) must not be unmapped while the process lives. Boost has no name for the
// last flag; its load modes are the dlopen flags, so the cast is exact on Linux.
inline boost::dll::shared_library open_shared_object(const std::filesystem::path& file, std::error_code& error) {
  const auto mode = static_cast<boost::dll::load_mode::type>(
      static_cast<int>(boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local) | RTLD_NODELETE);
  boost::dll::shared_library library;
  library.load(file, mode, error);
  return library;
}

}  // namespace assay::host
