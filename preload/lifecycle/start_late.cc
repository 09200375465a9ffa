#include "preload/lifecycle/start_late.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "preload/lifecycle/attach_thread.h"
#include "preload/lifecycle/exit.h"
#include "preload/lifecycle/start.h"
#include "preload/record/record_event.h"
#include "preload/routes/got_patch.h"
#include "preload/routes/route.h"

namespace gmt::preload {
namespace {

constexpr char kMoreRights[] =
    "the program runs with more rights than who started it. A copy of it without set-user-ID or file "
    "capabilities can be recorded";

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
    text->Add(
        RouteTaken() == Route::kAttach
            ? "; what has addresses of the driver's functions already is seen by way of CUPTI, "
              "where that can be had: %s"
            : "; what has addresses of the driver's functions already calls them unseen: %s",
        KeptByOthers());
  if (patched.refused != 0)
    text->Add("; %u addresses could not be changed, and calls through them are not seen",
              patched.refused);
  if (patched.kept != 0)
    text->Add("; %u addresses could not be put back by the last detach", patched.kept);
  if (patched.overflow != 0)
    text->Add("; there are more libraries than can be watched: %u were left out", patched.overflow);
}

// As long as the process: fork children have them, too.
constinit char brought_options[1024] = {};

// Which session, and what is to be known of it.
void DescribeDoor(const Process& p, Text* text) {
  text->Add("%s\n", SessionPath());
  const bool has_door = p.map.has_door();
  switch (RouteTaken()) {
    case Route::kPreload:
      text->Add("preloaded, %s", has_door ? "dormant" : "recorded from its first GPU call on");
      break;
    case Route::kAttach:
      Describe(text);
      break;
    default:
      text->Add("%s", has_door ? "dormant" : "recorded since this library was opened");
  }
}

// Whether the calls of this process come here, which they are made to do where they did not.
bool IsCatching(const char* options, Text* text, bool* is_new) {
  // What a detach has put back is caught again.
  if (RouteTaken() == Route::kAttach) PatchNewModules();
  if (RouteTaken() != Route::kNone) return true;
  if (getauxval(AT_SECURE) != 0) {
    text->Add(kMoreRights);
    return false;
  }
  if (options != nullptr && strlen(options) >= sizeof(brought_options)) {
    text->Add("the options are longer than %zu bytes", sizeof(brought_options) - 1);
    return false;
  }
  char path[PATH_MAX] = "";
  if (AnotherCopyCatches(path, sizeof(path))) {
    text->Add("another copy of this library is in the process: %s", path);
    return false;
  }
  if (options != nullptr) strcpy(brought_options, options);
  *is_new = BeginLate(Route::kAttach);
  if (!*is_new) text->Add("its calls cannot be caught");
  return *is_new;
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
    case Route::kAttach:
      text.Add("brought in by gpumemtrace attach, which says when to record");
      return 0;
    case Route::kNone:
      break;
  }
  if (getauxval(AT_SECURE) != 0) {
    text.Add(kMoreRights);
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

int AttachFromInside(const char* options, char* memory, size_t capacity) {
  const KeepErrno keep;
  Text text(memory, capacity);
  bool is_new = false;
  if (!IsCatching(options, &text, &is_new)) return -1;
  const bool was_begun = Process::HasBegun();
  // Preloaded, and without a GPU call so far: that will be recorded as it was asked for.
  if (!was_begun && RouteTaken() != Route::kAttach && !IsToBeDormant()) {
    text.Add("it has made no GPU call, and will be recorded from its first one on");
    return -1;
  }
  const Process* p = Process::OpenDoor();
  if (p == nullptr || SessionPath()[0] == '\0') {
    text.Add("it has no session: there is no shared memory for it, or its options turn it off");
    return -1;
  }
  DescribeDoor(*p, &text);
  if (RouteTaken() == Route::kAttach && *KeptByOthers() != '\0') BeginAttachAside();
  return was_begun && !is_new ? 0 : 1;  // a call of another thread may have come first
}

int LetGoFromInside(char* memory, size_t capacity) {
  const KeepErrno keep;
  Text text(memory, capacity);
  const Process* p = Process::IfDormant();
  if (RouteTaken() != Route::kAttach) {
    text.Add("it was not brought in by gpumemtrace attach");
  } else if (p == nullptr || p->door.IsTurned()) {
    text.Add("somebody is attached");
  } else {
    RestoreSlots();
    return 0;
  }
  return -1;
}

const char* BroughtOptions() { return brought_options; }

}  // namespace gmt::preload
