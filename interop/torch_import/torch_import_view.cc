#include "interop/torch_import/torch_import_view.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace gmt::interop {
namespace {

using Action = SnapshotEvent::Action;
using Type = PickleValue::Type;

// No machine has more. A file that claims more was made to keep a reader busy.
constexpr uint32_t kMaxDevices = 4096;
constexpr uint64_t kMaxSize = uint64_t{1} << 62;
// PyTorch writes at most 12. A dict may be in a list a million times.
constexpr uint32_t kMaxFields = 256;
constexpr char kTooManyFields[] = "has more than 256 fields";

absl::Status Wrong(const std::string& where, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
}

bool IsSequence(PickleValue value) { return value.is(Type::kList) || value.is(Type::kTuple); }

absl::Status CheckDisjoint(const std::vector<SnapshotSegment>& segments) {
  std::vector<uint32_t> order(segments.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(segments[a].device, segments[a].address) <
           std::pair(segments[b].device, segments[b].address);
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const SnapshotSegment &before = segments[order[i - 1]], &after = segments[order[i]];
    if (before.device == after.device && after.address - before.address < before.size)
      return Wrong(absl::StrCat("segments[", order[i], "]"),
                   absl::StrCat("overlaps segments[", order[i - 1], "]"));
  }
  return absl::OkStatus();
}

std::string Index(const char* list, uint64_t index) { return absl::StrCat(list, "[", index, "]"); }

}  // namespace

SnapshotView::Words::Words(const PickleTree& tree)
    : action(tree.Key("action")),
      addr(tree.Key("addr")),
      device_free(tree.Key("device_free")),
      size(tree.Key("size")),
      stream(tree.Key("stream")),
      frames(tree.Key("frames")),
      time_us(tree.Key("time_us")),
      compile_context(tree.Key("compile_context")),
      user_metadata(tree.Key("user_metadata")),
      forward_frames(tree.Key("forward_frames")),
      pool_id(tree.Key("pool_id")),
      device(tree.Key("device")),
      address(tree.Key("address")),
      total_size(tree.Key("total_size")),
      allocated_size(tree.Key("allocated_size")),
      active_size(tree.Key("active_size")),
      requested_size(tree.Key("requested_size")),
      segment_type(tree.Key("segment_type")),
      segment_pool_id(tree.Key("segment_pool_id")),
      is_expandable(tree.Key("is_expandable")),
      blocks(tree.Key("blocks")),
      state(tree.Key("state")),
      history(tree.Key("history")),
      real_size(tree.Key("real_size")),
      name(tree.Key("name")),
      stage(tree.Key("stage")),
      start(tree.Key("START")),
      end(tree.Key("END")),
      small(tree.Key("small")),
      inactive(tree.Key("inactive")),
      active_allocated(tree.Key("active_allocated")),
      active_pending_free(tree.Key("active_pending_free")),
      active_awaiting_free(tree.Key("active_awaiting_free")),
      actions{tree.Key("alloc"),          tree.Key("free_requested"),
              tree.Key("free_completed"), tree.Key("segment_alloc"),
              tree.Key("segment_free"),   tree.Key("segment_map"),
              tree.Key("segment_unmap"),  tree.Key("oom")} {}

absl::StatusOr<SnapshotView> SnapshotView::Of(const PickleTree& tree, PickleValue root) {
  SnapshotView view(tree, root);
  absl::Status status = view.TakeRoot();
  if (!status.ok()) return status;
  return view;
}

// ---- Top level ---------------------------------------------------------------------------------

