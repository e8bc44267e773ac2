#pragma once

#include <concepts>
#include <optional>

namespace tessera {

/// Sums and products of sizes that come from a file go through these: nullopt on overflow.
template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, T b) {
  T result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_mul(T a, T b) {
  T result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <std::integral T>
[[nodiscard]] constexpr T ceil_div(T a, T b) {
  return a / b + (a % b != 0);
}

template <std::integral T>
[[nodiscard]] constexpr T round_up(T a, T multiple) {
  return ceil_div(a, multiple) * multiple;
}

}  // namespace tessera
