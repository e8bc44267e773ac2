// Rows of f32 to q8 (ops/quantize/quantize_rows.hpp): scales, sums and int8 values in three planes. One
// thread makes a block of 32. The bits are those of f32 arithmetic rounded to nearest, which WGSL does
// not promise of a division: quotients, and the products that are rounded, are taken in integers.
//   LIVE   1: rows from live[live_first] on are not touched
struct Params {
  n_rows: u32,
  n_blocks: u32,  // of a row
  y_first: u32,   // in words
  y_stride: u32,
  x_first: u32,
  x_stride: u32,
  live_first: u32,
}
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<u32>;
#if LIVE
@group(0) @binding(2) var<storage, read> live: array<u32>;
#endif
@group(0) @binding(${2 + LIVE}) var<uniform> params: Params;

// A positive number as its mantissa, 2^23 <= m < 2^24, times 2^(e - 150), from bits that may be
// subnormal.
struct Parts {
  m: u32,
  e: i32,
}

fn parts_of(bits: u32) -> Parts {
  let m = bits & 0x7fffffu;
  if (bits >= 0x800000u) {
    return Parts(m | 0x800000u, i32(bits >> 23u));
  }
  let shift = countLeadingZeros(m) - 8u;
  return Parts(m << shift, 1 - i32(shift));
}

// The bits of a / b, a and b from parts_of, rounded to nearest even; infinity's where it overflows.
fn quotient(a: Parts, b: Parts) -> u32 {
  // 26 bits of the quotient of mantissas, one at a time, and whether anything is left.
  var rest = a.m;
  var e = a.e - b.e + 127;
  if (rest < b.m) {
    rest = rest << 1u;
    e = e - 1;
  }
  var q = 0u;
  for (var i = 0u; i < 26u; i++) {
    q = q << 1u;
    if (rest >= b.m) {
      rest = rest - b.m;
      q = q | 1u;
    }
    rest = rest << 1u;
  }
  q = q | select(0u, 1u, rest > 0u);  // sticky
  // 2^25 <= q < 2^26, of which two bits go; more where the result is subnormal.
  var drop = 2u;
  if (e < 1) {
    drop = min(2u + u32(1 - e), 27u);
  }
  let kept = q >> drop;
  let left = q - (kept << drop);
  let half = 1u << (drop - 1u);
  let rounded = kept + select(0u, 1u, left > half || (left == half && (kept & 1u) == 1u));
  if (e < 1) {
    return rounded;
  }
  return min(rounded + (u32(e - 1) << 23u), 0x7f800000u);
}

// a b rounded to f32 and then to the nearest even whole number, for b > 0 and |a b| < 128: the product
// in integers, so that no driver fuses or flushes anything.
fn whole_product(a_bits: u32, b: Parts) -> i32 {
  let size = a_bits & 0x7fffffffu;
  if (size == 0u) {
    return 0;
  }
  let a = parts_of(size);
  // The product of mantissas, 2^46 <= p < 2^48, in two words of 24 bits.
  let a_low = a.m & 0xfffu;
  let a_high = a.m >> 12u;
  let b_low = b.m & 0xfffu;
  let b_high = b.m >> 12u;
  let middle = a_low * b_high + a_high * b_low + ((a_low * b_low) >> 12u);
  var high = a_high * b_high + (middle >> 12u);
  let low = ((middle & 0xfffu) << 12u) | ((a_low * b_low) & 0xfffu);
  var e = a.e + b.e - 300 + 24;  // the product is (high + low / 2^24) 2^e
  // To 24 bits.
  var m: u32;
  if (high >= 0x800000u) {
    m = high + select(0u, 1u, low > 0x800000u || (low == 0x800000u && (high & 1u) == 1u));
  } else {
    let doubled = (high << 1u) | (low >> 23u);
    let rest = (low << 1u) & 0xffffffu;
    m = doubled + select(0u, 1u, rest > 0x800000u || (rest == 0x800000u && (doubled & 1u) == 1u));
    e = e - 1;
  }
  if (m == 0x1000000u) {
    m = 0x800000u;
    e = e + 1;
  }
  // m 2^e is below 128, so e <= -17; below 2^-25 nothing is left.
  let shift = u32(-e);
  var whole = 0u;
  if (shift <= 24u) {
    whole = m >> shift;
    let rest = m - (whole << shift);
    let half = 1u << (shift - 1u);
    whole += select(0u, 1u, rest > half || (rest == half && (whole & 1u) == 1u));
  }
  return select(i32(whole), -i32(whole), (a_bits & 0x80000000u) != 0u);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) n_groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
#if LIVE
  let n_rows = min(params.n_rows, live[params.live_first]);
#else
  let n_rows = params.n_rows;
#endif
  let i = (group.y * n_groups.x + group.x) * 256u + thread;
  let row = i / params.n_blocks;
  let block = i % params.n_blocks;
  if (row >= n_rows) {
    return;
  }
  let source = params.x_first + row * params.x_stride + 32u * block;
  let target_row = params.y_first + row * params.y_stride;
  let quants = target_row + 2u * params.n_blocks + 8u * block;
  var largest = 0u;  // bits of magnitudes are in order
  for (var k = 0u; k < 32u; k++) {
    largest = max(largest, x[source + k] & 0x7fffffffu);
  }
  let k127 = parts_of(0x42fe0000u);
  var scale = 0u;
  var sum = 0u;
  var inverse = 0x7f800000u;
  if (largest > 0u && largest < 0x7f800000u) {
    inverse = quotient(k127, parts_of(largest));
  }
  if (inverse < 0x7f800000u) {
    let inverse_parts = parts_of(inverse);
    scale = quotient(parts_of(largest), k127);
    var total = 0;
    for (var w = 0u; w < 8u; w++) {
      var word = 0u;
      for (var k = 0u; k < 4u; k++) {
        let q = whole_product(x[source + 4u * w + k], inverse_parts);
        total += q;
        word |= (bitcast<u32>(q) & 0xffu) << (8u * k);
      }
      y[quants + w] = word;
    }
    sum = bitcast<u32>(bitcast<f32>(scale) * f32(total));
  } else {
    for (var w = 0u; w < 8u; w++) {
      y[quants + w] = 0u;
    }
    if (largest >= 0x7f800000u) {
      scale = 0x7fc00000u;
      sum = 0x7fc00000u;
    }
  }
  y[target_row + block] = scale;
  y[target_row + params.n_blocks + block] = sum;
}
