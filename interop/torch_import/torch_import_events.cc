#include "interop/torch_import/torch_import_events.h"

#include <algorithm>
#include <iterator>

#include "format/definitions_builder.h"
#include "interop/pickle/pickle_json.h"
#include "interop/torch_import/torch_import_fields.h"
#include "proto/gmt.pb.h"

namespace gmt::interop {
namespace {

using format::Event;
using Action = SnapshotEvent::Action;
using Type = PickleValue::Type;

constexpr uint32_t kOutOfMemoryResult = 2;  // cudaErrorMemoryAllocation
// Page sizes of expandable segments, for the pools of small and of large blocks (kSmallBuffer and
// kLargeBuffer of PyTorch's allocator).
constexpr uint64_t kSmallPage = 2 << 20, kLargePage = 20 << 20;

// For metadata that is not a string.
constexpr JsonLimits kLabelLimits = {.depth = 8, .values = 200, .text = 4 << 10};

// Returns a time of day relative to `start_us`, clamped to the range of int64_t nanoseconds.
int64_t NsSince(int64_t start_us, int64_t time_us) {
  int64_t us, ns;
  if (__builtin_sub_overflow(time_us, start_us, &us) || __builtin_mul_overflow(us, kNsPerUs, &ns))
    return time_us < start_us ? INT64_MIN : INT64_MAX;
  return ns;
}

// Returns the boundaries of the pieces of [address, end): both ends, and the `cuts` between them.
std::vector<uint64_t> Borders(uint64_t address, uint64_t end, const std::vector<uint64_t>& cuts) {
  std::vector<uint64_t> borders = {address};
  for (auto cut = std::upper_bound(cuts.begin(), cuts.end(), address);
       cut != cuts.end() && *cut < end; ++cut) {
    borders.push_back(*cut);
  }
  borders.push_back(end);
  return borders;
}

}  // namespace

SnapshotEvents::SnapshotEvents(const PickleTree& tree, format::DefinitionsBuilder& definitions,
                               format::RecordingVisitor& visitor, int64_t start_us)
    : tree_(tree),
      definitions_(definitions),
      visitor_(visitor),
      start_us_(start_us),
      stacks_(tree, definitions),
      driver_(definitions.InternString("driver")),
      pytorch_(definitions.InternString("pytorch")),
      lost_(definitions.InternString("(lost)")),
      no_context_(definitions.InternString("N/A")) {}

// ---- Making events -----------------------------------------------------------------------------

Event SnapshotEvents::Make(Kind kind, uint32_t heap, Memory memory, uint32_t device) const {
  Event event;
  event.kind = kind;
  event.present = format::kHasDevice;
  event.heap = heap;
  event.memory = memory;
  event.device = device;
  return event;
}

Event SnapshotEvents::MakeFrom(Kind kind, uint32_t heap, Memory memory, uint32_t device,
                               const SnapshotEvent& source) {
  Event event = Make(kind, heap, memory, device);
  SetTime(source.time_us, &event);
  SetStream(source.stream, &event);
  event.stack = stacks_.StackOf(source.frames);
  if (format::FamilyOf(kind) != format::Family::kAcquisition) return event;
  event.forward_stack = stacks_.ForwardStackOf(source.forward_frames);
  event.scope = Label(source.compile_context);
  event.name = Label(source.user_metadata);
  if (source.pool.has_value()) SetPool(*source.pool, &event);
  return event;
}

void SnapshotEvents::SetTime(std::optional<int64_t> time_us, Event* event) {
  if (!time_us.has_value()) return;
  event->t_ns = NsSince(start_us_, *time_us);
  event->present |= format::kHasTime;
  last_t_ns_ = std::max(last_t_ns_, event->t_ns);
}

// Returns a string, or its JSON if it is another value.
uint32_t SnapshotEvents::Label(PickleValue value) {
  if (value == PickleValue()) return 0;
  const auto [known, is_new] = labels_.try_emplace(value.identity(), 0);
  if (is_new) {
    const auto text = tree_.String(value);
    known->second = definitions_.InternString(
        text.has_value() ? std::string(*text) : JsonText(tree_, value, kLabelLimits));
  }
  return known->second;
}

void SnapshotEvents::Put(const Event& event) { batch_.events.push_back(event); }

absl::Status SnapshotEvents::Flush() {
  if (batch_.events.empty()) return absl::OkStatus();
  absl::Status status = visitor_.OnEvents(batch_);
  batch_.Clear();
  return status;
}

// ---- States ------------------------------------------------------------------------------------

Event SnapshotEvents::Block(uint32_t device, const SnapshotBlock& block,
                            std::optional<uint64_t> stream) {
  Event event = Make(ALLOC, pytorch_, BLOCK, device);
  SetRange(block.address, block.size, &event);
  SetStream(stream, &event);
  event.stack = stacks_.StackOf(block.frames);
  if (block.requested > 0) {
    event.requested = block.requested;
    event.present |= format::kHasRequested;
  }
  return event;
}

Event SnapshotEvents::Segment(const SnapshotSegment& segment) {
  Event event = Make(ALLOC, driver_, DEVICE, segment.device);
  SetRange(segment.address, segment.size, &event);
  SetStream(segment.stream, &event);
  SetPool(segment.pool, &event);
  event.stack = stacks_.StackOf(segment.frames);
  return event;
}

void SnapshotEvents::AddBegin(uint32_t device, const DeviceBegin& begin, std::vector<Event>* live) {
  begins_[device] = &begin;
  for (const auto& [address, end] : begin.reserved) {
    Event reserve = Make(RESERVE, driver_, VMM, device);
    SetRange(address, end - address, &reserve);
    Put(reserve);
  }
  for (const SnapshotSegment& segment : begin.segments) live->push_back(Segment(segment));
  const std::vector<uint64_t>& cuts = begin.CutsOf(DeviceBegin::kBefore);
  for (const MappedRange& range : begin.mapped) AddMapped(device, range, cuts, live);
  for (size_t i = 0; i < begin.blocks.size(); ++i)
    live->push_back(Block(device, begin.blocks[i], begin.block_streams[i]));
  const auto followed = followed_.find(device);
  if (followed == followed_.end()) return;
  for (const SnapshotSegment& segment : begin.segments)
    followed->second.segments[segment.address] = segment.size;
  for (const SnapshotBlock& block : begin.blocks)
    followed->second.blocks[block.address] = block.pending;
}

void SnapshotEvents::AddBeginFrees(uint32_t device, const DeviceBegin& begin) {
  for (const SnapshotBlock& block : begin.blocks) {
    if (!block.pending) continue;
    Event free = Make(FREE, pytorch_, BLOCK, device);
    SetRange(block.address, block.size, &free);
    Put(free);
  }
}

// Adds memory page by page, as the allocator maps and unmaps it: a part of the range may be
// unmapped meanwhile.
void SnapshotEvents::AddMapped(uint32_t device, const MappedRange& range,
                               const std::vector<uint64_t>& cuts, std::vector<Event>* live) {
  Event like = Make(CREATE, driver_, VMM, device);
  SetStream(range.stream, &like);
  SetPool(range.pool, &like);
  like.stack = stacks_.StackOf(range.frames);
  const uint64_t page = range.small || range.size % kLargePage != 0 ? kSmallPage : kLargePage;
  const std::vector<uint64_t> borders = Borders(range.address, range.address + range.size, cuts);
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    const uint64_t size = borders[i + 1] - borders[i];
    const uint64_t pages = size / page;
    const uint64_t step = pages > pages_left_ ? size : page;
    pages_left_ -= std::min(pages, pages_left_);
    for (uint64_t at = 0; at < size; at += step) {
      const auto [create, map] = MapPiece(device, borders[i] + at, std::min(step, size - at), like);
      live->push_back(create);
      live->push_back(map);
    }
  }
}

