#include "interop/torch_import/torch_import.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "format/definitions_builder.h"
#include "format/live_columns.h"
#include "interop/pickle/pickle_json.h"
#include "interop/torch_import/torch_import_begin.h"
#include "interop/torch_import/torch_import_events.h"
#include "interop/torch_import/torch_import_fields.h"
#include "interop/torch_import/torch_import_view.h"
#include "proto/gmt.pb.h"

namespace gmt::interop {
namespace {

constexpr char kImportedFrom[] = "torch snapshot";
constexpr char kInexact[] = "the history and the final state contradict each other";
constexpr size_t kMaxSettings = 1000;
constexpr JsonLimits kSettingLimits = {.depth = 8, .values = 1000, .text = 64 << 10};

// The entries of one list in their order. Lists are merged by time, if each entry has one.
struct Source {
  std::optional<uint32_t> device;  // nullopt for the annotations
  uint32_t next = 0, count = 0;
  int64_t next_us = 0;
};

}  // namespace

class TorchImport::Impl {
 public:
  Impl(absl::string_view name, std::unique_ptr<PickleTree> tree, SnapshotView view)
      : name_(name), tree_(std::move(tree)), view_(std::move(view)) {}

  // Undoes the history, which also gives the time of its beginning.
  absl::Status Prepare() {
    auto segments = view_.Segments();
    if (!segments.ok()) return WithName(segments.status());
    segments_ = *std::move(segments);
    devices_ = view_.device_count();
    for (const SnapshotSegment& segment : segments_)
      devices_ = std::max(devices_, segment.device + 1);
    std::optional<int64_t> first_us;
    const auto note_time = [&](std::optional<int64_t> time_us) {
      if (time_us.has_value()) first_us = std::min(*time_us, first_us.value_or(*time_us));
    };
    begins_.resize(devices_);
    for (uint32_t device = 0; device < devices_; ++device) {
      auto begin = StateBefore(view_, device, segments_);
      if (!begin.ok()) return WithName(begin.status());
      begins_[device] = *std::move(begin);
      note_time(begins_[device].first_us);
    }
    SnapshotAnnotation annotation;
    for (uint32_t i = 0; i < view_.annotation_count(); ++i) {
      absl::Status status = view_.Annotation(i, &annotation);
      if (!status.ok()) return WithName(status);
      note_time(annotation.time_us);
    }
    MakeHeader(first_us);
    return absl::OkStatus();
  }

  absl::Status Read(format::DefinitionsBuilder& definitions, format::RecordingVisitor& visitor) {
    absl::Status status = visitor.OnHeader(header_);
    if (!status.ok()) return status;
    SnapshotEvents events(*tree_, definitions, visitor, start_us_);
    status = ReadBegin(events, visitor);
    if (status.ok()) status = ReadHistory(events);
    if (status.ok()) status = ReadEnd(events, visitor);
    if (!status.ok()) return status;
    status = visitor.OnFacts(MakeFacts(events.last_t_ns()));
    Summarize(events);
    Forget();
    return status;
  }

  const Header& header() const { return header_; }
  const TorchImportSummary& summary() const { return summary_; }
  std::vector<std::string> notes() const { return notes_; }
  absl::Status WithName(const absl::Status& status) const {
    return absl::Status(status.code(), absl::StrCat(name_, ": ", status.message()));
  }

 private:
  void MakeHeader(std::optional<int64_t> first_us) {
    header_.set_imported_from(kImportedFrom);
    // A time that a header cannot represent is ignored.
    constexpr int64_t kLastUs = INT64_MAX / kNsPerUs;
    if (!first_us.has_value() || *first_us < 0 || *first_us > kLastUs) return;
    start_us_ = *first_us;
    header_.set_start_unix_ns(static_cast<uint64_t>(start_us_ * kNsPerUs));
    header_.set_has_start(true);
  }

  bool has_history() const {
    for (uint32_t device = 0; device < view_.device_count(); ++device) {
      if (view_.event_count(device) > 0) return true;
    }
    return false;
  }
  bool contradicts() const {
    return std::any_of(begins_.begin(), begins_.end(),
                       [](const DeviceBegin& begin) { return begin.contradictions > 0; });
  }

  absl::Status ReadBegin(SnapshotEvents& events, format::RecordingVisitor& visitor) {
    std::vector<format::Event> live;
    for (uint32_t device = 0; device < devices_; ++device) {
      if (begins_[device].contradictions > 0) events.Follow(device);
      events.AddBegin(device, begins_[device], &live);
    }
    absl::Status status = events.Flush();
    if (status.ok() && has_history()) status = visitor.OnSnapshot(MakeSnapshot("begin", 0, live));
    if (status.ok() && !has_history()) status = visitor.OnSnapshot(MakeSnapshot("end", 0, live));
    for (uint32_t device = 0; device < devices_; ++device)
      events.AddBeginFrees(device, begins_[device]);
    return status;
  }

