// Measures the cost of symbols on large libraries. GMT_BENCHMARK_ELF names the files, separated by
// colons (intended for PyTorch's libtorch_cpu.so and libtorch_cuda.so). Without it, this program
// and its C library are used.

#include <benchmark/benchmark.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "symbols/elf_file.h"
#include "symbols/symbol_cache.h"
#include "symbols/symbol_table.h"
#include "symbols/symbolizer.h"

namespace gmt::symbols {
namespace {

// Resident memory of this process, in MiB.
double ResidentMiB() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  statm >> total >> resident;
  return static_cast<double>(resident) * 4096 / (1 << 20);
}

void BuildTable(benchmark::State& state, const std::string& path) {
  size_t symbols = 0;
  double grown = 0;
  for (auto _ : state) {
    malloc_trim(0);
    const double before = ResidentMiB();
    auto file = ElfFile::Open(path).value();
    const SymbolTable table(*file);
    benchmark::DoNotOptimize(table.Find(0x100000));
    symbols = table.size();
    grown = ResidentMiB() - before;
  }
  state.counters["symbols"] = static_cast<double>(symbols);
  state.counters["resident_MiB"] = grown;
}

void ResolveWarm(benchmark::State& state, const std::string& path) {
  Symbolizer symbolizer({});
  const ModuleKey key{path, ElfFile::Open(path).value()->BuildId()};
  uint64_t address = 0, found = 0;
  for (auto _ : state) {
    address = (address + 0x3571) & 0xffffff;
    found += symbolizer.Resolve(key, address, AddressKind::kReturn).size();
  }
  state.counters["found_share"] =
      benchmark::Counter(static_cast<double>(found), benchmark::Counter::kAvgIterations);
}

// Does what a collector does with a module: opens it and names a few hundred addresses; from the
// cache if another collector has looked them up before.
void NameHundreds(benchmark::State& state, const std::string& path, bool is_cached) {
  constexpr int kAddresses = 300;
  const ModuleKey key{path, ElfFile::Open(path).value()->BuildId()};
  const std::string directory = "/dev/shm/symbols_benchmark." + std::to_string(getpid());
  for (auto _ : state) {
    auto cache = SymbolCache::Open(is_cached ? directory : "");
    SymbolizerOptions options;
    options.cache = cache.ok() ? cache->get() : nullptr;
    Symbolizer symbolizer(options);
    for (uint64_t i = 0; i < kAddresses; ++i) {
      const auto names = symbolizer.Resolve(key, i * 0x13571 & 0xffffff, AddressKind::kReturn);
      benchmark::DoNotOptimize(names.data());
    }
  }
  std::filesystem::remove_all(directory);
}

std::vector<std::string> Paths() {
  const char* given = getenv("GMT_BENCHMARK_ELF");
  if (given == nullptr) return {"/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6"};
  return absl::StrSplit(given, ':');
}

const bool registered = [] {
  for (const std::string& path : Paths()) {
    benchmark::RegisterBenchmark(("BuildTable/" + path).c_str(), BuildTable, path)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("ResolveWarm/" + path).c_str(), ResolveWarm, path);
    benchmark::RegisterBenchmark(("NameHundreds/" + path).c_str(), NameHundreds, path, false)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("NameHundreds/cached/" + path).c_str(), NameHundreds, path, true)
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace gmt::symbols
