// interop/arrow/arrow_stream.h
//
// ArrowStream: writes a table in the streaming format of Arrow IPC: its schema, a dictionary for
// each column of texts, and batches of rows. nanoarrow encodes the messages. A reader finds the
// name of the table in the schema's metadata, under the key "table".
//
//   TextDictionary heaps;                  // has all texts of the column before the first row
//   ArrowStream stream(output);
//   absl::Status status = stream.Begin("memory", {{"bytes"}, {"heap", &heaps}});
//   while (...) status = stream.WriteRows({bytes, numbers of heaps});
//   stream.End();
//
// Dictionaries come first because some readers accept neither additions to a dictionary nor a
// second one. After an error, the stream is incomplete.
//
// Thread safety: one thread at a time.

#ifndef GMT_INTEROP_ARROW_ARROW_STREAM_H_
#define GMT_INTEROP_ARROW_ARROW_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "interop/arrow/text_dictionary.h"

namespace gmt::interop {

struct ArrowColumn {
  std::string name;
  const TextDictionary* texts = nullptr;  // null for a column of whole numbers
};

// The values of a column in consecutive rows.
struct ArrowValues {
  std::vector<int64_t> values;  // numbers, or the numbers of texts
  std::vector<int8_t> known;    // 0: the value is null
};

class ArrowStream {
 public:
  using Output = std::function<void(std::string_view)>;

  explicit ArrowStream(Output output);
  ~ArrowStream();
  ArrowStream(const ArrowStream&) = delete;
  ArrowStream& operator=(const ArrowStream&) = delete;

  // REQUIRES: the dictionaries do not change until End().
  absl::Status Begin(const std::string& table, std::vector<ArrowColumn> columns);
  // REQUIRES: one entry for each column, all of the same length.
  absl::Status WriteRows(const std::vector<ArrowValues>& columns);
  void End();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_ARROW_ARROW_STREAM_H_
