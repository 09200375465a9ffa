#include "answers/frag/frag_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/text.h"
#include "answers/frag/address_map.h"
#include "answers/frag/pins.h"
#include "answers/stacks/stack_text.h"

namespace gmt::answers {
namespace {

using analysis::Examination;
using analysis::Fragmentation;
using analysis::PinGroup;

constexpr size_t kMapLines = 7;
constexpr size_t kPinNumbers = 33;     // columns before the stack of a pin
constexpr double kWorthSaying = 0.02;  // share of reserved memory

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string Verdict(const Fragmentation& found, const MainPins& pins) {
  if (found.reserved_bytes == 0)
    return fmt::format("Nothing is reserved on GPU {} at this moment", found.device);
  std::string line = fmt::format("{} of {} reserved on GPU {} are free", Bytes(found.free_bytes),
                                 Bytes(found.reserved_bytes), found.device);
  if (found.free_bytes == 0) return line + ": all of it is in live blocks";
  line += fmt::format(", largest piece {}", Bytes(found.largest_free_bytes));
  if (Share(found.free_bytes, found.reserved_bytes) < kWorthSaying) {
    return line + ": hardly fragmented";
  }
  if (pins.pinned_bytes * 2 >= found.free_bytes && pins.blocks > 0) {
    const char* pin = pins.blocks == 1 ? "pins" : "pin";
    return line +
           fmt::format(": {} {} {}", Plural(pins.blocks, "block"), pin, Bytes(pins.pinned_bytes));
  }
  const auto& split = found.split;
  const std::pair<uint64_t, const char*> parts[] = {{split.releasable, "empty_cache() frees"},
                                                    {split.pinned, "pinned by blocks:"},
                                                    {split.stream, "in segments of other streams:"},
                                                    {split.private_pool, "in private pools:"},
                                                    {split.awaiting_stream, "awaiting streams:"}};
  const auto most = std::max_element(std::begin(parts), std::end(parts));
  return line + fmt::format("; {} {}", most->second, Bytes(most->first));
}

std::string Moment(const Fragmentation& found) {
  uint64_t blocks = 0;
  for (const auto& segment : found.segments) {
    for (const auto& piece : segment.pieces) blocks += piece.kind == analysis::Piece::kLive ? 1 : 0;
  }
  std::string text = "at " + found.at.name;
  if (found.at.t_ns != 0) text += fmt::format(" ({})", Duration(found.at.t_ns));
  text += fmt::format("; {} live in {}, {}", Bytes(found.allocated_bytes), Plural(blocks, "block"),
                      Plural(found.segments.size(), "segment"));
  if (found.requesting_stream) {
    text += fmt::format("; seen from stream 0x{:x}", *found.requesting_stream);
  }
  return text;
}

std::string Split(const Fragmentation& found) {
  struct Row {
    uint64_t bytes;
    const char *what, *way_back;
  };
  const auto& split = found.split;
  std::vector<Row> rows = {
      {split.pinned, "pinned by live blocks", "when those blocks are freed"},
      {split.stream, "in segments of other streams", "likewise; only those streams can use it"},
      {split.releasable, "in segments without live blocks", "by torch.cuda.empty_cache()"},
      {split.private_pool, "in private pools", "when their graphs and pools are destroyed"},
      {split.awaiting_stream, "awaiting other streams", "when these are done"}};
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.bytes > b.bytes; });
  std::string text =
      fmt::format("\n{:>9} {:>6}  {:<32}{}\n", "bytes", "share", "free memory", "reclaimable");
  for (const Row& row : rows) {
    if (row.bytes == 0) continue;
    text +=
        fmt::format("{:>9} {:>6}  {:<32}{}\n", Bytes(row.bytes),
                    Percent(static_cast<double>(row.bytes), static_cast<double>(found.free_bytes)),
                    row.what, row.way_back);
  }
  if (found.rounding_bytes) {
    text += fmt::format("{:>9} {:>6}  in live blocks, lost to size rounding\n",
                        Bytes(*found.rounding_bytes), "");
  }
  return text;
}

// Returns the stack with a line that the user knows: that of the forward pass for memory of a
// backward pass.
const std::vector<analysis::FrameText>& FramesOf(const PinGroup& group,
                                                 const Examination& examination) {
  return examination.stacks().Frames(group.forward_stack != 0 ? group.forward_stack : group.stack);
}

std::string PinText(const PinGroup& group, const Examination& examination,
                    analysis::SourceLines& sources, size_t width) {
  const auto& frames = FramesOf(group, examination);
  const std::string id = StackId(group.stack, group.forward_stack);
  const size_t room =
      width > kPinNumbers + id.size() + 3 ? width - kPinNumbers - id.size() - 3 : 30;
  std::string text =
      fmt::format("{:>9} {:>8} {:>12}  {}{}{}\n", Bytes(group.pinned_bytes), Count(group.blocks),
                  Bytes(group.block_bytes), group.forward_stack != 0 ? "backward of " : "",
                  StackLine(frames, room), id.empty() ? "" : "   " + id);
  const int own = analysis::OwnFrame(frames);
  if (own < 0) return text;
  const std::string line = sources.Line(frames[static_cast<size_t>(own)], room);
  if (!line.empty()) text += std::string(kPinNumbers, ' ') + line + "\n";
  return text;
}

