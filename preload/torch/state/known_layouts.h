// preload/torch/state/known_layouts.h
//
// KnownLayouts: the tensors that a thread has requested last, with the texts of their layouts in
// the session. A training step requests the same few dozen again and again, and recognizing one
// costs less than describing it and finding the description in the session's table of texts.
//
// Each of the first threads that request tensors has one (KnownLayoutsPool).
//
// Thread safety: belongs to one thread. KnownLayoutsPool: any thread; lock-free. All-zero bytes: no
// layout is known, all of the pool is free.

#ifndef GMT_PRELOAD_TORCH_STATE_KNOWN_LAYOUTS_H_
#define GMT_PRELOAD_TORCH_STATE_KNOWN_LAYOUTS_H_

#include <stdint.h>

#include <atomic>

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

  // Returns nullptr if the thread has not requested such a tensor lately. `identity`: of the
  // recording (Process::identity).
  [[gnu::always_inline]] const Known* Find(const TensorRequest& request, uint32_t identity) const {
    const Key key = KeyOf(request, identity);
    const Entry* const entries = sets_[SetOf(request)].entries;
    if (entries[0].key == key && HasDimensionsOf(entries[0], request)) return &entries[0].known;
    if (entries[1].key == key && HasDimensionsOf(entries[1], request)) return &entries[1].known;
    return nullptr;
  }

  // Describes the tensor in `texts`.
  static Known Describe(const TensorRequest& request, const session::TextTable& texts) {
    session::TensorLayout layout;
    if (!DescribeTensor(request, &layout)) return {};
    return {layout.bytes, texts.Intern({reinterpret_cast<const char*>(&layout), sizeof(layout)})};
  }

  // Same, for the recording with that identity, so that Find() finds it.
  Known Add(const TensorRequest& request, uint32_t identity, const session::TextTable& texts) {
    const Known known = Describe(request, texts);
    if (known.bytes == 0 || request.dimensions > kDimensions) return known;
    Entry* const entries = sets_[SetOf(request)].entries;
    entries[1] = entries[0];
    entries[0].key = KeyOf(request, identity);
    entries[0].known = known;
    for (uint64_t i = 0; i < request.dimensions; ++i) {
      entries[0].sizes[i] = request.sizes[i];
      entries[0].strides[i] = request.strides == nullptr ? 0 : request.strides[i];
    }
    return known;
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
  struct Set {
    Entry entries[2];  // that of the later request first
  };

  static Key KeyOf(const TensorRequest& request, uint32_t identity) {
    return uint64_t{identity} << 32 | uint64_t{request.strides != nullptr} << 24 |
           (request.dimensions & 0xff) << 8 | static_cast<uint8_t>(request.dtype);
  }

  static uint64_t SetOf(const TensorRequest& request) {
    constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
    uint64_t mixed = static_cast<uint8_t>(request.dtype);
    for (uint64_t i = 0; i < request.dimensions; ++i)
      mixed = (mixed ^ static_cast<uint64_t>(request.sizes[i])) * kFactor;
    return mixed >> (64 - kBits);
  }

  static bool HasDimensionsOf(const Entry& entry, const TensorRequest& request) {
    if (request.dimensions > kDimensions) return false;
    int64_t differing = 0;
    if (request.strides == nullptr) {
      for (uint64_t i = 0; i < request.dimensions; ++i)
        differing |= entry.sizes[i] ^ request.sizes[i];
    } else {
      for (uint64_t i = 0; i < request.dimensions; ++i)
        differing |= (entry.sizes[i] ^ request.sizes[i]) | (entry.strides[i] ^ request.strides[i]);
    }
    return differing == 0;
  }

  Set sets_[1 << kBits];
};

// A program has few threads that request tensors: its own, and one of autograd for each device.
class KnownLayoutsPool {
 public:
  // Returns nullptr if none is left. What it returns is never returned to the pool.
  KnownLayouts* Take() {
    if (taken_.load(std::memory_order_relaxed) >= kSize) return nullptr;
    const uint32_t number = taken_.fetch_add(1, std::memory_order_relaxed);
    return number < kSize ? &all_[number] : nullptr;
  }

 private:
  static constexpr uint32_t kSize = 32;

  std::atomic<uint32_t> taken_;
  KnownLayouts all_[kSize];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_KNOWN_LAYOUTS_H_
