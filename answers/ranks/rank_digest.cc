#include "answers/ranks/rank_digest.h"

#include <algorithm>
#include <utility>

#include "analysis/examination/failures.h"
#include "analysis/leaks/leaks.h"
#include "analysis/ledger/ledger.h"
#include "answers/stacks/stack_text.h"
#include "format/printable.h"

namespace gmt::answers {
namespace {

using analysis::AllocatorAction;
using analysis::RowId;

using StackPair = std::pair<uint32_t, uint32_t>;  // the stack and the forward stack of a row

// What a device holds after a step, as the program asked for it, by stack and by category.
struct Held {
  std::map<StackPair, uint64_t> stacks;
  std::map<std::string, uint64_t> categories;
};

Held HeldOn(int32_t device, const Recording& recording, analysis::Step step) {
  const analysis::Rows& rows = recording.trace().rows;
  std::array<uint64_t, analysis::kCategories> categories = {};
  Held held;
  for (const RowId row : analysis::HeldAfter(recording.trace(), step)) {
    if (rows.device[row] != device || !analysis::IsAllocated(rows, row)) continue;
    held.stacks[{rows.stack[row], rows.forward_stack[row]}] += rows.size[row];
    categories[static_cast<size_t>(recording.categories().Of(row).category)] += rows.size[row];
  }
  for (size_t i = 0; i < categories.size(); ++i) {
    if (categories[i] > 0)
      held.categories[std::string(NameOf(static_cast<analysis::Category>(i)))] = categories[i];
  }
  return held;
}

std::map<std::string, uint64_t> ByLabel(const std::map<StackPair, uint64_t>& bytes,
                                        const Recording& recording) {
  analysis::StackTexts& stacks = recording.examination().stacks();
  std::map<std::string, uint64_t> labels;
  for (const auto& [stack, sum] : bytes)
    labels[LabelOf(stacks.Frames(stack.first), stacks.Frames(stack.second), false)] += sum;
  return labels;
}

// Cuts to at most kMaxTextBytes, and not inside a UTF-8 character.
std::string CutText(const std::string& text) {
  constexpr size_t kLongestCharacter = 4;
  size_t size = RankDigest::kMaxTextBytes;
  if (text.size() <= size) return text;
  const auto continues = [&](size_t at) { return (text[at] & 0xc0) == 0x80; };
  while (size > RankDigest::kMaxTextBytes - kLongestCharacter && continues(size)) --size;
  return text.substr(0, size);
}

// Names that become equal when they are cut are added up.
std::map<std::string, uint64_t> WithCutNames(const std::map<std::string, uint64_t>& bytes) {
  std::map<std::string, uint64_t> sums;
  for (const auto& [name, sum] : bytes) sums[CutText(name)] += sum;
  return sums;
}

// Keeps the `count` entries with most bytes. Returns the bytes of the others.
uint64_t KeepMost(size_t count, std::map<std::string, uint64_t>& bytes) {
  using Entry = std::map<std::string, uint64_t>::const_iterator;
  if (bytes.size() <= count) return 0;
  std::vector<Entry> entries;
  for (auto entry = bytes.cbegin(); entry != bytes.cend(); ++entry) entries.push_back(entry);
  std::stable_sort(entries.begin(), entries.end(),
                   [](Entry a, Entry b) { return a->second > b->second; });
  uint64_t rest = 0;
  for (size_t i = count; i < entries.size(); ++i) {
    rest += entries[i]->second;
    bytes.erase(entries[i]);
  }
  return rest;
}

// Sets the bytes of group `group`; names that are new have none in the groups before.
void AddGroup(const std::map<std::string, uint64_t>& bytes, size_t group,
              StepGroups::Parts& parts) {
  for (const auto& [name, sum] : bytes) {
    parts[name].resize(group);
    parts[name].push_back(sum);
  }
}

void AddSteps(const Recording& recording, RankDigest& digest) {
  const analysis::Cycles& cycles = recording.examination().cycles();
  const auto device = std::find_if(cycles.devices.begin(), cycles.devices.end(),
                                   [&](const auto& d) { return d.device == digest.device; });
  if (device == cycles.devices.end()) return;
  StepGroups& by_step = digest.by_step;
  const std::vector<analysis::CycleUse>& steps = device->cycles;
  while (steps.size() > StepGroups::kMost * by_step.steps_per_group) by_step.steps_per_group *= 2;

  std::map<std::string, uint64_t> most;  // by line: the largest sum that it has in a group
  for (size_t first = 0; first < steps.size(); first += by_step.steps_per_group) {
    const auto begin = steps.begin() + static_cast<ptrdiff_t>(first);
    const auto end = steps.begin() + static_cast<ptrdiff_t>(std::min<size_t>(
                                         steps.size(), first + by_step.steps_per_group));
    const auto highest =
        std::max_element(begin, end, [](const auto& a, const auto& b) { return a.peak < b.peak; });
    const Held held = HeldOn(digest.device, recording, highest->peak_step);
    const auto labels = WithCutNames(ByLabel(held.stacks, recording));
    const size_t group = by_step.peak_bytes.size();
    AddGroup(held.categories, group, by_step.categories);
    AddGroup(labels, group, by_step.stacks);
    by_step.peak_bytes.push_back(highest->peak);
    for (const auto& [label, bytes] : labels) most[label] = std::max(most[label], bytes);
  }
  KeepMost(StepGroups::kMaxStacks, most);
  std::erase_if(by_step.stacks, [&](const auto& stack) { return !most.contains(stack.first); });
  for (StepGroups::Parts* parts : {&by_step.categories, &by_step.stacks}) {
    for (auto& [name, bytes] : *parts) bytes.resize(by_step.peak_bytes.size());
  }
}

uint64_t AllocatedForCollectives(const Recording& recording, int32_t device) {
  const analysis::Rows& rows = recording.trace().rows;
  uint64_t bytes = 0;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.device[row] == device && analysis::IsAllocated(rows, row) &&
        recording.categories().Of(row).category == analysis::Category::kCommunication) {
      bytes += rows.size[row];
    }
  }
  return bytes;
}

