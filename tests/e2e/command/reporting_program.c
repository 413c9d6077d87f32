/* Steps of a C program that do nothing but report. */
#include "assay_report.h"

int main(void) {
  long measured = 0;
  while (assay_step(5)) {
    assay_begin("work");
    assay_end("work");
    measured += assay_is_measured();
    assay_metric("measured_so_far", (double)measured, "", "");
  }
  assay_result("measured", (double)measured, "steps", "higher");
  return 0;
}
