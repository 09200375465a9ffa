// interop/event_log/writer_target.h
//
// WriterTarget: a visitor that writes to a RecordingWriter, for imports.

#ifndef GMT_INTEROP_EVENT_LOG_WRITER_TARGET_H_
#define GMT_INTEROP_EVENT_LOG_WRITER_TARGET_H_

#include "format/recording_reader.h"
#include "format/recording_writer.h"

namespace gmt::interop {

// IDs passed to it must be those of the writer's definitions(). The writer already has its header.
class WriterTarget : public format::RecordingVisitor {
 public:
  explicit WriterTarget(format::RecordingWriter* writer) : writer_(*writer) {}
  absl::Status OnEvents(const format::EventBatch& batch) override { return writer_.Add(batch); }
  absl::Status OnSnapshot(const Snapshot& snapshot) override { return writer_.Add(snapshot); }
  absl::Status OnFacts(const Facts& facts) override { return writer_.Add(facts); }
  absl::Status OnLosses(const Losses& losses) override { return writer_.Add(losses); }

 private:
  format::RecordingWriter& writer_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_EVENT_LOG_WRITER_TARGET_H_
