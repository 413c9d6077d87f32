// The questions themselves. A probe runs in a separate process, which it may bring to its end: each of them reports
// what it asks before it does.
#pragma once
#include <filesystem>
#include <functional>

#include "validate/life.hpp"
#include "validate/report.hpp"

namespace assay::host::validate {

// Level 1, but what follows from the tables alone: opens the file, reads its tables, and sends them.
void load_probe(const std::filesystem::path& file, const Asker& asker);

using Probe = void (*)(const Subject& subject, const Asker& asker);

void values_probe(const Subject& subject, const Asker& asker);   // create with each bound and choice
void bare_probe(const Subject& subject, const Asker& asker);     // a host without extensions
void life_probe(const Subject& subject, const Asker& asker);     // a case, and two more lives after it
void account_probe(const Subject& subject, const Asker& asker);  // the account of steps; steps of all stages
void choices_probe(const Subject& subject, const Asker& asker);  // which phases and metrics other choices show
void pair_probe(const Subject& subject, const Asker& asker);     // two objects at once
void refusal_probe(const Subject& subject, const Asker& asker);  // memory refused at each allocation of setup in turn
void change_probe(const Subject& subject, const Asker& asker);   // memory changed before and while it is verified
void repeat_probe(const Subject& subject, const Asker& asker);   // the same seed

}  // namespace assay::host::validate
