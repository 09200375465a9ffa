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
                 "native+python (the default), either, none, native:libgcc or native:libunwind");
  command.Flag("--free-stacks", &free_stacks, "record a stack at every free too");
  command.Option("--heap", &heap, "NAME+NAME", "driver, host, pytorch, nvtx (default: all)");
  command.Option("--roles", &roles, "MODE",
                 "on (the default): what PyTorch's tensors are for, or off");
  command.Option("--cupti", &cupti, "MODE",
                 "auto (the default), full: also records of what the device did, or off");
  command.Option("--snapshot", &snapshot, "WHEN,WHEN",
                 "oom, exit (default: both), every=TIME, growth=SIZE, mark=NAME");
  command.Option("--listen", &listen, "ADDRESS",
                 "serve /metrics and /debug/pprof/gpu there: 127.0.0.1:9400, unix:PATH");
  command.Option("--max-size", &max_size, "SIZE",
                 "keep no more than that on disk: of the oldest time only sums");
  command.Option("--max-time", &max_time, "TIME", "keep no events that are older, only sums");
  command.Option("--rotate", &rotate, "N",
                 "in how many files the history is kept (default 8, with one of the limits)");
  command.Flag("--strip-paths", &strip_paths,
               "write no private folder into the recording: of files only what is everybody's");
  command.Flag("--strip-args", &strip_args,
               "write of the command line only the program into the recording");
}

std::vector<std::string> RecordingOptions::Pairs() const {
  std::vector<std::string> pairs;
  AddPair("stacks", stacks, pairs);
  AddPair("heap", heap, pairs);
  AddPair("roles", roles, pairs);
  AddPair("cupti", cupti, pairs);
  // What separates options there are list items here.
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
