#include "format/read_ahead.h"

#include <gtest/gtest.h>

#include "format/allocator_trace.h"
#include "format/definitions_builder.h"
#include "format/testing/recording_fixture.h"

namespace gmt::format {
namespace {

constexpr uint64_t kEvents = 50'000;
constexpr uint32_t kChunkEvents = 1000;

std::string Recording() {
  std::string bytes;
  WriterOptions options;
  options.chunk_events = kChunkEvents;
  auto writer = RecordingWriter::Create(std::make_unique<StringSink>(&bytes), Header(), options);
  EXPECT_TRUE(writer.ok()) << writer.status();
  const uint32_t heap = (*writer)->definitions().InternString("pytorch");
  AllocatorTrace trace(7);
  for (uint64_t i = 0; i < kEvents; ++i) {
    Event event = trace.Next();
    event.heap = heap;
    event.stack = 0;
    EXPECT_TRUE((*writer)->Add(event).ok());
  }
  EXPECT_TRUE((*writer)->Finish().ok());
  return bytes;
}

// Returns the events of all batches that `frames` delivers and recycles the batches.
template <typename Frames>
std::vector<Event> EventsOf(Frames& frames) {
  std::vector<Event> events;
  for (;;) {
    std::vector<Delivery> deliveries;
    EXPECT_TRUE(frames.Next(&deliveries).ok());
    for (Delivery& delivery : deliveries) {
      if (std::holds_alternative<RecordingEnds>(delivery)) return events;
      auto* read = std::get_if<std::unique_ptr<ChunkRead>>(&delivery);
      if (read == nullptr) continue;
      EventBatch& batch = (*read)->batch;
      events.insert(events.end(), batch.events.begin(), batch.events.end());
      frames.Recycle(std::move(batch));
    }
  }
}

TEST(ReadAhead, DeliversTheSameAsTheStream) {
  const std::string bytes = Recording();
  const auto source = BytesInMemory(bytes);
  ChunkStream direct(source.get(), Returns::kCompleted);
  const std::vector<Event> expected = EventsOf(direct);
  EXPECT_EQ(expected.size(), kEvents);

  const auto again = BytesInMemory(bytes);
  ChunkStream stream(again.get(), Returns::kCompleted);
  ReadAhead ahead(&stream);
  EXPECT_EQ(EventsOf(ahead), expected);
}

TEST(ReadAhead, CanBeDestroyedAtAnyFrame) {
  const std::string bytes = Recording();
  for (int frames = 0; frames < 20; ++frames) {
    const auto source = BytesInMemory(bytes);
    ChunkStream stream(source.get(), Returns::kCompleted);
    ReadAhead ahead(&stream);
    std::vector<Delivery> deliveries;
    for (int i = 0; i < frames; ++i) ASSERT_TRUE(ahead.Next(&deliveries).ok());
  }
}

}  // namespace
}  // namespace gmt::format
