// gpumemtrace symbolize: writes a copy of a recording with more function names.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "analysis/text.h"
#include "answers/json.h"
#include "cli/command.h"
#include "cli/open_recording.h"
#include "cli/output_file.h"
#include "cli/verbs.h"
#include "format/recording_copy.h"
#include "proto/gmt.pb.h"
#include "symbols/build_id_index.h"
#include "symbols/debuginfod.h"
#include "symbols/symbolize_recording.h"

namespace gmt::cli {
namespace {

constexpr size_t kModulesShown = 10;

struct SymbolizeArguments {
  std::string file, output, root;
  std::vector<std::string> debug_dirs;
  bool debuginfod = false, force = false, json = false;
};

// The frames of one module without a name, and why.
struct Unnamed {
  symbols::ModuleKey module;
  uint64_t frames = 0;
  std::string why;
};

struct Result {
  uint64_t frames = 0, named = 0, named_before = 0, better = 0;
  std::vector<Unnamed> unnamed;  // most frames first
};

absl::Status CheckFolders(const SymbolizeArguments& options) {
  std::vector<std::string> folders = options.debug_dirs;
  if (!options.root.empty()) folders.push_back(options.root);
  for (const std::string& folder : folders) {
    std::error_code error;
    if (std::filesystem::is_directory(folder, error)) continue;
    return absl::NotFoundError(absl::StrCat(folder, ": is not a directory"));
  }
  return absl::OkStatus();
}

// The symbolizer, with all sources that the options allow.
class Names {
 public:
  static absl::StatusOr<std::unique_ptr<Names>> Open(const SymbolizeArguments& options) {
    absl::Status status = CheckFolders(options);
    if (!status.ok()) return status;
    auto names = std::make_unique<Names>();
    symbols::SymbolizerOptions how;
    how.root = options.root;
    how.debug_dirs.insert(how.debug_dirs.begin(), options.debug_dirs.begin(),
                          options.debug_dirs.end());
    if (!options.debug_dirs.empty()) names->AddIndex(options.debug_dirs, &how);
    if (options.debuginfod) {
      auto client = symbols::Debuginfod::Open();
      if (!client.ok()) {
        return absl::Status(client.status().code(),
                            absl::StrCat("--debuginfod: ", client.status().message()));
      }
      names->AddServers(*std::move(client), &how);
    }
    names->symbolizer_.emplace(std::move(how));
    return names;
  }

  symbols::Symbolizer& symbolizer() { return *symbolizer_; }

 private:
  void AddIndex(const std::vector<std::string>& folders, symbols::SymbolizerOptions* how) {
    index_ = std::make_unique<symbols::BuildIdIndex>(folders);
    if (index_->cut()) {
      PrintNote(fmt::format("--debug-dir: only the first {} files were searched",
                            Count(symbols::BuildIdIndex::kMaxFiles)));
    }
    how->finders.push_back([this](const std::string& id) { return index_->Find(id); });
  }

  void AddServers(std::unique_ptr<symbols::Debuginfod> client, symbols::SymbolizerOptions* how) {
    servers_ = std::move(client);
    PrintNote(fmt::format("asking {}", servers_->servers()));
    how->finders.push_back([this](const std::string& id) { return servers_->Find(id); });
  }

