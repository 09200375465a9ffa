// answers/show/row.h
//
// One piece of memory in a line: its time, size and origin.
//
// Thread safety: one thread at a time (Examination).

#ifndef GMT_ANSWERS_SHOW_ROW_H_
#define GMT_ANSWERS_SHOW_ROW_H_

#include <string>
#include <vector>

#include "analysis/examination/alive.h"
#include "answers/show/show.h"

namespace gmt::answers {

// Returns "12.4 s to 12.9 s (500 ms)", "12.4 s to the end" or "from before to 12.9 s".
std::string HeldText(const analysis::Trace& trace, analysis::RowId row);

// Returns {"address", "size", "requested", "device", "heap", "from_t_ns", "to_t_ns", "id", "dtype",
// "shape", "alive", ...}.
nlohmann::ordered_json RowJson(const ShowInput& input, analysis::RowId row);

// Adds the tensor for which it was allocated, and why it is alive at its end, or at the end of the
// recording, with every node that saved it.
void AddTensorFacts(const ShowInput& input, analysis::RowId row, ShowPage& page);

// Adds the nodes that saved the memory for their backward passes, if there are several.
void AddSavers(const std::vector<analysis::Alive>& alive, ShowPage& page);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_SHOW_ROW_H_
