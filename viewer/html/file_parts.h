// viewer/html/file_parts.h
//
// The parts of a standalone file other than its lanes: the times of events, stacks and other texts,
// the segments in which allocators place their blocks, and source lines.
// viewer/page/src/data/embedded/file_data.ts reads them.
//
// Thread safety: pure functions, except that they use the file's examination and questions.

#ifndef GMT_VIEWER_HTML_FILE_PARTS_H_
#define GMT_VIEWER_HTML_FILE_PARTS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "viewer/html/standalone_file.h"

namespace gmt::viewer {

// Returns the times of events as the points of a polyline from which no event's time deviates by
// more than `tolerance_ns`. With 0, the times are exact.
std::string MakeClockSlab(const analysis::Trace& trace, int64_t tolerance_ns);

// Returns the stacks, and the distinct frames that they consist of.
nlohmann::ordered_json StackTable(const StandaloneFile& file, const std::vector<uint32_t>& stacks);

// Returns the names of memory and the reasons for categories, keyed by the numbers that lanes use.
nlohmann::ordered_json Texts(const StandaloneFile& file);

// Returns the driver memory in which allocators place their blocks, by device: pieces with their
// lifetimes, from which the page reconstructs the segments at any event.
nlohmann::ordered_json SegmentTable(const StandaloneFile& file);

// Returns the events of the page's list, by device, other than births and deaths of blocks, which
// are in the lanes: at most kMaxSideEvents of each device.
inline constexpr size_t kMaxSideEvents = 20'000;
nlohmann::ordered_json EventTable(const StandaloneFile& file);

// Returns the lines around those named by the stacks with the highest peaks, as far as source is
// available.
nlohmann::ordered_json SourceTable(const StandaloneFile& file);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_FILE_PARTS_H_
