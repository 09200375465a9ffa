// Writes the recording of a training loop (format/allocator_trace.h) and measures the cost of its
// columns. scripts/bench puts the figures into docs/overhead.md and reports on the file.
//
// Usage: recording_benchmark EVENTS OUT.gmt [roles] With `roles` the activations are saved for
// backward; EVENTS then includes the role events. Prints one JSON line: events, number of role
// events, file size in bytes, nanoseconds of CPU time per event, and for each group of columns the
// bytes per event uncompressed and compressed without other columns.

#include <time.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "format/allocator_trace.h"
#include "format/byte_source.h"
#include "format/chunk_codec.h"
#include "format/definitions_builder.h"
#include "format/frame_stream.h"
#include "format/framing.h"
#include "format/recording_writer.h"
#include "format/testing/held_events.h"

namespace gmt::format {
namespace {

constexpr uint64_t kSeed = 20261;
constexpr int kFramesOfStack = 24;

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "recording_benchmark: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}
void Check(const absl::Status& status) {
  if (!status.ok()) Fail(status);
}

double ProcessorNs() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// Defines stacks with the numbers used by AllocatorTrace: a shared trunk with separate leaves.
std::vector<uint32_t> DefineStacks(DefinitionsBuilder& definitions) {
  std::vector<uint32_t> ids = {0};
  for (uint32_t stack = 1; stack <= AllocatorTrace::kStacks; ++stack) {
    std::vector<uint32_t> frames;
    for (uint32_t depth = 0; depth < kFramesOfStack; ++depth) {
      const uint32_t branch = depth < 4 ? stack : stack % (1 + kFramesOfStack - depth);
      FrameInfo frame;
      frame.function = definitions.InternString("function_" + std::to_string(depth) + "_" +
                                                std::to_string(branch));
      frame.file = definitions.InternString("model/layer_" + std::to_string(branch % 40) + ".py");
      frame.line = 10 + stack % 400;
      frame.language = format::Language::kPython;
      frame.flags = kFrameHasLine | kFrameHasFile | kFrameHasFunction;
      frames.push_back(definitions.InternFrame(frame));
    }
    ids.push_back(definitions.InternStack(frames, 0));
  }
  return ids;
}

struct Written {
  uint64_t roles = 0;  // number of role events
  double ns = 0;       // CPU time per event, without that of the generator
};

Written WriteRecording(uint64_t events, AllocatorTrace::Roles roles, const std::string& path) {
  auto sink = FileSink(path, IfExists::kOverwrite);
  Check(sink.status());
  Header header;
  header.set_tool_version("benchmark");
  auto writer = RecordingWriter::Create(*std::move(sink), header, {});
  Check(writer.status());
  DefinitionsBuilder& definitions = (*writer)->definitions();
  const std::vector<uint32_t> stacks = DefineStacks(definitions);
  std::vector<uint32_t> classes = {0};
  for (uint32_t number = 1; number <= AllocatorTrace::kNodeClasses; ++number)
    classes.push_back(definitions.InternString("Class" + std::to_string(number) + "Backward0"));
  const uint32_t driver = definitions.InternString("driver");
  const uint32_t pytorch = definitions.InternString("pytorch");
  const uint32_t malloc = definitions.InternString("cudaMalloc");

  HeldEvents held({{driver, "driver"}, {pytorch, "pytorch"}});

  AllocatorTrace trace(kSeed, roles);
  std::vector<Event> some;
  Written written;
  double spent = 0;
  bool has_checkpoints = false;
  for (uint64_t done = 0; done < events; done += some.size()) {
    some.clear();
    while (some.size() < 8192 && done + some.size() < events) {
      Event& event = some.emplace_back(trace.Next());
      event.heap = event.memory == BLOCK ? pytorch : driver;
      event.api = event.memory == BLOCK ? 0 : malloc;
      event.stack = stacks[event.stack];
      event.forward_stack = stacks[event.forward_stack];
      if (event.name != 0) event.name = classes[event.name];
      written.roles += event.kind == ROLE ? 1 : 0;
      held.Apply(event);
    }
    const double start = ProcessorNs();
    for (const Event& event : some) Check((*writer)->Add(event));
    if ((*writer)->WantsCheckpoint(held.count())) {
      Check((*writer)->Add(held.MakeCheckpoint()));
      has_checkpoints = true;
    }
    spent += ProcessorNs() - start;
  }
  const double start = ProcessorNs();
  if (has_checkpoints) Check((*writer)->Add(held.MakeCheckpoint()));
  Check((*writer)->Finish());
  written.ns = (spent + ProcessorNs() - start) / static_cast<double>(events);
  return written;
}

// A group of columns. Everything else is removed from the file before measuring it.
struct Group {
  const char* name;
  void (*keep)(const gmt::Events& all, gmt::Events* kept);
  uint64_t raw = 0, packed = 0;
};

#define GMT_KEEP(message, column) \
  kept->mutable_##message()->mutable_##column()->CopyFrom(all.message().column());
void KeepCore(const gmt::Events& all, gmt::Events* kept) {
  *kept->mutable_kind() = all.kind();
  *kept->mutable_t_width() = all.t_width();
  *kept->mutable_t_bits() = all.t_bits();
  GMT_KEEP(acquisitions, address)
  GMT_KEEP(acquisitions, address_from)
  GMT_KEEP(acquisitions, size)
  GMT_KEEP(acquisitions, stack)
  GMT_KEEP(returns, distance)
  GMT_KEEP(returns, same)
  GMT_KEEP(returns, address)
  GMT_KEEP(returns, size)
  GMT_KEEP(returns, stack)
}
void KeepTotals(const gmt::Events& all, gmt::Events* kept) {
  GMT_KEEP(acquisitions, total_allocated)
  GMT_KEEP(acquisitions, total_reserved)
  GMT_KEEP(returns, total_allocated)
  GMT_KEEP(returns, total_reserved)
}
void KeepThread(const gmt::Events& all, gmt::Events* kept) {
  *kept->mutable_thread() = all.thread();
}
void KeepPresent(const gmt::Events& all, gmt::Events* kept) {
  *kept->mutable_present_change() = all.present_change();
}
void KeepRoles(const gmt::Events& all, gmt::Events* kept) {
  if (all.has_roles()) *kept->mutable_roles() = all.roles();
}
void KeepRest(const gmt::Events& all, gmt::Events* kept) {
  *kept = all;
  kept->clear_kind();
  kept->clear_present_change();
  kept->clear_t_width();
  kept->clear_t_bits();
  kept->clear_thread();
  kept->clear_roles();
  for (auto clear :
       {&gmt::Acquisitions::clear_address, &gmt::Acquisitions::clear_address_from,
        &gmt::Acquisitions::clear_size, &gmt::Acquisitions::clear_stack,
        &gmt::Acquisitions::clear_total_allocated, &gmt::Acquisitions::clear_total_reserved}) {
    (kept->mutable_acquisitions()->*clear)();
  }
  for (auto clear :
       {&gmt::Returns::clear_distance, &gmt::Returns::clear_same, &gmt::Returns::clear_address,
        &gmt::Returns::clear_size, &gmt::Returns::clear_stack, &gmt::Returns::clear_total_allocated,
        &gmt::Returns::clear_total_reserved}) {
    (kept->mutable_returns()->*clear)();
  }
}
#undef GMT_KEEP

void Measure(const gmt::Events& all, ChunkPacker& packer, Group* group) {
  gmt::Body body;
  group->keep(all, body.mutable_events());
  if (body.events().ByteSizeLong() == 0) return;
  Chunk chunk;
  Check(packer.Pack(&body, WriterOptions().zstd_level_of_events, &chunk));
  group->raw += chunk.raw_size();
  group->packed += chunk.codec() == Chunk::ZSTD ? chunk.payload().size() : chunk.raw_size();
}

std::vector<Group> MeasureColumns(const std::string& path) {
  std::vector<Group> groups = {{"kind, time, address, size, stack", KeepCore},
                               {"totals of the allocator", KeepTotals},
                               {"thread", KeepThread},
                               {"which fields are present", KeepPresent},
                               {"columns of roles only", KeepRoles},
                               {"heap, memory, device, stream, api, duration", KeepRest}};
  auto source = OpenFile(path);
  Check(source.status());
  FrameStream frames(source->get());
  ChunkPacker packer(Chunk::ZSTD);
  for (;;) {
    const auto frame = frames.Next();
    Check(frame.status());
    if (frame->kind == FrameRecord::Kind::kEnd) return groups;
    if (frame->kind != FrameRecord::Kind::kChunk) continue;
    Chunk chunk;
    gmt::Body body;
    if (!ParseBytes(frame->body, &chunk)) continue;
    if (chunk.kind() != Chunk::EVENTS) continue;
    Check(UnpackBody(chunk, &body));
    for (Group& group : groups) Measure(body.events(), packer, &group);
  }
}

void Run(uint64_t events, AllocatorTrace::Roles roles, const std::string& path) {
  const Written written = WriteRecording(events, roles, path);
  auto source = OpenFile(path);
  Check(source.status());
  const auto per_event = [&](uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(events);
  };
  std::printf("{\"events\": %" PRIu64 ", \"roles\": %" PRIu64 ", \"file_bytes\": %" PRIu64
              ", \"bytes\": %.3f, \"ns\": %.1f",
              events, written.roles, (*source)->size(), per_event((*source)->size()), written.ns);
  std::printf(", \"groups\": [");
  const char* comma = "";
  for (const Group& group : MeasureColumns(path)) {
    if (group.raw == 0) continue;
    std::printf("%s{\"name\": \"%s\", \"raw\": %.3f, \"packed\": %.3f}", comma, group.name,
                per_event(group.raw), per_event(group.packed));
    comma = ", ";
  }
  std::printf("]}\n");
}

}  // namespace
}  // namespace gmt::format

int main(int argc, char** argv) {
  using Roles = gmt::format::AllocatorTrace::Roles;
  const bool with_roles = argc == 4 && std::strcmp(argv[3], "roles") == 0;
  const uint64_t events = argc == 3 || with_roles ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (events == 0) {
    std::fprintf(stderr, "usage: recording_benchmark EVENTS OUT.gmt [roles]\n");
    return 2;
  }
  gmt::format::Run(events, with_roles ? Roles::kSavedActivations : Roles::kNone, argv[2]);
}
