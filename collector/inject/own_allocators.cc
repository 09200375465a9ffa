#include "collector/inject/own_allocators.h"

#include <utility>

namespace gmt::inject {

namespace {

constexpr size_t kMaxImages = 16;  // each has up to 88 MiB of symbols and names

}  // namespace

OwnAllocators OwnAllocators::Find(const RemoteMemory& memory, const MemoryMap& map) {
  OwnAllocators found;
  for (const Mapping& m : map) {
    if (found.images_.size() == kMaxImages) break;
    if (m.offset != 0 || !m.readable || m.path.empty() || m.path.front() != '/' || IsLibc(m) ||
        IsLoader(m) || !RemoteImage::Exports(memory, m.start, "malloc")) {
      continue;
    }
    if (std::optional<RemoteImage> image = RemoteImage::At(memory, m.start); image.has_value())
      found.images_.emplace(m.path, *std::move(image));
  }
  return found;
}

std::vector<std::string_view> OwnAllocators::FunctionsAt(const Mapping& mapping,
                                                         uint64_t address) const {
  const auto it = images_.find(mapping.path);
  if (it == images_.end()) return {};
  return it->second.FunctionsAt(address);
}

}  // namespace gmt::inject
