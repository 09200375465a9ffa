// interop/event_log/event_log_json.h
//
// The parts of the event log that are not events: header, facts, losses, samples, gaps, live sets;
// to JSON and back. Converters to JSON write a key if the field is set. Converters from JSON set a
// field if the key exists, ignore unknown keys, and throw BadLine if a value does not have the
// required type.
//
// Thread safety: pure functions.

#ifndef GMT_INTEROP_EVENT_LOG_EVENT_LOG_JSON_H_
#define GMT_INTEROP_EVENT_LOG_EVENT_LOG_JSON_H_

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "format/definitions.h"
#include "format/messages_fwd.h"

namespace gmt::interop {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they are documented

inline constexpr char kEventLogSchema[] = "gpumemtrace.events/1";

// What a stack line can say that the stack lacks: key, bit of format::StackLacks.
inline constexpr std::pair<const char*, uint32_t> kStackLacks[] = {
    {"truncated", format::kStackTruncated},
    {"unmerged", format::kStackUnmerged},
    {"no_python", format::kStackNoPython},
};

// Thrown while a line is parsed. The reader catches it and adds file and line.
struct BadLine : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// How many lists and objects may contain each other on a line. Printing recurses once per level.
inline constexpr int kMaxNesting = 64;

// Returns how many lists and objects contain each other at the deepest place of JSON text.
int NestingOf(std::string_view text);

// Returns the value of `key`, or nullptr if it is missing or null.
const Json* Find(const Json& object, const char* key);

// Accepts only integers in the range of T.
template <typename T>
T WholeNumber(const Json& value, const char* key) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number <= static_cast<uint64_t>(std::numeric_limits<T>::max()))
      return static_cast<T>(number);
  } else if (value.is_number_integer()) {
    if constexpr (std::numeric_limits<T>::is_signed) {
      const auto number = value.get<int64_t>();
      if (number >= std::numeric_limits<T>::min()) return static_cast<T>(number);
    }
  }
  throw BadLine(std::string("\"") + key + "\" must be a whole number" +
                (std::numeric_limits<T>::is_signed ? "" : ", not negative,") + " of at most " +
                std::to_string(sizeof(T) * 8) + " bits, not " + value.dump());
}

const std::string& Text(const Json& value, const char* key);

// Converts raw bytes to lower-case hexadecimal digits, and back.
std::string Hex(std::string_view bytes);
std::string FromHex(const std::string& digits, const char* key);

// Returns the object on one line. Invalid UTF-8 gets replacement characters.
std::string Line(const Json& object);

void PutHeader(const Header& header, Json* object);
Header TakeHeader(const Json& object);

void PutFacts(const Facts& facts, Json* object);
Facts TakeFacts(const Json& object);

void PutLosses(const Losses& losses, Json* object);
Losses TakeLosses(const Json& object);

void PutSample(const Sample& sample, Json* object);
Sample TakeSample(const Json& object);

void PutSnapshotTaken(const SnapshotTaken& snapshot, Json* object);
SnapshotTaken TakeSnapshotTaken(const Json& object);

void PutGap(const Gap& gap, Json* object);
Gap TakeGap(const Json& object);

// A live set except `live` and `in_flight`, which refer to stacks and are converted by reader and
// writer.
void PutSnapshot(const Snapshot& snapshot, Json* object);
Snapshot TakeSnapshot(const Json& object);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_EVENT_LOG_EVENT_LOG_JSON_H_
