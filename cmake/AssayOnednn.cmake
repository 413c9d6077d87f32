# oneDNN, which makes the CPU's matrix products: the target DNNL::dnnl. That of CMAKE_PREFIX_PATH or dnnl_DIR comes first,
# then what scripts/build_onednn has put into .deps, then the distribution's.
set(assay_built_onednn "${PROJECT_SOURCE_DIR}/.deps/onednn")
# A build folder remembers the distribution's, which must not hide the other that has come since.
if(EXISTS "${assay_built_onednn}/lib/cmake/dnnl" AND "${dnnl_DIR}" MATCHES "^/usr/lib/")
  unset(dnnl_DIR CACHE)
endif()
find_package(dnnl CONFIG REQUIRED HINTS "${assay_built_onednn}")
message(STATUS "oneDNN ${dnnl_VERSION} (${dnnl_DIR})")
