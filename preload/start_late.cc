#include "preload/start_late.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/auxv.h>

#include "preload/got_patch.h"
#include "preload/record_event.h"
#include "preload/route.h"

namespace gmt::preload {
namespace {

// Sentences in the caller's memory, cut to what fits.
class Text {
 public:
  Text(char* memory, size_t capacity) : rest_(memory), capacity_(capacity) {
    if (capacity_ != 0) *rest_ = '\0';
  }

  __attribute__((format(printf, 2, 3))) void Add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(rest_, capacity_, format, arguments);
    va_end(arguments);
    size_t written = n < 0 ? 0 : static_cast<size_t>(n);
    if (written >= capacity_) written = capacity_ == 0 ? 0 : capacity_ - 1;
    rest_ += written;
    capacity_ -= written;
  }

 private:
  char* rest_;
  size_t capacity_;
};

void Describe(Text* text) {
  const Patched patched = WhatIsPatched();
  text->Add("calls of %u of %u loaded libraries are caught", patched.caught, patched.modules);
  if (BeganAfterTheDriver())
    text->Add("; the GPU was in use already: what was allocated before is not known");
  if (*KeptByOthers() != '\0')
    text->Add("; what has addresses of the driver's functions already calls them unseen: %s",
              KeptByOthers());
  if (patched.refused != 0)
    text->Add("; %u addresses could not be changed, and calls through them are not seen",
              patched.refused);
  if (patched.overflow != 0)
    text->Add("; there are more libraries than can be watched: %u were left out", patched.overflow);
}

}  // namespace

int StartLate(char* memory, size_t capacity) {
  const KeepErrno keep;
  Text text(memory, capacity);
  switch (RouteTaken()) {
    case Route::kPreload:
      text.Add("preloaded");
      return 0;
    case Route::kInjection:
      text.Add("injected by the driver");
      return 0;
    case Route::kStart:
      text.Add("begun before");
      return 0;
    case Route::kNone:
      break;
  }
  if (getauxval(AT_SECURE) != 0) {
    text.Add("the program runs with more rights than who started it");
    return -1;
  }
  char path[PATH_MAX] = "";
  if (AnotherCopyCatches(path, sizeof(path)) || !BeginLate(Route::kStart)) {
    text.Add("%s", path);
    return -1;
  }
  Describe(&text);
  return 1;
}

}  // namespace gmt::preload
