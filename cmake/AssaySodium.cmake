# libsodium, as the target assay::sodium. The static library where there is one, so that neither an installed tree nor a
# bundle needs another file on the machine that it is copied to.
find_path(ASSAY_SODIUM_INCLUDE sodium.h DOC "The folder of libsodium's sodium.h")
find_library(ASSAY_SODIUM_LIBRARY NAMES libsodium.a sodium DOC "libsodium, static or shared")
mark_as_advanced(ASSAY_SODIUM_INCLUDE ASSAY_SODIUM_LIBRARY)
if(NOT ASSAY_SODIUM_INCLUDE OR NOT ASSAY_SODIUM_LIBRARY)
  message(FATAL_ERROR "libsodium is missing, by which ranks prove that they belong together. On Debian and Ubuntu: "
                      "apt-get install libsodium-dev; elsewhere give its folder in CMAKE_PREFIX_PATH")
endif()
add_library(assay::sodium UNKNOWN IMPORTED GLOBAL)
set_target_properties(assay::sodium PROPERTIES IMPORTED_LOCATION "${ASSAY_SODIUM_LIBRARY}"
                                               INTERFACE_LINK_LIBRARIES Threads::Threads)
# Not /usr/include: naming it would change the order in which the standard headers are looked for.
if(NOT ASSAY_SODIUM_INCLUDE STREQUAL "/usr/include")
  set_property(TARGET assay::sodium PROPERTY INTERFACE_INCLUDE_DIRECTORIES "${ASSAY_SODIUM_INCLUDE}")
endif()
if(NOT ASSAY_SODIUM_LIBRARY MATCHES "\\.so")
  target_compile_definitions(assay::sodium INTERFACE SODIUM_STATIC=1)
endif()
