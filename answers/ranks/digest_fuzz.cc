// Fuzzer (preset `fuzz`). Any input must be refused as a digest, or be comparable and printable.
//
// The input is used as a file; then as a message in a file with a correct checksum, so that the
// fuzzer gets past the checksum.
//
// Run: build/fuzz/fuzz/digest_fuzz -max_len=65536 -rss_limit_mb=1024 -timeout=10 CORPUS
// A digest is a good start: gpumemtrace ranks --digest-only r0.gmt.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "answers/ranks/digest_file.h"
#include "answers/ranks/ranks_answer.h"
#include "format/crc32c.h"

namespace gmt::answers {
namespace {

void CompareIfRight(const std::string& bytes) {
  auto stored = DecodeDigest(bytes, "fuzz");
  if (!stored.ok()) return;
  JobDigests job(JobDigests::Keep::kSteps);
  // The second rank has no bytes, so that the first one differs from it.
  job.Add(RankDigest());
  MakePrintable(stored->digest);
  job.Add(std::move(stored->digest));
  const RanksAnswer answer(std::move(job), {});
  if (answer.Text(Terminal{}).empty() || answer.Json().empty()) std::abort();
}

std::string WithChecksum(std::string bytes) {
  const uint32_t crc = format::Crc32c(bytes);
  bytes.push_back('\x7D');
  return bytes.append(reinterpret_cast<const char*>(&crc), sizeof crc);
}

}  // namespace
}  // namespace gmt::answers

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gmt::answers;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  CompareIfRight(bytes);
  CompareIfRight(WithChecksum(bytes));
  // Magic and version, then the input as the other fields.
  CompareIfRight(WithChecksum(std::string("\x09GMTDIGST\x10\x01", 11) + bytes));
  return 0;
}
