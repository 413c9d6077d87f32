// assay site
#include "batch/site_command.hpp"
#include "cli/options.hpp"
#include "common/exit_code.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_site =
    "Prints the existing site files, each with its partition and limits, or its mistakes. With --new it writes a\n"
    "commented one from Slurm's answers about this cluster.";

}  // namespace

int site_command(const Arguments& arguments) {
  batch::SiteRequest request;
  Options options("assay site [options]", about_site);
  options.add("new", request.new_name, "NAME: write a site file of this name");
  options.add("partition", request.partition, "with --new: for this partition instead of the cluster's default");
  if (!options.read(arguments)) return exit_ok;
  return batch::sites(request);
}

}  // namespace assay::host::cli
