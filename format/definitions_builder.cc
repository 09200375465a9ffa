#include "format/definitions_builder.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "format/columns.h"
#include "proto/gmt.pb.h"

namespace gmt::format {
namespace {

// Approximate serialised sizes, used only to decide when to write a chunk.
constexpr uint64_t kBytesOfString = 3, kBytesOfModule = 60, kBytesOfFrame = 20, kBytesOfStack = 8;

template <typename Map, typename Key>
std::pair<uint32_t, bool> IdOf(Map* map, const Key& key) {
  const auto [place, is_new] = map->try_emplace(key, static_cast<uint32_t>(map->size()) + 1);
  return {place->second, is_new};
}

// Size at which the kept definitions start another chunk.
constexpr uint64_t kBytesOfKept = 4u << 20;

void TrimFrames(gmt::Frames* columns) {
  TrimColumn(columns->mutable_module());
  TrimColumn(columns->mutable_address());
  TrimColumn(columns->mutable_function());
  TrimColumn(columns->mutable_file());
  TrimColumn(columns->mutable_line());
  TrimColumn(columns->mutable_language());
  TrimColumn(columns->mutable_other_language());
  TrimColumn(columns->mutable_flags());
  TrimColumn(columns->mutable_module_name());
}

void TrimStacks(gmt::Stacks* columns) {
  TrimColumn(columns->mutable_frame());
  TrimColumn(columns->mutable_parent());
  TrimColumn(columns->mutable_log_id());
  TrimColumn(columns->mutable_lacks());
}

}  // namespace

struct DefinitionsBuilder::State {
  absl::flat_hash_map<std::string, uint32_t> string_ids;
  absl::flat_hash_map<FrameInfo, uint32_t> frame_ids;
  absl::flat_hash_map<ModuleInfo, uint32_t> module_ids;
  absl::flat_hash_map<StackNode, uint32_t> stack_ids;
  uint32_t module_count = 0;
  uint64_t new_bytes = 0;
  gmt::Definitions added;  // since the last TakeNew()
  bool keeps = false;
  std::vector<gmt::Definitions> kept;  // columns are as long as their rows
  uint64_t kept_bytes = 0;             // of the last element

