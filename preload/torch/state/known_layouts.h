// preload/torch/state/known_layouts.h
//
// KnownLayouts: the tensor layouts that a thread has met last, with their texts in the session. The
// tensors of a training step have few different layouts, and comparing one costs less than hashing
// it and finding it in the session's table of texts.
//
// Thread safety: belongs to one thread. All-zero bytes: no layout is known.

#ifndef GMT_PRELOAD_TORCH_STATE_KNOWN_LAYOUTS_H_
#define GMT_PRELOAD_TORCH_STATE_KNOWN_LAYOUTS_H_

#include <stdint.h>

#include "session/layout.h"
#include "session/text_table.h"

namespace gmt::preload {

class KnownLayouts {
 public:
  // Returns the id of the layout's text, or 0 if the session has no room for it. `identity`: of the
  // recording to which `texts` belongs (Process::identity).
  uint32_t TextOf(const session::TensorLayout& layout, uint32_t identity,
                  const session::TextTable& texts) {
    Entry& entry = entries_[PlaceOf(layout)];
    if (entry.identity != identity || !(entry.layout == layout)) {
      entry.identity = identity;
      entry.layout = layout;
      entry.text = texts.Intern({reinterpret_cast<const char*>(&layout), sizeof(layout)});
    }
    return entry.text;
  }

 private:
  static constexpr int kBits = 5;
  struct Entry {
    uint32_t identity;  // 0: unused
    uint32_t text;
    session::TensorLayout layout;
  };

  static uint64_t PlaceOf(const session::TensorLayout& layout) {
    const uint64_t mixed = layout.bytes ^ static_cast<uint64_t>(layout.sizes[0]) << 40 ^
                           static_cast<uint64_t>(layout.sizes[1]) << 20;
    return mixed * 0x9e3779b97f4a7c15 >> (64 - kBits);
  }

  Entry entries_[1 << kBits];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_KNOWN_LAYOUTS_H_
