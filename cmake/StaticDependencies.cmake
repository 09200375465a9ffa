# With GMT_STATIC_DEPENDENCIES all libraries except glibc are linked into the programs, which then
# run on any machine with a sufficiently new glibc (cmake/glibc). The preloaded library needs
# only libc and is not affected.

if(NOT GMT_STATIC_DEPENDENCIES)
  return()
endif()

set(Protobuf_USE_STATIC_LIBS ON)

# Debian has no static archives of fmt and spdlog; header-only they need none. Their own packages
# define targets of the same names and do nothing if these exist.
add_library(gmt_fmt INTERFACE)
target_compile_definitions(gmt_fmt INTERFACE FMT_HEADER_ONLY)
add_library(gmt_spdlog INTERFACE)
target_compile_definitions(gmt_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(gmt_spdlog INTERFACE gmt_fmt)
foreach(library fmt spdlog)
  add_library(${library}::${library} ALIAS gmt_${library})
endforeach()
add_library(fmt::fmt-header-only ALIAS gmt_fmt)
add_library(spdlog::spdlog_header_only ALIAS gmt_spdlog)

# Debian's abseil is found as shared libraries; its archives are next to them. Call this after
# find_package(absl) has created the targets.
function(gmt_link_abseil_statically)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  list(FILTER targets INCLUDE REGEX "^absl::")
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
    if(NOT type STREQUAL "SHARED_LIBRARY" OR NOT configurations)
      continue()
    endif()
    foreach(configuration IN LISTS configurations)
      get_target_property(shared ${target} IMPORTED_LOCATION_${configuration})
      string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive ${shared})
      if(EXISTS ${archive})
        set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_${configuration} ${archive})
      endif()
    endforeach()
  endforeach()
endfunction()

# gmt_find_archives(RESULT NAME...): sets RESULT to the paths of libNAME.a, in that order.
function(gmt_find_archives result)
  set(archives)
  foreach(name IN LISTS ARGN)
    find_library(GMT_ARCHIVE_${name} lib${name}.a REQUIRED)
    mark_as_advanced(GMT_ARCHIVE_${name})
    list(APPEND archives ${GMT_ARCHIVE_${name}})
  endforeach()
  set(${result} ${archives} PARENT_SCOPE)
endfunction()

# gmt_link_archives(TARGET NAME...): links the archives instead of the shared libraries of an
# imported target.
function(gmt_link_archives target)
  gmt_find_archives(archives ${ARGN})
  set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${archives}")
endfunction()

# gmt_link_zlib_statically(): the same for a target that is a library itself.
function(gmt_link_zlib_statically)
  gmt_find_archives(archive z)
  set_target_properties(ZLIB::ZLIB PROPERTIES IMPORTED_LOCATION ${archive} IMPORTED_LOCATION_RELEASE ${archive})
endfunction()

# The archives are not position independent.
add_link_options("$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie;-static-libstdc++;-static-libgcc>")
