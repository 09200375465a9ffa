// analysis/categories/sizes.h
//
// Sizes: which sizes of blocks are those of gradients and of parameters. A gradient is as big as its
// parameter, and an optimizer's state comes in pieces of that size.
//
// Sizes are those that were asked for, rounded as PyTorch's allocator rounds them. Where that is not known,
// they are those of blocks, which are up to 1 MiB too big where the allocator does not split what it found: of
// large sizes, near ones are the same.
//
// Thread safety: const methods from any thread.

#ifndef GMT_ANALYSIS_CATEGORIES_SIZES_H_
#define GMT_ANALYSIS_CATEGORIES_SIZES_H_

#include <cstdint>
#include <map>

namespace gmt::analysis {

class Sizes {
 public:
  // In the order of passes: something of this size was born in a backward pass and outlived it.
  void AddGradient(uint64_t size, uint32_t pass);
  // Parameters, as other evidence has it.
  void AddParameters(uint64_t size, uint64_t count) { sizes_[size].parameters += count; }

  bool IsGradients(uint64_t size) const;
  bool IsParameters(uint64_t size) const;
  // How many gradients of this size a pass leaves behind as a rule. 0 of a size that one had by chance,
  // because its block was not split.
  uint64_t UsualGradientsOf(uint64_t size) const;
  // The size of gradients that are as big as what got a block of this size, perhaps: the same, else the
  // nearest below, else above. 0: none.
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
  uint64_t passes_ = 0;  // that left a gradient behind
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_CATEGORIES_SIZES_H_
