// Boost.Program_options, as every subcommand uses it.
#pragma once
#include <boost/program_options.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "cli/command.hpp"

namespace assay::host::cli {

// A wrong command line: printed with a pointer to --help, exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class UnknownOption : public UsageError {
 public:
  // `option`: as it was given, "--dryrun"; `near`: that which was meant, or "".
  UnknownOption(const std::string& option, const std::string& near);
  const std::string& option() const { return option_; }
  bool has_near() const { return has_near_; }

 private:
  std::string option_;
  bool has_near_;
};

struct ParsedOptions {
  boost::program_options::variables_map values;
  bool help = false;  // printed already
};

// `usage`: "assay run EXPERIMENT.toml [options]". `about`: a paragraph for --help. `positional`: the name of the option
// that takes what comes without a name, at most `positional_count` of them (-1: any number).
ParsedOptions parse_options(const Arguments& arguments, const std::string& usage, const std::string& about,
                            boost::program_options::options_description visible, const std::string& positional = "",
                            int positional_count = 1);

// What a command passes to parse_options(), for those who want to know it and run nothing: its options and their help.
// Nothing where it has none. One thread.
std::optional<boost::program_options::options_description> options_of(int (*command)(const Arguments&));

// The values of an option that can be given several times; none where it was not.
Arguments list_of(const boost::program_options::variables_map& values, const char* name);

}  // namespace assay::host::cli
