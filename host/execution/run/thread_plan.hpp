// How many threads a worker gets on the CPU, and how they wait for one another. What the machine has to say to that is
// found out once, when it is first asked: all cases of a run have the same.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "record/case_record.hpp"
#include "worker/case_spec.hpp"

namespace assay::host::run {

// A worker finds its number of threads in this variable: the case's, else what is set for this process, else its share
// of the processors that this process may use. What others do with these meanwhile does not matter: a number that a
// neighbour changes would make another experiment of the next run.
inline constexpr const char* threads_variable = "OMP_NUM_THREADS";
record::Threads thread_count(const worker::CaseSpec& spec);
std::string thread_setting(const worker::CaseSpec& spec);

// For the environment of a worker: a bound to the spinning of OpenMP's threads at barriers. Nothing for one thread, or
// where the user has set how they wait.
std::map<std::string, std::optional<std::string>> wait_variables(const record::Threads& threads);

// Into the result of a case on the CPU that is ok.
void add_threads(const worker::CaseSpec& spec, record::CaseResult& result);
// The same, where the threads have been counted before. `counted`: by thread_count.
void add_threads(const worker::CaseSpec& spec, const record::Threads& counted, record::CaseResult& result);

}  // namespace assay::host::run