absl::Status SnapshotView::TakeRoot() {
  constexpr char kExpected[] =
      "is not a memory snapshot of PyTorch: expected a dict with \"segments\", or a list of "
      "segments";
  if (IsSequence(root_)) {
    segments_ = root_;
    traces_.resize(1);
    return absl::OkStatus();
  }
  const PickleValue* segments = tree_->Find(root_, "segments");
  if (segments == nullptr || !IsSequence(*segments))
    return Wrong(absl::StrCat("the value of the pickle, a ", TypeName(root_.type())), kExpected);
  segments_ = *segments;
  absl::Status status = TakeTraces(tree_->Find(root_, "device_traces"));
  if (!status.ok()) return status;
  if (const PickleValue* list = tree_->Find(root_, "external_annotations"); list != nullptr)
    annotations_ = tree_->ItemsOf(*list);
  if (const PickleValue* dict = tree_->Find(root_, "allocator_settings");
      dict != nullptr && dict->is(Type::kDict)) {
    settings_ = *dict;
  }
  const PickleValue known[] = {tree_->Key("segments"), tree_->Key("device_traces"),
                               tree_->Key("external_annotations"),
                               tree_->Key("allocator_settings")};
  NoteUnknown(root_, known, "the snapshot");
  return absl::OkStatus();
}

absl::Status SnapshotView::TakeTraces(const PickleValue* traces) {
  if (traces == nullptr) {
    traces_.resize(1);
    return absl::OkStatus();
  }
  if (!IsSequence(*traces)) return Wrong("device_traces", "is not a list");
  if (tree_->SizeOf(*traces) > kMaxDevices)
    return Wrong("device_traces", absl::StrCat("more than ", kMaxDevices, " devices"));
  absl::flat_hash_set<uint64_t> seen;
  for (PickleValue trace : tree_->ItemsOf(*traces)) {
    const std::string where = Index("device_traces", traces_.size());
    if (!IsSequence(trace)) return Wrong(where, "is not a list");
    if (tree_->SizeOf(trace) > 0 && !seen.insert(trace.identity()).second)
      return Wrong(where, "is the list of another device");
    traces_.push_back(tree_->ItemsOf(trace));
  }
  return absl::OkStatus();
}

// ---- Events ------------------------------------------------------------------------------------

const char* SnapshotView::ProblemOf(PickleValue dict) const {
  if (!dict.is(Type::kDict)) return "is not a dict";
  return tree_->SizeOf(dict) > kMaxFields ? kTooManyFields : nullptr;
}

PickleValue SnapshotView::Field(PickleValue dict, PickleValue key) const {
  const PickleValue* value = tree_->Find(dict, key);
  return value == nullptr ? PickleValue() : *value;
}

// Addresses above 2^63 are negative in some versions.
bool SnapshotView::Unsigned(PickleValue dict, PickleValue key, uint64_t* number) const {
  const PickleValue* value = tree_->Find(dict, key);
  if (value == nullptr) return false;
  const auto found = tree_->Int(*value);
  if (found.has_value()) *number = static_cast<uint64_t>(*found);
  return found.has_value();
}

std::optional<uint64_t> SnapshotView::PoolId(PickleValue pair) const {
  const PickleTree::Items items = tree_->ItemsOf(pair);
  if (items.size != 2) return std::nullopt;
  const auto first = tree_->Int(items.data[0]), second = tree_->Int(items.data[1]);
  if (!first.has_value() || !second.has_value()) return std::nullopt;
  return static_cast<uint64_t>(*first) << 32 | (static_cast<uint64_t>(*second) & UINT32_MAX);
}

absl::Status SnapshotView::Event(uint32_t device, uint32_t index, SnapshotEvent* event) const {
  const PickleValue dict = traces_[device].data[index];
  const auto wrong = [&](const char* what) {
    return Wrong(absl::StrCat(Index("device_traces", device), "[", index, "]"), what);
  };
  if (const char* problem = ProblemOf(dict)) return wrong(problem);
  *event = SnapshotEvent();
  tree_->ForEach(dict, [&](PickleValue key, PickleValue value) {
    if (key == words_.action) {
      event->action_name = value;
    } else if (key == words_.frames) {
      event->frames = value;
    } else if (key == words_.time_us) {
      event->time_us = tree_->Int(value);
    } else if (key == words_.stream) {
      const auto stream = tree_->Int(value);
      if (stream.has_value()) event->stream = static_cast<uint64_t>(*stream);
    } else if (key == words_.compile_context) {
      event->compile_context = value;
    } else if (key == words_.user_metadata) {
      event->user_metadata = value;
    } else if (key == words_.forward_frames) {
      event->forward_frames = value;
    } else if (key == words_.pool_id) {
      event->pool = PoolId(value);
    } else if (key != words_.addr && key != words_.size && key != words_.device_free) {
      ++event->unknown_fields;
    }
  });
  if (!event->action_name.is(Type::kString)) return wrong("has no action");
  const auto* action =
      std::find(std::begin(words_.actions), std::end(words_.actions), event->action_name);
  event->action = static_cast<Action>(action - std::begin(words_.actions));
  const bool is_known = event->action != Action::kOther;
  const bool is_oom = event->action == Action::kOutOfMemory;
  if (!Unsigned(dict, words_.size, &event->size) && is_known)
    return wrong("size is not an integer");
  if (!Unsigned(dict, is_oom ? words_.device_free : words_.addr, &event->address) && is_known)
    return wrong(is_oom ? "device_free is not an integer" : "addr is not an integer");
  const bool has_end = event->size <= kMaxSize && event->address <= UINT64_MAX - event->size;
  if (is_known && !is_oom && !has_end) return wrong("addr and size are not an address range");
  return absl::OkStatus();
}

