#include "preload/nvtx/other_tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "preload/base/message.h"
#include "preload/base/own_stack.h"
#include "preload/loader/loader.h"
#include "preload/loader/own_image.h"
#include "preload/nvtx/injection.h"

namespace gmt::preload {
namespace {

constexpr uint32_t kUnknown = 0, kKnown = UINT32_MAX;

// State: until it is kKnown, `state` is the process that loads the tool. A fork child inherits the
// number but not the thread.
constinit OtherTool tool = {};
constinit char status[192] = "on";
constinit std::atomic<uint32_t> state{kUnknown};

const char* FileName(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// Leaves the program's dlerror() unchanged if loading succeeds.
void Load() {
  const char* path = getenv(kNvtxOtherInjection);
  if (path == nullptr || *path == '\0') return;
  void* library = dlopen(path, RTLD_LAZY);
  if (library == nullptr) {
    const char* why = dlerror();
    snprintf(status, sizeof(status), "on; %s could not be loaded", FileName(path));
    const HeldSignals held;
    return Say("%s: %s could not be loaded: %s", kNvtxOtherInjection, path,
               why == nullptr ? "no reason given" : why);
  }
  void* initialize = LibcDlsym(library, "InitializeInjectionNvtx2");
  if (initialize == nullptr || InOwnImage(initialize)) {
    if (initialize == nullptr)
      snprintf(status, sizeof(status), "on; %s does not handle NVTX calls", FileName(path));
    dlerror();
    return;
  }
  tool.initialize = reinterpret_cast<NvtxInitializeInjectionNvtxFunc_t>(initialize);
  tool.initialize_extension = reinterpret_cast<NvtxExtInitializeInjectionFunc_t>(
      LibcDlsym(library, "InitializeInjectionNvtxExtension"));
  dlerror();
  snprintf(status, sizeof(status), "on; calls are passed on to %s", FileName(path));
}

}  // namespace

const OtherTool& OtherTool::Get() {
  const auto here = static_cast<uint32_t>(getpid());
  uint32_t seen = state.load(std::memory_order_acquire);
  if (seen != kKnown && seen != here &&
      state.compare_exchange_strong(seen, here, std::memory_order_acq_rel)) {
    Load();
    state.store(kKnown, std::memory_order_release);
  }
  while (state.load(std::memory_order_acquire) != kKnown) {
    const timespec step = {0, 1000000};
    syscall(SYS_nanosleep, &step, nullptr);
  }
  return tool;
}

const char* OtherTool::Status() {
  Get();
  return status;
}

void* EntryOfFirstCopy(const char* name) {
  void* first = LibcDlsym(RTLD_DEFAULT, "gpumemtrace_recording");
  Dl_info info;
  if (first == nullptr || InOwnImage(first) || dladdr(first, &info) == 0) return nullptr;
  void* library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* entry = LibcDlsym(library, name);
  LibcDlclose(library);
  return entry;
}

}  // namespace gmt::preload
