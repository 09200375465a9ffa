# gpumemtrace::gpumemtrace: the header gpumemtrace.h, with which a program marks its recording.
if(NOT TARGET gpumemtrace::gpumemtrace)
  # This file is in PREFIX/lib/TRIPLET/cmake/gpumemtrace; /lib may be a link to /usr/lib.
  get_filename_component(gpumemtrace_include_dir "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
  get_filename_component(gpumemtrace_include_dir "${gpumemtrace_include_dir}/../../../../include" ABSOLUTE)
  add_library(gpumemtrace::gpumemtrace INTERFACE IMPORTED)
  set_target_properties(gpumemtrace::gpumemtrace PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${gpumemtrace_include_dir}" INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS}")
endif()
