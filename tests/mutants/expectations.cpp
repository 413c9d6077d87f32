#include "expectations.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace assay::mutants {

bool Exception::is_of(std::string_view mutant_name, const std::string& case_name) const {
  return mutant == mutant_name && (where == case_name || where == case_name.substr(0, case_name.find('/')));
}

namespace {

std::vector<Exception> read(const char* name) {
  std::ifstream file(std::filesystem::path(EXPECTATIONS_FOLDER) / name);
  if (!file) throw std::runtime_error(std::string("cannot read ") + name);
  std::vector<Exception> all;
  for (Exception e; file >> e.mutant >> e.where;) {
    std::getline(file >> std::ws, e.reason);
    all.push_back(e);
  }
  return all;
}

}  // namespace

const std::vector<Exception>& explained() {
  static const std::vector<Exception> list = read("explained.txt");
  return list;
}

const std::vector<Exception>& known_to_survive() {
  static const std::vector<Exception> list = read("known_to_survive.txt");
  return list;
}

}  // namespace assay::mutants