void SnapshotView::NoteUnknownFields(uint32_t device, uint32_t index) {
  const PickleValue known[] = {
      words_.action,        words_.addr,           words_.device_free, words_.size,
      words_.stream,        words_.frames,         words_.time_us,     words_.compile_context,
      words_.user_metadata, words_.forward_frames, words_.pool_id};
  NoteUnknown(traces_[device].data[index], known, "events");
}

absl::Status SnapshotView::Annotation(uint32_t index, SnapshotAnnotation* annotation) const {
  const PickleValue dict = annotations_.data[index];
  if (const char* problem = ProblemOf(dict))
    return Wrong(Index("external_annotations", index), problem);
  *annotation = SnapshotAnnotation();
  const PickleValue stage = Field(dict, words_.stage);
  annotation->stage = stage == words_.start ? SnapshotAnnotation::Stage::kStart
                      : stage == words_.end ? SnapshotAnnotation::Stage::kEnd
                                            : SnapshotAnnotation::Stage::kOther;
  annotation->name = Field(dict, words_.name);
  annotation->time_us = tree_->Int(Field(dict, words_.time_us));
  uint64_t device;
  if (Unsigned(dict, words_.device, &device) && device < kMaxDevices)
    annotation->device = static_cast<uint32_t>(device);
  return absl::OkStatus();
}

// ---- Segments ----------------------------------------------------------------------------------

absl::StatusOr<std::vector<SnapshotSegment>> SnapshotView::Segments() {
  std::vector<SnapshotSegment> segments;
  absl::flat_hash_set<uint64_t> seen;
  for (PickleValue value : tree_->ItemsOf(segments_)) {
    const std::string where = Index("segments", segments.size());
    if (const char* problem = ProblemOf(value)) return Wrong(where, problem);
    const PickleValue blocks = Field(value, words_.blocks);
    if (tree_->SizeOf(blocks) > 0 && !seen.insert(blocks.identity()).second)
      return Wrong(where, "its blocks are those of another segment");
    SnapshotSegment& segment = segments.emplace_back();
    absl::Status status = TakeSegment(value, where, &segment);
    if (!status.ok()) return status;
  }
  absl::Status status = CheckDisjoint(segments);
  if (!status.ok()) return status;
  return segments;
}

absl::Status SnapshotView::TakeSegment(PickleValue value, const std::string& where,
                                       SnapshotSegment* segment) {
  const PickleValue known[] = {words_.device,          words_.address,       words_.total_size,
                               words_.allocated_size,  words_.active_size,   words_.requested_size,
                               words_.stream,          words_.segment_type,  words_.frames,
                               words_.segment_pool_id, words_.is_expandable, words_.blocks};
  NoteUnknown(value, known, "segments");
  uint64_t device = 0, stream = 0;
  if (Unsigned(value, words_.device, &device) && device >= kMaxDevices)
    return Wrong(where, "device is not a device index");
  segment->device = static_cast<uint32_t>(device);
  if (!Unsigned(value, words_.address, &segment->address))
    return Wrong(where, "address is not an integer");
  if (!Unsigned(value, words_.total_size, &segment->size) || segment->size > kMaxSize ||
      segment->address + segment->size < segment->address)
    return Wrong(where, "total_size is not a valid size");
  if (Unsigned(value, words_.stream, &stream)) segment->stream = stream;
  segment->pool = PoolId(Field(value, words_.segment_pool_id)).value_or(0);
  segment->expandable = Field(value, words_.is_expandable) == PickleValue(Type::kBool, 1);
  segment->small = Field(value, words_.segment_type) == words_.small;
  segment->frames = Field(value, words_.frames);
  return TakeBlocks(Field(value, words_.blocks), where, segment);
}

