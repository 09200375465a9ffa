#include "preload/stacks/python/eval_function.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "preload/loader/loader.h"
#include "preload/stacks/unwind/frame_tables.h"
#include "preload/stacks/unwind/loaded_module.h"

namespace gmt::preload {
namespace {

CodeRange RangeOfSymbol(const void* function) {
  Dl_info info;
  void* symbol = nullptr;
  if (function == nullptr || dladdr1(function, &info, &symbol, RTLD_DL_SYMENT) == 0 ||
      symbol == nullptr || info.dli_saddr != function) {
    return {};
  }
  return {reinterpret_cast<uint64_t>(function), static_cast<const ElfW(Sym)*>(symbol)->st_size};
}

#if defined(__x86_64__)

// Counts the functions outside that are jumped to. The last slot is shared among further functions,
// which are not the most frequent.
class JumpTargets {
 public:
  explicit JumpTargets(uint64_t inside) {
    known_ = FindLoadedModule(inside, &module_) == FoundModule::kFound;
    index_ = known_ ? module_.FindSegment(PT_GNU_EH_FRAME) : 0;
    text_ = known_ ? module_.SegmentAt(inside, PF_X) : Extent();
  }

  void Count(uint64_t target) {
    if (index_ == 0 || !text_.Holds(target, 1)) return;
    const uint64_t start = FunctionAt(target);
    if (start == 0) return;
    ++all_;
    int i = 0;
    while (i < kPlaces - 1 && starts_[i] != 0 && starts_[i] != start) ++i;
    counts_[i] = starts_[i] == start ? counts_[i] + 1 : 1;
    starts_[i] = start;
  }

  // Returns the function that most jumps lead to, if these are many.
  CodeRange MostFrequent() const {
    int most = 0;
    for (int i = 1; i < kPlaces; ++i) most = counts_[i] > counts_[most] ? i : most;
    constexpr uint32_t kMany = 16;
    if (counts_[most] < kMany || 2 * counts_[most] < all_) return {};
    return {starts_[most], SizeOf(starts_[most])};
  }

 private:
  static constexpr int kPlaces = 64;

  // Returns the first address of the function, or 0.
  uint64_t FunctionAt(uint64_t pc) const {
    FrameTables tables;
    return FindFrameTables(module_, index_, pc, &tables) == FoundTables::kFound ? tables.first_pc
                                                                                : 0;
  }

  // Finds the size by bisection: all addresses up to there belong to the function.
  uint64_t SizeOf(uint64_t start) const {
    uint64_t inside = 0, outside = 1;
    while (FunctionAt(start + outside) == start && outside < (1 << 20)) {
      inside = outside;
      outside *= 2;
    }
    while (outside - inside > 1) {
      const uint64_t middle = inside + (outside - inside) / 2;
      (FunctionAt(start + middle) == start ? inside : outside) = middle;
    }
    return outside;
  }

  LoadedModule module_ = {};
  bool known_;
  uint64_t index_;
  Extent text_;
  uint64_t starts_[kPlaces] = {};
  uint32_t counts_[kPlaces] = {};
  uint32_t all_ = 0;
};

// Interprets any bytes that look like jumps (jcc and jmp with 32-bit offsets) as jumps. Bytes that
// are not jumps rarely lead into a function, and never often into the same one.
CodeRange FindRarePart(const CodeRange& usual) {
  JumpTargets targets(usual.start);
  const auto* code = reinterpret_cast<const unsigned char*>(usual.start);
  for (uint64_t i = 0; i + 6 <= usual.bytes; ++i) {
    const bool conditional = code[i] == 0x0f && (code[i + 1] & 0xf0) == 0x80;
    if (!conditional && code[i] != 0xe9) continue;
    const uint64_t end = i + (conditional ? 6 : 5);
    int32_t distance;
    memcpy(&distance, code + end - sizeof(distance), sizeof(distance));
    const uint64_t target = usual.start + end + static_cast<uint64_t>(int64_t{distance});
    if (!usual.Holds(target)) targets.Count(target);
  }
  return targets.MostFrequent();
}

#else

CodeRange FindRarePart(const CodeRange&) { return {}; }

#endif

}  // namespace

EvalFunction FindEvalFunction(const void* function) {
  EvalFunction eval;
  eval.usual = RangeOfSymbol(function);
  if (eval.usual.bytes == 0) return eval;
  PrepareModules();
  eval.rare = FindRarePart(eval.usual);
  return eval;
}

}  // namespace gmt::preload
