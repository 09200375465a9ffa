#include "preload/cupti/cupti_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace gmt::preload {
namespace {

constexpr const char* kPlaces[] = {"", "../../cuda_cupti/lib/", "../../cupti/lib/",
                                   "../extras/CUPTI/lib64/", "../../../extras/CUPTI/lib64/"};
constexpr int kPlaceCount = sizeof(kPlaces) / sizeof(kPlaces[0]);

}  // namespace

unsigned MajorOfRuntime(const char* path) {
  const char* slash = strrchr(path, '/');
  const char* name = slash == nullptr ? path : slash + 1;
  constexpr char kBeginning[] = "libcudart.so.";
  if (strncmp(name, kBeginning, sizeof(kBeginning) - 1) != 0) return 0;
  return static_cast<unsigned>(atoi(name + sizeof(kBeginning) - 1));
}

bool PlaceBesideRuntime(const char* runtime, unsigned major, int i, char* path, size_t capacity) {
  const char* slash = strrchr(runtime, '/');
  if (i >= kPlaceCount || slash == nullptr) return false;
  const int n = snprintf(path, capacity, "%.*s/%slibcupti.so.%u", static_cast<int>(slash - runtime),
                         runtime, kPlaces[i], major);
  return n > 0 && static_cast<size_t>(n) < capacity;
}

}  // namespace gmt::preload
