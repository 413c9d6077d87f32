// Small files of a test.
#pragma once
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace assay::test {

// Makes the folders on the way there, too.
inline void put_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace assay::test
