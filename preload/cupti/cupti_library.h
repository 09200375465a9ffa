// preload/cupti/cupti_library.h
//
// CuptiLibrary: the functions of a libcupti, by pointer. Never linked, so that this library loads
// where there is none, and so that its version may be any.
//
// Thread safety: filled once, then constant.

#ifndef GMT_PRELOAD_CUPTI_CUPTI_LIBRARY_H_
#define GMT_PRELOAD_CUPTI_CUPTI_LIBRARY_H_

#include <cupti.h>
#include <stddef.h>

namespace gmt::preload {

// Functions without which there is nothing to do.
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
  uint32_t version;  // as cuptiGetVersion tells: 130001; before 13.0 a small number
  char name[64];     // "libcupti.so.13"

  // Takes the functions of an open library. False, with the name of the first function that it
  // lacks, where one is needed.
  bool Resolve(void* open, const char** lacks);
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_CUPTI_LIBRARY_H_
