// EventLogWriter (interop/event_log/event_log.h): converts events to JSON lines.

#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "format/live_columns.h"
#include "interop/event_log/event_log.h"
#include "interop/event_log/event_log_fields.h"
#include "interop/event_log/event_log_json.h"
#include "proto/gmt.pb.h"

namespace gmt::interop {
namespace {

using format::Definitions;
using format::Event;
using format::EventBatch;
using format::Family;
using format::FrameInfo;

Json JsonText(std::string_view text) { return Json(std::string(text)); }

}  // namespace

class EventLogWriter::Impl {
 public:
  Impl(const Definitions* definitions, Put put)
      : definitions_(*definitions), put_(std::move(put)) {}

  absl::Status PutLine(const Json& object) {
    const std::string line = Line(object);
    return put_({line.data(), line.size()});
  }

  void Hold(const Header& header) { header_ = std::make_unique<Header>(header); }

  // Prints the header unless the recording was imported from a log without one.
  absl::Status PutHeldHeader(const Facts& facts) {
    if (header_ == nullptr) return absl::OkStatus();
    const std::unique_ptr<Header> header = std::move(header_);
    Json object = {{"kind", "header"}};
    PutHeader(*header, &object);
    PutFacts(facts, &object);
    if (header->pid() != 0) object["pid"] = header->pid();
    return PutLine(object);
  }
  bool holds_header() const { return header_ != nullptr; }

  absl::Status PutEvent(const EventBatch& batch, const Event& event) {
    if (event.kind == OTHER_KIND) {
      const std::string& text = batch.others[event.detail];
      return put_({text.data(), text.size()});
    }
    if (event.kind == STACK_LINE) return PutStack(event.stack);
    if (KindName(event.kind).empty())
      return absl::OkStatus();  // from a later format; its fields were not read
    absl::Status status = PutStacksOf(event);
    if (!status.ok()) return status;
    Json object = RowOf(event);
    PutDetail(batch, event, &object);
    return PutLine(object);
  }

  absl::Status PutLiveSet(const Snapshot& snapshot) {
    const absl::StatusOr<std::vector<Event>> live = format::DecodeLive(snapshot.live());
    if (!live.ok()) return live.status();
    for (const Event& event : *live) {
      absl::Status status = PutStacksOf(event);
      if (!status.ok()) return status;
    }
    for (const InFlight& call : snapshot.in_flight()) {
      absl::Status status = PutStackOnce(call.stack());
      if (!status.ok()) return status;
    }
    Json object = {{"kind", "live_set"}};
    PutSnapshot(snapshot, &object);
    for (const InFlight& call : snapshot.in_flight())
      object["in_flight"].push_back(InFlightOf(call));
    for (const Event& event : *live) object["live"].push_back(RowOf(event));
    return PutLine(object);
  }

 private:
  // Stacks of an imported log are printed where the log had them; others before their first use.
  absl::Status PutStackOnce(uint32_t id) {
    if (id == 0 || definitions_.stack(id).log_id != 0 || !printed_.insert(id).second)
      return absl::OkStatus();
    return PutStack(id);
  }

  absl::Status PutStacksOf(const Event& event) {
    absl::Status status = PutStackOnce(event.stack);
    return status.ok() ? PutStackOnce(event.forward_stack) : status;
  }

  uint32_t StackName(uint32_t id) const {
    const uint32_t log_id = definitions_.stack(id).log_id;
    return log_id != 0 ? log_id : id;
  }

  absl::Status PutStack(uint32_t id) {
    Json object = {{"kind", "stack"}, {"id", StackName(id)}, {"frames", Json::array()}};
    for (const uint32_t frame : definitions_.StackFrames(id)) PutFrames(frame, &object["frames"]);
    const uint32_t lacks = definitions_.WhatStackLacks(id);
    for (const auto& [key, lack] : kStackLacks) {
      if ((lacks & lack) != 0) object[key] = true;
    }
    return PutLine(object);
  }

  // Puts one frame, or several if calls were inlined into it.
  void PutFrames(uint32_t id, Json* frames) {
    const FrameInfo& frame = definitions_.frame(id);
    const std::vector<format::Symbol>& symbols = definitions_.symbols(id);
    if (symbols.empty()) {
      Json object = Json::object();
      PutNamed(frame, &object);
      PutPlace(frame, &object);
      frames->push_back(std::move(object));
    }
    for (const format::Symbol& symbol : symbols) {
      FrameInfo named = frame;
      named.function = symbol.function;
      named.file = symbol.file;
      named.line = symbol.line;
      if (named.language == format::Language::kNative) named.language = format::Language::kCxx;
      Json object = Json::object();
      PutNamed(named, &object);
      PutPlace(frame, &object);
      frames->push_back(std::move(object));
    }
  }

