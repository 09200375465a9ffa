#include "preload/nvtx/injection.h"

#include <stdlib.h>
#include <string.h>

#include "preload/base/clock.h"
#include "preload/base/export.h"
#include "preload/base/thread_state.h"
#include "preload/loader/loader.h"
#include "preload/loader/own_image.h"
#include "preload/nvtx/hooks.h"
#include "preload/nvtx/memory.h"
#include "preload/nvtx/other_tool.h"
#include "preload/nvtx/payload.h"
#include "preload/nvtx/record_nvtx.h"
#include "preload/record/record_event.h"

namespace gmt::preload {
namespace {

// Cache: whether a copy of NVTX has asked for this library's functions.
constinit std::atomic<bool> was_asked{false};

// The slots of one copy of NVTX, in the order of kNvtxHookTable; nullptr if an older copy lacks the
// function.
class Slots {
 public:
  explicit Slots(NvtxGetExportTableFunc_t get) {
    const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get(NVTX_ETID_CALLBACKS));
    if (callbacks == nullptr || callbacks->struct_size < sizeof(*callbacks)) return;
    for (size_t i = 0; i < kNvtxHooks; ++i) {
      NvtxFunctionTable table = nullptr;
      unsigned size = 0;
      const NvtxHook& hook = kNvtxHookTable[i];
      if (callbacks->GetModuleFunctionTable(hook.module, &table, &size) != 0 && table != nullptr &&
          hook.number < size) {
        slots_[i] = table[hook.number];
        if (slots_[i] != nullptr) before_[i] = *slots_[i];
      }
    }
  }

  // Puts this library's functions into the slots. A function that has changed since construction
  // belongs to another tool. If a different function of that tool is already called for the same
  // call, the slot is left unchanged: that function is called, and the call is not recorded.
  void Take() {
    for (size_t i = 0; i < kNvtxHooks; ++i) {
      if (slots_[i] == nullptr) continue;
      const NvtxFunctionPointer now = *slots_[i];
      NvtxFunctionPointer known = nullptr;
      const bool is_ours = now == before_[i] || now == kNvtxHookTable[i].function || now == nullptr;
      if (is_ours || nvtx_next[i].compare_exchange_strong(known, now) || known == now)
        *slots_[i] = kNvtxHookTable[i].function;
    }
  }

 private:
  NvtxFunctionPointer* slots_[kNvtxHooks] = {};
  NvtxFunctionPointer before_[kNvtxHooks] = {};
};

// Sets the session's status of NVTX.
uint32_t SetSource(Process* p, const char* status) {
  const uint32_t id = p->map.texts().Intern(status);
  p->map.control().facts[session::kNvtxSource].store(id, std::memory_order_release);
  return id;
}

// Same, while the session is in use.
void ChangeSource(Process* p, const char* status) {
  session::Record r;
  r.kind = session::Kind::kSource;
  r.thread = ThreadId(p->identity);
  r.value = p->map.texts().Intern("nvtx");
  r.size = SetSource(p, status);
  r.time_ns = NowNs();
  CommitAlone(p, r);
}

const char* Status(const Process& p) {
  if ((p.options.heaps & session::kNvtxHeap) == 0) return "off: heap= does not name nvtx";
  if (was_asked.load()) return OtherTool::Status();
  const char* path = getenv(kNvtxInjection);
  if (path == nullptr || *path == '\0')
    return "off: NVTX_INJECTION64_PATH does not name libgpumemtrace.so (gpumemtrace run sets it)";
  if (strstr(path, "libgpumemtrace") == nullptr)
    return "off: NVTX_INJECTION64_PATH names another tool";
  return "off: no NVTX call was made";
}

void NoteWasAsked() {
  const bool is_news = !was_asked.exchange(true);
  const WriteGuard p = IfRecordingNvtx();
  if (is_news && p != nullptr) ChangeSource(p, Status(*p));
}

int Initialize(NvtxGetExportTableFunc_t get) {
  if (void* first = EntryOfFirstCopy("InitializeInjectionNvtx2"); first != nullptr)
    return reinterpret_cast<NvtxInitializeInjectionNvtxFunc_t>(first)(get);
  Slots slots(get);
  const OtherTool& other = OtherTool::Get();
  const int taken = other.initialize == nullptr ? 0 : other.initialize(get);
  if (NvtxTables::Map() == nullptr) return taken;
  slots.Take();
  NoteWasAsked();
  return 1;
}

// Returns success even for a module whose functions are not used: its functions then do nothing,
// and the program's copy of NVTX knows that there is a tool.
int InitializeExtension(nvtxExtModuleInfo_t* module) {
  if (void* first = EntryOfFirstCopy("InitializeInjectionNvtxExtension"); first != nullptr)
    return reinterpret_cast<NvtxExtInitializeInjectionFunc_t>(first)(module);
  const OtherTool& other = OtherTool::Get();
  if (other.initialize_extension != nullptr) other.initialize_extension(module);
  if (NvtxTables::Map() == nullptr) return 1;
  TakePayloadExtension(*module);
  if (IsMemoryExtension(*module)) TakeMemoryExtension(*module);
  NoteWasAsked();
  return 1;
}

}  // namespace

void RecordNvtxState(Process* p) {
  SetSource(p, Status(*p));
  NvtxTables* tables = NvtxTables::IfMapped();
  if (tables == nullptr || (p->options.heaps & session::kNvtxHeap) == 0) return;
  RecordKeptLabels(p);
  tables->heaps.ForEach([p](NvtxHeap* heap) { RecordHeap(p, heap); });
  if (PushStack* stack = tables->pushed.MineIfAny(); stack != nullptr) RecordPushedRanges(p, stack);
}

}  // namespace gmt::preload

// Zero means that there is no tool.
GMT_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
  return get == nullptr ? 0 : gmt::preload::Initialize(get);
}
GMT_EXPORT int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t* module) {
  return module == nullptr ? 0 : gmt::preload::InitializeExtension(module);
}
