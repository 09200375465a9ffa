// preload/api.h
//
// Functions that this library exports for programs that have it loaded, by dlsym or ctypes.

#ifndef GMT_PRELOAD_API_H_
#define GMT_PRELOAD_API_H_

extern "C" {

// Whether Python's frames would be in stacks here, found out by trying: "on", or why not. The frames
// of the caller are read, and compared with what the interpreter says of them. To be called with the
// GIL held (ctypes.PyDLL). Starts no session. The text lives as long as the process.
//
// Thread safety: one call at a time, which the GIL sees to.
const char* gpumemtrace_python_status();

}  // extern "C"

#endif  // GMT_PRELOAD_API_H_
