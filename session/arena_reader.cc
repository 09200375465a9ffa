#include "session/arena_reader.h"

#include <algorithm>
#include <cstring>

namespace gmt::session {
namespace {

// Words of an arena that may be read: behind the others there is no memory.
uint64_t WordsOf(const SessionMap& session, SectionId arena) {
  const uint64_t words = session.count(arena);
  if (arena != kStackArena || session.header().abi_minor == 0) return words;
  return std::min(words, session.control().stack_arena_backed.load(std::memory_order_acquire));
}

// Words [offset, offset + count) of an arena, or nullptr where they do not lie inside it.
const uint64_t* ArenaWords(const SessionMap& session, SectionId arena, uint64_t offset,
                           uint64_t count) {
  const uint64_t size = WordsOf(session, arena);
  if (offset == 0 || offset >= size || count > size - offset) return nullptr;
  return session.section<const uint64_t>(arena) + offset;
}

}  // namespace

bool ReadStack(const SessionMap& session, uint32_t id, StackFrames* stack) {
  const uint64_t* word = ArenaWords(session, kStackArena, id, 1);
  if (word == nullptr) return false;
  StackHeader header;
  std::memcpy(&header, word, sizeof(header));
  if (header.depth == 0 || header.depth > kMaxStackDepth) return false;
  const uint64_t* frames = ArenaWords(session, kStackArena, uint64_t{id} + 1, header.depth);
  if (frames == nullptr) return false;
  stack->frames.assign(frames, frames + header.depth);
  stack->generation = header.generation;
  stack->truncated = (header.flags & kStackTruncated) != 0;
  return true;
}

std::string ReadText(const SessionMap& session, uint64_t id) {
  const uint64_t* word = ArenaWords(session, kTextArena, id, 1);
  if (word == nullptr) return "";
  const uint64_t length = *word;
  if (length == 0 || length > kMaxTextLength) return "";
  const uint64_t* bytes = ArenaWords(session, kTextArena, id + 1, (length + 7) / 8);
  if (bytes == nullptr) return "";
  return std::string(reinterpret_cast<const char*>(bytes), length);
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