std::pair<Event, Event> SnapshotEvents::MapPiece(uint32_t device, uint64_t address, uint64_t size,
                                                 const Event& like) {
  const uint64_t handle = next_handle_++;
  mapped_[device][address] = {size, handle};
  Event create = like, map = like;
  create.kind = CREATE;
  SetRange(handle, size, &create);
  map.kind = MAP;
  SetRange(address, size, &map);
  map.handle = handle;
  map.present |= format::kHasHandle;
  return {create, map};
}

void SnapshotEvents::AddLive(const SnapshotSegment& segment, std::vector<Event>* live) {
  if (!segment.expandable) {
    live->push_back(Segment(segment));
  } else {
    Event like = Make(CREATE, driver_, VMM, segment.device);
    SetStream(segment.stream, &like);
    SetPool(segment.pool, &like);
    auto& mapped = mapped_[segment.device];
    for (auto it = mapped.lower_bound(segment.address);
         it != mapped.end() && it->first - segment.address < segment.size; ++it) {
      Event create = like, map = like;
      SetRange(it->second.handle, it->second.size, &create);
      map.kind = MAP;
      SetRange(it->first, it->second.size, &map);
      map.handle = it->second.handle;
      map.present |= format::kHasHandle;
      live->push_back(create);
      live->push_back(map);
    }
  }
  for (const SnapshotBlock& block : segment.blocks) {
    if (!block.pending) live->push_back(Block(segment.device, block, segment.stream));
  }
}