void AddOthers(const Recording& recording, RankDigest& digest) {
  std::map<uint64_t, uint64_t> most;
  for (const analysis::DeviceSample& sample : recording.trace().samples) {
    if (sample.device != digest.device) continue;
    for (const auto& process : sample.processes) {
      if (process.pid != digest.pid && process.bytes)
        most[process.pid] = std::max(most[process.pid], *process.bytes);
    }
  }
  for (const auto& [pid, bytes] : most) digest.others.push_back({pid, bytes});
}

void AddLeak(const Recording& recording, RankDigest& digest) {
  const analysis::LeakReport report = analysis::FindLeaks(recording.examination());
  for (const analysis::LeakSuspect& suspect : report.suspects) {
    if (suspect.tier == analysis::LeakTier::kPossible || suspect.device != digest.device) continue;
    RankDigest::Leak leak;
    leak.bytes_per_step = suspect.bytes_per_cycle;
    if (suspect.common_frame) leak.place = suspect.common_frame->Place();
    leak.is_likely = suspect.tier == analysis::LeakTier::kLikely;
    leak.eta_ns = suspect.eta_ns;
    digest.leak = leak;
    return;
  }
}

// Limits lists and texts to the sizes of RankDigest.
void Bound(RankDigest& digest) {
  digest.host = CutText(digest.host);
  if (digest.leak) digest.leak->place = CutText(digest.leak->place);
  digest.stacks = WithCutNames(digest.stacks);
  digest.other_stacks_bytes = KeepMost(RankDigest::kMaxStacks, digest.stacks);
  digest.libraries = WithCutNames(digest.libraries);
  KeepMost(RankDigest::kMaxLibraries, digest.libraries);
  if (digest.others.size() > RankDigest::kMaxProcesses) {
    std::stable_sort(digest.others.begin(), digest.others.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    digest.others.resize(RankDigest::kMaxProcesses);
  }
  if (digest.notes.size() > RankDigest::kMaxNotes) digest.notes.resize(RankDigest::kMaxNotes);
  for (std::string& note : digest.notes) note = CutText(note);
}

RankDigest UnboundedDigest(const Recording& recording) {
  const analysis::Trace& trace = recording.trace();
  const analysis::Examination& examination = recording.examination();
  RankDigest digest;
  digest.file = recording.path();
  digest.rank = trace.rank;
  digest.host = trace.hostname;
  digest.pid = trace.pid;
  digest.device = examination.MainDevice();
  digest.steps = examination.cycles().cycles.size();
  digest.notes = recording.lacks();
  digest.failures = analysis::FindFailures(examination).count;
  for (const AllocatorAction& action : examination.allocator_actions()) {
    if (action.kind == AllocatorAction::kRetry && action.device == digest.device) ++digest.retries;
  }
  const auto& devices = examination.replay().devices();
  const auto totals = devices.find(digest.device);
  if (totals == devices.end()) return digest;
  const analysis::Step step = totals->second.bytes.peak_step;
  digest.peak_bytes = totals->second.bytes.peak;
  digest.peak_t_ns = trace.TimeOf(step);
  digest.reserved_bytes = totals->second.segments.peak;
  for (const analysis::CategoryUse& use :
       analysis::CategoriesAt(examination, recording.categories(), digest.device, step)) {
    digest.categories[static_cast<size_t>(use.category)] += use.bytes;
  }
  digest.stacks = ByLabel(HeldOn(digest.device, recording, step).stacks, recording);
  const analysis::Ledger ledger = analysis::LedgerAfter(examination, digest.device, step);
  for (const analysis::LedgerRow& row : ledger.rows) {
    if (row.group == analysis::LedgerGroup::kOutsideFramework)
      digest.libraries[row.name] += row.bytes;
  }
  digest.total_bytes = ledger.total_bytes;
  if (!ledger.source.empty()) digest.used_bytes = ledger.driver_used_bytes;
  digest.collectives_bytes = AllocatedForCollectives(recording, digest.device);
  AddOthers(recording, digest);
  AddLeak(recording, digest);
  AddSteps(recording, digest);
  return digest;
}

}  // namespace

RankDigest MakeDigest(const Recording& recording) {
  RankDigest digest = UnboundedDigest(recording);
  Bound(digest);
  return digest;
}

void MakePrintable(RankDigest& digest) {
  const auto make_names = [](std::map<std::string, uint64_t>& bytes) {
    std::map<std::string, uint64_t> printable;
    for (const auto& [name, sum] : bytes) printable[format::Printable(name)] += sum;
    bytes = std::move(printable);
  };
  digest.file = format::Printable(digest.file);
  digest.host = format::Printable(digest.host);
  make_names(digest.stacks);
  make_names(digest.libraries);
  if (digest.leak) digest.leak->place = format::Printable(digest.leak->place);
  StepGroups::Parts stacks;
  for (auto& [label, bytes] : digest.by_step.stacks)
    stacks[format::Printable(label)] = std::move(bytes);
  digest.by_step.stacks = std::move(stacks);
  for (std::string& note : digest.notes) note = format::Printable(note);
}

}  // namespace gmt::answers
