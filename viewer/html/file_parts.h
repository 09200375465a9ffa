// viewer/html/file_parts.h
//
// The parts of a mailed file beside its lanes: times of its events, stacks and other texts, the segments
// in which an allocator has its blocks, source lines.
// viewer/page/src/data/embedded/file_data.ts reads them.
//
// Thread safety: pure functions, but for the examination and the questions that they ask.

#ifndef GMT_VIEWER_HTML_FILE_PARTS_H_
#define GMT_VIEWER_HTML_FILE_PARTS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "viewer/html/mailed_file.h"

namespace gmt::viewer {

// Times of events as points between which they lie on a line, none further from it than
// `tolerance_ns`; 0: all of them.
std::string MakeClockSlab(const analysis::Trace& trace, int64_t tolerance_ns);

// Frames, each once, and the stacks that are made of them.
nlohmann::ordered_json StackTable(const MailedFile& file, const std::vector<uint32_t>& stacks);

// Names of memory, and reasons of categories, by the numbers that lanes use.
nlohmann::ordered_json Texts(const MailedFile& file);

// The driver memory in which allocators have their blocks, by device: pieces with their lives, out of
// which the page puts together what was there after any event.
nlohmann::ordered_json SegmentTable(const MailedFile& file);

// Lines around those that the stacks that hold most at their peaks name, as far as they are at hand.
nlohmann::ordered_json SourceTable(const MailedFile& file);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_FILE_PARTS_H_
