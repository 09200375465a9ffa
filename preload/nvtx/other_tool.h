// preload/nvtx/other_tool.h
//
// OtherTool: the NVTX injection library that the user had selected, which is called after this one.
//
// It is loaded once, when a copy of NVTX first asks. If loading fails, one line on stderr gives the
// reason.
//
// Thread safety: all functions may be called from any thread. Other callers wait while one thread
// loads it.

#ifndef GMT_PRELOAD_NVTX_OTHER_TOOL_H_
#define GMT_PRELOAD_NVTX_OTHER_TOOL_H_

#include "preload/nvtx/nvtx_headers.h"

namespace gmt::preload {

struct OtherTool {
  NvtxInitializeInjectionNvtxFunc_t initialize;           // nullptr: there is none
  NvtxExtInitializeInjectionFunc_t initialize_extension;  // nullptr: not provided

  static const OtherTool& Get();
  // Returns "on", followed by a description of the other tool, if any.
  static const char* Status();
};

// In a process that contains this library twice, returns the entry point of the preloaded copy,
// whose hooks are the ones called; nullptr in that copy itself, and if there is no other.
void* EntryOfFirstCopy(const char* name);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_OTHER_TOOL_H_
