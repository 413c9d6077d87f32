# What `cmake --install` puts where. The tree can be moved: nothing in it names the folder it was installed to.
#
#   bin/assay                  finds the rest from its own place
#   lib/assay/plugins/*.so     workloads; lib/assay/devices/*.so: device backends
#   include/assay/             the SDK's headers
#   lib/cmake/assay/           find_package(assay)
#   share/assay/configs/       the experiments; share/assay/scripts/: the programs that some of them run
#   share/assay/command/       what a program reports its steps with: a module for Python, a header for C
#   share/assay/templates/     what `assay new plugin` writes
#   share/doc/assay/           README.md and the pages that it leads to
#
# The host, the plugins and the devices are installed by their own folders; the SDK and its package are installed here,
# included last by the top CMakeLists.txt, when all targets exist. Always lib/, never lib64/ or lib/<triplet>/: the host
# looks in one place.
include(CMakePackageConfigHelpers)

set(assay_package_dir lib/cmake/assay)

set(assay_exported assay_sdk)
set(ASSAY_PACKAGE_DEPENDENCIES "")
foreach(part compute compute_audit comm data workload train models parallel verification mesh)
  if(NOT TARGET assay_${part})
    continue()
  endif()
  list(APPEND assay_exported assay_${part})
  get_target_property(type assay_${part} TYPE)
  if(type STREQUAL INTERFACE_LIBRARY)
    get_target_property(links assay_${part} INTERFACE_LINK_LIBRARIES)
  else()
    get_target_property(links assay_${part} LINK_LIBRARIES)
  endif()
  # Who links a static library links what it stands on: our options (a sanitizer's runtime), and other packages.
  if("assay_build_options" IN_LIST links)
    list(APPEND assay_exported assay_build_options)
  endif()
  foreach(package fmt nlohmann_json Threads OpenMP)
    if("${links}" MATCHES "(^|;)${package}::")
      string(APPEND ASSAY_PACKAGE_DEPENDENCIES "find_dependency(${package})\n")
    endif()
  endforeach()
endforeach()
list(REMOVE_DUPLICATES assay_exported)
foreach(target IN LISTS assay_exported)
  string(REPLACE "assay_" "" export_name ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${export_name})
endforeach()
install(TARGETS ${assay_exported} EXPORT assayTargets ARCHIVE DESTINATION lib)
install(EXPORT assayTargets NAMESPACE assay:: DESTINATION ${assay_package_dir})

foreach(headers sdk/include sdk/compute/include sdk/comm/include sdk/data/include sdk/workload/include
        sdk/train/include sdk/models/include sdk/parallel/include sdk/verification/include sdk/mesh/include)
  if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/${headers}")
    install(DIRECTORY ${headers}/assay DESTINATION include FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
  endif()
endforeach()

# The package's files lie in the build tree as they do in the installed one, so that CMAKE_PREFIX_PATH may name either:
# what `assay new plugin` writes builds against a host that was never installed.
set(ASSAY_HOST_PATH bin/assay)
set(ASSAY_LIBRARY_PATH lib/assay)
set(assay_package_build_dir "${PROJECT_BINARY_DIR}/${assay_package_dir}")
configure_package_config_file(cmake/assayConfig.cmake.in "${assay_package_build_dir}/assayConfig.cmake"
                              INSTALL_DESTINATION ${assay_package_dir} PATH_VARS ASSAY_HOST_PATH ASSAY_LIBRARY_PATH)
write_basic_package_version_file("${assay_package_build_dir}/assayConfigVersion.cmake" COMPATIBILITY SameMajorVersion)
foreach(file AssayAddPlugin.cmake AssayPluginTest.cmake assay_plugin.map)
  configure_file(cmake/${file} "${assay_package_build_dir}/${file}" COPYONLY)
endforeach()
export(EXPORT assayTargets NAMESPACE assay:: FILE "${assay_package_build_dir}/assayTargets.cmake")
foreach(file assayConfig.cmake assayConfigVersion.cmake AssayAddPlugin.cmake AssayPluginTest.cmake assay_plugin.map)
  install(FILES "${assay_package_build_dir}/${file}" DESTINATION ${assay_package_dir})
endforeach()
