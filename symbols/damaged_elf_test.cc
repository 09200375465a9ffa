// Files on a user's disk may be truncated or overwritten while we read their symbols. Nothing here
// may crash or hang. The result may be wrong, because a file that kept its build-id but lost its
// contents cannot be distinguished from a good one.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "symbols/symbolizer.h"
#include "symbols/testing/sample_library.h"
#include "tests/seeds/seeds.h"

// libdw leaks a few bytes for every line table that it rejects; leaks of our own are still
// reported.
extern "C" const char* __lsan_default_suppressions() { return "leak:libdw.so\n"; }

namespace gmt::symbols {
namespace {

class DamagedElfTest : public ::testing::Test {
 protected:
  DamagedElfTest() {
    const SampleLibrary library("full");
    std::ifstream file(library.path(), std::ios::binary);
    good_.assign(std::istreambuf_iterator<char>(file), {});
    build_id_ = library.key().build_id;
    probe_ = library.Probe("sample_inline_probe");
    path_ = ::testing::TempDir() + "/damaged." + std::to_string(getpid()) + ".so";
  }
  ~DamagedElfTest() override { std::filesystem::remove(path_); }

  void ResolveAll(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    Symbolizer symbolizer({});
    auto file = ElfFile::Open(path_);
    // Use the remaining build-id, so that the build-id check does not hide the damage.
    const ModuleKey key{path_, file.ok() ? (*file)->BuildId() : build_id_};
    for (uint64_t address : {uint64_t{0}, probe_, probe_ + 1, probe_ + 4096, UINT64_MAX}) {
      symbolizer.Resolve(key, address, AddressKind::kReturn);
    }
  }

  std::string good_, build_id_, path_;
  uint64_t probe_ = 0;
};

TEST_F(DamagedElfTest, TruncatedFilesAreHandled) {
  for (size_t size = 0; size < good_.size(); size += 1 + good_.size() / 400) {
    SCOPED_TRACE("cut at " + std::to_string(size));
    ResolveAll(good_.substr(0, size));
  }
}

TEST_F(DamagedElfTest, FlippedBytesInHeadersAndTablesAreHandled) {
  ForEachSeed(SeedsUpTo(600), [&](uint32_t seed) {
    std::mt19937 random(seed);
    std::string bytes = good_;
    // Put half of the damage into the file header and the section headers at the end, where it has
    // the largest effect.
    for (int i = 0; i < 8; ++i) {
      const size_t range = seed % 2 == 0 ? bytes.size() : 2600;
      const size_t at = random() % range;
      bytes[i % 2 == 0 ? at : bytes.size() - 1 - at] = static_cast<char>(random());
    }
    ResolveAll(bytes);
  });
}

}  // namespace
}  // namespace gmt::symbols
