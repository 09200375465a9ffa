// analysis/categories/stack_hints.h
//
// StackHints: the rules (category_rules.h) that the frames of each stack match, and other
// properties of a stack that indicate what its memory is for.
//
// Ownership: definitions and rules must outlive it.
// Thread safety: one thread at a time. Cost: each frame is matched against the rules once, each
// stack walked once.

#ifndef GMT_ANALYSIS_CATEGORIES_STACK_HINTS_H_
#define GMT_ANALYSIS_CATEGORIES_STACK_HINTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "analysis/categories/category_rules.h"
#include "format/definitions.h"

namespace gmt::analysis {

class StackHints {
 public:
  StackHints(const format::Definitions& definitions, const CategoryRules& rules);

  struct Hint {
    const CategoryRule* rule = nullptr;  // null if none matches
    uint32_t frame = 0;                  // the innermost that matches it
  };
  // Returns the first rule that matches the stack and memory with this life and birth.
  Hint Find(uint32_t stack, Lifespan life, Born born);

  // Whether the stack passes through the call of a module.
  bool CallsModule(uint32_t stack);
  // Whether the stack creates a module of the program: in an __init__ called by an __init__, in
  // files whose `forward` a module's call runs. REQUIRES: all stacks were looked up.
  bool CreatesModule(uint32_t stack);

  // "Module._apply (module.py)".
  std::string FrameName(uint32_t frame) const;

 private:
  struct Known {
    std::vector<std::pair<uint32_t, uint32_t>> rules;  // (rule, frame), in the order of the rules
    std::vector<uint32_t> init_files;                  // one for each __init__
    bool calls_module = false;
  };
  struct KnownFrame {
    std::vector<uint32_t> rules;
    bool calls_module = false;
    bool is_python = false;
    uint32_t forward_file = 0, init_file = 0;  // numbers of files; 0: another function
  };
  uint32_t NumberOf(const std::string& file);
  const Known& Of(uint32_t stack);
  const KnownFrame& OfFrame(uint32_t frame);

  const format::Definitions& definitions_;
  const CategoryRules& rules_;
  absl::flat_hash_map<uint32_t, KnownFrame> frames_;
  absl::flat_hash_map<uint32_t, Known> stacks_;
  absl::flat_hash_map<std::string, uint32_t> file_numbers_;  // from 1
  absl::flat_hash_set<uint32_t> module_files_;  // in which a module's call runs `forward`
  // CallsModule() of each stack: 1 or 0, or kNotAsked.
  static constexpr uint8_t kNotAsked = UINT8_MAX;
  std::vector<uint8_t> calls_module_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_CATEGORIES_STACK_HINTS_H_
