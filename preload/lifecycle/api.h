// preload/lifecycle/api.h
//
// Functions that this library exports for programs that have it loaded (by dlsym or ctypes).

#ifndef GMT_PRELOAD_LIFECYCLE_API_H_
#define GMT_PRELOAD_LIFECYCLE_API_H_

#include <stddef.h>
#include <stdint.h>

extern "C" {

// Tests whether stacks recorded here would include Python frames. Returns "on", or why not. Reads
// the frames of the caller and compares them with what the interpreter reports. Starts no session.
// The text lives as long as the process. REQUIRES: the GIL is held (ctypes.PyDLL).
//
// Thread safety: one call at a time, ensured by the GIL.
const char* gpumemtrace_python_status();

// Returns which libcupti a process would use if it were loaded like this one: "on: " and its name
// and version, or "off: " and the reason. Loads that library to find out. The text lives as long as
// the process.
//
// Thread safety: one call at a time.
const char* gpumemtrace_cupti_status();

// For processes that were not started with this library preloaded: starts intercepting their GPU
// calls. Recording begins with the next call that allocates memory. Writes details to `text`, of
// `capacity` bytes: the libraries whose calls are intercepted, and those that cached addresses of
// driver functions before, whose calls are not seen. Returns
//   1  intercepted from now on
//   0  already intercepted: preloaded, injected by the driver, or started before
//  -1  not intercepted here; text is the reason. If another copy of this library does it, text is
//      the path of its file
// Takes the loader's lock. Thread safety: any thread.
int gpumemtrace_start(char* text, size_t capacity);

// On behalf of a client that attaches from outside: makes the process attachable (session/layout.h,
// attach gate), so that recordings can be begun and ended any number of times. This call alone
// records nothing. If this library was not preloaded, starts intercepting calls as
// gpumemtrace_start does. `options`: as in GPUMEMTRACE, or nullptr for none; they apply to every
// attach. `text` receives the path of the session's file and, after a newline, details in
// sentences. Returns
//   1  attachable from now on
//   0  the process already has its session, either with an attach gate (Control) or, if it has been
//      recorded from its start, without one; text is the same
//  -1  there will be no session; text is the reason
// Takes the loader's lock. Thread safety: any thread.
int gpumemtrace_attach(const char* options, char* text, size_t capacity);

// On behalf of a client that gave up before a recording began: stops intercepting calls if this
// library was injected and nothing is being recorded. Takes the same arguments; `options` is
// ignored. Returns 0, or -1 with the reason in text. Takes the loader's lock. Thread safety: any
// thread.
int gpumemtrace_undo_attach(const char* options, char* text, size_t capacity);

// Returns 1 if this copy of the library intercepts GPU calls, otherwise 0. Several copies in one
// process use it to agree on one.
int gpumemtrace_catching();

// Called by the driver inside cuInit, in the library that CUDA_INJECTION64_PATH names. Returns 1.
int InitializeInjection();

// The following functions do nothing unless the process is being recorded, which begins with its
// first GPU call that allocates memory. Thread safety: any thread, with or without the GIL. Names
// are copied and may have up to 1024 bytes.

// Returns 1 while this process is being recorded, otherwise 0.
int gpumemtrace_recording();

// Records a named moment, with an index or UINT64_MAX for none. Recurring marks of one name
// ("step") are taken as cycles.
void gpumemtrace_mark(const char* name, uint64_t index);

// Begins a range that lasts until gpumemtrace_range_end() is called with the returned number.
// Returns 0 if not recording.
uint64_t gpumemtrace_range_begin(const char* name);
void gpumemtrace_range_end(uint64_t range);

// Requests a snapshot of what is live, under that name. Returns immediately: 1, or 0 if no
// collector will write it.
int gpumemtrace_snapshot(const char* name);

}  // extern "C"

#endif  // GMT_PRELOAD_LIFECYCLE_API_H_
