// The container that processes of a job run in, as words of a script before `assay run`. A row for each runtime.
//
// A container has the host's network, names, process numbers and shared memory, since ranks meet through them and the
// files of a batch name processes. The run's folder, and what it reads, stand there under the same paths. Of
// folders that images have themselves (/usr, /tmp, a home folder) only the files that assay needs are mounted.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "batch/script.hpp"
#include "batch/site.hpp"

namespace assay::host::batch {

// With a blank at the end; "" where the site has no container. Throws SiteError for paths that cannot be mounted.
std::string container_words(const ScriptInput& input);

// The program that a script starts: of the container, of the site, or the one that submits.
std::filesystem::path program_of(const ScriptInput& input);

struct ContainerProblem {
  const char* key;  // of the site file's table, which the problem is about
  std::string text;
};
std::vector<ContainerProblem> problems_of_container(const SiteContainer& container, const std::string& kind);

}  // namespace assay::host::batch
