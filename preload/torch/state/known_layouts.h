// preload/torch/state/known_layouts.h
//
// KnownLayouts: the tensors that a thread has requested last, with the texts of their layouts in
// the session. A training step requests the same few dozen again and again, and recognizing one
// costs less than describing it and finding the description in the session's table of texts.
//
// Thread safety: belongs to one thread. All-zero bytes: no layout is known.

#ifndef GMT_PRELOAD_TORCH_STATE_KNOWN_LAYOUTS_H_
#define GMT_PRELOAD_TORCH_STATE_KNOWN_LAYOUTS_H_

#include <stdint.h>

#include "preload/torch/state/tensor_layout.h"
#include "session/layout.h"
#include "session/text_table.h"

namespace gmt::preload {

class KnownLayouts {
 public:
  struct Known {
    uint64_t bytes;  // 0: the tensor has none, or its type is unknown
    uint32_t text;   // 0: the session has no room for it
  };

  // `identity`: of the recording to which `texts` belongs (Process::identity).
  Known Find(const TensorRequest& request, uint32_t identity, const session::TextTable& texts) {
    const Key key = KeyOf(request, identity);
    Entry& entry = entries_[PlaceOf(request, key)];
    if (entry.key == key && HasDimensionsOf(entry, request)) [[likely]]
      return entry.known;
    return Describe(request, key, texts, &entry);
  }

 private:
  static constexpr int kBits = 7;
  static constexpr uint64_t kDimensions = session::kLayoutDimensions;

  // Everything but the sizes and strides, in one word. 0: an unused entry, because no recording has
  // the identity 0.
  using Key = uint64_t;
  struct Entry {
    Key key;
    Known known;
    int64_t sizes[kDimensions];
    int64_t strides[kDimensions];
  };

  static Key KeyOf(const TensorRequest& request, uint32_t identity) {
    return uint64_t{identity} << 32 | uint64_t{request.strides != nullptr} << 24 |
           (request.dimensions & 0xff) << 8 | static_cast<uint8_t>(request.dtype);
  }

  static uint64_t PlaceOf(const TensorRequest& request, Key key) {
    constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
    uint64_t mixed = key * kFactor;
    for (uint64_t i = 0; i < request.dimensions; ++i)
      mixed = (mixed ^ static_cast<uint64_t>(request.sizes[i])) * kFactor;
    return mixed >> (64 - kBits);
  }

  static bool HasDimensionsOf(const Entry& entry, const TensorRequest& request) {
    if (request.dimensions > kDimensions) return false;
    for (uint64_t i = 0; i < request.dimensions; ++i) {
      if (entry.sizes[i] != request.sizes[i]) return false;
    }
    if (request.strides == nullptr) return true;
    for (uint64_t i = 0; i < request.dimensions; ++i) {
      if (entry.strides[i] != request.strides[i]) return false;
    }
    return true;
  }

  [[gnu::noinline]] static Known Describe(const TensorRequest& request, Key key,
                                          const session::TextTable& texts, Entry* entry) {
    session::TensorLayout layout;
    if (!DescribeTensor(request, &layout)) return {};
    const Known known = {layout.bytes,
                         texts.Intern({reinterpret_cast<const char*>(&layout), sizeof(layout)})};
    if (request.dimensions > kDimensions) return known;
    entry->key = key;
    entry->known = known;
    for (uint64_t i = 0; i < request.dimensions; ++i) {
      entry->sizes[i] = request.sizes[i];
      entry->strides[i] = request.strides == nullptr ? 0 : request.strides[i];
    }
    return known;
  }

  Entry entries_[1 << kBits];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_KNOWN_LAYOUTS_H_