  Snapshot MakeSnapshot(const char* name, int64_t t_ns, const std::vector<format::Event>& live) {
    Snapshot snapshot;
    snapshot.set_name(name);
    snapshot.set_reason("request");
    snapshot.set_t_ns(t_ns);
    snapshot.set_exact(!contradicts());
    if (contradicts()) snapshot.set_inexact_because(kInexact);
    *snapshot.mutable_live() = format::EncodeLive(live);
    return snapshot;
  }

  absl::Status ReadHistory(SnapshotEvents& events) {
    std::vector<Source> sources;
    for (uint32_t device = 0; device < view_.device_count(); ++device)
      sources.push_back({device, 0, view_.event_count(device), 0});
    sources.push_back({std::nullopt, 0, view_.annotation_count(), 0});
    std::erase_if(sources, [](const Source& source) { return source.count == 0; });
    for (Source& source : sources) {
      absl::Status status = ReadTime(&source);
      if (!status.ok()) return status;
    }
    while (!sources.empty()) {
      const auto earliest =
          std::min_element(sources.begin(), sources.end(),
                           [](const Source& a, const Source& b) { return a.next_us < b.next_us; });
      absl::Status status = ReadUntilLater(sources, *earliest, events);
      if (!status.ok()) return status;
      if (earliest->next == earliest->count) sources.erase(earliest);
    }
    return absl::OkStatus();
  }

  // Reads from one source until another one has an earlier event.
  absl::Status ReadUntilLater(const std::vector<Source>& sources, Source& source,
                              SnapshotEvents& events) {
    int64_t until = INT64_MAX;
    for (const Source& other : sources) {
      if (&other != &source) until = std::min(until, other.next_us);
    }
    absl::Status status = ReadTime(&source);  // event_ was from another source
    if (!status.ok()) return status;
    do {
      status = ReadOne(source, events);
      if (status.ok()) status = events.FlushIfMany();
      if (!status.ok()) return status;
      if (++source.next == source.count) return absl::OkStatus();
      status = ReadTime(&source);
      if (!status.ok()) return status;
    } while (source.next_us <= until);
    return absl::OkStatus();
  }

  absl::Status ReadOne(const Source& source, SnapshotEvents& events) {
    if (!source.device.has_value()) {
      SnapshotAnnotation annotation;
      absl::Status status = view_.Annotation(source.next, &annotation);
      if (status.ok()) events.Add(annotation);
      return status;
    }
    if (event_.unknown_fields > 0) view_.NoteUnknownFields(*source.device, source.next);
    events.Add(*source.device, source.next, event_);
    return absl::OkStatus();
  }

  // Reads the time of the next entry. An entry without a time gets that of the previous entry of
  // its list.
  absl::Status ReadTime(Source* source) {
    std::optional<int64_t> time_us;
    if (source->device.has_value()) {
      absl::Status status = view_.Event(*source->device, source->next, &event_);
      if (!status.ok()) return status;
      time_us = event_.time_us;
    } else {
      SnapshotAnnotation annotation;
      absl::Status status = view_.Annotation(source->next, &annotation);
      if (!status.ok()) return status;
      time_us = annotation.time_us;
    }
    source->next_us = time_us.value_or(source->next_us);
    return absl::OkStatus();
  }

  absl::Status ReadEnd(SnapshotEvents& events, format::RecordingVisitor& visitor) {
    if (!has_history()) return events.Flush();
    for (uint32_t device = 0; device < devices_; ++device) {
      if (begins_[device].contradictions > 0) events.AddFinalState(device, segments_);
    }
    absl::Status status = events.Flush();
    if (!status.ok()) return status;
    std::vector<format::Event> live;
    for (const SnapshotSegment& segment : segments_) events.AddLive(segment, &live);
    return visitor.OnSnapshot(MakeSnapshot("end", events.last_t_ns(), live));
  }

  Facts MakeFacts(int64_t end_t_ns) const {
    Facts facts;
    for (uint32_t device = 0; device < devices_; ++device) facts.add_devices()->set_index(device);
    if (header_.has_start()) facts.set_end_t_ns(end_t_ns);
    tree_->ForEach(view_.settings(), [&](PickleValue key, PickleValue value) {
      const auto name = tree_->String(key);
      if (!name.has_value() || static_cast<size_t>(facts.settings_size()) >= kMaxSettings) return;
      Setting& setting = *facts.add_settings();
      setting.set_name(std::string(*name));
      setting.set_value(JsonText(*tree_, value, kSettingLimits));
      setting.set_json(true);
    });
    return facts;
  }

