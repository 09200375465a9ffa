#include "preload/nvtx/names.h"

#include <string.h>

#include "session/intern_index.h"
#include "session/slice.h"

namespace gmt::preload {
namespace {

constexpr uint32_t kProbes = 64;

uint64_t HashOf(std::string_view text) {
  session::ContentHash hash;
  hash.AddBytes(text.data(), text.size());
  const uint64_t value = hash.value();
  return value > NvtxName::kClaimed ? value : value + 2;
}

}  // namespace

NvtxName* NvtxNames::Enter(std::string_view text) {
  text = session::Slice(text, 0, session::kMaxTextLength);
  const uint64_t hash = HashOf(text);
  for (uint32_t probe = 0; probe < kProbes; ++probe) {
    NvtxName& name = names_[1 + (hash + probe) % kNames];
    uint64_t seen = name.hash.load(std::memory_order_acquire);
    if (seen == hash && TextOf(name) == text) return &name;
    if (seen == 0 && name.hash.compare_exchange_strong(seen, NvtxName::kClaimed))
      return Write(&name, hash, text);
  }
  return &names_[0];
}

NvtxName* NvtxNames::Write(NvtxName* name, uint64_t hash, std::string_view text) {
  const uint64_t offset = used_.fetch_add(text.size());
  if (offset > kBytes || text.size() > kBytes - offset) {
    used_.fetch_sub(text.size());
    name->hash.store(0);
    return &names_[0];
  }
  memcpy(texts_ + offset, text.data(), text.size());
  name->offset = static_cast<uint32_t>(offset);
  name->size = static_cast<uint32_t>(text.size());
  name->hash.store(hash, std::memory_order_release);
  return name;
}

}  // namespace gmt::preload
