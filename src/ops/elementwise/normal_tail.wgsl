// To be included: Value is f32 or vec4<f32>.

// The normal distribution beyond x, 0 <= x <= 13: erfc(z) / 2 with z = x / sqrt 2, from a polynomial
// in t = 3 / (3 + z) for erfc(z) e^(z^2) / t, as the CPU's (cpu/simd.hpp).
fn normal_tail(x: Value) -> Value {
  let t = 3.0 / (3.0 + 0.70710678 * x);
  var p = 0.0570409653 * t - 0.299373093;
  p = p * t + 0.552835878;
  p = p * t - 0.464204354;
  p = p * t + 0.422891742;
  p = p * t - 0.0124823966;
  p = p * t + 0.195865579;
  p = p * t + 0.170607757;
  p = p * t + 0.188787592;
  p = p * t + 0.188030333;
  return 0.5 * t * p * exp(-0.5 * x * x);
}