// ---- History -----------------------------------------------------------------------------------

void SnapshotEvents::Add(uint32_t device, uint32_t index, const SnapshotEvent& event) {
  switch (event.action) {
    case Action::kAlloc:
      return AddAlloc(device, index, event);
    case Action::kFreeRequested:
      return AddFree(device, event, false);
    case Action::kFreeCompleted:
      return AddFree(device, event, true);
    case Action::kSegmentAlloc:
      return AddSegment(device, index, event);
    case Action::kSegmentFree:
      return AddSegmentFree(device, event);
    case Action::kSegmentMap:
      return AddMap(device, index, event);
    case Action::kSegmentUnmap:
      return AddUnmap(device, event);
    case Action::kOutOfMemory:
      return AddOutOfMemory(device, event);
    case Action::kOther:
      return AddAction(device, event);
  }
}

void SnapshotEvents::AddAlloc(uint32_t device, uint32_t index, const SnapshotEvent& source) {
  Event event = MakeFrom(ALLOC, pytorch_, BLOCK, device, source);
  const auto& sizes = begins_[device]->sizes;
  const auto size = sizes.find(index);
  SetRange(source.address, size != sizes.end() ? size->second : RoundedBlockSize(source.size),
           &event);
  event.requested = source.size;
  event.present |= format::kHasRequested;
  Put(event);
  const auto followed = followed_.find(device);
  if (followed != followed_.end()) followed->second.blocks[source.address] = false;
}

void SnapshotEvents::AddFree(uint32_t device, const SnapshotEvent& source, bool completed) {
  Event event = MakeFrom(completed ? FREE_DONE : FREE, pytorch_, BLOCK, device, source);
  SetRange(source.address, RoundedBlockSize(source.size), &event);
  const auto followed = followed_.find(device);
  if (followed != followed_.end()) FollowFree(device, source, completed, &followed->second);
  Put(event);
  const uint32_t scope = Label(source.compile_context);
  if ((scope != 0 && scope != no_context_) || Label(source.user_metadata) != 0) ++labelled_frees_;
}

// What is freed must have been allocated; if that is unknown, in a hole of the history.
void SnapshotEvents::FollowFree(uint32_t device, const SnapshotEvent& source, bool completed,
                                Followed* held) {
  if (completed) {
    held->blocks.erase(source.address);
    return;
  }
  if (!held->blocks.contains(source.address)) {
    SnapshotBlock block;
    block.address = source.address;
    block.size = RoundedBlockSize(source.size);
    block.requested = source.size;
    PutLost(Block(device, block, source.stream));
  }
  held->blocks[source.address] = true;
}

void SnapshotEvents::AddSegment(uint32_t device, uint32_t index, const SnapshotEvent& source) {
  Event event = MakeFrom(ALLOC, driver_, DEVICE, device, source);
  SetRange(source.address, source.size, &event);
  const auto& pools = begins_[device]->pools;
  const auto pool = pools.find(index);
  if (!source.pool.has_value()) SetPool(pool == pools.end() ? 0 : pool->second, &event);
  Put(event);
  const auto followed = followed_.find(device);
  if (followed != followed_.end()) followed->second.segments[source.address] = source.size;
}

