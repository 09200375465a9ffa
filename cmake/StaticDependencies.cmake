# The dependencies that GMT_STATIC_DEPENDENCIES links into the programs instead of requiring them
# on the user's machine: abseil, protobuf, fmt, spdlog, libevent and the C++ runtime. C libraries
# (libdw, zstd and their dependencies) stay shared; they are shipped next to the programs and found
# by run path. The preloaded library needs only libc and is not affected.

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

# Debian's shared libevent requires a newer glibc than the bundle may (cmake/glibc_floor.c).
function(gmt_link_libevent_statically)
  find_library(LIBEVENT_EXTRA_ARCHIVE libevent_extra.a HINTS ${libevent_LIBRARY_DIRS} REQUIRED)
  find_library(LIBEVENT_CORE_ARCHIVE libevent_core.a HINTS ${libevent_LIBRARY_DIRS} REQUIRED)
  set_target_properties(PkgConfig::libevent PROPERTIES
    INTERFACE_LINK_LIBRARIES "${LIBEVENT_EXTRA_ARCHIVE};${LIBEVENT_CORE_ARCHIVE}")
endfunction()

# The archives are not position independent, hence -no-pie. DT_RPATH instead of DT_RUNPATH, because
# it also applies to the dependencies of the copied libraries, and because the LD_LIBRARY_PATH of a
# training job must not override it.
add_library(gmt_glibc_floor STATIC ${PROJECT_SOURCE_DIR}/cmake/glibc_floor.c)
target_compile_definitions(gmt_glibc_floor PRIVATE _GNU_SOURCE)
target_link_libraries(gmt_sanitize INTERFACE gmt_glibc_floor)
target_link_options(gmt_sanitize INTERFACE LINKER:--undefined=arc4random,--undefined=arc4random_buf)
add_link_options(
  "$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie;-static-libstdc++;-static-libgcc;LINKER:--disable-new-dtags>")
set(CMAKE_BUILD_RPATH "$ORIGIN/../lib")

# The preloaded library loads no library of the project.
cmake_language(DEFER CALL set_property TARGET gpumemtrace PROPERTY BUILD_RPATH "")
