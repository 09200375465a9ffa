#include <cmath>
#include <deque>

#include "tests/evaluate/leaks/scripted_habit.h"

namespace gmt::evaluate {
namespace {

using Blocks = std::vector<Machine::Block>;
using Script = ScriptedHabit::Script;

class Maker {
 public:
  Maker(Machine& machine, const HabitOptions& options, uint32_t& line)
      : machine_(machine), options_(options), line_(line) {}

  Habits Make() && {
    StateMadeAtTheStart();
    WorkingMemory();
    ThingsKeptForAWhile();
    Caches();
    LateOnes();
    return std::move(habits_);
  }

 private:
  Habit& Add(const std::string& name, Script script) {
    std::string function = name;
    for (char& c : function) c = c == ' ' ? '_' : c;
    const uint32_t stack = LoopStack(machine_, line_++, function);
    habits_.push_back(
        std::make_unique<ScriptedHabit>(name, std::vector<uint32_t>{stack}, std::move(script)));
    return *habits_.back();
  }

  void StateMadeAtTheStart() {
    Add("parameters", [](Machine& m, uint32_t cycle, ScriptedHabit& h) {
      for (int i = 0; cycle == 0 && i < 40; ++i) m.Alloc(h.stack(), m.Whole(1, 64) * kMiB / 4);
    });
    Add("optimizer state", [](Machine& m, uint32_t cycle, ScriptedHabit& h) {
      for (int i = 0; cycle == 1 && i < 80; ++i) m.Alloc(h.stack(), m.Whole(1, 64) * kMiB / 4);
    });
    const uint32_t warm = machine_.Whole(2, 15);
    Add("workspace warm-up", [warm](Machine& m, uint32_t cycle, ScriptedHabit& h) {
      if (cycle < warm) m.Alloc(h.stack(), 8 * kMiB);
    });
  }

  void WorkingMemory() {
    Add("activations", [](Machine& m, uint32_t, ScriptedHabit& h) {
      Blocks blocks;
      for (int i = 0; i < 12; ++i) blocks.push_back(m.Alloc(h.stack(), kMiB));
      for (const Machine::Block block : blocks) m.Free(block);
    });
    Add("activations of any length", [](Machine& m, uint32_t, ScriptedHabit& h) {
      Blocks blocks;
      const uint64_t length = m.Whole(64, 512);
      for (int i = 0; i < 6; ++i) blocks.push_back(m.Alloc(h.stack(), length * 4 * kKiB));
      for (const Machine::Block block : blocks) m.Free(block);
    });
    Add("gradients", [last = Blocks()](Machine& m, uint32_t, ScriptedHabit& h) mutable {
      for (const Machine::Block block : last) m.Free(block);
      last.clear();
      for (int i = 0; i < 8; ++i) last.push_back(m.Alloc(h.stack(), kMiB));
    });
    Add("previous loss",
        [last = Machine::Block{0}](Machine& m, uint32_t, ScriptedHabit& h) mutable {
          const Machine::Block loss = m.Alloc(h.stack(), 512);
          m.Free(last);
          last = loss;
        });
    Add("evaluation", [](Machine& m, uint32_t cycle, ScriptedHabit& h) {
      Blocks blocks;
      for (int i = 0; cycle % 40 == 39 && i < 20; ++i)
        blocks.push_back(m.Alloc(h.stack(), 4 * kMiB));
      for (const Machine::Block block : blocks) m.Free(block);
    });
    Add("checkpoint", [](Machine& m, uint32_t cycle, ScriptedHabit& h) {
      if (cycle % 60 != 59) return;
      const Machine::Block copy = m.Alloc(h.stack(), 64 * kMiB);
      m.Free(copy);
    });
  }

  void ThingsKeptForAWhile() {
    for (int i = 0; i < 2; ++i) {
      const uint32_t length = machine_.Whole(20, options_.longest_queue);
      const uint64_t size = machine_.Whole(8, 512) * kKiB;
      AddQueue("queue", length, [size](Machine&) { return size; });
    }
    AddQueue("queue of any sizes", machine_.Whole(20, options_.longest_queue),
             [](Machine& m) { return uint64_t{m.Whole(8, 512)} * kKiB; });
    AddQueue("prefetch queue", machine_.Whole(2, 6), [](Machine&) { return 2 * kMiB; });
    const uint32_t collected = machine_.Whole(8, 40);
    Add("cycles of objects, collected late",
        [garbage = Blocks(), collected](Machine& m, uint32_t cycle, ScriptedHabit& h) mutable {
          garbage.push_back(m.Alloc(h.stack(), 256 * kKiB));
          if (cycle % collected != collected - 1) return;
          for (const Machine::Block block : garbage) m.Free(block);
          garbage.clear();
        });
    const uint32_t epoch = machine_.Whole(20, options_.longest_queue / 2);
    Add("losses of an epoch", [losses = Blocks(), epoch](Machine& m, uint32_t cycle,
                                                         ScriptedHabit& h) mutable {
      losses.push_back(m.Alloc(h.stack(), 512));
      if (cycle % epoch != epoch - 1) return;
      for (const Machine::Block block : losses) m.Free(block);
      losses.clear();
    }).longest_life = epoch;
    const uint32_t request = machine_.Whole(5, 50);
    Add("cache of keys, grown with the request",
        [last = Machine::Block{0}, request](Machine& m, uint32_t cycle, ScriptedHabit& h) mutable {
          const uint64_t length = cycle % request + 1;
          const Machine::Block grown = m.Alloc(h.stack(), length * 128 * kKiB);
          m.Free(last);
          last = grown;
        });
  }

