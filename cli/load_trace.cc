#include "cli/load_trace.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/before_attach.h"
#include "analysis/trace_builder.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "interop/open_input.h"
#include "proto/gmt.pb.h"
#include "symbols/frame_rules.h"
#include "symbols/symbolize_recording.h"

namespace gmt::cli {
namespace {

constexpr size_t kModulesNamed = 3;
constexpr char kBeforeAttach[] = "before attach: ";

void AddIf(uint64_t count, const std::string& text, std::vector<std::string>& lacks) {
  if (count > 0) lacks.push_back(text);
}

std::string NameOfHeap(const std::string& heap) {
  return heap == "pytorch" ? "PyTorch's blocks"
         : heap == "host"  ? "pinned memory"
                           : heap + " memory";
}

// Adds the memory that was allocated before the attach.
void AddBeforeAttach(const analysis::Trace& trace, std::vector<std::string>& lacks) {
  for (const analysis::HeldBefore& before : analysis::FindHeldBefore(trace)) {
    std::string text =
        absl::StrCat(kBeforeAttach, Bytes(before.bytes), " in ", NameOfHeap(before.heap), " (",
                     Plural(before.blocks, "block"), ")");
    if (before.device != analysis::kHostDevice) absl::StrAppend(&text, " on GPU ", before.device);
    absl::StrAppend(&text, ", without stacks; ", Bytes(before.freed_bytes), " of it freed since");
    if (before.unknown_freed_blocks > 0)
      absl::StrAppend(&text, ", plus ", Bytes(before.unknown_freed_bytes),
                      " that were not known at attach");
    lacks.push_back(std::move(text));
  }
}

void AddLosses(const analysis::Trace& trace, std::vector<std::string>& lacks) {
  const Losses losses = trace.losses ? *trace.losses : Losses();
  const uint64_t lost = losses.overrun() + losses.holes() + losses.abandoned();
  AddIf(lost,
        absl::StrCat(Plural(lost, "event"), " lost: ", Count(losses.overrun()), " overwritten, ",
                     Count(losses.holes()), " never finished, ", Count(losses.abandoned()),
                     " abandoned"),
        lacks);
  const analysis::Unknowns& unknowns = trace.unknowns;
  AddIf(unknowns.frees_lost,
        absl::StrCat(Plural(unknowns.frees_lost, "free"),
                     " not seen; their memory counts as live until its address is reused"),
        lacks);
  AddBeforeAttach(trace, lacks);
  AddIf(unknowns.rows_from_before,
        absl::StrCat(Plural(unknowns.rows_from_before, "allocation"), " from before the recording"),
        lacks);
  if (trace.before) {
    lacks.push_back(absl::StrCat(Plural(trace.before->events(), "event"), " before ",
                                 Duration(trace.before->t_ns()),
                                 " of the recording: only their sums are kept"));
  }
  AddIf(unknowns.frees_unmatched,
        absl::StrCat(Plural(unknowns.frees_unmatched, "free"), " of unknown addresses"),
        lacks);
  AddIf(losses.stacks_full(),
        absl::StrCat(Plural(losses.stacks_full(), "event"),
                     " without a stack: the stack table was full"),
        lacks);
}

// Adds the modules with the most unnamed frames, and why these have no names.
void AddUnnamedModules(const format::Definitions& definitions, symbols::Symbolizer& symbolizer,
                       std::vector<std::string>& unnamed) {
  std::map<std::pair<std::string, std::string>, uint64_t> frames;
  for (const auto& request : symbols::UnnamedFrames(definitions)) {
    ++frames[{request.module.path, request.module.build_id}];
  }
  std::vector<std::pair<uint64_t, symbols::ModuleKey>> modules;
  for (const auto& [module, count] : frames)
    modules.push_back({count, {module.first, module.second}});
  std::stable_sort(modules.begin(), modules.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  // Modules whose frames are folded anyway, such as a stripped interpreter, come last.
  std::stable_partition(modules.begin(), modules.end(), [](const auto& module) {
    return !IsNoise(symbols::FrameRules::BuiltIn().RoleOf({.module = module.second.path}));
  });
  for (size_t i = 0; i < std::min(modules.size(), kModulesNamed); ++i) {
    const auto& [count, module] = modules[i];
    const symbols::ModuleState state = symbolizer.StateOf(module);
    const char* why =
        state == symbols::ModuleState::kUsable ? "has no symbol at that address" : Describe(state);
    unnamed.push_back(
        absl::StrCat(Plural(count, "frame"), " without a name: ", module.path, " ", why));
  }
}

// Reports the progress of loading to a listener, or to the terminal if there is none.
class Told {
 public:
  Told(const std::string& path, const LoadListener& listener) : path_(path), listener_(listener) {
    if (listener_ == nullptr) progress_.emplace(absl::StrCat("reading ", path_));
  }
  void Count(uint64_t events, double share, const analysis::Trace& so_far) {
    events_ += events;
    if (progress_) return progress_->Count(events);
    listener_(absl::StrCat("reading events: ", gmt::cli::Count(events_)), share, so_far);
  }
  void NamesFrames(const analysis::Trace& trace) {
    if (progress_) return progress_->Stage(absl::StrCat("naming frames of ", path_));
    listener_("naming frames", 1, trace);
  }

 private:
  const std::string& path_;
  const LoadListener& listener_;
  std::optional<Progress> progress_;
  uint64_t events_ = 0;
};

class ToldBuilder : public analysis::TraceBuilder {
 public:
  ToldBuilder(const interop::Input& input, Told* told)
      : TraceBuilder(input.definitions()), input_(input), told_(*told) {}

  absl::Status OnEvents(const format::EventBatch& batch) override {
    absl::Status status = TraceBuilder::OnEvents(batch);
    told_.Count(batch.events.size(), input_.share_read(), so_far());
    return status;
  }

 private:
  const interop::Input& input_;
  Told& told_;
};

}  // namespace

std::vector<std::string> WithoutBeforeAttach(std::vector<std::string> lacks) {
  std::erase_if(lacks, [](const std::string& lack) { return lack.starts_with(kBeforeAttach); });
  return lacks;
}

std::vector<std::string> WhatTraceLacks(const analysis::Trace& trace) {
  std::vector<std::string> lacks;
  AddLosses(trace, lacks);
  return lacks;
}

absl::StatusOr<std::unique_ptr<LoadedTrace>> LoadTrace(const std::string& path,
                                                       const LoadListener& listener) {
  Told told(path, listener);
  auto input = interop::OpenInput(path);
  if (!input.ok()) return input.status();
  ToldBuilder builder(**input, &told);
  if (absl::Status status = (*input)->Read(builder); !status.ok()) return status;

  auto loaded = std::make_unique<LoadedTrace>();
  loaded->path = path;
  loaded->trace = std::move(builder).Build();
  loaded->definitions = (*input)->definitions();
  loaded->lacks = (*input)->notes();
  AddLosses(loaded->trace, loaded->lacks);
  told.NamesFrames(loaded->trace);
  symbols::Symbolizer symbolizer({});
  const auto named = symbols::SymbolizeInPlace(loaded->definitions, symbolizer);
  if (!named.ok()) return named.status();
  AddUnnamedModules(loaded->definitions, symbolizer, loaded->unnamed);
  return loaded;
}

}  // namespace gmt::cli