std::string Pins(const Fragmentation& found, const Examination& examination,
                 analysis::SourceLines& sources, size_t top, size_t width) {
  const std::vector<PinGroup>& groups = found.pin_groups;
  if (groups.empty()) return "";
  std::string text =
      fmt::format("\n{:>9} {:>8} {:>12}  {}\n", "pinned", "blocks", "their size", "by");
  uint64_t others = 0, blocks = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i < top) {
      text += PinText(groups[i], examination, sources, width);
    } else {
      others += groups[i].pinned_bytes;
      blocks += groups[i].blocks;
    }
  }
  if (others > 0) {
    text += fmt::format("{:>9} {:>8} {:>12}  {}\n", Bytes(others), Count(blocks), "",
                        Plural(groups.size() - top, "other stack"));
  }
  return text;
}

// The code that requests varying sizes, and what padding them would change.
std::string VaryingText(const FragReplays& replays, const Fragmentation& found,
                        const Examination& examination, size_t top, size_t width) {
  constexpr size_t kColumnsBeforeStack = 40;  // columns before the stack
  const std::vector<analysis::VaryingSite>& sites = replays.varying;
  if (sites.empty()) return "";
  std::string text =
      fmt::format("\n{:>9} {:>8} {:>20}  {}\n", "requests", "sizes", "smallest to largest", "of");
  for (size_t i = 0; i < std::min(top, sites.size()); ++i) {
    const analysis::VaryingSite& site = sites[i];
    const uint32_t forward = site.forward_stack;
    const std::string id = StackId(site.stack, forward);
    const size_t room = width > kColumnsBeforeStack + id.size() + 3
                            ? width - kColumnsBeforeStack - id.size() - 3
                            : 30;
    text += fmt::format(
        "{:>9} {:>8} {:>20}  {}{}   {}\n", Count(site.requests), Count(site.sizes),
        fmt::format("{} to {}", Bytes(site.smallest), Bytes(site.largest)),
        forward != 0 ? "backward of " : "",
        StackLine(examination.stacks().Frames(forward != 0 ? forward : site.stack), room), id);
  }
  if (sites.size() > top)
    text += fmt::format("{:>39}  {}\n", "", Plural(sites.size() - top, "other stack"));
  if (!replays.padded) return text;
  // Less would be within what two runs differ by.
  constexpr double kWorthPadding = 0.1;
  const double saved = 1 - Share(*replays.padded, found.reserved_bytes);
  const std::string sizes = sites.size() == 1 ? "its largest size" : "their largest sizes";
  if (saved < kWorthPadding)
    return text + fmt::format("padded to {}, these would have reserved hardly less\n", sizes);
  return text +
         fmt::format("padded to {}, these would have reserved {} instead of {}, in a replay\n",
                     sizes, Bytes(*replays.padded), Bytes(found.reserved_bytes));
}

std::string ExpandableText(const Fragmentation& found, const FragReplays& replays) {
  if (found.expandable_bytes == 0) return "";
  const std::optional<Reserved>& replayed = replays.expandable;
  if (replayed && replayed->bytes >= found.reserved_bytes)
    return "\nexpandable_segments:True would have reserved no less at that moment, in a replay\n";
  if (replayed) {
    std::string text = fmt::format(
        "\nexpandable_segments:True would have reserved {} instead of {} at that moment, in a "
        "replay",
        Bytes(replayed->bytes), Bytes(found.reserved_bytes));
    if (replayed->peak_bytes > replays.recorded_peak_bytes) {
      text += fmt::format(",\nbut more at its peak: {} instead of {}", Bytes(replayed->peak_bytes),
                          Bytes(replays.recorded_peak_bytes));
    }
    return text + "\n";
  }
  return fmt::format(
      "\nexpandable_segments:True would free up to {} (estimate: each stream's free pieces, "
      "joined)\n",
      Bytes(found.expandable_bytes));
}

std::string NextStep(const Fragmentation& found, const FragReplays& replays,
                     const std::string& file) {
  std::string text = ExpandableText(found, replays);
  const std::vector<PinGroup>& groups = found.pin_groups;
  const std::string id = groups.empty() ? "" : StackId(groups[0].stack, groups[0].forward_stack);
  text += id.empty() ? fmt::format("\nNext: gpumemtrace report {} --at end\n", file)
                     : fmt::format("\nNext: gpumemtrace show {} {}\n", file, id);
  return text;
}

}  // namespace

std::vector<DeviceFragmentation>::const_iterator MostFree(
    const std::vector<DeviceFragmentation>& devices) {
  return std::max_element(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
    return a.found.free_bytes < b.found.free_bytes;
  });
}

std::string FragText(const std::vector<DeviceFragmentation>& devices,
                     const Examination& examination, analysis::SourceLines& sources,
                     const std::string& file, size_t top, const Terminal& terminal) {
  if (devices.empty()) {
    return terminal.Bold("Nothing is fragmented: no allocator that keeps segments was recorded") +
           fmt::format("\nNext: gpumemtrace report {}\n", file);
  }
  const DeviceFragmentation& most = *MostFree(devices);
  const Fragmentation& main = most.found;
  const auto width = static_cast<size_t>(std::max(terminal.width, 60));
  const auto verdict = [&](const Fragmentation& of) {
    return Verdict(of, MainPinsOf(examination.trace(), of.pins));
  };
  std::string text = terminal.Bold(verdict(main)) + "\n";
  for (const DeviceFragmentation& other : devices) {
    if (&other != &most) text += verdict(other.found) + "\n";
  }
  text += Moment(main) + "\n";
  if (main.free_bytes > 0) {
    text += Split(main);
    text += Pins(main, examination, sources, top, width);
  }
  if (Share(main.free_bytes, main.reserved_bytes) >= kWorthSaying) {
    text += "\n" + AddressMap(main.segments, kMapLines, width);
  }
  text += VaryingText(most.replays, main, examination, top, width);
  return text + NextStep(main, most.replays, file);
}

}  // namespace gmt::answers
