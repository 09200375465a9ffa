#include "tests/evaluate/fragmentation/allocator_model.h"

#include <algorithm>
#include <iterator>

#include "format/units.h"

namespace gmt::evaluate {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kSmallBlock = kMiB, kSmallSegment = 2 * kMiB, kLargeSegment = 20 * kMiB;
constexpr uint64_t kLeastOwnSegment = 10 * kMiB, kSegmentUnit = 2 * kMiB, kBlockUnit = 512;
constexpr uint64_t kSite = 77;  // the place in the allocator's code that records CUDA events

uint64_t RoundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

uint64_t SegmentSize(uint64_t bytes) {
  if (bytes <= kSmallBlock) return kSmallSegment;
  return bytes < kLeastOwnSegment ? kLargeSegment : RoundUp(bytes, kSegmentUnit);
}

}  // namespace

AllocatorModel::AllocatorModel(analysis::EventScript& script, const Device& device)
    : script_(script), device_(device) {
  script_.pid = kPid;
  Sample();
}

uint64_t AllocatorModel::driver_free() const {
  const uint64_t used = reserved_ + driver_bytes_ + device_.context_bytes + device_.others_bytes;
  return device_.total_bytes - std::min(device_.total_bytes, used);
}

std::optional<uint64_t> AllocatorModel::Malloc(uint64_t bytes, uint64_t stream, const Stack& stack,
                                               uint64_t pool) {
  const uint64_t size = RoundUp(std::max<uint64_t>(bytes, 1), kBlockUnit);
  if (capture_stream_ == stream) pool = *capture_pool_;
  std::optional<Place> place = BestFit(size, stream, pool);
  if (!place && !AddSegment(size, stream, pool, stack)) {
    const bool may_retry = !capture_stream_;
    if (may_retry) ReleaseFreeSegments();
    if (!may_retry || !AddSegment(size, stream, pool, stack)) {
      Fail(size, stream, stack);
      return std::nullopt;
    }
    ++retries_;
  }
  if (!place) place = BestFit(size, stream, pool);
  const uint64_t address = place->chunk;
  format::Event& event = script_.Block(address, Take(*place, size), stack);
  event.present |= format::kHasStream;
  event.stream = stream;
  analysis::EventScript::Totals(event, allocated_, reserved_);
  return address;
}

std::optional<AllocatorModel::Place> AllocatorModel::BestFit(uint64_t bytes, uint64_t stream,
                                                             uint64_t pool) const {
  std::optional<Place> best;
  uint64_t best_size = UINT64_MAX;
  for (const auto& [address, segment] : segments_) {
    if (segment.stream != stream || segment.pool != pool ||
        segment.is_small != (bytes <= kSmallBlock)) {
      continue;
    }
    for (const auto& [at, chunk] : segment.chunks) {
      if (chunk.state != State::kFree || chunk.size < bytes || chunk.size >= best_size) continue;
      best = Place{address, at};
      best_size = chunk.size;
    }
  }
  return best;
}

bool AllocatorModel::AddSegment(uint64_t bytes, uint64_t stream, uint64_t pool,
                                const Stack& stack) {
  const uint64_t size = SegmentSize(bytes);
  if (device_.limit_bytes && reserved_ + size > *device_.limit_bytes) return false;
  if (size > driver_free()) {
    script_.Failed(size, stack).result = 2;
    return false;
  }
  const uint64_t address = next_address_;
  next_address_ += RoundUp(size, kSegmentUnit) + kSegmentUnit;
  script_.Alloc(address, size, stack);
  reserved_ += size;
  Segment segment{size, stream, pool, bytes <= kSmallBlock, {}};
  segment.chunks[address] = {size, State::kFree};
  segments_[address] = std::move(segment);
  return true;
}

uint64_t AllocatorModel::Take(const Place& place, uint64_t bytes) {
  Segment& segment = segments_.at(place.segment);
  Chunk& chunk = segment.chunks.at(place.chunk);
  const uint64_t rest = chunk.size - bytes;
  const bool splits = segment.is_small ? rest >= kBlockUnit : rest > kMiB;
  if (splits) {
    chunk.size = bytes;
    segment.chunks[place.chunk + bytes] = {rest, State::kFree};
  }
  chunk.state = State::kLive;
  allocated_ += chunk.size;
  return chunk.size;
}

AllocatorModel::Place AllocatorModel::Find(uint64_t address) const {
  const auto segment = std::prev(segments_.upper_bound(address));
  return {segment->first, address};
}

void AllocatorModel::Free(uint64_t address) {
  script_.FreeBlock(address);
  Release(address);
}

void AllocatorModel::Release(uint64_t address) {
  Segment& segment = segments_.at(Find(address).segment);
  Chunk& chunk = segment.chunks.at(address);
  if (chunk.state == State::kLive) allocated_ -= chunk.size;
  chunk.state = State::kFree;
  JoinNeighbours(segment, address);
}

