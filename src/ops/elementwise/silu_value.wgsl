// To be included: silu. Value, Int and Bits as in exp_negative.wgsl.
#include 'ops/exp_negative.wgsl'

// With e = exp(-|x|): x / (1 + e), or x e / (1 + e) for negative x. The root of e stays normal where
// e itself may be flushed to zero.
fn silu(x: Value) -> Value {
  let root = exp_negative(max(-0.5 * abs(x), Value(-80.0)));
  let numerator = select(x * root * root, x, x >= Value(0.0));
  return numerator / (1.0 + root * root);
}
