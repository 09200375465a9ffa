# Faster full builds (CONTRIBUTING.md, "Build times"). GMT_JOINED_UNITS: compiles sources of a
# target together, so that headers are parsed once for many sources. GMT_PRECOMPILED_HEADERS:
# precompiles the headers that nearly all sources need. Presets for building one changed file at a
# time (`single`) do not use them.
#
# gmt_join_units(TARGET [PLAIN]): compiles TARGET that way. Programs that link GoogleTest get its
#   headers precompiled too. PLAIN: without precompiled headers, for a target that needs few of them
#   or is compiled with other options.
# gmt_reuse_precompiled(TARGET): only the headers, for a target whose sources define the same names
#   differently.

option(GMT_JOINED_UNITS "Compile the sources of a target together" OFF)
option(GMT_PRECOMPILED_HEADERS "Precompile the headers that most sources include" ${GMT_JOINED_UNITS})

if(GMT_JOINED_UNITS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # In KiB. A joined unit needs about 1 GiB anyway; without this, a tenth of its time would be the
  # compiler's garbage collection.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=600000>")
endif()

# GCC accepts a precompiled header only with the same options; without this, these would differ
# between targets.
set(gmt_precompiled_options -fPIC -pthread)

# gmt_precompile(NAME HEADERS...): creates a target whose precompiled headers others reuse.
function(gmt_precompile name)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Its headers are what is compiled.\n")
  add_library(${name} OBJECT ${source})
  target_compile_options(${name} PRIVATE ${gmt_precompiled_options})
  target_link_libraries(${name} PRIVATE gmt::proto gmt_warnings gmt_sanitize)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # With times in it, the compiler cache would not recognize it in another clone.
    target_compile_options(${name} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# Call after adding proto/, whose generated header is one of them.
function(gmt_add_precompiled_headers)
  if(NOT GMT_PRECOMPILED_HEADERS)
    return()
  endif()
  # Not <nlohmann/json.hpp>: the compiler instantiates some of its templates in each source that uses
  # the precompiled header, which costs more than parsing it in the few that need it.
  set(headers <algorithm> <array> <atomic> <chrono> <functional> <map> <memory> <mutex> <optional> <span> <string>
    <string_view> <thread> <unordered_map> <utility> <vector> <absl/container/btree_map.h>
    <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
    <absl/strings/str_format.h> <absl/strings/str_join.h> "<proto/gmt.pb.h>")
  gmt_precompile(gmt_precompiled ${headers})
  if(GMT_BUILD_TESTS)
    gmt_precompile(gmt_precompiled_test ${headers} <gmock/gmock.h> <gtest/gtest.h>)
    target_link_libraries(gmt_precompiled_test PRIVATE GTest::gmock)
    target_compile_options(gmt_precompiled_test PRIVATE ${GMT_TEST_OPTIMIZATION})
  endif()
endfunction()

function(gmt_join_units target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "PLAIN" "" "")
  if(NOT ARG_PLAIN)
    gmt_reuse_precompiled(${target})
  endif()
  if(GMT_JOINED_UNITS)
    # Deferred until the CMakeLists.txt has been read, which may still add sources or set options
    # for some of them.
    cmake_language(EVAL CODE "cmake_language(DEFER CALL gmt_join_sources ${target})")
  endif()
endfunction()

function(gmt_reuse_precompiled target)
  if(NOT GMT_PRECOMPILED_HEADERS)
    return()
  endif()
  target_compile_options(${target} PRIVATE ${gmt_precompiled_options})
  get_target_property(libraries ${target} LINK_LIBRARIES)
  if(libraries MATCHES "GTest::")
    target_precompile_headers(${target} REUSE_FROM gmt_precompiled_test)
  else()
    target_precompile_headers(${target} REUSE_FROM gmt_precompiled)
  endif()
endfunction()

# Replaces CMake's UNITY_BUILD, which includes sources by absolute path, so that no compiler cache
# can serve two clones.
set(gmt_sources_in_a_unit 16)

function(gmt_join_sources target)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  set(joined)
  set(alone)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE OUTPUT_VARIABLE file)
    set(joins FALSE)
    if(file MATCHES "\\.cc$")
      cmake_path(IS_PREFIX PROJECT_SOURCE_DIR ${file} joins)
      cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${file} generated)
      foreach(property GENERATED COMPILE_DEFINITIONS COMPILE_OPTIONS SKIP_UNITY_BUILD_INCLUSION)
        get_source_file_property(value ${file} ${property})
        if(generated OR value)
          set(joins FALSE)
        endif()
      endforeach()
    endif()
    if(joins)
      cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      list(APPEND joined ${file})
    else()
      list(APPEND alone ${source})
    endif()
  endforeach()

  # Distribute the sources evenly over the units.
  list(LENGTH joined count)
  math(EXPR units "(${count} + ${gmt_sources_in_a_unit} - 1) / ${gmt_sources_in_a_unit}")
  set(unit 0)
  while(unit LESS units)
    math(EXPR first "${count} * ${unit} / ${units}")
    math(EXPR length "${count} * (${unit} + 1) / ${units} - ${first}")
    list(SUBLIST joined ${first} ${length} included)
    list(TRANSFORM included REPLACE "(.+)" "#include \"\\1\"\n")
    list(JOIN included "" text)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${target}_unit_${unit}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}")
    list(APPEND alone ${file})
    math(EXPR unit "${unit} + 1")
  endwhile()
  set_target_properties(${target} PROPERTIES SOURCES "${alone}")
endfunction()
