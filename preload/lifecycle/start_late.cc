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
    "the program is privileged (set-user-ID or file capabilities). A copy of it without these can "
    "be recorded";

// Sentences in the caller's memory, truncated to what fits.
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
  const PatchCounts patched = GetPatchCounts();
  text->Add("calls of %u of %u loaded libraries are intercepted", patched.caught, patched.modules);
  if (BeganAfterTheDriver())
    text->Add("; the GPU was already in use: earlier allocations are unknown");
  if (*KeptByOthers() != '\0')
    text->Add(
        RouteTaken() == Route::kAttach
            ? "; modules that already have addresses of driver functions, seen through CUPTI if it "
              "is available: %s"
            : "; modules that already have addresses of driver functions, whose calls through them "
              "are not seen: %s",
        KeptByOthers());
  if (patched.refused != 0)
    text->Add("; %u addresses could not be changed, and calls through them are not seen",
              patched.refused);
  if (patched.kept != 0)
    text->Add("; the last detach could not restore %u addresses", patched.kept);
  if (patched.overflow != 0)
    text->Add("; too many libraries to track: %u were left out", patched.overflow);
}

// Cache: the options with which the library was injected; fork children have the same.
constinit char injected_options[1024] = {};

// Describes the session and how calls are intercepted.
void DescribeRoute(const Process& p, Text* text) {
  text->Add("%s\n", SessionPath());
  const bool has_attach_gate = p.map.has_attach_gate();
  switch (RouteTaken()) {
    case Route::kPreload:
      text->Add("preloaded, %s",
                has_attach_gate ? "dormant" : "recorded from its first GPU call on");
      break;
    case Route::kAttach:
      Describe(text);
      break;
    default:
      text->Add("%s", has_attach_gate ? "dormant" : "recorded since this library was opened");
  }
}

// Returns whether this process's calls are intercepted here, after starting that if necessary.
bool IsCatching(const char* options, Text* text, bool* is_new) {
  // Slots that a detach has restored are patched again.
  if (RouteTaken() == Route::kAttach) PatchNewModules();
  if (RouteTaken() != Route::kNone) return true;
  if (getauxval(AT_SECURE) != 0) {
    text->Add(kMoreRights);
    return false;
  }
  if (options != nullptr && strlen(options) >= sizeof(injected_options)) {
    text->Add("the options are longer than %zu bytes", sizeof(injected_options) - 1);
    return false;
  }
  char path[PATH_MAX] = "";
  if (AnotherCopyCatches(path, sizeof(path))) {
    text->Add("another copy of this library is in the process: %s", path);
    return false;
  }
  if (options != nullptr) strcpy(injected_options, options);
  *is_new = BeginLate(Route::kAttach);
  if (!*is_new) text->Add("its calls cannot be intercepted");
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
      text.Add("already started");
      return 0;
    case Route::kAttach:
      text.Add("injected by gpumemtrace attach, which controls when to record");
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
  // Preloaded, and without a GPU call so far: it will be recorded as requested at its start.
  if (!was_begun && RouteTaken() != Route::kAttach && !IsToBeDormant()) {
    text.Add("it has made no GPU call, and will be recorded from its first one on");
    return -1;
  }
  const Process* p = Process::MakeAttachable();
  if (p == nullptr || SessionPath()[0] == '\0') {
    text.Add("it has no session: there is no shared memory for it, or its options turn it off");
    return -1;
  }
  DescribeRoute(*p, &text);
  if (RouteTaken() == Route::kAttach && *KeptByOthers() != '\0') StartAttachThread();
  return was_begun && !is_new ? 0 : 1;  // another thread's call may have come first
}

int UndoAttachFromInside(char* memory, size_t capacity) {
  const KeepErrno keep;
  Text text(memory, capacity);
  const Process* p = Process::IfDormant();
  if (RouteTaken() != Route::kAttach) {
    text.Add("it was not injected by gpumemtrace attach");
  } else if (p == nullptr || p->attach_gate.HasPendingRequest()) {
    text.Add("a client is attached");
  } else {
    RestoreSlots();
    return 0;
  }
  return -1;
}

const char* InjectedOptions() { return injected_options; }

}  // namespace gmt::preload
