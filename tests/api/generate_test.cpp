#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "api/tiny_file.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"

namespace tessera {
namespace {

const GenerateOptions kGreedy = {.max_tokens = 24, .temperature = 0, .ignore_eos = true};

class Generate : public ::testing::TestWithParam<const char*> {
 protected:
  Model load(LoadOptions options = {}) const {
    options.device = GetParam();
    return file_.load(options);
  }
  TinyFile file_;
};
INSTANTIATE_TEST_SUITE_P(Devices, Generate, ::testing::Values("cpu", "mock"));

std::vector<std::vector<uint32_t>> prompts(const Model& model) {
  std::vector<std::vector<uint32_t>> ids;
  for (const char* text :
       {"a", "hello", "The capital of France is", "1 2 3", "x = y;", "\n\n",
        "a longer prompt that goes on for a while, and then some more of it", "déjà vu 🦙"}) {
    ids.push_back(model.tokenize(text));
  }
  return ids;
}

TEST_P(Generate, ABatchGivesWhatEachPromptGivesAlone) {
  const Model model = load({.max_sessions = 8, .prefill_chunk = 16});
  const auto ids = prompts(model);
  for (const float temperature : {0.0f, 1.0f}) {
    GenerateOptions options = kGreedy;
    options.temperature = temperature;
    options.seed = 7;
    const std::vector<Generation> batch = generate_batch(model, ids, options);
    ASSERT_EQ(batch.size(), ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      const Generation alone = Session(model).generate(ids[i], options);
      EXPECT_EQ(batch[i].ids, alone.ids) << i;
      EXPECT_EQ(batch[i].text, alone.text) << i;
      EXPECT_EQ(batch[i].ids.size(), 24u);
    }
  }
}

TEST_P(Generate, ABatchRunsTheCommonBeginningOnce) {
  const Model model = load({.max_sessions = 3});
  const std::string common = "A beginning that is longer than one page of the cache: ";
  std::vector<std::vector<uint32_t>> ids;
  for (const char* end : {"one", "two", "three"}) ids.push_back(model.tokenize(common + end));
  const std::vector<Generation> batch = generate_batch(model, ids, kGreedy);
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_GE(batch[i].timings.reused_tokens, 32);
    EXPECT_EQ(batch[i].ids, Session(model).generate(ids[i], kGreedy).ids) << i;
  }
}

TEST_P(Generate, ReusesExactlyThePrefixOfTheSession) {
  const Model model = load();
  const std::vector<uint32_t> first = model.tokenize("the quick brown fox jumps over");
  std::vector<uint32_t> second = first;
  second.resize(first.size() - 3);
  for (const uint32_t id : model.tokenize("lazy dogs and cats")) second.push_back(id);
  const Generation fresh = Session(model).generate(second, kGreedy);
  EXPECT_EQ(fresh.timings.reused_tokens, 0);

  Session session(model);
  session.generate(first, kGreedy);
  const Generation reused = session.generate(second, kGreedy);
  EXPECT_GE(reused.timings.reused_tokens, static_cast<int64_t>(first.size()) - 3);
  EXPECT_EQ(reused.timings.reused_tokens + reused.timings.prefill_tokens,
            static_cast<int64_t>(second.size()));
  EXPECT_EQ(reused.ids, fresh.ids);
  const Generation again = session.generate(second, kGreedy);
  EXPECT_EQ(again.timings.prefill_tokens, 1);
  EXPECT_EQ(again.ids, fresh.ids);
}

TEST_P(Generate, AnyChunkSizeGivesTheSameText) {
  const std::string prompt = "Some prompt of a good length, so that several chunks are needed.";
  const Generation whole = Session(load()).generate(prompt, kGreedy);
  for (const int64_t chunk : {1, 3, 8, 17}) {
    EXPECT_EQ(Session(load({.prefill_chunk = chunk})).generate(prompt, kGreedy).ids, whole.ids)
        << chunk;
  }
}

TEST_P(Generate, SessionsOnSeveralThreads) {
  const Model model = load({.max_sessions = 8});
  const auto ids = prompts(model);
  std::vector<Generation> got(ids.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ids.size(); ++i) {
    threads.emplace_back([&, i] { got[i] = Session(model).generate(ids[i], kGreedy); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(got[i].ids, Session(model).generate(ids[i], kGreedy).ids) << i;
  }
}

TEST_P(Generate, SeedsAreReproducibleAndReported) {
  const Model model = load();
  GenerateOptions options = {.max_tokens = 30, .temperature = 1.5f, .seed = 11, .ignore_eos = true};
  const Generation first = Session(model).generate("x", options);
  EXPECT_EQ(first.seed, 11u);
  EXPECT_EQ(Session(model).generate("x", options).ids, first.ids);
  options.seed.reset();
  const Generation random = Session(model).generate("x", options);
  EXPECT_NE(random.ids, first.ids);
  options.seed = random.seed;
  EXPECT_EQ(Session(model).generate("x", options).ids, random.ids);
}

TEST_P(Generate, StreamsTheTextInWholeCharacters) {
  GenerateOptions options = {.max_tokens = 100, .temperature = 2, .seed = 3, .ignore_eos = true};
  std::string streamed;
  const Model model = load();
  const Generation result = Session(model).generate("x", options, [&](std::string_view text) {
    EXPECT_EQ(replace_invalid_utf8(text), text);
    streamed += text;
    return true;
  });
  EXPECT_EQ(streamed, result.text);
  EXPECT_EQ(result.text, model.detokenize(result.ids));
  EXPECT_EQ(result.finish_reason, FinishReason::kLength);
  EXPECT_EQ(result.timings.decode_tokens, 99);
}

TEST_P(Generate, EndsBeforeAStopString) {
  const Model model = load();
  const Generation whole = Session(model).generate("hello", kGreedy);
  const std::string stop = whole.text.substr(whole.text.size() / 2, 3);
  if (replace_invalid_utf8(stop) != stop) GTEST_SKIP() << "cut inside a character";
  GenerateOptions options = kGreedy;
  options.stop = {"this never comes", stop};
  std::string streamed;
  const Generation result = Session(model).generate("hello", options, [&](std::string_view text) {
    streamed += text;
    return true;
  });
  EXPECT_EQ(result.finish_reason, FinishReason::kStop);
  EXPECT_EQ(result.text, whole.text.substr(0, whole.text.find(stop)));
  EXPECT_EQ(streamed, result.text);
}

TEST_P(Generate, StopsWhenTheCallbackOrTheFlagSaysSo) {
  const Model model = load();
  int n_calls = 0;
  Generation result =
      Session(model).generate("hello", kGreedy, [&](std::string_view) { return ++n_calls < 3; });
  EXPECT_EQ(result.finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(n_calls, 3);

  std::atomic<bool> cancel = false;
  GenerateOptions options = kGreedy;
  options.cancel = &cancel;
  n_calls = 0;
  Session session(model);
  result = session.generate("hello", options, [&](std::string_view) {
    if (++n_calls == 2) cancel = true;
    return true;
  });
  EXPECT_EQ(result.finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(n_calls, 2);
  EXPECT_TRUE(session.generate("hello", options).ids.empty()) << "cancelled from the start";
  cancel = false;
  EXPECT_EQ(session.generate("hello", options).ids, Session(model).generate("hello", kGreedy).ids);
}

TEST_P(Generate, AFullContextEndsTheTextOrThrows) {
  const Model model = load({.context = 40});
  GenerateOptions options = kGreedy;
  options.max_tokens = 1000;
  const std::vector<uint32_t> prompt(30, 9);
  Generation result = Session(model).generate(prompt, options);
  EXPECT_EQ(result.finish_reason, FinishReason::kContext);
  EXPECT_EQ(result.ids.size(), 11u) << "the last token needs no room of its own";
  const std::vector<uint32_t> full(40, 9);
  EXPECT_EQ(Session(model).generate(full, options).ids.size(), 1u);
  options.when_full = WhenFull::kError;
  try {
    Session(model).generate(prompt, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
  }
}

TEST_P(Generate, WhatWasGeneratedBeforeAnErrorIsDelivered) {
  const Model model = load({.context = 64});  // two pages of 32 tokens
  // A prompt whose eighth token ends a character, so that all of the text is streamed at once.
  std::vector<uint32_t> prompt(25, 9);
  GenerateOptions eight = kGreedy;
  eight.max_tokens = 8;
  Generation expected;
  for (uint32_t last = 10; last < 60; ++last) {
    prompt.back() = last;
    expected = Session(model).generate(prompt, eight);
    if (expected.text.find("\xEF\xBF\xBD") == std::string::npos) break;
  }
  Session other(model);
  other.generate(std::vector<uint32_t>{9}, eight);  // holds the second page
  Session session(model);
  std::string streamed;
  try {
    session.generate(prompt, kGreedy, [&](std::string_view text) {
      streamed += text;
      return true;
    });
    FAIL() << "there are pages for 32 tokens";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
  }
  EXPECT_EQ(streamed, expected.text) << "25 tokens of the prompt and seven more have room";
}

TEST_P(Generate, RefusesBadPrompts) {
  const Model model = load({.context = 40});
  Session session(model);
  const auto message = [&](const std::vector<uint32_t>& prompt) -> std::string {
    try {
      session.generate(prompt, kGreedy);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      return error.what();
    }
    return "no error";
  };
  const std::string too_long = message(std::vector<uint32_t>(41, 9));
  EXPECT_NE(too_long.find("41"), std::string::npos) << too_long;
  EXPECT_NE(too_long.find("40"), std::string::npos) << too_long;
  EXPECT_NE(too_long.find("--ctx"), std::string::npos) << too_long;
  EXPECT_NE(message({}).find("none"), std::string::npos);
  EXPECT_NE(message({5, 70000}).find("70000"), std::string::npos);
  EXPECT_THROW(session.generate("", kGreedy), Error);
  GenerateOptions negative = kGreedy;
  negative.max_tokens = -1;
  EXPECT_THROW(session.generate("x", negative), Error);
  EXPECT_THROW(generate_batch(model, std::vector<std::vector<uint32_t>>(2, {5}), kGreedy), Error);
  EXPECT_EQ(session.generate("x", kGreedy).ids.size(), 24u) << "still usable";
}

TEST_P(Generate, NoTokensAsksForNone) {
  GenerateOptions options = kGreedy;
  options.max_tokens = 0;
  const Generation result = Session(load()).generate("hello", options);
  EXPECT_TRUE(result.ids.empty());
  EXPECT_EQ(result.finish_reason, FinishReason::kLength);
}

// 200 tokens in one step take kernels that shorter steps do not, unless the mode forbids it.
TEST_P(Generate, DeterministicLogitsDoNotDependOnHowAPromptIsCut) {
  const Model model = load({.n_threads = 1, .prefill_chunk = 512, .deterministic = true});
  const std::vector<uint32_t> ids = model.tokenize(std::string(200, 'q'));
  ASSERT_GE(ids.size(), 150u);
  const std::vector<float> whole = Session(model).logits(ids, true);
  for (const int64_t chunk : {1, 7, 64, 140}) {
    const Model other = load({.n_threads = 2, .prefill_chunk = chunk, .deterministic = true});
    EXPECT_EQ(Session(other).logits(ids, true), whole) << chunk << " tokens a step";
  }
}

TEST_P(Generate, LogitsOfTheLastAndOfAllPositionsAgree) {
  const Model model = load({.prefill_chunk = 16});
  const std::vector<uint32_t> ids = model.tokenize(std::string(90, 'q') + " and so on and on");
  Session session(model);
  const std::vector<float> all = session.logits(ids, true);
  const auto vocab_size = static_cast<size_t>(model.info().vocab_size);
  ASSERT_EQ(all.size(), ids.size() * vocab_size);
  const std::vector<float> last = Session(model).logits(ids);
  EXPECT_EQ(last, std::vector<float>(all.end() - static_cast<long>(vocab_size), all.end()));
  EXPECT_EQ(session.logits(ids), last) << "with the prefix in the cache";

  const std::vector<float> likelihoods = session.log_likelihoods(ids);
  ASSERT_EQ(likelihoods.size(), ids.size() - 1);
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    double sum = 0;
    for (size_t j = 0; j < vocab_size; ++j) sum += std::exp(double{all[i * vocab_size + j]});
    EXPECT_NEAR(likelihoods[i], all[i * vocab_size + ids[i + 1]] - std::log(sum), 1e-5) << i;
  }
  EXPECT_TRUE(session.log_likelihoods(std::vector<uint32_t>{5}).empty());
}

}  // namespace
}  // namespace tessera
