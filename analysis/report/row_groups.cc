#include "analysis/report/row_groups.h"

#include "absl/strings/str_cat.h"
#include "analysis/report/stream_report.h"
#include "analysis/stacks/module_path.h"

namespace gmt::analysis {
namespace {

constexpr char kOutsideOfModules[] = "outside of modules";

constexpr std::pair<absl::string_view, GroupBy> kGroupByWords[] = {
    {"stack", GroupBy::kStack},         {"function", GroupBy::kFunction},
    {"file", GroupBy::kFile},           {"heap", GroupBy::kHeap},
    {"thread", GroupBy::kThread},       {"stream", GroupBy::kStream},
    {"size", GroupBy::kSize},           {"library", GroupBy::kLibrary},
    {"category", GroupBy::kCategory},   {"layer", GroupBy::kLayer},
    {"dtype", GroupBy::kDtype},         {"node", GroupBy::kNode},
    {"layer-node", GroupBy::kLayerNode}};

}  // namespace

bool IsByCode(GroupBy by) {
  return by == GroupBy::kStack || by == GroupBy::kFunction || by == GroupBy::kFile;
}

std::vector<std::string> GroupByWords() {
  std::vector<std::string> words;
  for (const auto& [name, by] : kGroupByWords) words.emplace_back(name);
  return words;
}

absl::StatusOr<GroupBy> ParseGroupBy(absl::string_view word) {
  for (const auto& [name, by] : kGroupByWords) {
    if (name == word) return by;
  }
  return absl::NotFoundError(absl::StrCat("rows cannot be grouped by '", word, "'"));
}

std::string GroupLabel(GroupBy by, const FrameText& own) {
  if (by == GroupBy::kFile) return !own.file.empty() ? own.file : own.module;
  const bool ambiguous = own.is_python() && !own.file.empty();
  return ambiguous ? absl::StrCat(own.Name(), " (", own.FileName(), ")") : own.Name();
}

std::string LibraryLabel(const std::string& library) {
  return library.empty() ? "library not known" : library;
}

std::string BlocksLabel(const std::string& heap) { return absl::StrCat("blocks of ", heap); }

RowGroups::RowGroups(const Examination& examination, const Categories& categories, GroupBy by)
    : examination_(examination),
      categories_(categories),
      trace_(examination.trace()),
      definitions_(examination.definitions()),
      by_(by) {
  if (IsByCode(by)) before_.emplace(examination, categories);
}

GroupKey RowGroups::KeyOf(RowId row, const RolesAt& roles) {
  const Rows& rows = trace_.rows;
  GroupKey key{rows.device[row], rows.heap[row], 0, "", true};
  // Its allocating code is unknown.
  if (before_.has_value()) key.before = before_->Of(row);
  if (key.before != nullptr) return key;
  switch (by_) {
    case GroupBy::kStack:
      key.number = uint64_t{rows.forward_stack[row]} << 32 | rows.stack[row];
      if (rows.IsRegion(row)) key.name = definitions_.string(rows.Name(row));
      break;
    case GroupBy::kFunction:
    case GroupBy::kFile:
      key.name = OwnName(rows.stack[row], rows.forward_stack[row]);
      break;
    case GroupBy::kHeap:
      break;
    case GroupBy::kLibrary:
      key.name = LibraryOf(row);
      break;
    case GroupBy::kThread:
      key.known = (rows.flags[row] & kRowHasThread) != 0;
      key.number = key.known ? rows.thread[row] : 0;
      break;
    case GroupBy::kStream:
      key.known = (rows.flags[row] & kRowHasStream) != 0;
      key.number = key.known ? rows.stream[row] : 0;
      break;
    case GroupBy::kSize:
      key.number = rows.size[row];
      break;
    case GroupBy::kCategory:
      key.number = static_cast<uint64_t>(categories_.Of(row).category);
      break;
    case GroupBy::kLayer:
      key.name = LayerOf(row);
      key.known = !key.name.empty();
      break;
    case GroupBy::kDtype:
      key.name = definitions_.string(rows.Dtype(row));
      key.known = !key.name.empty();
      break;
    case GroupBy::kNode:
    case GroupBy::kLayerNode:
      key.name = NodeOf(row, roles);
      key.known = !key.name.empty();
      break;
  }
  return key;
}

// Uses the forward pass's stack for memory of a backward pass.
const std::string& RowGroups::LayerOf(RowId row) {
  static const std::string& workspaces = *new std::string(kWorkspacesLayer);
  const Rows& rows = trace_.rows;
  if (categories_.Of(row).category == Category::kWorkspaces) return workspaces;
  return LayerOfStack(rows.forward_stack[row] != 0 ? rows.forward_stack[row] : rows.stack[row]);
}

const std::string& RowGroups::LayerOfStack(uint32_t stack) {
  const auto [it, is_new] = layers_.try_emplace(stack);
  if (is_new) it->second = ModulePath(examination_.stacks().Frames(stack));
  return it->second;
}

// Returns the last node that saved it; "" if there is none.
std::string RowGroups::NodeOf(RowId row, const RolesAt& roles) {
  const HeldRoles held = roles.Of(row);
  const bool is_saved = BecauseOf(held.roles, {}).reason == AliveReason::kSaved;
  if (!is_saved) return "";
  const GraphNode node = held.nodes.empty() ? GraphNode{} : held.nodes.back();
  std::string name(definitions_.string(node.name));
  if (name.empty()) name = "a node of the autograd graph";
  if (by_ == GroupBy::kNode) return name;
  const std::string& layer = LayerOfStack(node.stack);
  return absl::StrCat(layer.empty() ? kOutsideOfModules : layer, ": ", name);
}

// Blocks belong to the framework, not to a library.
std::string RowGroups::LibraryOf(RowId row) const {
  const Rows& rows = trace_.rows;
  if (rows.heap[row] > kHostHeap) return "";
  return examination_.stacks().Library(rows.stack[row]);
}

const std::string& RowGroups::OwnName(uint32_t stack, uint32_t forward_stack) {
  const auto [it, is_new] = own_names_.try_emplace({stack, forward_stack});
  if (!is_new) return it->second;
  const FrameText* own = examination_.stacks().Own(stack, forward_stack);
  if (own == nullptr) return it->second;
  return it->second = GroupLabel(by_, *own);
}

// Returns "stream 0x7f00 "copy", priority -1", as far as known. 0 is the default priority.
std::string RowGroups::StreamLabel(const GroupKey& key, int64_t t_ns) const {
  std::string label = absl::StrCat("stream 0x", absl::Hex(key.number));
  const StreamInfo* stream = StreamAt(trace_, key.number, t_ns);
  if (stream == nullptr) return label;
  if (stream->name != 0) {
    absl::StrAppend(&label, " \"", std::string(definitions_.string(stream->name)), "\"");
  }
  if (stream->priority.value_or(0) != 0) {
    absl::StrAppend(&label, ", priority ", *stream->priority);
  }
  return label;
}

RowGroups::Name RowGroups::NameOf(const GroupKey& key, int64_t t_ns) const {
  const std::string& heap = trace_.heaps[key.heap];
  Name name;
  switch (by_) {
    case GroupBy::kStack:
      name.id = absl::StrCat("stack/", key.number & UINT32_MAX);
      if (key.number >> 32 != 0) absl::StrAppend(&name.id, "+", key.number >> 32);
      name.label = key.name;
      return name;
    case GroupBy::kLibrary:
      name.label = key.heap > kHostHeap ? BlocksLabel(heap) : LibraryLabel(key.name);
      name.id = absl::StrCat("library/", name.label);
      return name;
    case GroupBy::kFunction:
    case GroupBy::kFile:
      name.label = key.name;
      name.id = absl::StrCat(by_ == GroupBy::kFile ? "file/" : "function/", key.name);
      return name;
    case GroupBy::kHeap:
      name.label = heap;
      name.id = absl::StrCat("heap/", heap);
      return name;
    case GroupBy::kThread:
      name.label = key.known ? absl::StrCat("thread ", key.number) : "thread not known";
      name.id = key.known ? absl::StrCat("thread/", key.number) : "thread/unknown";
      return name;
    case GroupBy::kStream:
      name.label = key.known ? StreamLabel(key, t_ns) : "no stream";
      name.id = key.known ? absl::StrCat("stream/0x", absl::Hex(key.number)) : "stream/none";
      return name;
    case GroupBy::kSize:
      name.label = absl::StrCat(key.number, " bytes each");
      name.id = absl::StrCat("size/", key.number);
      return name;
    case GroupBy::kCategory:
      name.label = TextOf(static_cast<Category>(key.number));
      name.id = absl::StrCat("category/",
                             std::string(analysis::NameOf(static_cast<Category>(key.number))));
      return name;
    case GroupBy::kLayer:
      name.label = key.known ? key.name : kOutsideOfModules;
      name.id = absl::StrCat("layer/", name.label);
      return name;
    case GroupBy::kDtype:
      name.label = key.known ? key.name : key.heap > kHostHeap ? "dtype not known" : "no tensor";
      name.id = absl::StrCat("dtype/", key.known ? key.name : "none");
      return name;
    case GroupBy::kNode:
    case GroupBy::kLayerNode:
      name.label = key.known ? key.name : "not saved for backward";
      name.id = absl::StrCat(by_ == GroupBy::kNode ? "node/" : "layer-node/",
                             key.known ? key.name : "none");
      return name;
  }
  return name;
}

}  // namespace gmt::analysis
