# assay_add_plugin(NAME source...): a workload plugin, NAME.so. The project enables CXX; further libraries are linked
# with target_link_libraries as usual.
#
# A MODULE with hidden visibility, a version script that leaves one exported symbol, and no undefined symbols: a plugin
# that loads here loads everywhere, and two plugins never see each other's functions. Our own plugins are made by the
# same function; it is installed with the SDK.

set(_assay_version_script "${CMAKE_CURRENT_LIST_DIR}/assay_plugin.map")

function(assay_add_plugin name)
  if(NOT name MATCHES "^[A-Za-z0-9_.-]+$")
    message(FATAL_ERROR "assay_add_plugin: '${name}' is not a name for a plugin; expected letters, digits, '_', '.' and "
                        "'-' alone, as experiments select the plugin by it")
  endif()
  if(NOT ARGN)
    message(FATAL_ERROR "assay_add_plugin(${name}): no source files; expected assay_add_plugin(${name} file.cpp...)")
  endif()
  if(NOT CMAKE_CXX_COMPILER_LOADED)
    message(FATAL_ERROR "assay_add_plugin(${name}): the project does not enable C++, which plugins are linked as; write "
                        "project(... LANGUAGES CXX), with C beside it if there are C sources")
  endif()
  get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(NOT multi_config AND NOT CMAKE_BUILD_TYPE)
    message(NOTICE "assay: CMAKE_BUILD_TYPE is empty, so plugin '${name}' is compiled without optimisation; "
                   "-DCMAKE_BUILD_TYPE=Release optimises")
  endif()

  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE assay::sdk)
  target_compile_features(${name} PRIVATE cxx_std_20)
  set_target_properties(
    ${name}
    PROPERTIES PREFIX ""
               SUFFIX ".so"
               LINKER_LANGUAGE CXX
               C_VISIBILITY_PRESET hidden
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               LINK_DEPENDS "${_assay_version_script}")
  # Every result says which build of the plugin made it.
  target_compile_definitions(
    ${name}
    PRIVATE
      "ASSAY_BUILD_INFO=\"$<CXX_COMPILER_ID> $<CXX_COMPILER_VERSION> $<IF:$<BOOL:$<CONFIG>>,$<CONFIG>,unoptimised>\"")
  target_link_options(${name} PRIVATE "LINKER:--version-script=${_assay_version_script}")
  # The sanitizers' runtime is resolved by the executable, so -z defs would refuse a sanitized plugin.
  if(NOT ASSAY_SANITIZE)
    target_link_options(${name} PRIVATE "LINKER:-z,defs")
  endif()
endfunction()