  void Summarize(const SnapshotEvents& events) {
    for (uint32_t device = 0; device < view_.device_count(); ++device)
      summary_.events += view_.event_count(device);
    summary_.annotations = view_.annotation_count();
    summary_.segments = segments_.size();
    for (uint32_t device = 0; device < devices_; ++device) {
      const bool has_segments =
          std::any_of(segments_.begin(), segments_.end(),
                      [&](const SnapshotSegment& segment) { return segment.device == device; });
      const bool has_events = device < view_.device_count() && view_.event_count(device) > 0;
      summary_.devices += has_segments || has_events ? 1 : 0;
    }
    for (const SnapshotSegment& segment : segments_) summary_.blocks += segment.blocks.size();
    TakeNotes(events);
  }

  void TakeNotes(const SnapshotEvents& events) {
    const auto note = [&](uint64_t count, const std::string& what) {
      if (count > 0) notes_.push_back(absl::StrCat(name_, ": ", what));
    };
    for (const auto& [field, count] : view_.unknown())
      note(count, absl::StrCat(field, " cannot be represented in a recording and was left out (",
                               count, " of them)"));
    const SnapshotStacks& stacks = events.stacks();
    note(stacks.frames_with_more(),
         absl::StrCat("frames of which only name, filename and line were kept: ",
                      stacks.frames_with_more()));
    note(stacks.source_lines(),
         absl::StrCat("forward frames of which only the place was kept, without the source line: ",
                      stacks.source_lines()));
    note(stacks.no_frames(),
         absl::StrCat(stacks.no_frames(), " entries of frame lists are not frames"));
    note(events.labelled_frees(),
         absl::StrCat("compile_context and user_metadata of ", events.labelled_frees(),
                      " frees were left out; those of allocations were kept"));
    note(events.annotations_without_stage(),
         absl::StrCat(events.annotations_without_stage(),
                      " external annotations are neither START nor END and were left out"));
    uint64_t contradictions = 0;
    for (const DeviceBegin& begin : begins_) contradictions += begin.contradictions;
    note(contradictions,
         absl::StrCat("history and final state contradict each other in ", contradictions,
                      " places: the history lacks events. The final state was used"));
    note(has_history() ? 0 : 1,
         absl::StrCat("it has no history, only the state when it was taken",
                      stacks.any() ? ", and the stacks of what was held then"
                                   : ": torch.cuda.memory._record_memory_history() was not "
                                     "enabled"));
  }

  void Forget() {
    begins_.clear();
    segments_.clear();
    tree_.reset();
  }

  const std::string name_;
  std::unique_ptr<PickleTree> tree_;
  SnapshotView view_;
  std::vector<SnapshotSegment> segments_;
  std::vector<DeviceBegin> begins_;  // by device
  uint32_t devices_ = 0;
  int64_t start_us_ = 0;
  SnapshotEvent event_;
  Header header_;
  TorchImportSummary summary_;
  std::vector<std::string> notes_;
};

absl::StatusOr<std::unique_ptr<TorchImport>> TorchImport::Open(
    std::shared_ptr<format::ByteSource> source, absl::string_view name,
    const PickleLimits& limits) {
  auto tree = std::make_unique<PickleTree>();
  auto bytes = StreamOf(std::move(source), name);
  const auto root = ReadPickle(*bytes, name, limits, tree.get());
  if (!root.ok()) return root.status();
  auto view = SnapshotView::Of(*tree, *root);
  if (!view.ok())
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", view.status().message()));
  auto impl = std::make_unique<Impl>(name, std::move(tree), *std::move(view));
  absl::Status status = impl->Prepare();
  if (!status.ok()) return status;
  return std::unique_ptr<TorchImport>(new TorchImport(std::move(impl)));
}

TorchImport::TorchImport(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TorchImport::~TorchImport() = default;

absl::Status TorchImport::Read(format::DefinitionsBuilder& definitions,
                               format::RecordingVisitor& visitor) {
  return impl_->Read(definitions, visitor);
}
const Header& TorchImport::header() const { return impl_->header(); }
const TorchImportSummary& TorchImport::summary() const { return impl_->summary(); }
std::vector<std::string> TorchImport::notes() const { return impl_->notes(); }

bool LooksLikeTorchSnapshot(absl::string_view first_bytes) {
  return LooksLikePickle(first_bytes) || absl::string_view("\x1f\x8b") == first_bytes.substr(0, 2);
}

}  // namespace gmt::interop
