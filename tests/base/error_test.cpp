#include "base/error.hpp"

#include <gtest/gtest.h>

#include "base/log.hpp"

namespace tessera {
namespace {

TEST(Error, SaysWhereAndWhat) {
  try {
    fail(ErrorKind::kInvalidFile, "model.gguf", "expected {}, got {}", 3, 4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidFile);
    EXPECT_EQ(error.where(), "model.gguf");
    EXPECT_STREQ(error.what(), "model.gguf: expected 3, got 4");
  }
}

TEST(Result, ThrowsItsErrorOnlyWhenAsked) {
  Result<int> good = 3;
  EXPECT_EQ(good.value(), 3);
  Result<int> bad = Error(ErrorKind::kDevice, "matmul", "lost");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().kind(), ErrorKind::kDevice);
  EXPECT_THROW(bad.value(), Error);
}

TEST(Log, LinesReachTheCallbackAndNothingElse) {
  std::string seen;
  set_log_callback([&](LogLevel level, std::string_view line) {
    if (level == LogLevel::kWarning) seen += line;
  });
  log(LogLevel::kInfo, "not this");
  log(LogLevel::kWarning, "{} pages", 7);
  set_log_callback(nullptr);
  log(LogLevel::kWarning, "nor this");
  EXPECT_EQ(seen, "7 pages");
}

}  // namespace
}  // namespace tessera
