// The tables of stacks and their frames.

#include <algorithm>

#include "answers/sql/table_list.h"

namespace gmt::answers::sql {

using analysis::FrameText;

namespace {

const FrameText* OwnFrameOf(Source& s, uint64_t row) {
  return s.recording().examination().stacks().Own(s.stacks()[row]);
}

std::pair<uint64_t, uint64_t> FindStack(Source& s, int64_t key) {
  const std::vector<uint32_t>& stacks = s.stacks();
  const auto found = std::lower_bound(stacks.begin(), stacks.end(), key);
  if (found == stacks.end() || *found != key) return {0, 0};
  const auto row = static_cast<uint64_t>(found - stacks.begin());
  return {row, row + 1};
}

struct FramePlace {
  uint32_t stack;
  uint64_t depth;
  const FrameText& frame;
};

FramePlace FrameAt(Source& s, uint64_t row) {
  const std::vector<uint64_t>& first = s.first_frames();
  const auto behind = std::upper_bound(first.begin(), first.end(), row);
  const auto index = static_cast<size_t>(behind - first.begin()) - 1;
  const uint32_t stack = s.stacks()[index];
  const uint64_t depth = row - first[index];
  return {stack, depth, s.recording().examination().stacks().Frames(stack)[depth]};
}

}  // namespace

Table StacksTable() {
  return {"stacks",
          "the stacks that other tables refer to",
          [](Source& s) { return uint64_t{s.stacks().size()}; },
          {
              {"id", "INTEGER", "id of the stack",
               [](Source& s, uint64_t row, Cell& cell) { cell.Integer(s.stacks()[row]); }},
              {"text", "TEXT", "the program's line and what it called, as in reports",
               [](Source& s, uint64_t row, Cell& cell) {
                 cell.LastingText(s.StackLine(s.stacks()[row]));
               }},
              {"function", "TEXT", "the program's own function",
               [](Source& s, uint64_t row, Cell& cell) {
                 if (const FrameText* frame = OwnFrameOf(s, row)) cell.Text(frame->Name());
               }},
              {"source_file", "TEXT", "its file",
               [](Source& s, uint64_t row, Cell& cell) {
                 if (const FrameText* frame = OwnFrameOf(s, row)) cell.Text(frame->file);
               }},
              {"line", "INTEGER", "its line",
               [](Source& s, uint64_t row, Cell& cell) {
                 if (const FrameText* frame = OwnFrameOf(s, row)) cell.Id(frame->line);
               }},
              {"library", "TEXT", "the library that allocated: PyTorch, cuBLAS, NCCL, ...",
               [](Source& s, uint64_t row, Cell& cell) {
                 cell.Text(s.recording().examination().stacks().Library(s.stacks()[row]));
               }},
          },
          FindStack};
}

Table FramesTable() {
  return {
      "frames",
      "the frames of the stacks",
      [](Source& s) { return s.first_frames().back(); },
      {
          {"stack", "INTEGER", "id of the stack",
           [](Source& s, uint64_t row, Cell& cell) { cell.Integer(FrameAt(s, row).stack); }},
          {"depth", "INTEGER", "0 for the innermost frame",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(static_cast<int64_t>(FrameAt(s, row).depth));
           }},
          {"function", "TEXT", "name of the function",
           [](Source& s, uint64_t row, Cell& cell) { cell.Text(FrameAt(s, row).frame.Name()); }},
          {"source_file", "TEXT", "source file",
           [](Source& s, uint64_t row, Cell& cell) { cell.Text(FrameAt(s, row).frame.file); }},
          {"line", "INTEGER", "line in the file",
           [](Source& s, uint64_t row, Cell& cell) { cell.Id(FrameAt(s, row).frame.line); }},
          {"module", "TEXT", "path of the library or program",
           [](Source& s, uint64_t row, Cell& cell) { cell.Text(FrameAt(s, row).frame.module); }},
          {"language", "TEXT", "python, c++, ...",
           [](Source& s, uint64_t row, Cell& cell) { cell.Text(FrameAt(s, row).frame.language); }},
      },
      [](Source& s, int64_t key) -> std::pair<uint64_t, uint64_t> {
        const auto [row, end] = FindStack(s, key);
        if (row == end) return {0, 0};
        return {s.first_frames()[row], s.first_frames()[end]};
      }};
}

}  // namespace gmt::answers::sql
