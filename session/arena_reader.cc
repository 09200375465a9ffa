#include "session/arena_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gmt::session {
namespace {

StackFrame FrameOf(uint64_t word) {
  if ((word & kInterpreterFrame) != 0) {
    return {.kind = StackFrame::Kind::kPython,
            .instruction = static_cast<uint32_t>(word & kMaxInstruction)};
  }
  const bool exact = (word & kExactFrame) != 0;
  return {.kind = exact ? StackFrame::Kind::kExact : StackFrame::Kind::kNative,
          .address = word & ~kExactFrame};
}

}  // namespace

bool ReadStack(const SessionMap& session, uint32_t id, StackFrames* stack) {
  const Arena arena = session.arena();
  StackPieces pieces(arena, id);
  if (!pieces) return false;
  std::vector<StackFrame> frames;
  for (StackPieces::Piece piece; pieces.Next(&piece);) {
    uint32_t code = 0;
    for (uint32_t i = 0; i < piece.count; ++i) {
      StackFrame frame = FrameOf(piece.frames[i]);
      if (frame.kind == StackFrame::Kind::kPython && code < piece.code_count)
        frame.code = piece.codes[code++];
      frames.push_back(frame);
    }
  }
  if (pieces.left() != 0) return false;
  stack->frames = std::move(frames);
  stack->generation = pieces.generation();
  stack->flags = pieces.flags();
  return true;
}

std::string ReadText(const SessionMap& session, uint64_t id) {
  const Arena arena = session.arena();
  const uint64_t* word = arena.Find(id, 1);
  if (word == nullptr) return "";
  const uint64_t length = *word;
  if (length == 0 || length > kMaxTextLength) return "";
  const uint64_t* bytes = arena.Find(id + 1, (length + 7) / 8);
  if (bytes == nullptr) return "";
  return std::string(reinterpret_cast<const char*>(bytes), length);
}

bool ReadCode(const SessionMap& session, uint32_t id, CodeCopy* code) {
  const Arena arena = session.arena();
  constexpr uint64_t kHeaderWords = sizeof(CodeHeader) / sizeof(uint64_t);
  const uint64_t* words = arena.Find(id, kHeaderWords);
  if (words == nullptr) return false;
  CodeHeader header;
  std::memcpy(&header, words, sizeof(header));
  if (header.line_table > static_cast<uint16_t>(LineTable::kLast) ||
      header.line_table_bytes > kMaxLineTable) {
    return false;
  }
  const uint64_t* table =
      header.line_table_bytes == 0
          ? words
          : arena.Find(uint64_t{id} + kHeaderWords, (header.line_table_bytes + 7) / 8);
  if (table == nullptr) return false;
  code->format = static_cast<LineTable>(header.line_table);
  code->line_table_cut = (header.flags & kLineTableCut) != 0;
  code->first_line = header.first_line;
  code->function = ReadText(session, header.function);
  code->file = ReadText(session, header.file);
  code->line_table.assign(reinterpret_cast<const char*>(table), header.line_table_bytes);
  return true;
}

void ReadNewModules(const SessionMap& session, std::vector<ModuleCopy>* modules) {
  const uint64_t count = std::min<uint64_t>(
      session.control().module_count.load(std::memory_order_acquire), session.count(kModules));
  const auto* records = session.section<const ModuleRecord>(kModules);
  for (uint64_t i = modules->size(); i < count; ++i) {
    ModuleRecord record;
    std::memcpy(&record, &records[i], sizeof(record));
    ModuleCopy& copy = modules->emplace_back();
    copy.start = record.start;
    copy.end = std::max(record.start, record.end);
    copy.bias = record.bias;
    copy.seen_ns = record.seen_ns;
    copy.generation = record.generation;
    copy.build_id.assign(reinterpret_cast<const char*>(record.build_id),
                         std::min<size_t>(record.build_id_size, sizeof(record.build_id)));
    copy.path.assign(record.path, std::min<size_t>(record.path_size, sizeof(record.path)));
  }
}

}  // namespace gmt::session
