// The subcommands of `assay`. Each gets the arguments after its name and returns the process's exit code.
#pragma once
#include <string>
#include <vector>

namespace assay::host::cli {

using Arguments = std::vector<std::string>;

int run_command(const Arguments& arguments);
int ab_command(const Arguments& arguments);
int list_command(const Arguments& arguments);
int clean_command(const Arguments& arguments);
int completion_command(const Arguments& arguments);
int history_command(const Arguments& arguments);
int import_command(const Arguments& arguments);
int export_command(const Arguments& arguments);
int forecast_command(const Arguments& arguments);
int time_command(const Arguments& arguments);
int table_command(const Arguments& arguments);
int compare_command(const Arguments& arguments);
int report_command(const Arguments& arguments);
int kernels_command(const Arguments& arguments);
int describe_command(const Arguments& arguments);
int new_command(const Arguments& arguments);
int submit_command(const Arguments& arguments);
int status_command(const Arguments& arguments);
int collect_command(const Arguments& arguments);
int cancel_command(const Arguments& arguments);
int site_command(const Arguments& arguments);
int validate_command(const Arguments& arguments);
int plan_command(const Arguments& arguments);
int describe_device_command(const Arguments& arguments);
int doctor_command(const Arguments& arguments);

}  // namespace assay::host::cli
