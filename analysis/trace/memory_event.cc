#include "analysis/trace/memory_event.h"

#include <algorithm>
#include <string_view>

namespace gmt::analysis {

MemoryPlaces PlacesOf(const format::Event& event, uint32_t heap) {
  const uint64_t value = ValueOf(event);
  if (event.kind == CREATE || event.kind == RELEASE) return {{{{value, kPhysicalSpace}}}};
  if (heap > kHostHeap || event.memory != MEMORY_UNSPECIFIED || event.kind == ALLOC) {
    const bool may_be_physical = event.kind == FREE_DONE && event.memory == VMM;
    return {{{PlaceOf(heap, event.memory, value), {value, kPhysicalSpace}}},
            may_be_physical ? 2u : 1u};
  }
  return {
      {{{value, kDeviceSpace}, {value, kHostSpace}, {value, kArraySpace}, {value, kPhysicalSpace}}},
      4};
}

uint32_t MemoryNames::HeapNamed(uint32_t string, std::vector<std::string>* heaps) {
  const auto [it, is_new] = heap_by_string_.try_emplace(string, kDriverHeap);
  const std::string_view name = definitions_->string(string);
  if (is_new && !name.empty()) {
    const auto known = std::find(heaps->begin(), heaps->end(), name);
    it->second = static_cast<uint32_t>(known - heaps->begin());
    if (known == heaps->end()) heaps->emplace_back(name);
  }
  last_string_ = string;
  return last_heap_ = it->second;
}

bool MemoryNames::IsBeforeAttach(const format::Event& event) {
  if (event.api == 0 || event.stack != 0) return false;
  if (event.api == before_attach_) return true;
  if (definitions_->string(event.api) != kBeforeAttachApi) return false;
  before_attach_ = event.api;
  return true;
}

}  // namespace gmt::analysis
