// preload/nvtx/other_tool.h
//
// OtherTool: the injection library that the user had chosen for NVTX, which stands behind this one.
//
// Loaded once, when a copy of NVTX first asks; where that fails, one line on stderr says why.
//
// Thread safety: all functions from any thread; who comes while another one loads it waits.

#ifndef GMT_PRELOAD_NVTX_OTHER_TOOL_H_
#define GMT_PRELOAD_NVTX_OTHER_TOOL_H_

#include "preload/nvtx/nvtx_headers.h"

namespace gmt::preload {

struct OtherTool {
  NvtxInitializeInjectionNvtxFunc_t initialize;           // nullptr: there is none
  NvtxExtInitializeInjectionFunc_t initialize_extension;  // nullptr: it has none

  static const OtherTool& Get();
  // "on", and what there is beside it.
  static const char* Status();
};

// In a process that has this library twice, the entry point of the one that was preloaded, whose
// hooks are those that are called; nullptr in that one itself, and where there is no other.
void* EntryOfFirstCopy(const char* name);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_OTHER_TOOL_H_
