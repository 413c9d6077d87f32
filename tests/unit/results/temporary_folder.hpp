// A folder of a test's own, and files in it.
#pragma once
#include "support/files.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::results {

using test::put_file;
using test::TemporaryFolder;

}  // namespace assay::host::results
