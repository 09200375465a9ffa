#include "cli/export/formats.h"

namespace gmt::cli {

std::optional<int32_t> ExportArguments::Device() const {
  if (device < 0) return std::nullopt;
  return static_cast<int32_t>(device);
}

const std::vector<ExportFormat>& ExportFormats() {
  // Options of profiles, and those that choose and fold frames.
  static const std::vector<std::string> kOfProfiles = {"--at", "--heap", "--device",
                                                       "--frames-rules"};
  static const std::vector<ExportFormat> kFormats = {
      {"torch",
       "pytorch.org/memory_viz and torch.cuda._memory_viz",
       "blocks, segments, waiting frees and failed allocations of each GPU, with stacks",
       "host memory, memory without an address, steps, categories",
       {"--device", "--from/--to", "--max-events", "--keep", "--raw-frames", "--frames-rules"},
       false,
       ExportTorch},
      {"html",
       "any browser, without a network: the page of `view` as one file",
       "all that the page shows",
       "the smallest blocks beyond --max-mb",
       {"--max-mb"},
       true,
       ExportHtmlPage},
      {"pprof", "go tool pprof, Pyroscope, Parca, speedscope",
       "one moment: bytes and numbers of allocations, held and made until then, by stack",
       "times, addresses, other layers than the selected one", kOfProfiles, false, ExportPprof},
      {"folded", "flamegraph.pl, speedscope, other viewers of flame graphs",
       "one moment: the bytes held, by GPU, heap and stack",
       "what was freed, numbers of allocations, times, addresses", kOfProfiles, false,
       ExportFolded},
      {"speedscope", "www.speedscope.app",
       "one moment: the bytes held and those allocated until then, by GPU, heap and stack",
       "numbers of allocations, times, addresses", kOfProfiles, false, ExportSpeedscope},
      {"perfetto",
       "ui.perfetto.dev and trace_processor",
       "curves of live, reserved and used bytes by heap and category; steps, phases with an arrow "
       "from a forward to its backward pass, ranges, marks, snapshots, failed allocations; a heap "
       "profile of each GPU, by stack, at its peak and up to 31 other moments",
       "addresses, single allocations",
       {},
       false,
       ExportPerfetto},
      {"chrome",
       "ui.perfetto.dev and chrome://tracing, over a trace of torch.profiler",
       "the curves and tracks of perfetto, on the clock of torch.profiler",
       "stacks, addresses, single allocations",
       {},
       false,
       ExportChrome},
      {"heaptrack",
       "heaptrack_gui and heaptrack_print",
       "every allocation and free of one GPU, with its stack and time",
       "addresses, marks, other GPUs and layers than the selected one",
       {"--heap", "--device", "--frames-rules"},
       false,
       ExportHeaptrack},
      {"csv",
       "spreadsheets, pandas, R",
       "a row for each allocation: the columns of `memory` in `query`, and the line of its stack; "
       "or another table with --table",
       "the tables that are not selected",
       {"--device", "--heap", "--table", "--frames-rules"},
       true,
       ExportCsv},
      {"jsonl",
       "jq, DuckDB, log stores: an object on each line",
       "the same as csv, with numbers as numbers and unknown values as null",
       "the same as csv",
       {"--device", "--heap", "--table", "--frames-rules"},
       true,
       ExportJsonLines},
      {"sqlite",
       "sqlite3 and whatever reads its files",
       "all tables of `query`: allocations, events, stacks, steps, categories, marks",
       "nothing that `query` shows",
       {"--frames-rules"},
       true,
       ExportSqlite},
      {"arrow",
       "pyarrow, pandas, polars, DuckDB: a table as a stream of Arrow",
       "the table `memory` with the line of each stack, or the tables of --table; each text once",
       "the tables that are not selected",
       {"--table", "--frames-rules"},
       true,
       ExportArrow},
      {"gmt",
       "gpumemtrace: a copy to share, with --strip-paths or --strip-args",
       "the recording",
       "private directories, or the arguments of the command",
       {},
       false,
       ExportStripped},
  };
  return kFormats;
}

}  // namespace gmt::cli
