// preload/cupti/cupti_library.h
//
// CuptiLibrary: the functions of a libcupti, as pointers. It is never linked, so that this library
// loads without it and works with any version.
//
// Thread safety: filled once, then constant.

#ifndef GMT_PRELOAD_CUPTI_CUPTI_LIBRARY_H_
#define GMT_PRELOAD_CUPTI_CUPTI_LIBRARY_H_

#include <cupti.h>
#include <stddef.h>

namespace gmt::preload {

// Functions that are indispensable.
#define GMT_CUPTI_NEEDED(FUNCTION)    \
  FUNCTION(GetVersion)                \
  FUNCTION(Subscribe)                 \
  FUNCTION(Unsubscribe)               \
  FUNCTION(EnableCallback)            \
  FUNCTION(ActivityEnable)            \
  FUNCTION(ActivityDisable)           \
  FUNCTION(ActivityRegisterCallbacks) \
  FUNCTION(ActivityGetNextRecord)     \
  FUNCTION(ActivityFlushAll)          \
  FUNCTION(GetTimestamp)

// Functions that some versions lack.
#define GMT_CUPTI_OPTIONAL(FUNCTION) \
  FUNCTION(Subscribe_v2)             \
  FUNCTION(GetResultString)          \
  FUNCTION(GetContextId)             \
  FUNCTION(GetDeviceId)              \
  FUNCTION(GetStreamIdEx)            \
  FUNCTION(ActivityFlushPeriod)      \
  FUNCTION(ActivityGetAttribute)     \
  FUNCTION(ActivitySetAttribute)     \
  FUNCTION(ActivityGetNumDroppedRecords)

struct CuptiLibrary {
#define GMT_POINTER(name) decltype(&::cupti##name) name;
  GMT_CUPTI_NEEDED(GMT_POINTER)
  GMT_CUPTI_OPTIONAL(GMT_POINTER)
#undef GMT_POINTER
  void* handle;
  uint32_t version;  // from cuptiGetVersion: 130001; before 13.0 a small number
  char name[64];     // "libcupti.so.13"

  // Takes the functions of an open library. Returns false, with the name of the first missing
  // function, if an indispensable one is missing.
  bool Resolve(void* open, const char** lacks);
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_CUPTI_LIBRARY_H_
