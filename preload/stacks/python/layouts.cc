#include "preload/stacks/python/layouts.h"

namespace gmt::preload {
namespace {

bool FillFromDebugOffsets(int minor, const uint64_t* words, Layout* l) {
  if (words == nullptr || words[kCookieWord] != kDebugCookie ||
      (words[kVersionWord] >> 16) != (0x0300u | static_cast<unsigned>(minor)) ||
      words[kFreeThreadedWord] > 1) {
    return false;
  }
  *l = UsualLayout(minor);
  for (const DebugRow& row : kDebugLayouts) {
    const uint8_t word = row.words[minor - kFirstDebugMinor];
    if (word == 0) continue;
    if (words[word] > UINT16_MAX) return false;
    l->*row.field = static_cast<uint16_t>(words[word]);
  }
  const bool free_threaded = words[kFreeThreadedWord] != 0;
  if (!free_threaded) l->frame_tlbc = l->code_tlbc = 0;
  // Offsets that the interpreter does not publish, from cpython/code.h and cpython/unicodeobject.h
  // of the same versions: co_version is the sixth int after co_firstlineno; _co_firsttraceable and
  // a pointer precede the bytecode (or its copies); a text that is not ASCII has an additional
  // length and pointer; the free-threaded 3.14 has a byte for `interned`.
  l->code_version = static_cast<uint16_t>(l->code_first_line + 24);
  l->code_traceable =
      static_cast<uint16_t>((l->code_tlbc != 0 ? l->code_tlbc : l->code_bytes) - 16);
  l->compact_text = static_cast<uint16_t>(l->ascii_text + 16);
  l->text_kind_shift = free_threaded && minor >= 14 ? 8 : 2;
  return true;
}

}  // namespace

bool FindLayout(int minor, const uint64_t* debug_offsets, Layout* layout) {
  if (minor < kFirstMinor || minor > kLastMinor) return false;
  if (minor >= kFirstDebugMinor) return FillFromDebugOffsets(minor, debug_offsets, layout);
  *layout = UsualLayout(minor);
  return true;
}

}  // namespace gmt::preload
