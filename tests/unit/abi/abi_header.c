// assay/abi.h alone, as C11, with every gap between fields an error (-Wpadded): padding is where a later field would
// hide without changing a size. A compiler may look for gaps only in structs whose size is asked for, so all are.
#include <assay/abi.h>

#define LAID_OUT(type) _Static_assert(sizeof(type) > 0, "")
LAID_OUT(assay_str);
LAID_OUT(assay_param);
LAID_OUT(assay_metric);
LAID_OUT(assay_work);
LAID_OUT(assay_host);
LAID_OUT(assay_case);
LAID_OUT(assay_launch);
LAID_OUT(assay_memory);
LAID_OUT(assay_device_access);
LAID_OUT(assay_capture);
LAID_OUT(assay_memory_plan);
LAID_OUT(assay_progress);
LAID_OUT(assay_parts);
LAID_OUT(assay_peak);
LAID_OUT(assay_peak_probe);
LAID_OUT(assay_silence);
LAID_OUT(assay_step_account);
LAID_OUT(assay_account);
LAID_OUT(assay_workload);
LAID_OUT(assay_entry);
_Static_assert(sizeof(assay_status) == 4, "a status is 32 bits wide in C as in C++");
