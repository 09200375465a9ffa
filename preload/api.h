// preload/api.h
//
// Functions that this library exports for programs that have it loaded, by dlsym or ctypes.

#ifndef GMT_PRELOAD_API_H_
#define GMT_PRELOAD_API_H_

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

#endif  // GMT_PRELOAD_API_H_
