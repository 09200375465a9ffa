#include "preload/nvtx/payload.h"

#include <atomic>

#include "preload/nvtx/other_tool.h"
#include "preload/process/process.h"

namespace gmt::preload {
namespace {

// nvToolsExtPayload.h (NVTX 3.5): NVTX_EXT_PAYLOAD_MODULEID, the major version of
// NVTX_EXT_PAYLOAD_COMPATID, NVTX3EXT_CBID_nvtxDomainIsEnabled.
constexpr uint16_t kModule = 2, kMajor = 1;
constexpr size_t kDomainIsEnabled = 7;

using IsEnabledFunction = uint8_t (*)(nvtxDomainHandle_t);

// Cache: the other tool's function.
constinit std::atomic<intptr_t> next{0};

uint8_t DomainIsEnabled(nvtxDomainHandle_t domain) {
  if (!Process::Skips(session::kNvtxHeap)) return 1;
  const auto other = reinterpret_cast<IsEnabledFunction>(next.load(std::memory_order_relaxed));
  if (other != nullptr) return other(domain);
  return OtherTool::Get().initialize != nullptr ? 1 : 0;  // as NVTX does for a tool without this
                                                          // function
}

}  // namespace

void TakePayloadExtension(const nvtxExtModuleInfo_t& module) {
  const bool is_known = module.moduleId == kModule && module.compatId >> 8 == kMajor &&
                        module.segmentsCount > 0 && module.segments != nullptr &&
                        module.segments[0].functionSlots != nullptr &&
                        module.segments[0].slotCount > kDomainIsEnabled;
  if (!is_known) return;
  intptr_t& slot = module.segments[0].functionSlots[kDomainIsEnabled];
  const auto own = reinterpret_cast<intptr_t>(DomainIsEnabled);
  intptr_t known = 0;
  if (slot == 0 || slot == own || next.compare_exchange_strong(known, slot) || known == slot)
    slot = own;
}

}  // namespace gmt::preload
