// To be included: an exponential that is right to two units of the last place, which drivers' are not.
// The including file declares Value (f32 or vec4<f32>) and Int, Bits with as many i32 and u32.

// exp(x) for -87.3 <= x <= 0: 2^n times a polynomial of the rest (Cephes expf). n * 0.693359375 is
// exact.
fn exp_negative(x: Value) -> Value {
  let n = round(x * 1.4426950408889634);
  let r = (x - n * 0.693359375) + n * 2.1219444005469058e-4;
  var p = 1.9875691500e-4 * r + 1.3981999507e-3;
  p = p * r + 8.3334519073e-3;
  p = p * r + 4.1665795894e-2;
  p = p * r + 1.6666665459e-1;
  p = p * r + 5.0000001201e-1;
  p = p * r * r + r + 1.0;
  return p * bitcast<Value>((Int(n) + Int(127)) << Bits(23u));
}
