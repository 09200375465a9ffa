// preload/lifecycle/api.h
//
// Functions that this library exports for programs that have it loaded, by dlsym or ctypes.

#ifndef GMT_PRELOAD_LIFECYCLE_API_H_
#define GMT_PRELOAD_LIFECYCLE_API_H_

#include <stddef.h>
#include <stdint.h>

extern "C" {

// Whether Python's frames would be in stacks here, found out by trying: "on", or why not. The frames
// of the caller are read, and compared with what the interpreter says of them. To be called with the
// GIL held (ctypes.PyDLL). Starts no session. The text lives as long as the process.
//
// Thread safety: one call at a time, which the GIL sees to.
const char* gpumemtrace_python_status();

// Which libcupti a process would take that is loaded like this one: "on: " and its name and version,
// or "off: " and why none. It is loaded for that. The text lives as long as the process.
//
// Thread safety: one call at a time.
const char* gpumemtrace_cupti_status();

// For processes that were not started with this library preloaded. Begins to catch their calls of the
// GPU, which are recorded from the next one on that takes memory. `text`, of `capacity` bytes, gets
// what is to be known about it: of which libraries calls are caught, and which keep addresses of the
// driver's functions that they asked for before, so that what they do is not seen. Returns
//   1  they are caught from now on
//   0  they have been already: preloaded, injected by the driver, or begun before
//  -1  nothing is caught here; text says why. Where another copy of this library does so, text is
//      the path of its file
// Takes the loader's lock. Thread safety: any thread.
int gpumemtrace_start(char* text, size_t capacity);

// For who attaches to this process from outside: opens the door of attach (session/layout.h), through
// which recordings are begun and ended as often as wanted. Nothing is recorded by this alone. Where
// this library was not preloaded, calls are caught from now on, as gpumemtrace_start has it.
// `options`: as in GPUMEMTRACE; nullptr: none. They hold for every attach. `text` gets the path of the
// session's file, and behind a newline what is to be known, in sentences. Returns
//   1  the door is open from now on
//   0  the process has its session already, with a door (Control.attach_door) or, recorded from its
//      beginning, without; text is the same
//  -1  there will be none; text says why
// Takes the loader's lock. Thread safety: any thread.
int gpumemtrace_attach(const char* options, char* text, size_t capacity);

// For who attached and gave up before a recording began: catches no calls any more, where this library
// was brought in and nothing is recorded. The same arguments; `options` has no meaning. Returns 0, or -1
// and says why not. Takes the loader's lock. Thread safety: any thread.
int gpumemtrace_let_go(const char* options, char* text, size_t capacity);

// 1 where it is this copy of the library that calls of the GPU come to, else 0. How several copies in
// one process agree on one.
int gpumemtrace_catching();

// The driver calls it inside cuInit, in the library that CUDA_INJECTION64_PATH names. Returns 1.
int InitializeInjection();

// What follows does nothing in a process that is not being recorded, which it is from its first GPU
// call that takes memory. Thread safety: any thread, without the GIL as well. Names are copied, and
// may be of any length up to 1024 bytes.

// 1 while this process is being recorded, else 0.
int gpumemtrace_recording();

// A moment with a name, and an index or UINT64_MAX. Marks of one name that come again and again are
// taken for cycles: "step".
void gpumemtrace_mark(const char* name, uint64_t index);

// From now to gpumemtrace_range_end with the number given back. 0: not recorded.
uint64_t gpumemtrace_range_begin(const char* name);
void gpumemtrace_range_end(uint64_t range);

// Has what is held now written down under that name. Returns at once: 1, or 0 where nobody will do
// so.
int gpumemtrace_snapshot(const char* name);

}  // extern "C"

#endif  // GMT_PRELOAD_LIFECYCLE_API_H_
