# assay_add_plugin(NAME source...): a workload plugin, NAME.so.
#
# A MODULE with hidden visibility, a version script that leaves one exported symbol, and no undefined symbols. Link
# further libraries with target_link_libraries as usual.

set(_assay_version_script "${CMAKE_CURRENT_LIST_DIR}/assay_plugin.map")

function(assay_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE assay::sdk)
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(
    ${name}
    PROPERTIES PREFIX ""
               CXX_VISIBILITY_PRESET hidden
               C_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               LINK_DEPENDS "${_assay_version_script}")
  target_compile_definitions(
    ${name} PRIVATE "ASSAY_BUILD_INFO=\"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} $<CONFIG>\"")
  target_link_options(${name} PRIVATE "LINKER:--version-script=${_assay_version_script}")
  # The sanitizers' runtime is resolved by the executable, so -z defs would refuse a sanitized plugin.
  if(NOT ASSAY_SANITIZE)
    target_link_options(${name} PRIVATE "LINKER:-z,defs")
  endif()
endfunction()
