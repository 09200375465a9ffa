#include "collector/events/event_translator.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "collector/events/oom_watch.h"
#include "format/definitions_builder.h"
#include "session/arena_reader.h"

namespace gmt::collector {
namespace {

using session::Action;
using session::Kind;
using session::Memory;

// Both enums have the same values, so that a cast translates them.
static_assert(static_cast<int>(Kind::kSample) == gmt::SAMPLE &&
              static_cast<int>(Kind::kPool) == gmt::POOL_ACTION &&
              static_cast<int>(Kind::kFreeDone) == gmt::FREE_DONE &&
              static_cast<int>(Kind::kUnregister) == gmt::UNREGISTER &&
              static_cast<int>(Kind::kMark) == gmt::MARK &&
              static_cast<int>(Kind::kGraph) == gmt::GRAPH_ACTION &&
              static_cast<int>(Kind::kModule) == gmt::MODULE_ACTION &&
              static_cast<int>(Kind::kCopy) == gmt::COPY &&
              static_cast<int>(Kind::kSource) == gmt::SOURCE_CHANGE &&
              static_cast<int>(Kind::kDevice) == gmt::DEVICE_NAME &&
              static_cast<int>(Kind::kWitness) == gmt::WITNESS &&
              static_cast<int>(Kind::kRole) == gmt::ROLE);
static_assert(static_cast<int>(session::kCalledByAllocator) == format::kCalledByAllocator &&
              static_cast<int>(session::kSeenByCupti) == format::kSeenByCupti &&
              static_cast<int>(session::kInsideCall) == format::kInsideCall &&
              static_cast<int>(session::kNonBlocking) == format::kNonBlocking);
static_assert(static_cast<int>(Memory::kLast) == gmt::REGION &&
              static_cast<int>(Memory::kPool) == gmt::POOL &&
              static_cast<int>(Memory::kBlock) == gmt::BLOCK);

// Whether the stream is known, even if it is stream 0.
bool HasStream(const session::Record& r) {
  switch (r.kind) {
    case Kind::kEventRecord:
      return r.action != Action::kDestroy;
    case Kind::kStream:
    case Kind::kEventWait:
    case Kind::kCopy:
      return (r.flags & session::kStreamUnknown) == 0;
    case Kind::kSync:
      return r.action == Action::kStream;
    case Kind::kGraph:
      return r.action == Action::kLaunch || r.action == Action::kBeginCapture ||
             r.action == Action::kEndCapture;
    case Kind::kDevice:
    case Kind::kMark:
    case Kind::kRangeBegin:
    case Kind::kRangeEnd:
    case Kind::kRole:
      return false;
    default:
      if (r.memory == Memory::kRegion) return false;
      return r.stream != 0 || r.memory == Memory::kPool ||
             (r.memory == Memory::kBlock && EffectOf(r.kind) != Effect::kReturns);
  }
}

// Returns the name of an at::ScalarType as in torch.dtype (preload/torch/state/tensor_layout.cc).
std::string DtypeName(uint8_t dtype) {
  constexpr const char* kNames[] = {"uint8",
                                    "int8",
                                    "int16",
                                    "int32",
                                    "int64",
                                    "float16",
                                    "float32",
                                    "float64",
                                    "complex32",
                                    "complex64",
                                    "complex128",
                                    "bool",
                                    "qint8",
                                    "quint8",
                                    "qint32",
                                    "bfloat16",
                                    "quint4x2",
                                    "quint2x4",
                                    "bits1x8",
                                    "bits2x4",
                                    "bits4x2",
                                    "bits8",
                                    "bits16",
                                    "float8_e5m2",
                                    "float8_e4m3fn",
                                    "float8_e5m2fnuz",
                                    "float8_e4m3fnuz",
                                    "uint16",
                                    "uint32",
                                    "uint64",
                                    "uint1",
                                    "uint2",
                                    "uint3",
                                    "uint4",
                                    "uint5",
                                    "uint6",
                                    "uint7",
                                    "int1",
                                    "int2",
                                    "int3",
                                    "int4",
                                    "int5",
                                    "int6",
                                    "int7",
                                    "float8_e8m0fnu",
                                    "float4_e2m1fn_x2"};
  return dtype < std::size(kNames) ? kNames[dtype] : absl::StrCat("dtype ", dtype);
}

// Returns "[8, 1024, 768]", as Python prints it; "..." for dimensions that were not recorded.
std::string ShapeText(const session::TensorLayout& layout) {
  const uint32_t known = std::min<uint32_t>(layout.dimension, session::kLayoutDimensions);
  std::string text = absl::StrCat("[", absl::StrJoin(layout.sizes, layout.sizes + known, ", "));
  absl::StrAppend(&text, layout.dimension > known ? ", ...]" : "]");
  return text;
}

// Whether the value is a handle or an address, not the id of a name or unused.
bool HasObject(const session::Record& r) {
  if (r.kind == Kind::kStream || r.kind == Kind::kDevice || r.kind == Kind::kCopy) return false;
  return r.kind != Kind::kSync || r.value != 0;
}

}  // namespace

const char* HeapNameOf(Memory memory) {
  switch (memory) {
    case Memory::kNone:
      return "";
    case Memory::kPinned:
    case Memory::kRegistered:
      return "host";
    case Memory::kBlock:
      return "pytorch";
    case Memory::kRegion:
      return "nvtx";
    default:
      return "driver";
  }
}

EventTranslator::EventTranslator(const session::SessionMap& session, std::vector<std::string> apis,
                                 format::DefinitionsBuilder* definitions, StackTranslator* stacks)
    : session_(session),
      start_ns_(session.header().monotonic_ns),
      apis_(std::move(apis)),
      definitions_(definitions),
      stacks_(stacks),
      api_ids_(apis_.size()) {}

const std::string& EventTranslator::ApiName(uint16_t api) const {
  static const std::string& none = *new std::string();
  return api < apis_.size() ? apis_[api] : none;
}

uint32_t EventTranslator::DefineApi(uint16_t api) {
  if (api >= apis_.size()) return 0;
  uint32_t& id = api_ids_[api];
  if (id == 0 && !apis_[api].empty()) id = definitions_->InternString(apis_[api]);
  return id;
}

uint32_t EventTranslator::ActionId(session::Action action) {
  uint32_t& id = action_ids_[static_cast<size_t>(action)];
  if (id == 0) id = definitions_->InternString(session::ActionName(action));
  return id;
}

uint32_t EventTranslator::Text(uint64_t id) {
  if (id == 0) return 0;
  const auto [known, is_new] = text_ids_.try_emplace(id);
  if (is_new) known->second = definitions_->InternString(session::ReadText(session_, id));
  return known->second;
}

const EventTranslator::Layout& EventTranslator::LayoutOf(uint32_t id) {
  const auto [known, is_new] = layouts_.try_emplace(id);
  Layout& layout = known->second;
  if (!is_new) return layout;
  const std::string bytes = session::ReadText(session_, id);
  session::TensorLayout described;
  if (bytes.size() != sizeof(described)) return layout;  // the process has overwritten it
  std::memcpy(&described, bytes.data(), sizeof(described));
  layout.bytes = described.bytes;
  layout.dtype = definitions_->InternString(DtypeName(described.dtype));
  layout.shape = definitions_->InternString(ShapeText(described));
  return layout;
}

void EventTranslator::TranslateRole(const session::Record& r, format::Event* e) {
  e->heap = Heap(r.memory);
  e->memory = static_cast<gmt::Memory>(r.memory);
  e->address = r.value;
  e->present |= format::kHasAddress;
  e->roles = static_cast<uint32_t>(r.size) & session::kAllRoles;
  e->forward_stack = std::exchange(e->stack, 0);
  e->name = Text(r.stream);
}

void EventTranslator::TranslateMemory(const session::Record& r, format::Event* e) {
  e->heap = Heap(r.memory);
  e->memory = static_cast<gmt::Memory>(r.memory);
  e->address = r.value;
  e->present |= format::kHasAddress;
  if (r.size != 0 || EffectOf(r.kind) == Effect::kAcquires || r.kind == Kind::kAllocFailed) {
    e->size = r.size;
    e->present |= format::kHasSize;
  }
  if (r.memory == Memory::kRegion) e->name = Text(r.stream);
  if (r.layout != 0) {
    const Layout& layout = LayoutOf(r.layout);
    e->requested = layout.bytes;
    e->present |= format::kHasRequested;
    e->dtype = layout.dtype;
    e->shape = layout.shape;
  }
  if (r.memory == Memory::kBlock) {
    e->forward_stack = stacks_->Translate(r.forward_stack);
    e->total_allocated = r.total_allocated;
    e->total_reserved = r.total_reserved;
    e->present |= format::kHasTotals;
  }
  if (r.kind == Kind::kAllocFailed || r.kind == Kind::kFreeDone || r.result != 0) {
    e->result = r.memory == Memory::kBlock ? kCudaOutOfMemory : r.result;
    e->present |= format::kHasResult;
  }
}

void EventTranslator::TranslateActivity(const session::Record& r, format::Event* e) {
  if (HasObject(r)) {
    e->object = r.value;
    e->present |= format::kHasObject;
  }
  e->action = ActionId(r.action);
  if (r.action == Action::kName) e->name = Text(r.value);
  if (r.size != 0) {
    e->value = r.size;
    e->present |= format::kHasValue;
  }
  e->flags = r.flags & ~uint32_t{session::kStreamUnknown};
  if (e->flags != 0) e->present |= format::kHasFlags;
  if (r.kind == Kind::kStream && r.action == Action::kCreate) {
    e->priority = r.priority;
    e->present |= format::kHasPriority;
  }
  e->memory = static_cast<gmt::Memory>(r.memory);
  if (r.memory == Memory::kRegion) {  // a heap managed by the program itself
    e->heap = Heap(r.memory);
    e->name = Text(r.stream);
  }
  if (r.result != 0) {
    e->result = r.result;
    e->present |= format::kHasResult;
  }
}

void EventTranslator::TranslateNote(const session::Record& r, format::Event* e) {
  e->name = Text(r.value);
  if (r.kind == Kind::kMark && r.size != session::kNoIndex) {
    e->index = r.size;
    e->present |= format::kHasIndex;
  }
  if (r.kind == Kind::kRangeBegin || r.kind == Kind::kRangeEnd) {
    e->range = r.size;
    e->present |= format::kHasRange;
  }
  if (r.kind == Kind::kSource) {
    e->text = Text(r.size);
  } else {
    e->domain = Text(r.stream);
  }
  if (r.color != 0) {
    e->color = r.color;
    e->present |= format::kHasColor;
  }
}

format::Event EventTranslator::Translate(const session::Record& r) {
  format::Event e = empty_;
  e.kind = static_cast<gmt::Kind>(r.kind);
  e.t_ns = Time(r.time_ns);
  e.thread = r.thread;
  e.present = format::kHasTime | format::kHasThread;
  e.stack = stacks_->Translate(r.stack);
  e.api = Api(IsFromBeforeAttach(r) ? session::kBeforeAttachApi : r.api);
  if (r.device != session::kNoDevice) {
    e.device = r.device;
    e.present |= format::kHasDevice;
  }
  if (r.context != 0) {
    e.context = r.context;
    e.present |= format::kHasContext;
  }
  if (r.duration_ns != 0) {
    e.duration_ns = r.duration_ns;
    e.present |= format::kHasDuration;
  }
  // The word holds a stream, or the physical handle of a mapping (session/layout.h, Slot).
  if (r.kind == Kind::kMap) {
    e.handle = r.stream;
    e.present |= format::kHasHandle;
  } else if (HasStream(r)) {
    e.stream = r.stream;
    e.present |= format::kHasStream;
  }
  if (r.kind == Kind::kSample) return e;  // the sample itself has the rest
  if (r.kind == Kind::kRole) {
    TranslateRole(r, &e);
  } else if (session::IsNote(r.kind)) {
    TranslateNote(r, &e);
  } else if (session::IsActivity(r.kind)) {
    TranslateActivity(r, &e);
  } else {
    TranslateMemory(r, &e);
  }
  return e;
}

}  // namespace gmt::collector
