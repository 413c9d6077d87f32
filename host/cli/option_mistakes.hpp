// Mistakes of a command line in words: what stands there, and what is expected.
#pragma once
#include <boost/program_options.hpp>
#include <map>
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace assay::host::cli {

// An option whose value was forgotten does not take the next option for it: `--output --dry-run` is no folder, and the
// run no real one. A value that begins so stands behind "=". Throws UsageError.
void check_values_are_no_options(const Arguments& arguments, const boost::program_options::options_description& known);

// "-metric", which the parser takes for -m with the value "etric", is meant as "--metric". Throws UsageError.
void check_dashes(const Arguments& arguments, const boost::program_options::options_description& known);

// At most `most` words without an option (-1: any number). Throws UsageError, which names the first that is too many
// and `usage`.
void check_number_of_words(const boost::program_options::parsed_options& parsed, int most, const std::string& usage);

// What the parser or the conversion of a value has found. `parsed` is null where the command line could not be taken
// apart; `expected` names what an option takes that is no text: "a number".
std::string text_of_mistake(const boost::program_options::error& error,
                            const boost::program_options::parsed_options* parsed,
                            const std::map<std::string, std::string>& expected);

}  // namespace assay::host::cli
