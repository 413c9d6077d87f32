// assay doctor
#include "cli/options.hpp"
#include "common/exit_code.hpp"
#include "doctor/doctor_command.hpp"

namespace assay::host::cli {
namespace {

constexpr const char* about_doctor =
    "Looks at this machine before anyone measures on it: what it has, what assay would use, and what would\n"
    "spoil a measurement, each with its effect and a remedy. Changes nothing. The exit code is 1 with an\n"
    "error or a warning.";

}  // namespace

int doctor_command(const Arguments& arguments) {
  doctor::DoctorRequest request;
  Options options("assay doctor [options]", about_doctor);
  options.add("json", request.json, "print one JSON object");
  options.add("output", request.output, "the folder for results that is meant (default: results)");
  options.add("plugin-path", request.plugin_path, "folder with plugins, searched first; repeatable");
  options.add("root", request.root,
              "a folder that stands for /: what was copied from /proc, /sys and /etc of another machine; no device is "
              "asked");
  if (!options.read(arguments)) return exit_ok;
  return doctor::examine(request);
}

}  // namespace assay::host::cli
