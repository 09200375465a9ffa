// Feeds arbitrary bytes in arbitrary pieces to framing and request parsing. Neither may crash or
// keep more than one request, and accepted requests must be within their bounds.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "collector/control/framing.h"
#include "collector/control/request.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void Check(const gmt::control::Request& request) {
  using namespace gmt::control;
  Require(request.version() == kVersion);
  Require(request.what_case() != Request::WHAT_NOT_SET);
  if (request.has_mark())
    Require(!request.mark().name().empty() && request.mark().name().size() <= kMaxNameBytes);
  if (request.has_snapshot()) Require(request.snapshot().name().size() <= kMaxNameBytes);
  if (!request.has_subscribe()) return;
  const Subscribe& subscription = request.subscribe();
  Require(subscription.interval_ms() >= kMinIntervalMs &&
          subscription.interval_ms() <= kMaxIntervalMs);
  Require(subscription.rows() >= 1 && subscription.rows() <= kMaxRows);
}

}  // namespace

// The first byte sets the size of the pieces.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gmt::control;
  if (size == 0) return 0;
  const size_t piece = 1 + data[0];
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  FrameReader reader(kMaxRequestBytes);
  while (!bytes.empty() && !reader.broken()) {
    reader.Feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    std::string message;
    while (reader.Next(&message)) {
      Require(message.size() <= kMaxRequestBytes);
      uint64_t id = 0;
      bool other_version = false;
      if (auto request = ParseRequest(message, &id, &other_version); request.ok()) Check(*request);
    }
    Require(reader.waiting_bytes() <= kMaxRequestBytes + kLengthBytes + piece);
  }
  return 0;
}
