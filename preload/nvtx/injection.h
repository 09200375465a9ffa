// preload/nvtx/injection.h
//
// How NVTX and this library find each other. NVTX consists of headers only: every library that uses
// it has a copy, and each copy looks for a tool at its own first call, by the path in
// NVTX_INJECTION64_PATH. If that is this library, the copy asks InitializeInjectionNvtx2 (and, for
// its extensions, InitializeInjectionNvtxExtension) for functions, and calls those from then on.
// The library is already loaded by then, and the loader returns the same image.
//
// A tool that the user had set in that variable still works: `gpumemtrace run` passes its path on
// in GPUMEMTRACE_NVTX_INJECTION. That library is loaded and given the tables first, and each of its
// functions is called in addition to ours, with the program's arguments.
//
// Thread safety: all functions may be called from any thread.

#ifndef GMT_PRELOAD_NVTX_INJECTION_H_
#define GMT_PRELOAD_NVTX_INJECTION_H_

#include "preload/process/process.h"

namespace gmt::preload {

inline constexpr char kNvtxInjection[] = "NVTX_INJECTION64_PATH";
inline constexpr char kNvtxOtherInjection[] = "GPUMEMTRACE_NVTX_INJECTION";

// To be called when a session has started, on the thread that started it. Records what the session
// missed (names, heaps, the ranges that are open on this thread) and whether NVTX calls are seen.
void RecordNvtxState(Process* p);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_INJECTION_H_
