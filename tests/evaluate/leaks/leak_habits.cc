#include "tests/evaluate/leaks/scripted_habit.h"

namespace gmt::evaluate {
namespace {

using Script = ScriptedHabit::Script;

std::unique_ptr<Habit> Make(const std::string& name, std::vector<uint32_t> stacks, Script script) {
  auto habit = std::make_unique<ScriptedHabit>(name, std::move(stacks), std::move(script));
  habit->is_leak = true;
  return habit;
}

void Keep(Machine& m, uint32_t cycle, ScriptedHabit& h, uint64_t size, Where where = Where::kBlock,
          size_t stack = 0) {
  m.Alloc(h.stack(stack), size, where);
  h.Leaked(cycle, size);
}

// Returns the stacks of a forward pass: the model's layers, called from one line of the loop, and
// the loss, called from the next.
std::vector<uint32_t> PassStacks(Machine& machine, uint32_t& line, uint32_t layers) {
  std::vector<uint32_t> stacks;
  const uint32_t model = line++, loss = line++;
  const std::string net = "Net" + std::to_string(model) + ".forward";
  for (uint32_t layer = 0; layer < layers; ++layer) {
    stacks.push_back(
        machine.Stack({{net, 20 + layer}, {"train", model}, {"<module>", 900}}, "linear"));
  }
  stacks.push_back(machine.Stack({{"train", loss}, {"<module>", 900}}, "cross_entropy"));
  return stacks;
}

Script KeepsGraph(double p) {
  return [p](Machine& m, uint32_t cycle, ScriptedHabit& h) {
    const bool keeps = m.Chance(p);
    std::vector<Machine::Block> blocks;
    for (size_t i = 0; i < h.stacks.size(); ++i) {
      const uint64_t size = (1 + i % 7) * 16 * kKiB;
      blocks.push_back(m.Alloc(h.stack(i), size));
      if (keeps) h.Leaked(cycle, size);
    }
    for (size_t i = 0; !keeps && i < blocks.size(); ++i) m.Free(blocks[i]);
  };
}

std::unique_ptr<Habit> Untracked() {
  auto habit =
      Make("graph instantiated repeatedly", {}, [](Machine& m, uint32_t cycle, ScriptedHabit& h) {
        m.GrowDriver(192 * kKiB);
        h.Leaked(cycle, 192 * kKiB);
      });
  habit->is_untracked = true;
  return habit;
}

}  // namespace

std::unique_ptr<Habit> Leak(uint32_t kind, Machine& machine, const HabitOptions& options,
                            uint32_t& line) {
  const uint64_t size = machine.Whole(4, 2048) * kKiB;
  const auto stack = [&](const std::string& function) {
    return std::vector<uint32_t>{LoopStack(machine, line++, function)};
  };
  switch (kind) {
    case 0:
      return Make(
          "every step", stack("outputs_append"),
          [size](Machine& m, uint32_t cycle, ScriptedHabit& h) { Keep(m, cycle, h, size); });
    case 1: {
      const double p = machine.Uniform(0.03, 0.3);
      return Make("some steps", stack("remember_hard_one"),
                  [size, p](Machine& m, uint32_t cycle, ScriptedHabit& h) {
                    if (m.Chance(p)) Keep(m, cycle, h, size);
                  });
    }
    case 2: {
      const uint32_t period = machine.Whole(10, 40);
      return Make("every evaluation", stack("eval_append"),
                  [size, period](Machine& m, uint32_t cycle, ScriptedHabit& h) {
                    if (cycle % period == period - 1) Keep(m, cycle, h, size);
                  });
    }
    case 3:
      return Make("concatenated", stack("torch_cat"),
                  [last = Machine::Block{0}, length = uint64_t{0}, size](Machine& m, uint32_t cycle,
                                                                         ScriptedHabit& h) mutable {
                    const uint64_t step = (size + 511) / 512 * 512;
                    const Machine::Block grown = m.Alloc(h.stack(), (length += step));
                    m.Free(last);
                    last = grown;
                    h.Leaked(cycle, step);
                  });
    case 4:
      return Make("graph kept", PassStacks(machine, line, machine.Whole(10, 60)), KeepsGraph(1));
    case 5:
      return Make("one of 20 blocks", stack("busy"),
                  [size](Machine& m, uint32_t cycle, ScriptedHabit& h) {
                    std::vector<Machine::Block> blocks;
                    const uint32_t kept = m.Whole(0, 19);
                    for (uint32_t i = 0; i < 20; ++i) blocks.push_back(m.Alloc(h.stack(), size));
                    for (uint32_t i = 0; i < 20; ++i) {
                      if (i != kept) m.Free(blocks[i]);
                    }
                    h.Leaked(cycle, size);
                  });
    case 6: {
      const uint32_t first = options.begin + machine.Whole(20, options.cycles / 2);
      return Make("begins midway", stack("late_append"),
                  [size, first](Machine& m, uint32_t cycle, ScriptedHabit& h) {
                    if (cycle >= first) Keep(m, cycle, h, size);
                  });
    }
    case 7:
      return Make("closure of a hook", stack("layer_forward"),
                  [size](Machine& m, uint32_t cycle, ScriptedHabit& h) {
                    for (int i = 0; i < 3; ++i) m.Free(m.Alloc(h.stack(), size));
                    Keep(m, cycle, h, size);
                  });
    case 8:
      return Make("table of shapes that never recur", stack("mask_of_shape"),
                  [](Machine& m, uint32_t cycle, ScriptedHabit& h) {
                    if (m.Chance(0.6)) Keep(m, cycle, h, m.Whole(16, 256) * kKiB);
                  });
    case 9:
      return Make(
          "an extension's cudaMalloc",
          {machine.Stack({{"train", line++}, {"<module>", 900}}, "knn_build", "/opt/libmyext.so")},
          [size](Machine& m, uint32_t cycle, ScriptedHabit& h) {
            Keep(m, cycle, h, size, Where::kDriver);
          });
    case 10:
      return Make("pinned memory", stack("pin_batch"),
                  [size](Machine& m, uint32_t cycle, ScriptedHabit& h) {
                    if (m.Chance(0.5)) Keep(m, cycle, h, size, Where::kPinned);
                  });
    case 11:
      return Make("stream never waited for", stack("side_stream_copy"),
                  [size](Machine& m, uint32_t cycle, ScriptedHabit& h) {
                    m.FreeForgotten(m.Alloc(h.stack(), size));
                    h.Leaked(cycle, size);
                  });
    case 12:
      return Untracked();
    case 13: {
      const uint32_t period = machine.Whole(5, 20);
      return Make("communicator created repeatedly",
                  {machine.Stack({{"new_group", 66}, {"train", line++}, {"<module>", 900}},
                                 "ncclCommInitRank", "/opt/libnccl.so.2")},
                  [period](Machine& m, uint32_t cycle, ScriptedHabit& h) {
                    for (int i = 0; cycle % period == 0 && i < 4; ++i)
                      Keep(m, cycle, h, 4 * kMiB, Where::kDriver);
                  });
    }
    case 14:
      return Make("pool that keeps outgrown blocks",
                  {machine.Stack({{"decode", 30}, {"train", line++}, {"<module>", 900}},
                                 "ggml_cuda_pool_leg_alloc", "/opt/libggml-cuda.so")},
                  [length = uint64_t{64}](Machine& m, uint32_t cycle, ScriptedHabit& h) mutable {
                    if (!m.Chance(0.3)) return;
                    length += m.Whole(1, 3);
                    Keep(m, cycle, h, length * 64 * kKiB, Where::kDriver);
                  });
    default:
      return Make("graph kept in some steps", PassStacks(machine, line, machine.Whole(6, 30)),
                  KeepsGraph(machine.Uniform(0.1, 0.5)));
  }
}

}  // namespace gmt::evaluate