void SnapshotEvents::AddSegmentFree(uint32_t device, const SnapshotEvent& source) {
  Event event = MakeFrom(FREE, driver_, DEVICE, device, source);
  SetRange(source.address, source.size, &event);
  Put(event);
  const auto followed = followed_.find(device);
  if (followed != followed_.end()) followed->second.segments.erase(source.address);
}

void SnapshotEvents::AddMap(uint32_t device, uint32_t index, const SnapshotEvent& source) {
  const DeviceBegin& begin = *begins_[device];
  Event like = MakeFrom(CREATE, driver_, VMM, device, source);
  const auto pool = begin.pools.find(index);
  if (!source.pool.has_value()) SetPool(pool == begin.pools.end() ? 0 : pool->second, &like);
  const std::vector<uint64_t> borders =
      Borders(source.address, source.address + source.size, begin.CutsOf(index));
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    const auto [create, map] = MapPiece(device, borders[i], borders[i + 1] - borders[i], like);
    Put(create);
    Put(map);
  }
}

void SnapshotEvents::AddUnmap(uint32_t device, const SnapshotEvent& source) {
  Event unmap = MakeFrom(UNMAP, driver_, VMM, device, source);
  SetRange(source.address, source.size, &unmap);
  Put(unmap);
  auto& mapped = mapped_[device];
  auto it = mapped.lower_bound(source.address);
  while (it != mapped.end() && it->first - source.address < source.size) {
    Event release = unmap;
    release.kind = RELEASE;
    SetRange(it->second.handle, it->second.size, &release);
    Put(release);
    it = mapped.erase(it);
  }
}

void SnapshotEvents::AddOutOfMemory(uint32_t device, const SnapshotEvent& source) {
  Event sample = Make(SAMPLE, 0, MEMORY_UNSPECIFIED, device);
  sample.present = 0;
  SetTime(source.time_us, &sample);
  sample.detail = static_cast<uint32_t>(batch_.samples.size());
  Sample& detail = batch_.samples.emplace_back();
  detail.set_device(device);
  detail.set_free_bytes(source.address);
  detail.set_source("cudaMemGetInfo");
  Put(sample);
  Event event = MakeFrom(ALLOC_FAILED, pytorch_, BLOCK, device, source);
  event.size = source.size;
  event.result = kOutOfMemoryResult;
  event.present |= format::kHasSize | format::kHasResult;
  Put(event);
}

void SnapshotEvents::AddAction(uint32_t device, const SnapshotEvent& source) {
  Event event = MakeFrom(ALLOCATOR_ACTION, pytorch_, MEMORY_UNSPECIFIED, device, source);
  event.object = source.address;
  event.value = source.size;
  event.present |= format::kHasObject | format::kHasValue;
  event.action = Label(source.action_name);
  event.name = Label(source.user_metadata);
  Put(event);
}

void SnapshotEvents::Add(const SnapshotAnnotation& annotation) {
  if (annotation.stage == SnapshotAnnotation::Stage::kOther) {
    ++annotations_without_stage_;
    return;
  }
  const bool begins = annotation.stage == SnapshotAnnotation::Stage::kStart;
  Event event;
  event.kind = begins ? RANGE_BEGIN : RANGE_END;
  event.name = Label(annotation.name);
  SetTime(annotation.time_us, &event);
  if (annotation.device.has_value()) {
    event.device = *annotation.device;
    event.present |= format::kHasDevice;
  }
  std::vector<uint64_t>& open =
      open_ranges_[{event.name, annotation.device.has_value() ? int64_t{*annotation.device} : -1}];
  event.range = begins || open.empty() ? next_range_++ : open.back();
  event.present |= format::kHasRange;
  if (begins) {
    open.push_back(event.range);
  } else if (!open.empty()) {
    open.pop_back();
  }
  Put(event);
}

}  // namespace gmt::interop
