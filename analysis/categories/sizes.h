// analysis/categories/sizes.h
//
// Sizes: which block sizes are sizes of gradients and of parameters. A gradient is as big as its
// parameter, and an optimizer's state consists of tensors of that size.
//
// Sizes are the requested ones, rounded as PyTorch's allocator rounds them. If those are unknown,
// block sizes are used, which are up to 1 MiB too big if the allocator does not split the block
// that it found. Therefore large sizes that are close count as equal.
//
// Thread safety: const methods from any thread.

#ifndef GMT_ANALYSIS_CATEGORIES_SIZES_H_
#define GMT_ANALYSIS_CATEGORIES_SIZES_H_

#include <cstdint>
#include <map>

namespace gmt::analysis {

class Sizes {
 public:
  // Call in the order of passes: a block of this size was born in a backward pass and outlived it.
  void AddGradient(uint64_t size, uint32_t pass);
  // Parameters, according to other evidence.
  void AddParameters(uint64_t size, uint64_t count) { sizes_[size].parameters += count; }

  bool IsGradients(uint64_t size) const;
  bool IsParameters(uint64_t size) const;
  // The number of gradients of this size that a pass usually leaves. 0 for a size that occurred by
  // chance because a block was not split.
  uint64_t UsualGradientsOf(uint64_t size) const;
  // The size of gradients that may correspond to a block of this size: the same, otherwise the
  // nearest below, otherwise above. 0 if there is none.
  uint64_t GradientsFor(uint64_t size) const;
  // Whether more gradients than known parameters have this size.
  bool LacksParameters(uint64_t size) const;

 private:
  struct Uses {
    uint32_t pass = UINT32_MAX;
    uint64_t in_pass = 0, gradients = 0, in_all_passes = 0, parameters = 0;
  };
  template <typename Test>
  bool AnyNear(uint64_t size, Test test) const;

  std::map<uint64_t, Uses> sizes_;
  uint32_t last_pass_ = UINT32_MAX;
  uint64_t passes_ = 0;  // that left a gradient
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_CATEGORIES_SIZES_H_
