// The notes of a comparison's entries, each once, with a number that stands in the tables as "[1]".
#pragma once
#include "compare/comparison.hpp"

#include <map>
#include <string>
#include <vector>

namespace assay::host::compare {

class NumberedNotes {
 public:
  NumberedNotes() = default;  // without notes, for forms that have them elsewhere
  explicit NumberedNotes(const Comparison& comparison);

  // " [1,3]"; "" where no note is about this entry, or where they are about all of them.
  std::string marks(const Entry& entry) const;
  // "[1] the note", "all: the note".
  std::vector<std::string> lines() const;

 private:
  struct Noted {
    std::string highest;             // of the texts that differ in their figures alone
    bool has_other_figures = false;  // somewhere
    std::size_t entries = 0;         // that have it
    std::size_t number = 0;          // 0: it is about all of them
  };
  std::map<std::string, std::size_t> places_;  // by what remains of a note without its figures
  std::vector<Noted> notes_;
};

}  // namespace assay::host::compare
