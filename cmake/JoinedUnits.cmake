# GMT_JOINED_UNITS: whole builds in a third of the time (CONTRIBUTING.md, "Build times"). Sources of one target are
# compiled together, so that headers are parsed once for many of them, and the headers that nearly all of them need are
# precompiled. Presets that build one changed file at a time (`single`) do without.
#
# gmt_join_units(TARGET): compiles TARGET that way; a program that links GoogleTest finds its headers precompiled too.

option(GMT_JOINED_UNITS "Compile the sources of a target together, with precompiled headers" OFF)

# Without the same options GCC does not take a precompiled header: it would differ in these, from target to target.
set(gmt_joined_options -fPIC -pthread)

# gmt_precompile(NAME HEADERS...): a target whose headers others reuse.
function(gmt_precompile name)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Its headers are what is compiled.\n")
  add_library(${name} OBJECT ${source})
  target_compile_options(${name} PRIVATE ${gmt_joined_options})
  target_link_libraries(${name} PRIVATE gmt::proto gmt_warnings gmt_sanitize)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

# After proto/, whose generated header is one of them.
function(gmt_add_precompiled_headers)
  if(NOT GMT_JOINED_UNITS)
    return()
  endif()
  set(headers <algorithm> <array> <atomic> <chrono> <functional> <map> <memory> <mutex> <optional> <span> <string>
    <string_view> <thread> <unordered_map> <utility> <vector> <absl/container/btree_map.h>
    <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
    <absl/strings/str_format.h> <absl/strings/str_join.h> <nlohmann/json.hpp> "<proto/gmt.pb.h>")
  gmt_precompile(gmt_precompiled ${headers})
  if(GMT_BUILD_TESTS)
    gmt_precompile(gmt_precompiled_test ${headers} <gmock/gmock.h> <gtest/gtest.h>)
    target_link_libraries(gmt_precompiled_test PRIVATE GTest::gmock)
  endif()
endfunction()

function(gmt_join_units target)
  if(NOT GMT_JOINED_UNITS)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  target_compile_options(${target} PRIVATE ${gmt_joined_options})
  get_target_property(libraries ${target} LINK_LIBRARIES)
  if(libraries MATCHES "GTest::")
    target_precompile_headers(${target} REUSE_FROM gmt_precompiled_test)
  else()
    target_precompile_headers(${target} REUSE_FROM gmt_precompiled)
  endif()
endfunction()
