#include "preload/torch/state/node_classes.h"

#include <string.h>

#include "preload/base/keep_errno.h"
#include "preload/loader/loader.h"
#include "preload/torch/state/tensor_memory.h"

namespace gmt::preload {
namespace {

// The mangled name of a virtual table is _ZTV followed by a type, whose last part is the class.
//   _ZTVN5torch8autograd9generated16SoftmaxBackward0E   5torch 8autograd 9generated 16Softmax...
constexpr char kVirtualTable[] = "_ZTV";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Template arguments are left out: CppNode<MyFunction> yields CppNode.
bool LastPart(const char* mangled, char* name, uint32_t size) {
  if (*mangled == 'N') ++mangled;
  const char* part = nullptr;
  uint64_t length = 0;
  while (IsDigit(*mangled)) {
    length = 0;
    while (IsDigit(*mangled)) length = 10 * length + static_cast<uint64_t>(*mangled++ - '0');
    if (length == 0 || length > strlen(mangled)) return false;
    part = mangled;
    mangled += length;
  }
  if (part == nullptr) return false;
  if (length >= size) length = size - 1;
  memcpy(name, part, length);
  name[length] = '\0';
  return true;
}

// Returns false if there is no symbol.
[[gnu::noinline, gnu::cold]] bool FindName(uint64_t vtable, char* name, uint32_t size) {
  const KeepErrno keep;
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(vtable), &info) == 0 || info.dli_sname == nullptr)
    return false;
  constexpr uint64_t kPrefix = sizeof(kVirtualTable) - 1;
  if (strncmp(info.dli_sname, kVirtualTable, kPrefix) != 0) return false;
  return LastPart(info.dli_sname + kPrefix, name, size);
}

}  // namespace

uint32_t NodeClasses::NameOf(const void* node, const session::SessionMap& map) {
  const uint64_t vtable = WordAt(node, 0);
  const uint64_t hash = vtable * 0x9e3779b97f4a7c15;
  const uint64_t check = hash >> 32 << 32;
  for (uint32_t probe = 0; probe < kProbes; ++probe) {
    std::atomic<uint64_t>& place = entries_[((hash >> 20) + probe) % kPlaces];
    uint64_t seen = place.load(std::memory_order_relaxed);
    if (seen == 0) {
      char name[128];
      const uint64_t text = FindName(vtable, name, sizeof(name)) ? map.texts().Intern(name) : 0;
      seen = check | (text != 0 ? text : kNoName);
      place.store(seen, std::memory_order_relaxed);
    }
    if ((seen ^ check) >> 32 != 0) continue;
    const auto text = static_cast<uint32_t>(seen);
    return text == kNoName ? 0 : text;
  }
  return 0;
}

}  // namespace gmt::preload
