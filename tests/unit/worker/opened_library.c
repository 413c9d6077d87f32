// What loaded_libraries_test opens: its build id is given to the linker.
int assay_opened_by_a_test(void);
int assay_opened_by_a_test(void) { return 1; }
