#include "cli/record/recording_options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "session/options.h"

namespace gmt::cli {

void RecordingOptions::AddTo(Command& command) {
  command.Option("-o,--output", &output, "PATTERN",
                 "recording to write; %h host, %p pid, %r rank, %l local rank, %j job id, "
                 "%q{VAR} a variable (default gpumemtrace.%h.%p.gmt)");
  command.Option("--stacks", &stacks, "KIND",
                 "native+python (the default), native, python, none, native:libgcc or "
                 "native:libunwind");
  command.Suggest("--stacks", {"native+python", "native", "python", "none"});
  command.Flag("--free-stacks", &free_stacks, "record a stack at every free too");
  command.Option("--heap", &heap, "NAME+NAME",
                 "heaps to record: driver, host, pytorch, nvtx (default: all)");
  command.Suggest("--heap", {"driver", "host", "pytorch", "nvtx"});
  command.Option("--roles", &roles, "MODE",
                 "on (the default): record what PyTorch uses its tensors for; off");
  command.Suggest("--roles", {"on", "off"});
  command.Option("--cupti", &cupti, "MODE",
                 "auto (the default); full: also record device activity; off");
  command.Suggest("--cupti", {"auto", "full", "off"});
  command.Option("--snapshot", &snapshot, "WHEN,WHEN",
                 "when to take snapshots: oom, exit (default: both), every=TIME, growth=SIZE, "
                 "mark=NAME");
  command.Option("--listen", &listen, "ADDRESS",
                 "serve /metrics and /debug/pprof/gpu at 127.0.0.1:9400 or unix:PATH");
  command.Option("--max-size", &max_size, "SIZE",
                 "limit the recording's size on disk; of the oldest events only sums are kept");
  command.Option("--max-time", &max_time, "TIME",
                 "keep the events of this last period; of older ones only sums are kept");
  command.Option("--rotate", &rotate, "N",
                 "number of files for the kept history (default 8 if a limit is set)");
  command.Flag("--strip-paths", &strip_paths,
               "remove private directories from the paths in the recording");
  command.Flag("--strip-args", &strip_args, "record only the program name of the command line");
}

std::vector<std::string> RecordingOptions::Pairs() const {
  std::vector<std::string> pairs;
  AddPair("stacks", stacks, pairs);
  AddPair("heap", heap, pairs);
  AddPair("roles", roles, pairs);
  AddPair("cupti", cupti, pairs);
  // The commas that separate items here separate options in GPUMEMTRACE.
  AddPair("snapshot", absl::StrReplaceAll(snapshot, {{",", "+"}, {"=", ":"}}), pairs);
  AddPair("listen", listen, pairs);
  AddPair("max_size", max_size, pairs);
  AddPair("max_time", max_time, pairs);
  AddPair("rotate", rotate, pairs);
  if (free_stacks) pairs.push_back("free_stacks");
  if (strip_paths || strip_args) {
    pairs.push_back(absl::StrCat("strip=", strip_paths ? "paths" : "",
                                 strip_paths && strip_args ? "+" : "", strip_args ? "args" : ""));
  }
  return pairs;
}

void AddPair(const char* key, const std::string& value, std::vector<std::string>& pairs) {
  if (!value.empty()) pairs.push_back(absl::StrCat(key, "=", value));
}

absl::Status CheckOptionText(const std::string& text) {
  session::Options parsed;
  std::string problem;
  session::ParseOptions(
      text, &parsed,
      [](void* out, const session::OptionError& e) {
        auto* p = static_cast<std::string*>(out);
        if (p->empty()) *p = absl::StrCat("'", std::string(e.pair), "': ", e.why);
      },
      &problem);
  return problem.empty() ? absl::OkStatus() : UsageError(problem);
}

}  // namespace gmt::cli
