// interop/testing/torch_import_fixture.h
//
// For tests: pickles from snapshots in JSON, and the result of their import.

#ifndef GMT_INTEROP_TESTING_TORCH_IMPORT_FIXTURE_H_
#define GMT_INTEROP_TESTING_TORCH_IMPORT_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "format/testing/recording_fixture.h"
#include "interop/event_log/event_log.h"
#include "interop/event_log/writer_target.h"
#include "interop/pickle/pickle_writer.h"
#include "interop/torch_import/torch_import.h"

namespace gmt::interop {

class TorchImportFixture : public testing::Test {
 protected:
  using Json = nlohmann::ordered_json;
  static constexpr PickleLimits kLimits = {.bytes = 64 << 20, .memory = 512 << 20};

  static void Write(const Json& value, PickleWriter* pickle) {
    if (value.is_object()) {
      pickle->BeginDict();
      for (const auto& [key, item] : value.items()) {
        pickle->String(key);
        Write(item, pickle);
      }
      return pickle->End();
    }
    if (value.is_array()) {
      pickle->BeginList();
      for (const Json& item : value) Write(item, pickle);
      return pickle->End();
    }
    if (value.is_string()) return pickle->String(value.get<std::string>());
    if (value.is_boolean()) return pickle->Bool(value.get<bool>());
    if (value.is_number_float()) return pickle->Float(value.get<double>());
    if (value.is_number()) return pickle->Int(value.get<int64_t>());
    pickle->None();
  }

  static std::string Pickle(const Json& value) {
    std::ostringstream out;
    PickleWriter pickle(out);
    Write(value, &pickle);
    pickle.Finish();
    return out.str();
  }

  // Reads a pickle into a recording. Sets status_, summary_ and notes_.
  std::string Record(const std::string& pickle) {
    std::string bytes;
    notes_.clear();
    auto snapshot = TorchImport::Open(format::BytesInMemory(pickle), "x.pickle", kLimits);
    status_ = snapshot.status();
    if (!snapshot.ok()) return "";
    auto writer = format::RecordingWriter::Create(std::make_unique<format::StringSink>(&bytes),
                                                  (*snapshot)->header(), {});
    EXPECT_TRUE(writer.ok());
    WriterTarget target(writer->get());
    status_ = (*snapshot)->Read((*writer)->definitions(), target);
    EXPECT_TRUE((*writer)->Finish().ok());
    summary_ = (*snapshot)->summary();
    notes_ = (*snapshot)->notes();
    return bytes;
  }

  // Prints the recording as an event log, with one object per line.
  std::vector<Json> Print(const std::string& recording) {
    std::vector<Json> lines;
    format::Collected all;
    auto first = format::RecordingReader::FromBytes(recording, "a");
    EXPECT_TRUE(first.ok() && (*first)->Read(all).ok());
    EventLogWriter writer(&(*first)->definitions(), [&](absl::string_view line) {
      lines.push_back(Json::parse(line.begin(), line.end()));
      return absl::OkStatus();
    });
    auto second = format::RecordingReader::FromBytes(recording, "a");
    EXPECT_TRUE((*second)->Read(writer, format::Returns::kCompleted).ok());
    EXPECT_TRUE(writer.End().ok());
    return lines;
  }

  // Returns the lines of these kinds, without the keys in `without`.
  std::vector<std::string> Lines(const Json& snapshot, const std::vector<std::string>& kinds,
                                 const std::vector<std::string>& without = {}) {
    const std::string recording = Record(Pickle(snapshot));
    EXPECT_TRUE(status_.ok()) << status_;
    std::vector<std::string> found;
    if (!status_.ok()) return found;
    for (Json& line : Print(recording)) {
      const auto kind = line["kind"].get<std::string>();
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) continue;
      for (const std::string& key : without) line.erase(key);
      found.push_back(line.dump());
    }
    return found;
  }

  std::string ErrorOf(const Json& snapshot) {
    Record(Pickle(snapshot));
    EXPECT_FALSE(status_.ok());
    return std::string(status_.message());
  }

  absl::Status status_;
  TorchImportSummary summary_;
  std::vector<std::string> notes_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TESTING_TORCH_IMPORT_FIXTURE_H_