  void PutNamed(const FrameInfo& frame, Json* object) const {
    if (frame.function != 0 || (frame.flags & format::kFrameHasFunction) != 0) {
      (*object)["function"] = JsonText(definitions_.string(frame.function));
    }
    if (frame.file != 0 || (frame.flags & format::kFrameHasFile) != 0) {
      (*object)["file"] = JsonText(definitions_.string(frame.file));
    }
    if (frame.line != 0 || (frame.flags & format::kFrameHasLine) != 0)
      (*object)["line"] = frame.line;
    if (frame.language == format::Language::kPython) (*object)["language"] = "python";
    if (frame.language == format::Language::kCxx) (*object)["language"] = "c++";
    if (frame.language == format::Language::kOther)
      (*object)["language"] = JsonText(definitions_.string(frame.other_language));
  }

  void PutPlace(const FrameInfo& frame, Json* object) const {
    if (frame.module != 0) {
      const format::ModuleInfo& module = definitions_.module(frame.module);
      (*object)["module"] = module.path;
      (*object)["offset"] = frame.address;
      if (!module.build_id.empty()) (*object)["build_id"] = Hex(module.build_id);
    } else if (frame.module_name != 0 || (frame.flags & format::kFrameHasModuleName) != 0) {
      (*object)["module"] = JsonText(definitions_.string(frame.module_name));
    }
    if (frame.module == 0 && frame.address != 0) (*object)["address"] = frame.address;
    if ((frame.flags & format::kFrameIsReturnAddress) != 0) (*object)["return_address"] = true;
  }

  Json RowOf(const Event& event) const {
    Json object = {{"kind", KindName(event.kind)}};
    for (const EventField& field : FieldsOf(format::FamilyOf(event.kind))) {
      std::visit([&](auto member) { PutField(event, field, event.*member, &object); },
                 field.member);
    }
    return object;
  }

  template <typename T>
  void PutField(const Event& event, const EventField& field, T value, Json* object) const {
    if constexpr (std::is_same_v<T, Memory>) {
      const std::string_view name = MemoryName(value);
      if (!name.empty()) (*object)[field.key] = JsonText(name);
    } else if (field.type == EventField::Type::kNumber) {
      if (event.has(field.bit)) (*object)[field.key] = value;
    } else if (field.type == EventField::Type::kRoles) {
      Json names = RolesOf(event.roles);
      if (event.kind == ROLE || !names.empty()) (*object)[field.key] = std::move(names);
    } else if (value != 0) {
      const auto id = static_cast<uint32_t>(value);
      (*object)[field.key] = field.type == EventField::Type::kText
                                 ? JsonText(definitions_.string(id))
                                 : Json(StackName(id));
    }
  }

  static Json RolesOf(uint32_t roles) {
    Json names = Json::array();
    for (const std::string_view name : RoleNames(roles)) names.push_back(JsonText(name));
    return names;
  }

  void PutDetail(const EventBatch& batch, const Event& event, Json* object) const {
    switch (format::FamilyOf(event.kind)) {
      case Family::kSample:
        return PutSample(batch.samples[event.detail], object);
      case Family::kSnapshot:
        return PutSnapshotTaken(batch.snapshots[event.detail], object);
      case Family::kGap:
        return PutGap(batch.gaps[event.detail], object);
      default:
        return;
    }
  }

  Json InFlightOf(const InFlight& call) const {
    Json object = {{"thread", call.thread()}, {"api", call.api()}};
    if (call.has_size()) object["size"] = call.size();
    if (call.stack() != 0) object["stack"] = StackName(call.stack());
    if (call.has_since_t_ns()) object["since_t_ns"] = call.since_t_ns();
    return object;
  }

  const Definitions& definitions_;
  const Put put_;
  std::unique_ptr<Header> header_;  // held until the facts that belong to it
  absl::flat_hash_set<uint32_t> printed_;
};

EventLogWriter::EventLogWriter(const Definitions* definitions, Put put)
    : impl_(std::make_unique<Impl>(definitions, std::move(put))) {}
EventLogWriter::~EventLogWriter() = default;

absl::Status EventLogWriter::OnHeader(const Header& header) {
  absl::Status status = End();
  if (status.ok() && (header.imported_from().empty() || header.has_start())) impl_->Hold(header);
  return status;
}

absl::Status EventLogWriter::OnFacts(const Facts& facts) {
  if (impl_->holds_header()) return impl_->PutHeldHeader(facts);
  Json object = {{"kind", "facts"}};
  PutFacts(facts, &object);
  return impl_->PutLine(object);
}

absl::Status EventLogWriter::OnEvents(const EventBatch& batch) {
  absl::Status status = End();
  for (auto event = batch.events.begin(); status.ok() && event != batch.events.end(); ++event) {
    status = impl_->PutEvent(batch, *event);
  }
  return status;
}

absl::Status EventLogWriter::OnSnapshot(const Snapshot& snapshot) {
  absl::Status status = End();
  return status.ok() ? impl_->PutLiveSet(snapshot) : status;
}

absl::Status EventLogWriter::OnLosses(const Losses& losses) {
  absl::Status status = End();
  if (!status.ok()) return status;
  Json object = {{"kind", "losses"}};
  PutLosses(losses, &object);
  return impl_->PutLine(object);
}

absl::Status EventLogWriter::End() { return impl_->PutHeldHeader(Facts()); }

}  // namespace gmt::interop
