#include "session/stack_table.h"

#include <cstring>

namespace gmt::session {
namespace {

constexpr uint64_t kHeaderWords = sizeof(StackHeader) / sizeof(uint64_t);

bool IsInterpreter(uint64_t frame) { return (frame & kInterpreterFrame) != 0; }

uint32_t CountInterpreter(const uint64_t* frames, uint32_t count) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < count; ++i) n += IsInterpreter(frames[i]) ? 1 : 0;
  return n;
}

// Words of an entry after its header.
uint64_t WordsOf(const StackHeader& header) {
  return header.own + (uint64_t{header.codes} + 1) / 2;
}

}  // namespace

StackPieces::StackPieces(const Arena& arena, uint32_t id) : arena_(arena) {
  if (!Enter(id) || header_.depth == 0 || header_.depth > kMaxStackDepth) {
    header_ = {};
    return;
  }
  depth_ = left_ = header_.depth;
  flags_ = header_.flags;
  generation_ = header_.generation;
}

// Reads the header at `id` once and checks that everything it refers to is in the arena.
bool StackPieces::Enter(uint32_t id) {
  const uint64_t* header = arena_.Find(id, kHeaderWords);
  if (header == nullptr) return false;
  std::memcpy(&header_, header, sizeof(header_));
  if (header_.own > header_.depth || header_.codes > header_.own) return false;
  entry_ = arena_.Find(id + kHeaderWords, WordsOf(header_));
  id_ = id;
  return entry_ != nullptr;
}

bool StackPieces::Next(Piece* piece) {
  while (left_ > 0) {
    if (left_ > header_.depth) return false;
    const uint32_t skipped = header_.depth - left_;  // frames further in than those requested
    if (skipped < header_.own) {
      const uint32_t before = CountInterpreter(entry_, skipped);
      const auto* codes = reinterpret_cast<const uint32_t*>(entry_ + header_.own);
      piece->frames = entry_ + skipped;
      piece->count = header_.own - skipped;
      piece->codes = codes + before;
      piece->code_count = before < header_.codes ? header_.codes - before : 0;
      piece->stack = id_;
      left_ -= piece->count;
      return true;
    }
    // `outer` must precede this entry, so that corrupted words cannot form a cycle.
    if (header_.outer >= id_ || !Enter(header_.outer)) return false;
  }
  return false;
}

// Returns how many of the outermost frames of `like` are also this stack's, and the stack whose
// entry holds them.
StackTable::Shared StackTable::FindShared(const Buffer& stack, uint32_t depth,
                                          const uint32_t* codes, uint32_t like) const {
  StackPieces pieces(arena_, like);
  if (!pieces) return {};
  const uint32_t other = pieces.depth();
  // Counted from the outside; frame 1 of both stacks is the outermost.
  uint32_t from_outside = other;
  const uint32_t further_in = depth > other ? depth - other : 0;
  codes += CountInterpreter(stack.frames, further_in);
  uint32_t shared = 0, links = 0;
  Shared result;
  for (StackPieces::Piece piece; pieces.Next(&piece);) {
    ++links;
    const uint32_t* code = piece.codes;
    const uint32_t* const code_end = piece.codes + piece.code_count;
    for (uint32_t i = 0; i < piece.count; ++i, --from_outside) {
      const bool interpreter = IsInterpreter(piece.frames[i]);
      if (from_outside > depth) {
        code += interpreter ? 1 : 0;
        continue;
      }
      const uint64_t frame = stack.frames[depth - from_outside];
      bool equal = frame == piece.frames[i];
      if (interpreter) equal = equal && code < code_end && *code == *codes;
      code += interpreter ? 1 : 0;
      codes += IsInterpreter(frame) ? 1 : 0;
      if (!equal) {
        shared = 0;
      } else if (shared++ == 0) {
        result.stack = piece.stack;
        links = 1;
      }
    }
  }
  if (pieces.left() != 0 || shared < kWorthSharing || links >= kMaxPieces) return {};
  // Every entry stores at least its innermost frame, even if another stack has all of its frames.
  result.frames = shared == depth ? depth - 1 : shared;
  return result;
}

// `header`: with what is known before the frames are compared with those of `like`.
uint64_t StackTable::Append(const Buffer& stack, StackHeader header, const uint32_t* codes,
                            uint32_t like) const {
  const Shared shared = FindShared(stack, header.depth, codes, like);
  const uint32_t own = header.depth - shared.frames;
  const uint32_t own_codes = CountInterpreter(stack.frames, own);
  header.own = static_cast<uint16_t>(own);
  header.codes = static_cast<uint16_t>(own_codes);
  header.outer = shared.stack;
  const uint64_t place = arena_.Append(kHeaderWords + WordsOf(header));
  if (place == 0) return 0;
  uint64_t* at = arena_.at(place);
  std::memcpy(at, &header, sizeof(header));
  std::memcpy(at += kHeaderWords, stack.frames, own * sizeof(uint64_t));
  if (own_codes != 0) std::memcpy(at + own, codes, own_codes * sizeof(uint32_t));
  return place;
}

ContentHash StackTable::HashOf(const Buffer& stack, uint32_t depth, uint16_t flags,
                               uint32_t generation) {
  StackSum sum;
  sum.SetFingerprint(stack.fingerprint);
  uint32_t native = 0, interpreter = 0, runs = 0;
  bool in_run = false;
  for (uint32_t i = depth; i-- > 0;) {
    const bool starts_run = !in_run;
    in_run = IsInterpreter(stack.frames[i]);
    if (!in_run) {
      sum.AddNative(stack.frames[i], native++);
      continue;
    }
    if (starts_run) sum.AddRun(runs++, native, interpreter);
    sum.AddInterpreter(stack.frames[i], 0, interpreter++);
  }
  return sum.Hash(depth, flags, generation);
}

uint32_t StackTable::Add(const Buffer& stack, uint32_t depth, uint16_t flags, uint32_t generation,
                         const uint32_t* codes, uint32_t like) const {
  const ContentHash hash = HashOf(stack, depth, flags, generation);
  const Digest digest = hash.digest();
  StackHeader header = {};
  header.depth = static_cast<uint16_t>(depth);
  header.flags = flags;
  header.generation = generation;
  header.digest[0] = digest.a;
  header.digest[1] = digest.b;
  return index_.Intern(
      hash.value(), [&](uint64_t place) { return Equal(place, digest); },
      [&] { return Append(stack, header, codes, like); });
}

}  // namespace gmt::session
