// analysis/examination/alive.h
//
// Why memory is alive: it is a parameter or a gradient, nodes of the autograd graph have saved it
// for their backward passes, it holds optimizer state, it is an input, or only the program refers
// to it (a variable, a list).
//
//   role changes of a row   saved by SoftmaxBackward0 (stack 12), saved by MulBackward0 (stack 14),
//                           released
//   RolesAt                 the roles in force after a given step
//   AliveSums               sums of rows by reason
//
// Memory without a role gets a reason from its category: categories/alive_by_category.h.
//
// Thread safety: const methods from any thread; AliveSums::Sorted from one thread at a time.
// Cost: one walk over the role changes of a trace.

#ifndef GMT_ANALYSIS_EXAMINATION_ALIVE_H_
#define GMT_ANALYSIS_EXAMINATION_ALIVE_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "analysis/stacks/frames.h"
#include "analysis/stacks/stack_texts.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

enum class AliveReason : uint8_t {
  kUnknown,
  kParameter,
  kGradient,
  kSaved,  // saved for a backward pass
  kOptimizerState,
  kInput,
  kProgram,  // PyTorch gave it no role: only the program refers to it
};
inline constexpr size_t kAliveReasons = 7;
std::string_view NameOf(AliveReason reason);  // "parameter", "optimizer_state", ...
// "a parameter", "saved for backward", "only the program holds it"; "" for kUnknown.
std::string_view TextOf(AliveReason reason);

// A node of the autograd graph: its class (string id; 0 if unknown) and the stack of the forward
// pass that created it (0 if unknown).
struct GraphNode {
  uint32_t name = 0, stack = 0;
  auto operator<=>(const GraphNode&) const = default;
};

struct HeldRoles {
  uint32_t roles = 0;                       // bits of format::Role
  absl::InlinedVector<GraphNode, 1> nodes;  // nodes that saved it since it was last released
};

class RolesAt {
 public:
  // kNow: the roles after `step` steps. kNowOrNext: memory without a role gets its next role
  // instead. Peaks need this: a peak is reached when the last block is allocated, before that block
  // has a role.
  enum class When { kNow, kNowOrNext };
  // REQUIRES: `trace` outlives this object.
  RolesAt(const Trace& trace, Step step, When when = When::kNow);

  // Whether the recording has roles at all. If not, no memory's role is known.
  bool is_known() const { return is_known_; }
  HeldRoles Of(RowId row) const;

 private:
  static void Apply(const RoleChange& change, HeldRoles& held);

  bool is_known_ = false;
  absl::flat_hash_map<RowId, HeldRoles> held_, next_;
};

struct AliveBecause {
  AliveReason reason = AliveReason::kUnknown;
  bool observed = false;  // PyTorch reported it
  auto operator<=>(const AliveBecause&) const = default;
};
// A parameter takes precedence over a gradient, and both over saved tensors. Returns `otherwise` if
// there is no role.
AliveBecause BecauseOf(uint32_t roles, AliveBecause otherwise);

struct Alive {
  AliveBecause because;
  uint64_t bytes = 0, count = 0;
  // Nodes of one class, created by one stack of the forward pass.
  struct Savers {
    std::string name;               // the class; "" if unknown
    uint32_t stack = 0;             // 0 if unknown
    std::vector<FrameText> frames;  // the frames of that stack, innermost first
    std::optional<FrameText> own;   // the program's own frame in it
    uint64_t bytes = 0, count = 0;  // the blocks that they saved; other nodes may have saved them
                                    // too
  };
  std::vector<Savers> savers;  // for kSaved: most bytes first, at most kMaxSavers
  size_t more_savers = 0;      // number of savers beyond these
};
inline constexpr size_t kMaxSavers = 8;

class AliveSums {
 public:
  void Add(const HeldRoles& held, AliveBecause otherwise, uint64_t bytes);
  // Most bytes first.
  std::vector<Alive> Sorted(StackTexts& texts) const;

 private:
  struct Sum {
    uint64_t bytes = 0, count = 0;
    std::map<GraphNode, std::pair<uint64_t, uint64_t>> savers;  // bytes and count
  };
  std::map<AliveBecause, Sum> sums_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_EXAMINATION_ALIVE_H_
