// Reads an event log (interop/event_log/event_log.h): converts JSON lines to events.

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "format/definitions_builder.h"
#include "format/live_columns.h"
#include "interop/event_log/event_log.h"
#include "interop/event_log/event_log_fields.h"
#include "interop/event_log/event_log_json.h"
#include "interop/event_log/lines.h"
#include "proto/gmt.pb.h"

namespace gmt::interop {
namespace {

using format::DefinitionsBuilder;
using format::Event;
using format::EventBatch;
using format::Family;
using format::FrameInfo;
using format::RecordingVisitor;

constexpr size_t kBatchEvents = 32768;
constexpr size_t kUnknownKeysNamed = 8;
constexpr char kImportedFrom[] = "event log";

// A value that a later release may have added to a vocabulary. The line is kept as text.
struct UnknownWord : std::runtime_error {
  UnknownWord() : std::runtime_error("uses a word of a later release") {}
};

Json ParseObject(const std::string& line) {
  if (NestingOf(line) > kMaxNesting)
    throw BadLine(absl::StrCat("nests more than ", kMaxNesting, " lists and objects"));
  Json object = Json::parse(line);
  if (!object.is_object()) throw BadLine("is not a JSON object");
  return object;
}

const std::string& KindOf(const Json& object) {
  const Json* kind = Find(object, "kind");
  if (kind == nullptr) throw BadLine("has no \"kind\"");
  return Text(*kind, "kind");
}

// Converts lines to calls of a RecordingVisitor.
class LogParser {
 public:
  LogParser(DefinitionsBuilder& definitions, RecordingVisitor& visitor)
      : definitions_(definitions), visitor_(visitor) {}

  // Throws BadLine or an exception of the parser.
  absl::Status Take(const std::string& line) {
    const Json object = ParseObject(line);
    const std::string& kind = KindOf(object);
    const bool first = std::exchange(first_, false);
    if (first) {
      absl::Status status = TakeFirst(kind == "header", object);
      if (!status.ok() || kind == "header") return status;
    }
    if (kind == "facts") return Deliver([&] { return visitor_.OnFacts(TakeFacts(object)); });
    if (kind == "losses") return Deliver([&] { return visitor_.OnLosses(TakeLosses(object)); });
    if (kind == "live_set")
      return Deliver([&] { return visitor_.OnSnapshot(TakeLiveSet(object)); });
    try {
      TakeEvent(kind, object);
    } catch (const UnknownWord&) {
      TakeOther(object, line);
    }
    return batch_.events.size() >= kBatchEvents ? Flush() : absl::OkStatus();
  }

  absl::Status Flush() {
    if (batch_.events.empty()) return absl::OkStatus();
    absl::Status status = visitor_.OnEvents(batch_);
    batch_.Clear();
    return status;
  }

  // Returns "unknown keys of events were ignored: "sice" (12 times)", or "" if there were none.
  std::string UnknownKeys() const {
    if (unknown_keys_.empty()) return "";
    std::vector<std::string> named;
    for (const auto& [key, count] : unknown_keys_) {
      named.push_back(absl::StrCat("\"", key, "\" (", count, count == 1 ? " time)" : " times)"));
    }
    return absl::StrCat("unknown keys of events were ignored: ", absl::StrJoin(named, ", "));
  }

  // REQUIRES: no line was read.
  absl::Status TakeEmptyLog() {
    return first_ ? TakeFirst(false, Json::object()) : absl::OkStatus();
  }

 private:
  absl::Status TakeFirst(bool is_header, const Json& object) {
    Header header;
    if (is_header) header = TakeHeader(object);
    header.set_imported_from(kImportedFrom);
    absl::Status status = visitor_.OnHeader(header);
    // Facts always follow a header, so that a later "facts" line is not taken for the header's own.
    if (status.ok() && is_header) status = visitor_.OnFacts(TakeHeaderFacts(object));
    return status;
  }

  static Facts TakeHeaderFacts(const Json& object) {
    Facts facts = TakeFacts(object);
    facts.clear_pid();  // the header has it
    return facts;
  }

  template <typename Call>
  absl::Status Deliver(Call call) {
    absl::Status status = Flush();
    return status.ok() ? call() : status;
  }

