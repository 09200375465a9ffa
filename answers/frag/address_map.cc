#include "answers/frag/address_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "analysis/text.h"

namespace gmt::answers {
namespace {

using analysis::Piece;
using analysis::SegmentMap;

constexpr size_t kNumbers = 29;  // columns for address and size
constexpr size_t kNotes = 24;    // columns after the picture
constexpr size_t kMinLetters = 16;

uint64_t FreeIn(const SegmentMap& segment) {
  uint64_t free = 0;
  for (const Piece& piece : segment.pieces) {
    if (piece.kind != Piece::kLive) free += piece.size;
  }
  return free;
}

// Bytes of each kind in one part of a segment.
using Parts = std::array<uint64_t, 4>;

char LetterOf(const Parts& bytes) {
  constexpr std::array<char, 4> kLetters = {'#', '.', '~', '-'};
  const uint64_t all = bytes[0] + bytes[1] + bytes[2] + bytes[3];
  if (bytes[Piece::kLive] == all) return '#';
  if (bytes[Piece::kLive] > 0) return '+';
  const auto most = std::max_element(bytes.begin(), bytes.end());
  return kLetters[static_cast<size_t>(most - bytes.begin())];
}

std::string Notes(const SegmentMap& segment) {
  std::string notes;
  if (segment.stream) notes += fmt::format("stream 0x{:x}", *segment.stream);
  const auto add = [&](const char* note) {
    notes += (notes.empty() ? "" : ", ") + std::string(note);
  };
  if (segment.is_private) add("private");
  if (segment.is_expandable) add("expandable");
  return notes;
}

}  // namespace

std::string PictureOf(const SegmentMap& segment, size_t letters) {
  std::string picture;
  const auto count = static_cast<uint64_t>(letters);
  // Computes the boundaries without the product of size and index, which could overflow.
  const auto border = [&](uint64_t i) {
    return segment.address + segment.size / count * i + segment.size % count * i / count;
  };
  size_t piece = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t begin = border(i), end = border(i + 1);
    Parts bytes = {};
    while (piece < segment.pieces.size() && segment.pieces[piece].end() <= begin) ++piece;
    for (size_t at = piece; at < segment.pieces.size(); ++at) {
      const Piece& part = segment.pieces[at];
      if (part.address >= end) break;
      bytes[part.kind] += std::min(part.end(), end) - std::max(part.address, begin);
    }
    if (end > begin) picture += LetterOf(bytes);
  }
  return picture;
}

std::string AddressMap(const std::vector<SegmentMap>& segments, size_t lines, size_t width) {
  std::vector<const SegmentMap*> shown;
  for (const SegmentMap& segment : segments) {
    if (FreeIn(segment) > 0) shown.push_back(&segment);
  }
  if (shown.empty() || lines < 3) return "";
  std::stable_sort(shown.begin(), shown.end(), [](const SegmentMap* a, const SegmentMap* b) {
    return FreeIn(*a) > FreeIn(*b);
  });
  shown.resize(std::min(shown.size(), lines - 2));
  std::sort(shown.begin(), shown.end(),
            [](const SegmentMap* a, const SegmentMap* b) { return a->address < b->address; });
  const size_t letters =
      width > kNumbers + kNotes + kMinLetters ? width - kNumbers - kNotes : kMinLetters;
  std::string text =
      "segments with most free memory: # live, + partly live, . free, - releasable, ~ awaiting\n";
  uint64_t bytes = 0, free = 0;
  for (const SegmentMap* segment : shown) {
    bytes += segment->size;
    free += FreeIn(*segment);
    const std::string notes = Notes(*segment);
    text += fmt::format("{:<16} {:>9}  {}{}{}\n", Address(segment->address), Bytes(segment->size),
                        PictureOf(*segment, letters), notes.empty() ? "" : "  ", notes);
  }
  uint64_t all_bytes = 0, all_free = 0;
  for (const SegmentMap& segment : segments) {
    all_bytes += segment.size;
    all_free += FreeIn(segment);
  }
  if (segments.size() > shown.size()) {
    text += fmt::format("{}: {}, of which {} free\n",
                        Plural(segments.size() - shown.size(), "other segment"),
                        Bytes(all_bytes - bytes), Bytes(all_free - free));
  }
  return text;
}

}  // namespace gmt::answers
