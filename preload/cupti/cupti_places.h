// preload/cupti/cupti_places.h
//
// The locations in which NVIDIA's toolkits and packages install libcupti, relative to a loaded
// runtime.

#ifndef GMT_PRELOAD_CUPTI_CUPTI_PLACES_H_
#define GMT_PRELOAD_CUPTI_CUPTI_PLACES_H_

#include <stddef.h>

namespace gmt::preload {

// Writes the i-th location of libcupti.so.MAJOR for a runtime that was loaded from `runtime`.
// Returns false past the last one, or if the path does not fit.
bool PlaceBesideRuntime(const char* runtime, unsigned major, int i, char* path, size_t capacity);

// Returns the number at the end of ".../libcudart.so.12", or 0.
unsigned MajorOfRuntime(const char* path);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_CUPTI_PLACES_H_