// Blocks adjoin: a block without an address begins where the previous one ends.
absl::Status SnapshotView::TakeBlocks(PickleValue value, const std::string& where,
                                      SnapshotSegment* segment) {
  if (!IsSequence(value)) return Wrong(where, "blocks is not a list");
  uint64_t reached = segment->address;
  uint64_t index = 0;
  for (PickleValue block : tree_->ItemsOf(value)) {
    const std::string place = absl::StrCat(where, ".", Index("blocks", index++));
    uint64_t size = 0;
    absl::Status status = TakeBlock(block, place, reached, segment, &size);
    if (!status.ok()) return status;
    reached += size;
  }
  if (reached - segment->address > segment->size)
    return Wrong(where, "its blocks take more than total_size");
  return absl::OkStatus();
}

absl::Status SnapshotView::TakeBlock(PickleValue value, const std::string& where, uint64_t address,
                                     SnapshotSegment* segment, uint64_t* size) {
  const PickleValue known[] = {words_.address, words_.size,   words_.requested_size,
                               words_.state,   words_.frames, words_.history};
  if (const char* problem = ProblemOf(value)) return Wrong(where, problem);
  NoteUnknown(value, known, "blocks");
  SnapshotBlock block;
  block.address = address;
  if (!Unsigned(value, words_.size, &block.size) || block.size > segment->size)
    return Wrong(where, "size does not fit its segment");
  Unsigned(value, words_.address, &block.address);
  Unsigned(value, words_.requested_size, &block.requested);
  if (block.address < segment->address ||
      block.address - segment->address > segment->size - block.size)
    return Wrong(where, "is outside its segment");
  *size = block.size;
  const PickleValue state = Field(value, words_.state);
  if (state == words_.inactive || block.size == 0) return absl::OkStatus();
  block.pending = state == words_.active_pending_free || state == words_.active_awaiting_free;
  if (!block.pending && state != words_.active_allocated)
    return Wrong(where, "state is not one of active_allocated, active_pending_free, inactive");
  block.frames = Field(value, words_.frames);
  absl::Status status = TakeHistory(Field(value, words_.history), where, &block);
  segment->blocks.push_back(block);
  return status;
}

// The newest entry is the allocation that holds the block. The others are of memory from which it
// was split.
absl::Status SnapshotView::TakeHistory(PickleValue history, const std::string& where,
                                       SnapshotBlock* block) const {
  const PickleTree::Items entries = tree_->ItemsOf(history);
  if (entries.size == 0) return absl::OkStatus();
  if (tree_->SizeOf(entries.data[0]) > kMaxFields)
    return Wrong(absl::StrCat(where, ".history[0]"), kTooManyFields);
  Unsigned(entries.data[0], words_.real_size, &block->requested);
  if (block->frames == PickleValue()) block->frames = Field(entries.data[0], words_.frames);
  return absl::OkStatus();
}

template <size_t n>
void SnapshotView::NoteUnknown(PickleValue dict, const PickleValue (&known)[n], const char* what) {
  tree_->ForEach(dict, [&](PickleValue key, PickleValue) {
    if (std::find(std::begin(known), std::end(known), key) != std::end(known)) return;
    const auto text = tree_->String(key);
    // There are few field names. Those of a file that invents them are not worth keeping.
    constexpr size_t kMaxNames = 100, kMaxName = 80;
    if (!text.has_value() || text->size() > kMaxName) return;
    const std::string name = absl::StrCat("\"", std::string(*text), "\" of ", what);
    if (unknown_.size() < kMaxNames || unknown_.contains(name)) ++unknown_[name];
  });
}

}  // namespace gmt::interop
