// analysis/leaks/why_alive.h
//
// Why leaked memory was still alive after the last step, according to PyTorch
// (analysis/examination/alive.h). This distinguishes graphs from tensors, for which the number of
// stacks is only a hint: a graph is kept if most of the memory is still saved for a backward pass.
// Memory that the program frees while it exits counts as held until then.
//
// Thread safety: pure function.

#ifndef GMT_ANALYSIS_LEAKS_WHY_ALIVE_H_
#define GMT_ANALYSIS_LEAKS_WHY_ALIVE_H_

#include <vector>

#include "analysis/examination/examination.h"
#include "analysis/leaks/leak_report.h"

namespace gmt::analysis {

// Sets `alive`, and if roles are known `kind` and `reason`. One walk over the rows.
void FindWhyAlive(const Examination& examination, std::vector<LeakSuspect>& suspects);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_WHY_ALIVE_H_
