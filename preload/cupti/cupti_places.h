// preload/cupti/cupti_places.h
//
// Where NVIDIA's toolkits and packages put libcupti, seen from the runtime that a process has loaded.

#ifndef GMT_PRELOAD_CUPTI_CUPTI_PLACES_H_
#define GMT_PRELOAD_CUPTI_CUPTI_PLACES_H_

#include <stddef.h>

namespace gmt::preload {

// Writes the i-th place in which to look for libcupti.so.MAJOR beside a runtime that was loaded from
// `runtime`. False past the last, or where it does not fit.
bool PlaceBesideRuntime(const char* runtime, unsigned major, int i, char* path, size_t capacity);

// The number at the end of ".../libcudart.so.12", or 0.
unsigned MajorOfRuntime(const char* path);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_CUPTI_PLACES_H_