  std::unique_ptr<symbols::BuildIdIndex> index_;
  std::unique_ptr<symbols::Debuginfod> servers_;
  std::optional<symbols::Symbolizer> symbolizer_;
};

// Counts the frames of the last segment that still have no name.
void CountUnnamed(const format::Definitions& definitions, const symbols::ImprovedNames& names,
                  std::map<std::pair<std::string, std::string>, uint64_t>* unnamed) {
  absl::flat_hash_set<uint32_t> named;
  for (const gmt::Body& body : *names.bodies) {
    for (uint32_t frame : body.symbols().frame()) named.insert(frame + definitions.base().frame);
  }
  for (const symbols::FrameRequest& request : symbols::UnnamedFrames(definitions)) {
    if (request.frame <= definitions.base().frame || named.contains(request.frame)) continue;
    ++(*unnamed)[{request.module.path, request.module.build_id}];
  }
}

std::vector<Unnamed> WhyUnnamed(
    const std::map<std::pair<std::string, std::string>, uint64_t>& modules,
    symbols::Symbolizer& symbolizer) {
  std::vector<Unnamed> unnamed;
  for (const auto& [module, frames] : modules) {
    const symbols::ModuleKey key = {module.first, module.second};
    const symbols::ModuleState state = symbolizer.StateOf(key);
    const bool usable = state == symbols::ModuleState::kUsable;
    unnamed.push_back({key, frames, usable ? "has no symbol at that address" : Describe(state)});
  }
  std::stable_sort(unnamed.begin(), unnamed.end(),
                   [](const Unnamed& a, const Unnamed& b) { return a.frames > b.frames; });
  return unnamed;
}

absl::StatusOr<Result> CopyWithNames(format::ByteSource& recording,
                                     const SymbolizeArguments& options, const std::string& output,
                                     symbols::Symbolizer& symbolizer) {
  auto sink = format::FileSink(output, format::IfExists::kOverwrite);
  if (!sink.ok()) return sink.status();
  Result result;
  std::map<std::pair<std::string, std::string>, uint64_t> unnamed;
  const absl::Status status = format::CopyRecording(
      recording, options.file, *std::move(sink), [&](const format::Definitions& definitions) {
        symbols::ImprovedNames names = symbols::FindImprovedNames(definitions, symbolizer);
        result.frames += names.frames;
        result.named += names.named;
        result.named_before += names.named_before;
        result.better += names.better;
        CountUnnamed(definitions, names, &unnamed);
        return absl::StatusOr<std::vector<gmt::Body>>(std::move(*names.bodies));
      });
  if (!status.ok()) return status;
  result.unnamed = WhyUnnamed(unnamed, symbolizer);
  return result;
}

void PrintText(const SymbolizeArguments& options, const Result& result) {
  fmt::print("{} of {} named (was {})\n", Count(result.named), Plural(result.frames, "frame"),
             Count(result.named_before));
  fmt::print("{}: {} named better than in {}\n", options.output, Plural(result.better, "frame"),
             options.file);
  for (size_t i = 0; i < std::min(result.unnamed.size(), kModulesShown); ++i) {
    const Unnamed& unnamed = result.unnamed[i];
    fmt::print("  {} without a name: {} {}\n", Plural(unnamed.frames, "frame"), unnamed.module.path,
               unnamed.why);
  }
  if (result.unnamed.size() > kModulesShown) {
    fmt::print("  and frames of {}\n",
               Plural(result.unnamed.size() - kModulesShown, "other module"));
  }
}

void PrintAsJson(const SymbolizeArguments& options, const Result& result) {
  nlohmann::ordered_json out = answers::NewJson("symbolize", options.file);
  out["output"] = options.output;
  out["frames"] = result.frames;
  out["named"] = result.named;
  out["named_before"] = result.named_before;
  out["better"] = result.better;
  out["unnamed"] = nlohmann::ordered_json::array();
  for (const Unnamed& unnamed : result.unnamed) {
    out["unnamed"].push_back({{"module", unnamed.module.path},
                              {"build_id", absl::BytesToHexString(unnamed.module.build_id)},
                              {"frames", unnamed.frames},
                              {"why", unnamed.why}});
  }
  PrintJson(out);
}

absl::StatusOr<int> Symbolize(const SymbolizeArguments& options) {
  const auto recording = OpenGmtFile(options.file);
  if (!recording.ok()) return recording.status();
  auto names = Names::Open(options);
  if (!names.ok()) return names.status();
  auto output = OutputFile::Create(options.output, options.force);
  if (!output.ok()) return output.status();
  const auto result = CopyWithNames(**recording, options, output->path(), (*names)->symbolizer());
  if (!result.ok()) return result.status();
  if (absl::Status status = output->Commit(); !status.ok()) return status;
  if (options.json) {
    PrintAsJson(options, *result);
  } else {
    PrintText(options, *result);
  }
  return kDone;
}

}  // namespace

void AddSymbolize(Program& program) {
  auto options = std::make_shared<SymbolizeArguments>();
  Command command = program.AddVerb("symbolize",
                                    "Make a copy of a recording with more function "
                                    "names",
                                    [options](const Terminal&) { return Symbolize(*options); });
  command.Argument("FILE", &options->file, "a recording");
  command.RequiredOption("-o,--output", &options->output, "OUT", "the copy to write");
  command.Option("--debug-dir", &options->debug_dirs, "DIR",
                 "directory of debug files: *.debug, an unpacked -dbgsym package, files of "
                 "another machine");
  command.Option("--root", &options->root, "DIR", "root directory for module paths (sysroot)");
  command.Flag("--debuginfod", &options->debuginfod,
               "fetch what is missing from the servers in DEBUGINFOD_URLS");
  command.Flag("--force", &options->force, "overwrite an existing OUT");
  command.Flag("--json", &options->json, "print JSON");
}

}  // namespace gmt::cli
