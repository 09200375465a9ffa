#include "format/frame_stream.h"

#include <algorithm>

namespace gmt::format {
namespace {

constexpr uint64_t kWindowBytes = 1u << 20;
// All sync words and the magic begin with this. Other occurrences are ruled out by validating the
// record around them.
constexpr std::string_view kNeedle = "GMT";
// Distance from the beginning of a record to the needle in it: in chunks and indexes after tag,
// LENGTH and sync tag (in the magic at 5, within that range); in footers.
constexpr uint64_t kNeedleInFrameFirst = 3, kNeedleInFrameLast = 7, kNeedleInFooter = 11;
constexpr uint64_t kHeadBytes = 32;

FrameRecord Damaged(uint64_t offset, const char* what) {
  FrameRecord record;
  record.kind = FrameRecord::Kind::kDamage;
  record.offset = offset;
  record.what = what;
  return record;
}

FrameRecord::Kind KindOf(FrameTag tag) {
  switch (tag) {
    case FrameTag::kHeader:
      return FrameRecord::Kind::kHeader;
    case FrameTag::kChunk:
      return FrameRecord::Kind::kChunk;
    case FrameTag::kIndex:
      return FrameRecord::Kind::kIndex;
  }
  return FrameRecord::Kind::kDamage;
}

bool IsBeginningOf(std::string_view whole, std::string_view head) {
  return head.size() < whole.size() && whole.substr(0, head.size()) == head;
}

FrameRecord Whole(FrameRecord::Kind kind, uint64_t offset, uint64_t bytes) {
  FrameRecord record;
  record.kind = kind;
  record.offset = offset;
  record.bytes = bytes;
  return record;
}

}  // namespace

absl::StatusOr<FrameStream::Attempt> FrameStream::TryAt(uint64_t offset) {
  absl::Status status = source_->Read(offset, kHeadBytes, &frame_);
  if (!status.ok()) return status;
  const std::string_view head = frame_;
  const bool at_end = head.size() < kHeadBytes;
  if (head.substr(0, 1) == kFileMagic.substr(0, 1)) {
    if (head.substr(0, kFileMagic.size()) == kFileMagic) {
      return Attempt{Whole(FrameRecord::Kind::kMagic, offset, kFileMagic.size())};
    }
    return Attempt{Damaged(offset, "magic"), IsBeginningOf(kFileMagic, head)};
  }
  if (head.substr(0, 1) == Footer(0).substr(0, 1)) {
    const std::optional<uint64_t> index_offset = ParseFooter(head.substr(0, kFooterBytes));
    if (!index_offset.has_value())
      return Attempt{Damaged(offset, "footer"), head.size() < kFooterBytes};
    Attempt attempt{Whole(FrameRecord::Kind::kFooter, offset, kFooterBytes)};
    attempt.record.index_offset = *index_offset;
    return attempt;
  }
  const std::optional<FramePrefix> prefix = ParseFramePrefix(head);
  if (prefix.has_value()) return TryFrame(offset, *prefix);
  // A tag whose length is incomplete.
  const bool begins = at_end && head.size() < kMaxPrefixBytes &&
                      ParseFramePrefix(std::string(head) + '\0').has_value();
  return Attempt{Damaged(offset, "tag"), begins};
}

absl::StatusOr<FrameStream::Attempt> FrameStream::TryFrame(uint64_t offset,
                                                           const FramePrefix& prefix) {
  if (prefix.length > kMaxFrameBytes || prefix.length < kCrcBytes)
    return Attempt{Damaged(offset, "length")};
  if (offset + prefix.total() > source_->size()) return Attempt{Damaged(offset, "length"), true};
  absl::Status status = source_->Read(offset, prefix.total(), &frame_);
  if (!status.ok()) return status;
  const std::optional<std::string_view> body = CheckedBody(prefix, frame_);
  if (!body.has_value()) return Attempt{Damaged(offset, "CRC32C")};
  Attempt attempt{Whole(KindOf(prefix.tag), offset, prefix.total())};
  attempt.record.body = *body;
  return attempt;
}

absl::StatusOr<FrameRecord> FrameStream::Next() {
  if (position_ >= source_->size()) return Whole(FrameRecord::Kind::kEnd, position_, 0);
  absl::StatusOr<Attempt> attempt = TryAt(position_);
  if (!attempt.ok()) return attempt.status();
  if (attempt->record.kind != FrameRecord::Kind::kDamage) {
    position_ += attempt->record.bytes;
    return attempt->record;
  }
  const absl::StatusOr<std::optional<uint64_t>> next = FindWholeAfter(position_);
  if (!next.ok()) return next.status();
  const uint64_t from = position_;
  if (!next->has_value() && tail_ == Tail::kGrows) {
    return Whole(FrameRecord::Kind::kEnd, from, source_->size() - from);
  }
  bool cut = false;
  if (!next->has_value()) {
    // After a power failure a file may end in zeros that were never written.
    const absl::StatusOr<bool> zeros = OnlyZerosFrom(position_);
    if (!zeros.ok()) return zeros.status();
    cut = attempt->may_be_cut || *zeros;
  }
  position_ = next->value_or(source_->size());
  FrameRecord record = cut ? Whole(FrameRecord::Kind::kEnd, from, 0) : attempt->record;
  record.bytes = position_ - from;
  return record;
}

// Returns the first offset after `offset` at which a valid record begins.
absl::StatusOr<std::optional<uint64_t>> FrameStream::FindWholeAfter(uint64_t offset) {
  for (uint64_t at = offset + 1; at < source_->size();) {
    absl::Status status = source_->Read(at, kWindowBytes, &window_);
    if (!status.ok()) return status;
    for (size_t hit = window_.find(kNeedle); hit != std::string::npos;
         hit = window_.find(kNeedle, hit + 1)) {
      absl::StatusOr<std::optional<uint64_t>> found = WholeAround(at + hit, offset + 1);
      if (!found.ok() || found->has_value()) return found;
    }
    if (window_.size() < kNeedle.size()) break;
    at += window_.size() - (kNeedle.size() - 1);
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<uint64_t>> FrameStream::WholeAround(uint64_t sync_offset,
                                                                 uint64_t not_before) {
  const auto try_before = [&](uint64_t distance) -> absl::StatusOr<bool> {
    if (sync_offset < distance + not_before) return false;
    const absl::StatusOr<Attempt> attempt = TryAt(sync_offset - distance);
    if (!attempt.ok()) return attempt.status();
    return attempt->record.kind != FrameRecord::Kind::kDamage && attempt->record.bytes > distance;
  };
  for (uint64_t distance = kNeedleInFrameFirst; distance <= kNeedleInFooter; ++distance) {
    if (distance > kNeedleInFrameLast && distance != kNeedleInFooter) continue;
    const absl::StatusOr<bool> whole = try_before(distance);
    if (!whole.ok()) return whole.status();
    if (*whole) return sync_offset - distance;
  }
  return std::nullopt;
}

absl::StatusOr<bool> FrameStream::OnlyZerosFrom(uint64_t offset) {
  while (offset < source_->size()) {
    absl::Status status = source_->Read(offset, kWindowBytes, &window_);
    if (!status.ok()) return status;
    if (window_.empty()) break;
    if (window_.find_first_not_of('\0') != std::string::npos) return false;
    offset += window_.size();
  }
  return true;
}

}  // namespace gmt::format
