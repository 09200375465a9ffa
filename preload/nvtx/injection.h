// preload/nvtx/injection.h
//
// How NVTX and this library find each other. NVTX is headers only: every library that uses it has a
// copy, and each copy looks for a tool at its own first call, by the path in NVTX_INJECTION64_PATH.
// Where that is this library, the copy asks InitializeInjectionNvtx2 (and, of its extensions,
// InitializeInjectionNvtxExtension) for functions, and calls those from then on. The library is
// loaded already then, and the loader hands out the same image.
//
// Who had a tool of their own in that variable still has it: `gpumemtrace run` passes the path on in
// GPUMEMTRACE_NVTX_INJECTION. That library is loaded, given the tables first, and each of its
// functions is called beside ours, with the arguments that the program gave.
//
// Thread safety: all functions from any thread.

#ifndef GMT_PRELOAD_NVTX_INJECTION_H_
#define GMT_PRELOAD_NVTX_INJECTION_H_

#include "preload/process/process.h"

namespace gmt::preload {

inline constexpr char kNvtxInjection[] = "NVTX_INJECTION64_PATH";
inline constexpr char kNvtxOtherInjection[] = "GPUMEMTRACE_NVTX_INJECTION";

// To be called when a session has started, on the thread that started it: tells the session what it
// missed (names, heaps, the ranges that are open on this thread) and whether NVTX is seen.
void TellNvtx(Process* p);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_INJECTION_H_
