// analysis/leaks/suspects.h
//
// Groups leaking sites into suspects: stacks that leave survivors in the same cycles and are
// reached through the same line of the loop are one leak. A kept autograd graph has hundreds of
// stacks.
//
//   main     train.py:9    main     train.py:9      Frames that all stacks of the loop share are no
//   train    train.py:40   train    train.py:41     reason to merge. The line of the loop is where
//   forward  net.py:12     mse      loss.py:3       they diverge: train.py:40 and train.py:41
//
// Thread safety: pure functions. Cost: linear in sites times suspects.

#ifndef GMT_ANALYSIS_LEAKS_SUSPECTS_H_
#define GMT_ANALYSIS_LEAKS_SUSPECTS_H_

#include <optional>
#include <vector>

#include "analysis/leaks/leak_detector.h"
#include "analysis/stacks/stack_texts.h"

namespace gmt::analysis {

// Sites that leak together; most bytes per cycle first.
using SiteGroup = std::vector<const SiteGrowth*>;

// `leaking`: sites that leak. `loop`: sites that allocate in most cycles, leaking or not.
std::vector<SiteGroup> MergeLeaks(const std::vector<SiteGrowth>& leaking,
                                  const std::vector<SiteKey>& loop, StackTexts& texts);

// Whether two groups keep blocks at the same steps.
bool GrowInLockStep(const SiteGroup& a, const SiteGroup& b);

// The stack that shows the origin of memory: for a block born in a backward pass, the forward
// pass's.
inline uint32_t OriginStack(const SiteKey& key) {
  return key.forward_stack != 0 ? key.forward_stack : key.stack;
}

// The deepest of the program's own frames that the stacks with 95 % of the leaked bytes pass
// through. If the function below it is the program's too, uses its line at the first site; except
// for a module's forward pass, whose lines say less than its caller.
std::optional<FrameText> CommonFrame(const SiteGroup& group, StackTexts& texts);

// The modules of a model that those stacks pass through, "GPT > Block > MLP"; "" if none.
std::string CommonLayer(const SiteGroup& group, StackTexts& texts);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_SUSPECTS_H_
