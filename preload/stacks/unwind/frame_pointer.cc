#include "preload/stacks/unwind/frame_pointer.h"

#if GMT_HAS_NATIVE_WALK

#include <elf.h>

#include "preload/base/memory.h"
#include "preload/stacks/unwind/loaded_module.h"

namespace gmt::preload {
namespace {

// The longest encoding of a call without prefixes: FF /2 with a SIB byte and four more.
constexpr uint64_t kLongestCall = 7;

// Returns whether these last bytes before an address may be a call (Intel SDM, volume 2, "CALL"):
// E8 and four bytes, or FF /2 in all its addressing forms.
bool EndsInCall(const uint8_t* bytes) {
  if (bytes[2] == 0xe8) return true;
  for (uint64_t length = 2; length <= kLongestCall; ++length) {
    const uint8_t* call = bytes + kLongestCall - length;
    if (call[0] != 0xff || (call[1] >> 3 & 7) != 2) continue;
    const uint32_t mode = call[1] >> 6, register_or_memory = call[1] & 7;
    const bool sib = mode != 3 && register_or_memory == 4;
    uint64_t expected = 2 + (sib ? 1 : 0);
    if (mode == 1) expected += 1;
    if (mode == 2 || (mode == 0 && register_or_memory == 5)) expected += 4;
    if (mode == 0 && sib && (call[2] & 7) == 5) expected += 4;
    if (length == expected) return true;
  }
  return false;
}

}  // namespace

bool IsBehindCall(uint64_t return_address, bool* described) {
  const uint64_t first = return_address - kLongestCall;
  LoadedModule module;
  *described = false;
  if (first > return_address) return false;
  switch (FindLoadedModule(first, &module)) {
    case FoundModule::kFound:
      if (!module.SegmentAt(first, PF_X | PF_R).Holds(first, kLongestCall + 1)) return false;
      *described = module.FindSegment(PT_GNU_EH_FRAME) != 0;
      break;
    case FoundModule::kNothing:
    case FoundModule::kNotListed:
      if (!IsReadable(first) || !IsReadable(return_address)) return false;
      break;
  }
  uint8_t bytes[kLongestCall];
  for (uint64_t i = 0; i < kLongestCall; ++i) {
    bytes[i] = *reinterpret_cast<const volatile uint8_t*>(first + i);
  }
  return EndsInCall(bytes);
}

bool FindCallerByFramePointer(uint64_t sp, uint64_t bp, StackRange* range, Caller* caller) {
  constexpr uint64_t kWord = sizeof(uint64_t);
  range->ForgetAbove(sp);
  if ((bp & (kWord - 1)) != 0 || bp < sp || bp + kWord < bp || !range->Reach(bp) ||
      !range->Reach(bp + kWord)) {
    return false;
  }
  *caller = {bp + 2 * kWord, LoadWord(bp + kWord), LoadWord(bp)};
  bool described;
  return IsBehindCall(caller->pc, &described) && described;
}

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