void AllocatorModel::JoinNeighbours(Segment& segment, uint64_t address) {
  auto at = segment.chunks.find(address);
  const auto next = std::next(at);
  if (next != segment.chunks.end() && next->second.state == State::kFree) {
    at->second.size += next->second.size;
    segment.chunks.erase(next);
  }
  if (at == segment.chunks.begin()) return;
  const auto before = std::prev(at);
  if (before->second.state != State::kFree) return;
  before->second.size += at->second.size;
  segment.chunks.erase(at);
}

void AllocatorModel::FreeAwaiting(uint64_t address, uint64_t other_stream) {
  const uint64_t event = next_event_++;
  format::Event& record = script_.RecordEvent(event, kSite);
  record.present |= format::kHasStream;
  record.stream = other_stream;
  script_.FreeBlock(address);
  Chunk& chunk = segments_.at(Find(address).segment).chunks.at(address);
  allocated_ -= chunk.size;
  chunk.state = State::kAwaiting;
  awaiting_[address] = event;
}

void AllocatorModel::FinishStreams() {
  for (const auto& [address, event] : awaiting_) {
    script_.EventDone(event);
    Release(address);
  }
  awaiting_.clear();
}

uint64_t AllocatorModel::ReleaseFreeSegments() {
  FinishStreams();
  uint64_t released = 0;
  for (auto it = segments_.begin(); it != segments_.end();) {
    const Segment& segment = it->second;
    const bool is_free =
        segment.chunks.size() == 1 && segment.chunks.begin()->second.state == State::kFree;
    if (!is_free || segment.pool != 0) {
      ++it;
      continue;
    }
    script_.Free(it->first);
    reserved_ -= segment.size;
    released += segment.size;
    it = segments_.erase(it);
  }
  return released;
}

void AllocatorModel::EmptyCache() { ReleaseFreeSegments(); }

void AllocatorModel::BeginCapture(uint64_t stream, uint64_t pool) {
  script_.Graph("begin_capture", stream);
  capture_stream_ = stream;
  capture_pool_ = pool;
}

void AllocatorModel::EndCapture() {
  script_.Graph("end_capture", *capture_stream_);
  capture_stream_.reset();
  capture_pool_.reset();
}

void AllocatorModel::DriverFree() {
  const auto [address, bytes] = driver_.back();
  driver_.pop_back();
  script_.Free(address);
  driver_bytes_ -= bytes;
}

bool AllocatorModel::DriverMalloc(uint64_t bytes, const Stack& stack) {
  if (bytes > driver_free()) {
    script_.Failed(bytes, stack).result = 2;
    return false;
  }
  script_.Alloc(next_address_, bytes, stack);
  driver_.emplace_back(next_address_, bytes);
  next_address_ += RoundUp(bytes, kSegmentUnit) + kSegmentUnit;
  driver_bytes_ += bytes;
  return true;
}

void AllocatorModel::MemGetInfo() {
  gmt::Sample& sample = script_.Sample(device_.total_bytes - driver_free(), device_.total_bytes);
  sample.set_source("cudaMemGetInfo");
  sample.set_free_bytes(driver_free());
}

void AllocatorModel::Sample() {
  if (!device_.has_nvml) return MemGetInfo();
  gmt::Sample& sample = script_.Sample(device_.total_bytes - driver_free(), device_.total_bytes);
  sample.set_source("nvml");
  auto* own = sample.add_processes();
  own->set_pid(kPid);
  own->set_bytes(reserved_ + driver_bytes_ + device_.context_bytes);
  if (device_.others_bytes == 0) return;
  auto* other = sample.add_processes();
  other->set_pid(kOtherPid);
  other->set_bytes(device_.others_bytes);
}

void AllocatorModel::Fail(uint64_t bytes, uint64_t stream, const Stack& stack) {
  MemGetInfo();
  format::Event& event = script_.FailedBlock(bytes, stack);
  event.present |= format::kHasStream;
  event.stream = stream;
  analysis::EventScript::Totals(event, allocated_, reserved_);
  if (device_.has_nvml) Sample();
}

AllocatorModel::Truth AllocatorModel::TruthFor(uint64_t stream) const {
  Truth truth;
  for (const auto& [address, segment] : segments_) {
    truth.reserved += segment.size;
    const bool is_free =
        segment.chunks.size() == 1 && segment.chunks.begin()->second.state == State::kFree;
    for (const auto& [at, chunk] : segment.chunks) {
      if (chunk.state == State::kLive) {
        truth.allocated += chunk.size;
      } else if (chunk.state == State::kAwaiting) {
        truth.awaiting += chunk.size;
      } else {
        (segment.pool != 0          ? truth.private_pool
         : is_free                  ? truth.releasable
         : segment.stream != stream ? truth.stream
                                    : truth.pinned) += chunk.size;
        if (segment.pool == 0 && segment.stream == stream) {
          truth.largest = std::max(truth.largest, chunk.size);
        }
      }
    }
  }
  return truth;
}

}  // namespace gmt::evaluate