  void TakeEvent(const std::string& kind, const Json& object) {
    if (kind == "stack") return TakeStackLine(object);
    const std::optional<Kind> known = KindByName(kind);
    if (!known.has_value()) throw UnknownWord();
    Event event = TakeRow(*known, object);
    TakeDetail(object, &event);
    batch_.events.push_back(event);
  }

  Event TakeRow(Kind kind, const Json& object) {
    Event event;
    event.kind = kind;
    event.t_ns = last_t_ns_;  // for a line without a time
    size_t known = 1;         // "kind"
    for (const EventField& field : FieldsOf(format::FamilyOf(kind))) {
      const Json* value = Find(object, field.key);
      if (value == nullptr) continue;
      std::visit([&](auto member) { TakeField(field, *value, &(event.*member)); }, field.member);
      event.present |= field.bit;
      ++known;
    }
    // Samples, snapshots and gaps have more keys (TakeDetail).
    if (known < object.size() && IsPlain(format::FamilyOf(kind))) NoteUnknownKeys(kind, object);
    last_t_ns_ = event.t_ns;
    return event;
  }

  static bool IsPlain(Family family) {
    return family != Family::kSample && family != Family::kSnapshot && family != Family::kGap;
  }

  void NoteUnknownKeys(Kind kind, const Json& object) {
    const std::vector<EventField>& fields = FieldsOf(format::FamilyOf(kind));
    for (const auto& item : object.items()) {
      const std::string& key = item.key();
      const bool is_known =
          key == "kind" || std::any_of(fields.begin(), fields.end(),
                                       [&](const EventField& field) { return key == field.key; });
      if (!is_known && (unknown_keys_.size() < kUnknownKeysNamed || unknown_keys_.contains(key)))
        ++unknown_keys_[key];
    }
  }

  template <typename T>
  void TakeField(const EventField& field, const Json& value, T* target) {
    if constexpr (std::is_same_v<T, Memory>) {
      const std::optional<Memory> memory = MemoryByName(Text(value, field.key));
      if (!memory.has_value()) throw UnknownWord();
      *target = *memory;
    } else if (field.type == EventField::Type::kText) {
      *target = static_cast<T>(definitions_.InternString(Text(value, field.key)));
    } else if (field.type == EventField::Type::kStack) {
      *target = static_cast<T>(StackById(WholeNumber<uint32_t>(value, field.key)));
    } else if (field.type == EventField::Type::kRoles) {
      *target = static_cast<T>(TakeRoles(value, field.key));
    } else {
      *target = WholeNumber<T>(value, field.key);
    }
  }

  static uint32_t TakeRoles(const Json& list, const char* key) {
    if (!list.is_array()) throw BadLine(absl::StrCat("\"", key, "\" must be a list"));
    uint32_t roles = 0;
    for (const Json& name : list) {
      const std::optional<format::Role> role = RoleByName(Text(name, key));
      if (!role.has_value()) throw UnknownWord();
      roles |= *role;
    }
    return roles;
  }

  void TakeDetail(const Json& object, Event* event) {
    const auto add = [&](auto* list, auto detail) {
      event->detail = static_cast<uint32_t>(list->size());
      list->push_back(std::move(detail));
    };
    switch (format::FamilyOf(event->kind)) {
      case Family::kSample:
        return add(&batch_.samples, TakeSample(object));
      case Family::kSnapshot:
        return add(&batch_.snapshots, TakeSnapshotTaken(object));
      case Family::kGap:
        return add(&batch_.gaps, TakeGap(object));
      default:
        return;
    }
  }

  void TakeOther(const Json& object, const std::string& line) {
    Event event;
    event.kind = OTHER_KIND;
    event.t_ns = last_t_ns_;
    if (const Json* t_ns = Find(object, "t_ns"); t_ns != nullptr && t_ns->is_number_integer()) {
      event.t_ns = last_t_ns_ = t_ns->get<int64_t>();
      event.present |= format::kHasTime;
    }
    event.detail = static_cast<uint32_t>(batch_.others.size());
    batch_.others.push_back(line);
    batch_.events.push_back(event);
  }

  // A stack may be referred to before it is defined, or never be defined.
  uint32_t StackById(uint32_t id) {
    if (id == 0) return 0;
    uint32_t& stack = stacks_[id];
    if (stack == 0) stack = definitions_.InternStack({}, 0, id);
    return stack;
  }