  void Keep(const gmt::Definitions& taken);
};

DefinitionsBuilder::DefinitionsBuilder() : state_(std::make_unique<State>()) {}
DefinitionsBuilder::~DefinitionsBuilder() = default;
DefinitionsBuilder::DefinitionsBuilder(const DefinitionsBuilder& other)
    : state_(std::make_unique<State>(*other.state_)) {}
DefinitionsBuilder& DefinitionsBuilder::operator=(const DefinitionsBuilder& other) {
  *state_ = *other.state_;
  return *this;
}
DefinitionsBuilder::DefinitionsBuilder(DefinitionsBuilder&&) noexcept = default;
DefinitionsBuilder& DefinitionsBuilder::operator=(DefinitionsBuilder&&) noexcept = default;

uint32_t DefinitionsBuilder::InternString(std::string_view text) {
  if (text.empty()) return 0;
  const auto [id, is_new] = IdOf(&state_->string_ids, std::string(text));
  if (is_new) {
    if (state_->added.strings_size() == 0) state_->added.set_first_string(id);
    state_->added.add_strings(std::string(text));
    state_->new_bytes += text.size() + kBytesOfString;
  }
  return id;
}

uint32_t DefinitionsBuilder::AddModule(const ModuleInfo& module) {
  ++state_->module_count;
  if (state_->added.modules_size() == 0) state_->added.set_first_module(state_->module_count);
  gmt::Module* m = state_->added.add_modules();
  m->set_path(module.path);
  m->set_build_id(module.build_id);
  m->set_base(module.base);
  m->set_size(module.size);
  m->set_bias(module.bias);
  m->set_loaded_t_ns(module.loaded_t_ns);
  state_->new_bytes += module.path.size() + kBytesOfModule;
  return state_->module_count;
}

uint32_t DefinitionsBuilder::InternModule(const ModuleInfo& module) {
  const auto [place, is_new] = state_->module_ids.try_emplace(module, state_->module_count + 1);
  return is_new ? AddModule(module) : place->second;
}

uint32_t DefinitionsBuilder::InternFrame(const FrameInfo& frame) {
  const auto [id, is_new] = IdOf(&state_->frame_ids, frame);
  if (!is_new) return id;
  gmt::Frames* columns = state_->added.mutable_frames();
  if (columns->count() == 0) state_->added.set_first_frame(id);
  columns->set_count(columns->count() + 1);
  columns->add_module(frame.module);
  columns->add_address(frame.address);
  columns->add_function(frame.function);
  columns->add_file(frame.file);
  columns->add_line(frame.line);
  columns->add_language(static_cast<gmt::Frames::Language>(frame.language));
  columns->add_other_language(frame.other_language);
  columns->add_flags(frame.flags);
  columns->add_module_name(frame.module_name);
  state_->new_bytes += kBytesOfFrame;
  return id;
}

uint32_t DefinitionsBuilder::InternStack(const StackNode& node) {
  const auto [id, is_new] = IdOf(&state_->stack_ids, node);
  if (!is_new) return id;
  gmt::Stacks* columns = state_->added.mutable_stacks();
  if (columns->count() == 0) state_->added.set_first_stack(id);
  columns->set_count(columns->count() + 1);
  columns->add_frame(node.frame);
  columns->add_parent(node.parent);
  columns->add_log_id(node.log_id);
  columns->add_lacks(node.lacks);
  state_->new_bytes += kBytesOfStack;
  return id;
}

uint32_t DefinitionsBuilder::InternStack(const std::vector<uint32_t>& frames, uint32_t lacks,
                                         uint32_t log_id) {
  if (frames.empty()) {
    return lacks != 0 || log_id != 0 ? InternStack(StackNode{0, 0, log_id, lacks}) : 0;
  }
  uint32_t stack = 0;
  for (size_t at = frames.size(); at-- > 0;) {
    const bool outermost = at + 1 == frames.size(), innermost = at == 0;
    stack =
        InternStack(StackNode{frames[at], stack, innermost ? log_id : 0, outermost ? lacks : 0});
  }
  return stack;
}

uint64_t DefinitionsBuilder::new_bytes() const { return state_->new_bytes; }
void DefinitionsBuilder::KeepAll() { state_->keeps = true; }

bool DefinitionsBuilder::has_new() const {
  return state_->added.strings_size() > 0 || state_->added.modules_size() > 0 ||
         state_->added.frames().count() > 0 || state_->added.stacks().count() > 0;
}

gmt::Definitions DefinitionsBuilder::TakeNew() {
  gmt::Definitions taken = std::exchange(state_->added, gmt::Definitions());
  if (state_->keeps) state_->Keep(taken);
  state_->new_bytes = 0;
  if (taken.has_frames()) TrimFrames(taken.mutable_frames());
  if (taken.has_stacks()) TrimStacks(taken.mutable_stacks());
  return taken;
}

void DefinitionsBuilder::State::Keep(const gmt::Definitions& taken) {
  if (kept.empty() || kept_bytes + new_bytes > kBytesOfKept) {
    kept.emplace_back();
    kept_bytes = 0;
  }
  kept_bytes += new_bytes;
  gmt::Definitions& last = kept.back();
  const gmt::Definitions before = [&] {  // overwritten by a merge
    gmt::Definitions numbers;
    numbers.set_first_string(last.first_string());
    numbers.set_first_module(last.first_module());
    numbers.set_first_frame(last.first_frame());
    numbers.set_first_stack(last.first_stack());
    numbers.mutable_frames()->set_count(last.frames().count());
    numbers.mutable_stacks()->set_count(last.stacks().count());
    return numbers;
  }();
  last.MergeFrom(taken);
  if (before.first_string() != 0) last.set_first_string(before.first_string());
  if (before.first_module() != 0) last.set_first_module(before.first_module());
  if (before.first_frame() != 0) last.set_first_frame(before.first_frame());
  if (before.first_stack() != 0) last.set_first_stack(before.first_stack());
  if (taken.has_frames())
    last.mutable_frames()->set_count(before.frames().count() + taken.frames().count());
  if (taken.has_stacks())
    last.mutable_stacks()->set_count(before.stacks().count() + taken.stacks().count());
}

std::vector<gmt::Definitions> DefinitionsBuilder::TakenSoFar() const {
  std::vector<gmt::Definitions> taken = state_->kept;
  for (gmt::Definitions& chunk : taken) {
    if (chunk.has_frames()) TrimFrames(chunk.mutable_frames());
    if (chunk.has_stacks()) TrimStacks(chunk.mutable_stacks());
  }
  return taken;
}

}  // namespace gmt::format