  template <typename Size>
  void AddQueue(const std::string& name, uint32_t length, Size size) {
    Add(name, [queue = std::deque<Machine::Block>(), length, size](Machine& m, uint32_t,
                                                                   ScriptedHabit& h) mutable {
      queue.push_back(m.Alloc(h.stack(), size(m)));
      if (queue.size() <= length) return;
      m.Free(queue.front());
      queue.pop_front();
    }).longest_life = length;
  }

  void Caches() {
    for (int i = 0; i < 2; ++i) {
      const double tau = machine_.Uniform(30, 120), entries = machine_.Uniform(20, 200);
      Add("cache that fills", [tau, entries](Machine& m, uint32_t cycle, ScriptedHabit& h) {
        std::poisson_distribution<int> misses(entries / tau * std::exp(-cycle / tau));
        for (int n = misses(m.random); n > 0; --n) m.Alloc(h.stack(), m.Whole(16, 256) * kKiB);
      });
    }
    const uint32_t room = machine_.Whole(10, options_.longest_queue / 2);
    Add("cache that evicts at random", [cache = Blocks(), room](Machine& m, uint32_t,
                                                                ScriptedHabit& h) mutable {
      cache.push_back(m.Alloc(h.stack(), 512 * kKiB));
      if (cache.size() <= room) return;
      const size_t victim = m.Whole(0, static_cast<uint32_t>(cache.size()) - 1);
      m.Free(cache[victim]);
      cache.erase(cache.begin() + static_cast<std::ptrdiff_t>(victim));
    }).longest_life = room;
    Add("table of shapes seen",
        [seen = std::vector<bool>(97)](Machine& m, uint32_t, ScriptedHabit& h) mutable {
          const uint32_t shape = std::min(m.Whole(0, 96), m.Whole(0, 96));
          if (!seen[shape]) m.Alloc(h.stack(), (shape + 1) * 8 * kKiB);
          seen[shape] = true;
        });
    Add("buffer as big as the biggest",
        [buffer = Machine::Block{0}, most = 0.0](Machine& m, uint32_t, ScriptedHabit& h) mutable {
          const double length = std::exp(m.Uniform(0, 4));
          if (length <= most) return;
          m.Free(buffer);
          buffer = m.Alloc(h.stack(), static_cast<uint64_t>(length) * kMiB);
          most = length;
        });
    Add("algorithm search", [](Machine& m, uint32_t cycle, ScriptedHabit& h) {
      if (cycle < 5) m.Free(m.Alloc(h.stack(), 256 * kMiB));
    });
  }

  void LateOnes() {
    const uint32_t begin = options_.begin, cycles = options_.cycles;
    const uint32_t ema = begin + machine_.Whole(10, cycles / 2);
    Add("copy of the model, made late", [ema](Machine& m, uint32_t cycle, ScriptedHabit& h) {
      for (int i = 0; cycle == ema && i < 40; ++i) m.Alloc(h.stack(), 4 * kMiB);
    });
    const uint32_t capture = begin + machine_.Whole(10, cycles / 2);
    Add("graphs captured late", [capture](Machine& m, uint32_t cycle, ScriptedHabit& h) {
      for (int i = 0; cycle >= capture && cycle < capture + 4 && i < 5; ++i)
        m.Alloc(h.stack(), 16 * kMiB);
    });
    const uint32_t cap = machine_.Whole(20, 60);
    Add("cache up to a cap", [held = 0u, cap](Machine& m, uint32_t, ScriptedHabit& h) mutable {
      for (int i = 0; i < 2 && held < cap; ++i, ++held) m.Alloc(h.stack(), kMiB);
    });
    const uint32_t rare = machine_.Whole(0, 6);
    Add("tables of the program, made now and then",
        [left = rare](Machine& m, uint32_t, ScriptedHabit& h) mutable {
          if (left == 0 || !m.Chance(0.02)) return;
          m.Alloc(h.stack(), 64 * kKiB);
          --left;
        });
  }

  Machine& machine_;
  const HabitOptions& options_;
  uint32_t& line_;
  Habits habits_;
};

}  // namespace

Habits BenignHabits(Machine& machine, const HabitOptions& options, uint32_t& line) {
  return Maker(machine, options, line).Make();
}

std::unique_ptr<Habit> LongQueue(Machine& machine, uint32_t length, uint32_t& line) {
  const uint32_t stack = LoopStack(machine, line++, "long_queue");
  auto habit =
      std::make_unique<ScriptedHabit>("queue longer than the window", std::vector<uint32_t>{stack},
                                      [queue = std::deque<Machine::Block>(), length](
                                          Machine& m, uint32_t, ScriptedHabit& h) mutable {
                                        queue.push_back(m.Alloc(h.stack(), 96 * kKiB));
                                        if (queue.size() <= length) return;
                                        m.Free(queue.front());
                                        queue.pop_front();
                                      });
  habit->longest_life = length;
  return habit;
}

}  // namespace gmt::evaluate