  void TakeStackLine(const Json& object) {
    const Json* id = Find(object, "id");
    if (id == nullptr) throw BadLine("has no \"id\"");
    const auto log_id = WholeNumber<uint32_t>(*id, "id");
    if (log_id == 0) throw BadLine("has the id 0, which means no stack");
    std::vector<uint32_t> frames;
    if (const Json* list = Find(object, "frames"); list != nullptr) {
      if (!list->is_array()) throw BadLine("\"frames\" must be a list");
      for (const Json& frame : *list) frames.push_back(TakeFrame(frame));
    }
    uint32_t lacks = 0;
    for (const auto& [key, lack] : kStackLacks) {
      const Json* value = Find(object, key);
      if (value != nullptr && *value == true) lacks |= lack;
    }
    Event event;
    event.kind = STACK_LINE;
    event.t_ns = last_t_ns_;
    event.stack = stacks_[log_id] = definitions_.InternStack(frames, lacks, log_id);
    batch_.events.push_back(event);
  }

  uint32_t TakeFrame(const Json& object) {
    if (!object.is_object()) throw BadLine("a frame must be an object");
    FrameInfo frame;
    const auto text = [&](const char* key, uint32_t flag, uint32_t* target) {
      const Json* value = Find(object, key);
      if (value == nullptr) return;
      *target = definitions_.InternString(Text(*value, key));
      frame.flags |= flag;
    };
    text("function", format::kFrameHasFunction, &frame.function);
    text("file", format::kFrameHasFile, &frame.file);
    if (const Json* line = Find(object, "line"); line != nullptr) {
      frame.line = WholeNumber<uint32_t>(*line, "line");
      frame.flags |= format::kFrameHasLine;
    }
    if (const Json* language = Find(object, "language"); language != nullptr) {
      TakeLanguage(Text(*language, "language"), &frame);
    }
    TakePlace(object, &frame);
    if (frame.module == 0) text("module", format::kFrameHasModuleName, &frame.module_name);
    const Json* is_return = Find(object, "return_address");
    if (is_return != nullptr && *is_return == true) frame.flags |= format::kFrameIsReturnAddress;
    return definitions_.InternFrame(frame);
  }

  void TakeLanguage(const std::string& language, FrameInfo* frame) {
    if (language == "python") {
      frame->language = format::Language::kPython;
    } else if (language == "c++") {
      frame->language = format::Language::kCxx;
    } else {
      frame->language = format::Language::kOther;
      frame->other_language = definitions_.InternString(language);
    }
  }

  // A module with an offset can be symbolized later; a module alone is just a name.
  void TakePlace(const Json& object, FrameInfo* frame) {
    const Json* module = Find(object, "module");
    const Json* offset = Find(object, "offset");
    if (module != nullptr && offset != nullptr) {
      format::ModuleInfo info;
      info.path = Text(*module, "module");
      if (const Json* id = Find(object, "build_id"); id != nullptr)
        info.build_id = FromHex(Text(*id, "build_id"), "build_id");
      frame->module = definitions_.InternModule(info);
      frame->address = WholeNumber<uint64_t>(*offset, "offset");
    } else if (const Json* address = Find(object, "address"); address != nullptr) {
      frame->address = WholeNumber<uint64_t>(*address, "address");
    }
  }

  Snapshot TakeLiveSet(const Json& object) {
    Snapshot snapshot = TakeSnapshot(object);
    if (const Json* calls = Find(object, "in_flight"); calls != nullptr) {
      for (const Json& call : *calls) TakeInFlight(call, snapshot.add_in_flight());
    }
    std::vector<Event> live;
    const int64_t before = last_t_ns_;
    if (const Json* list = Find(object, "live"); list != nullptr) {
      for (const Json& entry : *list) {
        const std::optional<Kind> kind = KindByName(KindOf(entry));
        if (!kind.has_value() || format::FamilyOf(*kind) != Family::kAcquisition)
          throw BadLine("\"live\" must list allocations");
        live.push_back(TakeRow(*kind, entry));
      }
    }
    last_t_ns_ = before;
    *snapshot.mutable_live() = format::EncodeLive(live);
    return snapshot;
  }

