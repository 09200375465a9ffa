// interop/profile/folded_stacks.h
//
// Collapsed stacks, the text that flamegraph.pl and most viewers of flame graphs read: a line for
// each stack that holds memory, outermost frame first, most bytes first.
//
//   cuda:0;pytorch;main (train.py:20);Net.forward (model.py:88);at::linear 2097152
//
// The device and the heap are the outermost frames. Semicolons in names become colons, because they
// separate frames.
//
// Thread safety: pure function.

#ifndef GMT_INTEROP_PROFILE_FOLDED_STACKS_H_
#define GMT_INTEROP_PROFILE_FOLDED_STACKS_H_

#include <string>

#include "analysis/examination/examination.h"
#include "interop/profile/stack_profile.h"

namespace gmt::interop {

// `profile` is one of the recording that `examination` examines.
std::string FoldedStacks(const analysis::Examination& examination, const StackProfile& profile);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_PROFILE_FOLDED_STACKS_H_
