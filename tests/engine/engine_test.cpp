#include "engine/engine.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "base/error.hpp"
#include "cpu/isa.hpp"
#include "engine/tiny_engine.hpp"
#include "ops/op.hpp"

namespace tessera {
namespace {

/// Where and how a tiny model runs.
struct Setup {
  std::string device, isa;
  DType weights = DType::kF32, kv = DType::kF32;
};
void PrintTo(const Setup& setup, std::ostream* out) {
  *out << setup.device << " " << setup.isa << " " << name(setup.weights) << " " << name(setup.kv);
}

/// Every tier with exact and with quantised activations, and the mock device.
std::vector<Setup> setups() {
  std::vector<Setup> all;
  for (const cpu::Tier tier : cpu::available_tiers()) {
    all.push_back({"cpu", std::string(name(tier)), DType::kF32, DType::kF32});
    all.push_back({"cpu", std::string(name(tier)), DType::kQ4_1, DType::kF16});
  }
  all.push_back({"mock", "", DType::kF32, DType::kF16});
  all.push_back({"mock", "", DType::kQ8_0, DType::kF32});
  return all;
}

class EngineOnDevice : public ::testing::TestWithParam<Setup> {
 protected:
  TinyEngineOptions options() const {
    TinyEngineOptions options;
    options.device = GetParam().device;
    options.isa = GetParam().isa;
    options.activations = Activations::kQ8;
    options.engine.kv_dtype = GetParam().kv;
    return options;
  }
  TinyModelOptions model() const {
    TinyModelOptions tiny;
    tiny.dtype = GetParam().weights;
    return tiny;
  }
};
INSTANTIATE_TEST_SUITE_P(Setups, EngineOnDevice, ::testing::ValuesIn(setups()));

/// Prefills in chunks, then decodes greedily, alone.
std::vector<uint32_t> generate(Engine& engine, Sequence& sequence, std::span<const uint32_t> ids,
                               size_t chunk, int n_tokens) {
  StepResult step;
  while (!ids.empty()) {
    const auto part = ids.first(std::min(chunk, ids.size()));
    ids = ids.subspan(part.size());
    const StepRequest request = {&sequence, part, LogitRows::kLast};
    engine.step({&request, 1}, false, step);
  }
  std::vector<uint32_t> generated;
  for (;;) {
    generated.push_back(step.greedy_ids[0]);
    if (static_cast<int>(generated.size()) == n_tokens) return generated;
    const StepRequest request = {&sequence, std::span(generated).last(1), LogitRows::kLast};
    engine.step({&request, 1}, false, step);
  }
}

TEST_P(EngineOnDevice, ChunkedPrefillGivesTheSameBits) {
  TinyEngine engine(options(), model());
  const std::vector<uint32_t> ids = tiny_ids(61, 1);
  const std::vector<float> whole = engine.logits(ids, 61);
  for (const size_t chunk : {1, 2, 7, 16, 32, 60}) {
    EXPECT_EQ(engine.logits(ids, chunk), whole) << "chunks of " << chunk;
  }
}

TEST_P(EngineOnDevice, EightPromptsInOneBatchGiveTheBitsOfEachAlone) {
  TinyEngine engine(options(),
                    model());  // eight sequences of 128: room for a ninth, since these are short
  const size_t lengths[] = {1, 2, 3, 5, 7, 8, 13, 17};
  std::vector<std::vector<uint32_t>> prompts;
  for (const size_t length : lengths)
    prompts.push_back(tiny_ids(length, static_cast<uint32_t>(length)));

  std::vector<Sequence> sequences;
  std::vector<StepRequest> requests;
  for (size_t i = 0; i < prompts.size(); ++i) sequences.emplace_back(*engine);
  for (size_t i = 0; i < prompts.size(); ++i) requests.push_back({&sequences[i], prompts[i]});
  StepResult together;
  std::vector<std::vector<uint32_t>> fed = prompts;
  for (int n = 0; n < 12; ++n) {
    engine->step(requests, true, together);
    const size_t vocab_size = together.logits.size() / 8;
    for (size_t i = 0; i < 8; ++i) {
      const std::vector<float> alone = engine.logits(fed[i], 64);
      const std::vector<float> row(
          together.logits.begin() + static_cast<long>(i * vocab_size),
          together.logits.begin() + static_cast<long>((i + 1) * vocab_size));
      ASSERT_EQ(row, std::vector<float>(alone.end() - static_cast<long>(vocab_size), alone.end()))
          << "step " << n << ", sequence " << i;
      fed[i].push_back(together.greedy_ids[i]);
    }
    for (size_t i = 0; i < 8; ++i) requests[i].tokens = std::span(fed[i]).last(1);
  }
}

TEST_P(EngineOnDevice, AReusedPrefixGivesTheTokensOfAFreshStart) {
  TinyEngine engine(options(), model());
  std::vector<uint32_t> ids = tiny_ids(50, 3);
  Sequence fresh(*engine);
  const std::vector<uint32_t> expected = generate(*engine, fresh, ids, 64, 20);

  Sequence sequence(*engine);
  std::vector<uint32_t> other = ids;
  for (size_t i = 37; i < other.size(); ++i) other[i] ^= 1;
  generate(*engine, sequence, other, 64, 10);
  EXPECT_EQ(sequence.reuse_prefix(ids, 49), 37);
  EXPECT_EQ(generate(*engine, sequence, std::span(ids).subspan(37), 64, 20), expected);
  EXPECT_EQ(sequence.reuse_prefix(ids, 49), 49) << "the last token has to run again";
  EXPECT_EQ(generate(*engine, sequence, std::span(ids).subspan(49), 64, 20), expected);
}

TEST_P(EngineOnDevice, AForkSharesThePastAndNothingElse) {
  TinyEngine engine(options(), model());
  const std::vector<uint32_t> ids = tiny_ids(45, 4), tail = tiny_ids(9, 5);
  Sequence fresh(*engine);
  const auto expected = generate(*engine, fresh, ids, 64, 12);
  std::vector<uint32_t> joined(ids.begin(), ids.begin() + 40);
  joined.insert(joined.end(), tail.begin(), tail.end());
  Sequence fresh_joined(*engine);
  const auto expected_joined = generate(*engine, fresh_joined, joined, 64, 12);

  Sequence sequence(*engine);
  generate(*engine, sequence, std::span(ids).first(44), 64, 1);
  Sequence fork = sequence.fork(40);
  EXPECT_EQ(generate(*engine, fork, tail, 64, 12), expected_joined);
  EXPECT_EQ(generate(*engine, sequence, std::span(ids).subspan(44), 64, 12), expected);
}

TEST_P(EngineOnDevice, ThreadsTakeTurnsWithoutDisturbingEachOther) {
  TinyEngine engine(options(), model());
  std::vector<std::vector<uint32_t>> expected(6), got(6);
  const auto work = [&](size_t i, std::vector<uint32_t>& out) {
    Sequence sequence(*engine);
    out = generate(*engine, sequence, tiny_ids(5 + 7 * i, static_cast<uint32_t>(i)), 8, 15);
  };
  for (size_t i = 0; i < 6; ++i) work(i, expected[i]);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 6; ++i) threads.emplace_back([&, i] { work(i, got[i]); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(got, expected);
}

/// As generate(), but every step is started before the id that it runs is known.
std::vector<uint32_t> generate_ahead(Engine& engine, Sequence& sequence,
                                     std::span<const uint32_t> ids, int n_tokens) {
  StepResult result;
  const StepRequest prompt = {&sequence, ids, LogitRows::kLast};
  const StepRequest go_on = {&sequence, {}, LogitRows::kLast};
  StartedStep step = engine.start({&prompt, 1}, false);
  std::vector<uint32_t> generated;
  while (static_cast<int>(generated.size()) < n_tokens) {
    StartedStep ahead = engine.start({&go_on, 1}, false);
    step.finish(result);
    generated.push_back(result.greedy_ids[0]);
    step = std::move(ahead);
  }
  return generated;  // the last step is dropped
}

TEST_P(EngineOnDevice, StepsStartedAheadGiveTheTokensOfStepsInTurn) {
  TinyEngine engine(options(), model());
  const std::vector<uint32_t> ids = tiny_ids(20, 8);
  Sequence in_turn(*engine), ahead(*engine);
  const auto expected = generate(*engine, in_turn, ids, 64, 25);
  EXPECT_EQ(generate_ahead(*engine, ahead, ids, 25), expected);
  // The dropped step ran: its token is part of the sequence.
  std::vector<uint32_t> all = ids;
  all.insert(all.end(), expected.begin(), expected.end());
  EXPECT_EQ(ahead.reuse_prefix(all, 45), 45);
  const auto last = std::span(expected).last(1);
  in_turn.reuse_prefix(all, 44);
  EXPECT_EQ(ahead.reuse_prefix(all, 44), 44);
  EXPECT_EQ(generate(*engine, ahead, last, 64, 5), generate(*engine, in_turn, last, 64, 5));
}

TEST_P(EngineOnDevice, AStepInBetweenDoesNotDisturbOneThatGoesOn) {
  TinyEngine engine(options(), model());
  const std::vector<uint32_t> ids = tiny_ids(11, 9), other_ids = tiny_ids(9, 10);
  Sequence fresh(*engine), fresh_other(*engine);
  const auto expected = generate(*engine, fresh, ids, 64, 3);
  const auto expected_other = generate(*engine, fresh_other, other_ids, 64, 1);

  Sequence sequence(*engine), other(*engine);
  const StepRequest prompt = {&sequence, ids}, prompt_other = {&other, other_ids};
  const StepRequest go_on = {&sequence, {}};
  StepResult result;
  StartedStep first = engine->start({&prompt, 1}, false);
  StartedStep between = engine->start({&prompt_other, 1}, true);
  StartedStep second = engine->start({&go_on, 1}, false);
  const StepRequest both[] = {{&other, std::span(expected_other)}, {&sequence, {}}};
  StartedStep third = engine->start(both, true);
  third.finish(result);  // before the ones that it goes on from are asked for
  EXPECT_EQ(result.greedy_ids[1], expected[2]);
  second.finish(result);
  EXPECT_EQ(result.greedy_ids, std::vector{expected[1]});
  first.finish(result);
  EXPECT_EQ(result.greedy_ids, std::vector{expected[0]});
  between.finish(result);
  EXPECT_EQ(result.greedy_ids, expected_other);
  const std::vector<float> all = engine.logits(other_ids, 64);
  EXPECT_TRUE(std::equal(result.logits.begin(), result.logits.end(),
                         all.end() - static_cast<long>(result.logits.size()), all.end()));
}

TEST_P(EngineOnDevice, GoingOnNeedsARowToGoOnFrom) {
  TinyEngine engine(options(), model());
  Sequence sequence(*engine);
  StepResult result;
  const StepRequest go_on = {&sequence, {}};
  EXPECT_THROW(engine->step({&go_on, 1}, false, result), Error) << "an empty sequence";
  const std::vector<uint32_t> ids = tiny_ids(5, 11);
  const StepRequest no_rows = {&sequence, ids, LogitRows::kNone};
  engine->step({&no_rows, 1}, false, result);
  EXPECT_THROW(engine->step({&go_on, 1}, false, result), Error) << "no row";
  EXPECT_EQ(sequence.length(), 5);
}

TEST_P(EngineOnDevice, AFailedStepLeavesEverythingAsItWas) {
  TinyEngine engine(options(), model());
  const std::vector<uint32_t> ids = tiny_ids(20, 6);
  Sequence fresh(*engine);
  const auto expected = generate(*engine, fresh, ids, 64, 10);

  Sequence sequence(*engine), full(*engine);
  generate(*engine, sequence, std::span(ids).first(19), 64, 1);
  generate(*engine, full, tiny_ids(128, 7), 64, 1);
  StepResult step;
  const std::vector<uint32_t> bad = {5, 1000000};
  const StepRequest bad_token = {&sequence, bad};
  EXPECT_THROW(engine->step({&bad_token, 1}, false, step), Error);
  // The first request could run, the second has no room.
  const StepRequest requests[] = {{&sequence, std::span(ids).last(1)},
                                  {&full, std::span(ids).last(1)}};
  try {
    engine->step(requests, false, step);
    FAIL() << "a full context";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
  }
  EXPECT_EQ(sequence.length(), 19);
  EXPECT_EQ(generate(*engine, sequence, std::span(ids).last(1), 64, 10), expected);
}

TEST(Engine, RunsOutOfPagesWithAnError) {
  TinyEngineOptions options;
  options.engine.max_sequences = 2;
  TinyEngine engine(options);
  Sequence a(*engine), b(*engine), c(*engine);
  generate(*engine, a, tiny_ids(100, 1), 64, 1);
  generate(*engine, b, tiny_ids(100, 2), 64, 1);
  try {
    generate(*engine, c, tiny_ids(3, 3), 64, 1);
    FAIL() << "all pages are taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
  }
  a.reuse_prefix({}, 0);
  generate(*engine, c, tiny_ids(3, 3), 64, 1);
}

TEST(Engine, RefusesWhatDoesNotFitIntoMemoryWithBothNumbers) {
  TinyModelOptions tiny;
  tiny.context = 1 << 29;
  TinyEngineOptions options;
  options.engine.context = 1 << 29;
  options.engine.max_sequences = 4096;
  try {
    TinyEngine engine(options, tiny);
    FAIL() << "petabytes";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
    EXPECT_NE(std::string(error.what()).find("MiB"), std::string::npos) << error.what();
  }
}

TEST(Engine, MockAndCpuGiveTheSameBits) {
  TinyEngineOptions mock;
  mock.device = "mock";
  TinyEngine on_cpu, on_mock(mock);
  const std::vector<uint32_t> ids = tiny_ids(40, 8);
  EXPECT_EQ(on_cpu.logits(ids, 16), on_mock.logits(ids, 16));
}

TEST(Engine, ResultsDoNotDependOnTheNumberOfThreads) {
  TinyEngineOptions one, three;
  one.n_threads = 1;
  three.n_threads = 3;
  TinyEngine a(one), b(three);
  const std::vector<uint32_t> ids = tiny_ids(40, 9);
  EXPECT_EQ(a.logits(ids, 16), b.logits(ids, 16));
}

TEST(Engine, PlansTheOpsOfAStep) {
  TinyEngine engine;
  double flops = 0, short_flops = 0;
  for (const OpRecord& record : engine->plan(1, 100))
    flops += record.composed ? 0 : record.cost.flops;
  for (const OpRecord& record : engine->plan(1, 0)) {
    short_flops += record.composed ? 0 : record.cost.flops;
    EXPECT_FALSE(record.row.empty());
  }
  // Two FLOPs a weight of every product; the embedding is the tied head.
  const ModelFacts& facts = engine.model().facts();
  EXPECT_GT(short_flops, 1.9 * static_cast<double>(facts.n_params));
  EXPECT_LT(short_flops, 3.0 * static_cast<double>(facts.n_params));
  EXPECT_GT(flops, short_flops) << "attention over 100 tokens costs more than over one";
}

TEST(Engine, EveryWeightTypeRunsLikeTheReference) {
  for (const DType dtype : ops::kWeightTypes) {
    TinyModelOptions tiny;
    tiny.dtype = dtype;
    tiny.d_model = 256;
    tiny.d_ff = 512;
    tiny.n_layers = 1;
    for (const Activations activations : {Activations::kExact, Activations::kQ8}) {
      TinyEngineOptions options;
      options.activations = activations;
      TinyEngine engine(options, tiny);
      const std::vector<float> logits = engine.logits(tiny_ids(20, 10), 16);
      double largest = 0;
      for (const float logit : logits) {
        ASSERT_TRUE(std::isfinite(logit)) << name(dtype);
        largest = std::max(largest, std::abs(static_cast<double>(logit)));
      }
      EXPECT_GT(largest, 0.1) << name(dtype);
      options.only_reference = true;
      TinyEngine reference(options, tiny);
      const std::vector<float> expected = reference.logits(tiny_ids(20, 10), 16);
      for (size_t i = 0; i < logits.size(); ++i) {
        ASSERT_NEAR(logits[i], expected[i], 2e-3 * largest) << name(dtype) << " logit " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tessera
