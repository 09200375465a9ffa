// DefinitionsBuilder (format/definitions.h): gives ids and collects columns of what is new.

#include <utility>

#include "format/columns.h"
#include "format/definitions.h"

namespace gmt::format {
namespace {

// Serialised sizes, roughly: only a bound for when to write a chunk.
constexpr uint64_t kBytesOfString = 3, kBytesOfModule = 60, kBytesOfFrame = 20, kBytesOfStack = 8;

template <typename Map, typename Key>
std::pair<uint32_t, bool> IdOf(Map* map, const Key& key) {
  const auto [place, is_new] = map->try_emplace(key, static_cast<uint32_t>(map->size()) + 1);
  return {place->second, is_new};
}

// When what is kept begins another chunk.
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

uint32_t DefinitionsBuilder::InternString(std::string_view text) {
  if (text.empty()) return 0;
  const auto [id, is_new] = IdOf(&string_ids_, std::string(text));
  if (is_new) {
    if (new_.strings_size() == 0) new_.set_first_string(id);
    new_.add_strings(std::string(text));
    new_bytes_ += text.size() + kBytesOfString;
  }
  return id;
}

uint32_t DefinitionsBuilder::AddModule(const ModuleInfo& module) {
  ++module_count_;
  if (new_.modules_size() == 0) new_.set_first_module(module_count_);
  gmt::Module* m = new_.add_modules();
  m->set_path(module.path);
  m->set_build_id(module.build_id);
  m->set_base(module.base);
  m->set_size(module.size);
  m->set_bias(module.bias);
  m->set_loaded_t_ns(module.loaded_t_ns);
  new_bytes_ += module.path.size() + kBytesOfModule;
  return module_count_;
}

uint32_t DefinitionsBuilder::InternModule(const ModuleInfo& module) {
  const auto [place, is_new] = module_ids_.try_emplace(module, module_count_ + 1);
  return is_new ? AddModule(module) : place->second;
}

uint32_t DefinitionsBuilder::InternFrame(const FrameInfo& frame) {
  const auto [id, is_new] = IdOf(&frame_ids_, frame);
  if (!is_new) return id;
  gmt::Frames* columns = new_.mutable_frames();
  if (columns->count() == 0) new_.set_first_frame(id);
  columns->set_count(columns->count() + 1);
  columns->add_module(frame.module);
  columns->add_address(frame.address);
  columns->add_function(frame.function);
  columns->add_file(frame.file);
  columns->add_line(frame.line);
  columns->add_language(frame.language);
  columns->add_other_language(frame.other_language);
  columns->add_flags(frame.flags);
  columns->add_module_name(frame.module_name);
  new_bytes_ += kBytesOfFrame;
  return id;
}

uint32_t DefinitionsBuilder::InternStack(const StackNode& node) {
  const auto [id, is_new] = IdOf(&stack_ids_, node);
  if (!is_new) return id;
  gmt::Stacks* columns = new_.mutable_stacks();
  if (columns->count() == 0) new_.set_first_stack(id);
  columns->set_count(columns->count() + 1);
  columns->add_frame(node.frame);
  columns->add_parent(node.parent);
  columns->add_log_id(node.log_id);
  columns->add_lacks(node.lacks);
  new_bytes_ += kBytesOfStack;
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

bool DefinitionsBuilder::has_new() const {
  return new_.strings_size() > 0 || new_.modules_size() > 0 || new_.frames().count() > 0 ||
         new_.stacks().count() > 0;
}

gmt::Definitions DefinitionsBuilder::TakeNew() {
  gmt::Definitions taken = std::exchange(new_, gmt::Definitions());
  if (keeps_) KeepTaken(taken);
  new_bytes_ = 0;
  if (taken.has_frames()) TrimFrames(taken.mutable_frames());
  if (taken.has_stacks()) TrimStacks(taken.mutable_stacks());
  return taken;
}

void DefinitionsBuilder::KeepTaken(const gmt::Definitions& taken) {
  if (kept_.empty() || kept_bytes_ + new_bytes_ > kBytesOfKept) {
    kept_.emplace_back();
    kept_bytes_ = 0;
  }
  kept_bytes_ += new_bytes_;
  gmt::Definitions& last = kept_.back();
  const gmt::Definitions before = [&] {  // what a merge overwrites
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
  std::vector<gmt::Definitions> taken = kept_;
  for (gmt::Definitions& chunk : taken) {
    if (chunk.has_frames()) TrimFrames(chunk.mutable_frames());
    if (chunk.has_stacks()) TrimStacks(chunk.mutable_stacks());
  }
  return taken;
}

}  // namespace gmt::format