  void TakeInFlight(const Json& object, InFlight* call) {
    if (const Json* thread = Find(object, "thread"); thread != nullptr)
      call->set_thread(WholeNumber<uint32_t>(*thread, "thread"));
    if (const Json* api = Find(object, "api"); api != nullptr) call->set_api(Text(*api, "api"));
    if (const Json* size = Find(object, "size"); size != nullptr)
      call->set_size(WholeNumber<uint64_t>(*size, "size"));
    if (const Json* stack = Find(object, "stack"); stack != nullptr)
      call->set_stack(StackById(WholeNumber<uint32_t>(*stack, "stack")));
    if (const Json* since = Find(object, "since_t_ns"); since != nullptr) {
      call->set_since_t_ns(WholeNumber<int64_t>(*since, "since_t_ns"));
    }
  }

  DefinitionsBuilder& definitions_;
  RecordingVisitor& visitor_;
  EventBatch batch_;
  absl::flat_hash_map<uint32_t, uint32_t> stacks_;  // ID in the log -> ID in the recording
  std::map<std::string, uint64_t> unknown_keys_;    // key -> number of events with it
  int64_t last_t_ns_ = 0;
  bool first_ = true;
};

// Why a line could not be read, or an empty problem if it could.
struct LineResult {
  absl::Status status;
  std::string problem;
};

LineResult TakeLine(LogParser* parser, const std::string& line) {
  try {
    return {parser->Take(line), ""};
  } catch (const Json::parse_error& error) {
    return {absl::OkStatus(), absl::StrCat("is not valid JSON: error at character ", error.byte)};
  } catch (const std::exception& error) {
    return {absl::OkStatus(), error.what()};
  }
}

// Keeps only the header.
class HeaderOnly : public RecordingVisitor {
 public:
  HeaderOnly() { header_.set_imported_from(kImportedFrom); }
  absl::Status OnHeader(const Header& header) override {
    header_ = header;
    return absl::OkStatus();
  }
  absl::Status OnEvents(const EventBatch&) override { return absl::OkStatus(); }
  const Header& header() const { return header_; }

 private:
  Header header_;
};

bool IsBlank(const std::string& line) {
  return line.find_first_not_of(" \t\r") == std::string::npos;
}

}  // namespace

absl::Status ReadEventLog(format::ByteSource& log, absl::string_view name,
                          DefinitionsBuilder& definitions, RecordingVisitor& visitor, Notes* notes,
                          bool* is_whole) {
  LogParser parser(definitions, visitor);
  Lines lines(&log, name);
  std::string line;
  for (;;) {
    const absl::StatusOr<bool> any = lines.Next(&line);
    if (!any.ok()) return any.status();
    if (!*any) break;
    if (IsBlank(line)) continue;
    LineResult result = TakeLine(&parser, line);
    if (!result.status.ok()) return result.status;
    if (result.problem.empty()) continue;
    if (lines.is_cut() && lines.number() > 1) {  // its writer was killed
      notes->push_back(
          absl::StrCat(name, ": line ", lines.number(), " is incomplete and was left out"));
      if (is_whole != nullptr) *is_whole = false;
      break;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": line ", lines.number(), " ", result.problem));
  }
  if (const std::string keys = parser.UnknownKeys(); !keys.empty())
    notes->push_back(absl::StrCat(name, ": ", keys));
  absl::Status status = parser.TakeEmptyLog();
  return status.ok() ? parser.Flush() : status;
}

absl::StatusOr<Header> ReadEventLogHeader(format::ByteSource& log) {
  Lines lines(&log, "");
  std::string line;
  do {
    const absl::StatusOr<bool> any = lines.Next(&line);
    if (!any.ok()) return any.status();
    if (!*any) break;
  } while (IsBlank(line));
  DefinitionsBuilder definitions;
  HeaderOnly target;
  LogParser parser(definitions, target);
  // If the line cannot be read, the import reports it with its number.
  TakeLine(&parser, line).status.IgnoreError();
  return target.header();
}

bool LooksLikeEventLog(absl::string_view first_bytes) {
  const size_t brace = first_bytes.find_first_not_of(" \t\r\n");
  if (brace == absl::string_view::npos || first_bytes[brace] != '{') return false;
  const absl::string_view line = first_bytes.substr(brace, first_bytes.find('\n', brace) - brace);
  return line.find("\"kind\"") != absl::string_view::npos;
}

}  // namespace gmt::interop
