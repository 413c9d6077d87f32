// Which mutant lives in this process, and counters of how often places of mutants were reached, which all processes of
// a case share. Set by variables of the environment:
//   ASSAY_MUTANT         its name; empty or absent: none, so that everything works as it should. Several names between
//                        blanks: of a run that repeats one case, the mutant of each repeat
//   ASSAY_MUTANT_RUN     the folder of that run. A repeat starts when those before it are recorded, so the records that
//                        are there say which one it is
//   ASSAY_MUTANT_COUNTS  a file for each repeat, of this name and its number, from 0 on, with a counter for each
//   mutant:
//                        those of operations and collectives, then those of sources
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace assay::mutants {

// Nothing that is measured here is worth a wrong table: what cannot be read ends the process.
[[noreturn]] void give_up(const std::string& text);

std::string_view living_mutant();  // empty: none

class Counters {
 public:
  // Those from the `first` one on. Without a file they count nothing.
  Counters(std::size_t first, std::size_t count);
  void count(std::size_t index) const;

 private:
  std::uint64_t* counters_ = nullptr;  // mapped until the process ends
};

}  // namespace assay::mutants
