// The WGSL files with a fixed interface as a browser needs them: for every entry what to bind, what to
// put into the uniform, what to dispatch, what should come out and how far off it may be.
//
// `kernels` is a list of
//   {name, entry, file, needs, group, checks, measured, make}
// where `file` is below src/ops/, `needs` a WebGPU feature or undefined, `make(...size)` a problem,
// `checks` the sizes of small problems that every value is checked of, and `measured(scale)` the sizes
// of problems to measure (see `scale` in measure.js). A problem is
//   {shape, bindings, uniform, grid, keepsY, flops, bytes, outputs}
// with the storage bindings in order (an array: its contents; a number: that many floats to be
// written), and `outputs` by binding: at(i) is the value of element i in double precision, the norm
// that its error is relative to, and the units of 2^-24 that it may be off by: the error model is
// eps x length x norm. Bytes are the least that must be moved.

const PERIOD = 1000003;  // values before inputs repeat: making 2^25 of them would take seconds

// Uniform in [-scale, scale).
export function random(n, seed, scale = 1) {
  const values = new Float32Array(n);
  let state = (seed * 2654435761 + 1) >>> 0;
  for (let i = 0; i < Math.min(n, PERIOD); ++i) {
    state ^= state << 13;
    state ^= state >>> 17;
    state = (state ^ (state << 5)) >>> 0;
    values[i] = ((state >>> 8) / 2 ** 23 - 1) * scale;
  }
  for (let filled = PERIOD; filled < n; filled *= 2) {
    values.copyWithin(filled, 0, Math.min(filled, n - filled));
  }
  return values;
}

const bits = (value) => new Uint32Array(Float32Array.of(value).buffer)[0];
const ceilDiv = (a, b) => Math.ceil(a / b);
const sigmoid = (x) => 1 / (1 + Math.exp(-x));

// at(i) of an output whose rows of `width` are computed together; the last row is kept.
function rows(width, compute) {
  let last = -1, row;
  return (i) => {
    const index = Math.floor(i / width);
    if (index !== last) [last, row] = [index, compute(index)];
    return row(i - index * width);
  };
}

// ---- one value at a time

// exp may be wrong by 3 + 2 |x| units in the last place, each of two roundings.
const units = {
  add: () => 1,
  mul: () => 1,
  silu: (x) => 2 * (10 + 2 * Math.abs(x)),
  gelu: (x) => 2 * (10 + 8 * Math.abs(geluArgument(x))),
};
const geluArgument = (x) => 2 * 0.7978845608 * (x + 0.044715 * x ** 3);
const formula = {
  add: (a, b) => a + b,
  mul: (a, b) => a * b,
  silu: (x) => x * sigmoid(x),
  gelu: (x) => x * sigmoid(geluArgument(x)),
};
const flopsOfOne = {add: 1, mul: 1, silu: 4, gelu: 9};

function elementwise(name, perThread) {
  return (n) => {
    const inputs = [random(n, 1, 8), random(n, 2, 8)].slice(0, formula[name].length);
    const at = (i) => {
      const x = inputs.map((values) => values[i]);
      const value = formula[name](...x);
      return {value, norm: Math.abs(value), units: units[name](...x)};
    };
    return {
      shape: n.toLocaleString('en'), bindings: [...inputs, n], uniform: [n], grid: [ceilDiv(n, 256 * perThread)],
      flops: n * flopsOfOne[name], bytes: 4 * n * (inputs.length + 1),
      outputs: {[inputs.length]: {length: n, at}},
    };
  };
}

function embedding(perThread) {
  return (t, d, v) => {
    const weight = random(v * d, 3);
    // The second is not in the table: a row of zeros.
    const ids = Uint32Array.from({length: t}, (_, i) => i === 1 ? v : (i * 7919 + 3) % v);
    const at = (i) => {
      const id = ids[Math.floor(i / d)];
      const value = id < v ? weight[id * d + i % d] : 0;
      return {value, norm: Math.abs(value), units: 0};
    };
    return {
      shape: `${t} of [${v}, ${d}]`, bindings: [ids, weight, t * d], uniform: [t, d],
      grid: [ceilDiv(t * d, 256 * perThread)], flops: 0, bytes: 4 * (2 * t * d + t),
      outputs: {2: {length: t * d, at}},
    };
  };
}

// ---- rows

function norm(layer, perThread) {
  return (t, d) => {
    const [x, w, b] = [random(t * d, 4, 2), random(d, 5), random(d, 6)];
    const at = rows(d, (index) => {
      const row = x.subarray(index * d, (index + 1) * d);
      const mean = layer ? row.reduce((sum, value) => sum + value, 0) / d : 0;
      const square = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / d;
      const largest = row.reduce((a, value) => Math.max(a, Math.abs(value)), 0);
      const scale = 1 / Math.sqrt(square + 1e-5);
      return (i) => {
        const y = (row[i] - mean) * scale * w[i];
        const value = y + (layer ? b[i] : 0);
        // A thread adds up to d / 16 values, then a tree; layernorm's differences have the error of
        // the mean as well.
        return {value, units: 2 * (d / 16 + 16),
                norm: Math.abs(y) + Math.abs(value) + (layer ? largest * scale * Math.abs(w[i]) : 0)};
      };
    });
    const bindings = layer ? [x, w, b, t * d] : [x, w, t * d];
    return {
      shape: `${t} × ${d}`, bindings, uniform: [t, d, bits(1e-5), 0], grid: [ceilDiv(t, perThread)],
      flops: t * d * (layer ? 7 : 4), bytes: 4 * (2 * t * d + (layer ? 2 : 1) * d),
      outputs: {[bindings.length - 1]: {length: t * d, at}},
    };
  };
}

function softmax(perThread) {
  return (r, c) => {
    const x = random(r * c, 7, 10);
    const at = rows(c, (index) => {
      const row = x.subarray(index * c, (index + 1) * c);
      const largest = row.reduce((a, b) => Math.max(a, b));
      const sum = row.reduce((total, value) => total + Math.exp(value - largest), 0);
      return (i) => {
        const value = Math.exp(row[i] - largest) / sum;
        return {value, norm: value, units: 2 * (2 * (3 + 2 * (largest - row[i])) + c / 16 + 60)};
      };
    });
    return {
      shape: `${r} × ${c}`, bindings: [x, r * c], uniform: [r, c], grid: [ceilDiv(r, perThread)],
      flops: 5 * r * c, bytes: 8 * r * c, outputs: {1: {length: r * c, at}},
    };
  };
}

// ---- rope, attention

function rope(perThread) {
  return (t, heads, kvHeads, d, offset) => {
    const q = random(t * heads * d, 8), k = random(t * kvHeads * d, 9);
    const rotated = (x, n) => ({length: x.length, at: (i) => {
      const token = Math.floor(i / (n * d)), pair = Math.floor(i % d / 2);
      const angle = (offset + token) * 10000 ** (-2 * pair / d);
      const [a, b] = [x[i - i % 2], x[i - i % 2 + 1]];
      const value = i % 2 === 0 ? a * Math.cos(angle) - b * Math.sin(angle)
                                : a * Math.sin(angle) + b * Math.cos(angle);
      // Angles are kept in 2^-32 turns, frequencies are right to that and to 2^-29 of themselves.
      const angleUnits = ((offset + token) * 6.3 * 2 ** -32 + angle * 2 ** -29) * 2 ** 24;
      return {value, norm: Math.hypot(a, b), units: angleUnits + 6};
    }});
    const pairs = t * Math.max(heads, kvHeads) * d / 2;
    return {
      shape: `${t} × (${heads} + ${kvHeads}) × ${d}`, bindings: [q, k],
      uniform: [t, heads, kvHeads, d, bits(10000), offset], grid: [ceilDiv(pairs, 256 * perThread)],
      flops: 3 * (q.length + k.length), bytes: 8 * (q.length + k.length),
      outputs: {0: rotated(q, heads), 1: rotated(k, kvHeads)},
    };
  };
}

function attention(t, s, heads, kvHeads, d, offset) {
  const q = random(t * heads * d, 9, 3), k = random(s * kvHeads * d, 10, 3);
  const v = random(s * kvHeads * d, 11);
  const visible = (token) => Math.min(s, offset + token + 1);
  const at = rows(d, (index) => {
    const token = Math.floor(index / heads), head = index % heads;
    const kv = Math.floor(head / (heads / kvHeads));
    const n = visible(token), scores = new Float64Array(n);
    let scoreUnits = 0;
    for (let j = 0; j < n; ++j) {
      let size = 0;
      for (let c = 0; c < d; ++c) {
        const term = q[index * d + c] * k[(j * kvHeads + kv) * d + c];
        scores[j] += term / Math.sqrt(d);
        size += Math.abs(term) / Math.sqrt(d);
      }
      scoreUnits = Math.max(scoreUnits, (d / 4 + 8) * size);
    }
    const largest = scores.reduce((a, b) => Math.max(a, b));
    const weights = scores.map((score) => Math.exp(score - largest));
    const sum = weights.reduce((a, b) => a + b);
    const spread = weights.reduce((a, p, j) => a + p * (largest - scores[j]), 0) / sum;
    // What a weight may be off, twice (weights and their sum), and the additions.
    const allowed = 2 * (2 * scoreUnits + 2 * (3 + 2 * spread + 8)) + n / 8 + 18;
    return (c) => {
      let value = 0, size = 0;
      weights.forEach((p, j) => {
        value += p / sum * v[(j * kvHeads + kv) * d + c];
        size += p / sum * Math.abs(v[(j * kvHeads + kv) * d + c]);
      });
      return {value, norm: size, units: allowed};
    };
  });
  let pairs = 0;
  for (let token = 0; token < t; ++token) pairs += visible(token);
  return {
    shape: `${t} on ${s}, ${heads}/${kvHeads} × ${d}`, bindings: [q, k, v, t * heads * d],
    uniform: [t, s, heads, kvHeads, d, offset], grid: [t, heads], keepsY: true,
    flops: 4 * pairs * heads * d, bytes: 4 * (2 * t * heads * d + 2 * s * kvHeads * d),
    outputs: {3: {length: t * heads * d, at}},
  };
}

// ---- products: x(i, j) and w(j, c) are the operands' values

function product(m, n, k, x, w, {residual, extraUnits = 0} = {}) {
  return {length: m * n, at: (i) => {
    const row = Math.floor(i / n), column = i % n;
    let value = residual ? residual[i] : 0, size = Math.abs(value);
    for (let j = 0; j < k; ++j) {
      const term = x(row, j) * w(j, column);
      value += term;
      size += Math.abs(term);
    }
    return {value, norm: size, units: k + 4 + extraUnits};
  }};
}

function matmul(m, n, k) {
  const a = random(m * k, 12), b = random(k * n, 13);
  return {
    shape: `${m} × ${n} × ${k}`, bindings: [a, b, m * n], uniform: [m, k, n],
    grid: [ceilDiv(n, 16), ceilDiv(m, 16)], flops: 2 * m * n * k, bytes: 4 * (m * k + k * n + m * n),
    outputs: {2: product(m, n, k, (i, j) => a[i * k + j], (j, c) => b[j * n + c])},
  };
}

function matmulInt4(m, n, k, group) {
  const groups = ceilDiv(k * n, group), nWords = ceilDiv(k * n, 8);
  const a = random(m * k, 14), scales = random(groups, 15, 0.1);
  const zeros = random(groups, 16, 4).map((zero) => zero + 8);
  const words = new Uint32Array(random(nWords, 17).buffer).map((word) => Math.imul(word, 2654435761));
  const b = (j, c) => {
    const flat = j * n + c, g = Math.floor(flat / group);
    return ((words[flat >>> 3] >>> 4 * (flat % 8) & 15) - zeros[g]) * scales[g];
  };
  return {
    shape: `${m} × ${n} × ${k}, groups of ${group}`, bindings: [a, words, scales, zeros, m * n],
    uniform: [m, k, n, group], grid: [ceilDiv(n, 16), ceilDiv(m, 16)],
    flops: 2 * m * n * k, bytes: 4 * (m * k + nWords + 2 * groups + m * n),
    outputs: {4: product(m, n, k, (i, j) => a[i * k + j], b, {extraUnits: 4})},
  };
}

// The linear family: which of the three, and whether W is f16.
function linear({residual, swiglu, half}) {
  return (m, n, k) => {
    const x = random(m * k, 18, 2), up = random(m * k, 19, 2), r = random(m * n, 21);
    const w = half ? Float16Array.from(random(k * n, 20)) : random(k * n, 20);
    const bindings = [x, ...(swiglu ? [up] : []), w, ...(residual ? [r] : []), m * n];
    const hidden = swiglu ? (i, j) => x[i * k + j] * sigmoid(x[i * k + j]) * up[i * k + j]
                          : (i, j) => x[i * k + j];
    return {
      shape: `${m} × ${n} × ${k}`, bindings, uniform: [m, n, k, 0],
      grid: [ceilDiv(n, 64), ceilDiv(m, 64)], flops: 2 * m * n * k,
      bytes: 4 * m * (k * (swiglu ? 2 : 1) + n * (residual ? 2 : 1)) + (half ? 2 : 4) * k * n,
      // Without f16 in the adapter its file can still be compiled with f32 in its place.
      f32Bindings: bindings.map((data) => data === w ? Float32Array.from(w) : data),
      outputs: {[bindings.length - 1]: product(m, n, k, hidden, (j, c) => w[j * n + c],
                                               {residual: residual && r, extraUnits: swiglu ? 24 : 0})},
    };
  };
}

function matvec(nRows, nColumns) {
  const w = random(nRows * nColumns, 22), x = random(nColumns, 23);
  return {
    shape: `${nRows} × ${nColumns}`, bindings: [w, x, nRows], uniform: [nRows, nColumns],
    grid: [ceilDiv(nRows, 4)], flops: 2 * w.length, bytes: 4 * (w.length + x.length + nRows),
    outputs: {2: product(nRows, 1, nColumns, (i, j) => w[i * nColumns + j], (j) => x[j])},
  };
}

// ---- the table

// main, and main_vec4 on a quarter of the grid.
function bothEntries(name, folder, make, checks, measured) {
  const both = {name, file: `${folder}/${name}.wgsl`, group: 'The layers of a transformer',
                checks, measured: (scale) => [measured(scale)]};
  return [{...both, entry: 'main', make: make(1)}, {...both, entry: 'main_vec4', make: make(4)}];
}

// Rows for teams of 16 to 256 threads, and one that does not fit their registers.
const ROW_CHECKS = [[9, 100], [9, 300], [2, 4500]];
const WIDTH = 1024;  // of the rows that are measured
const rowsOf = ({values}) => [values / WIDTH, WIDTH];
const elementwiseBoth = (name) => bothEntries(
    name, 'elementwise', (perThread) => elementwise(name, perThread), [[5000], [260]],
    ({values}) => [values]);

// A matrix of `values`, as square as powers of two get.
function matrixOf({values}) {
  const columns = 2 ** Math.floor(Math.log2(values) / 2);
  return [values / columns, columns];
}

const product2 = {group: 'The layers of a transformer', entry: 'main'};
const linearOf = (name, kind) => ['', '_w16'].map((suffix) => ({
  name: `linear${suffix}`, entry: `${name}${suffix}`, file: `matmul/linear${suffix}.wgsl`,
  needs: suffix ? 'shader-f16' : undefined, group: 'The linear layers of a trainer',
  make: linear({...kind, half: suffix !== ''}),
  checks: [[70, 68, 52], [1, 4, 4], [64, 64, 64], [65, 4, 100]],
  measured: ({side}) => [[side, side, side]],
}));

const linearKernels = [linearOf('matmul', {}), linearOf('matmul_residual', {residual: true}),
                       linearOf('matmul_residual_swiglu_a', {residual: true, swiglu: true})];

export const kernels = [
  ...bothEntries('embedding', 'embedding', embedding, [[5, 36, 7]],
                 ({values}) => [values / WIDTH, WIDTH, values / WIDTH]),
  ...bothEntries('rmsnorm', 'norm', (perThread) => norm(false, perThread), ROW_CHECKS, rowsOf),
  ...bothEntries('layernorm', 'norm', (perThread) => norm(true, perThread), ROW_CHECKS, rowsOf),
  ...bothEntries('rope', 'rope', rope, [[5, 6, 2, 64, 5000], [3, 2, 4, 80, 0]],
                 ({values}) => [values / 1024, 16, 4, 64, 0]),
  ...bothEntries('softmax', 'softmax', softmax, [[9, 20], ...ROW_CHECKS], rowsOf),
  ...elementwiseBoth('silu'), ...elementwiseBoth('gelu'), ...elementwiseBoth('add'),
  ...elementwiseBoth('mul'),
  {...product2, name: 'attention', file: 'attention/attention.wgsl', make: attention,
   checks: [[3, 200, 4, 2, 64, 190], [40, 40, 2, 1, 80, 0]],
   measured: ({side, values}) => {
     const s = Math.min(values / 512, 16384);
     return [[side, side, 8, 2, 64, 0], [1, s, 32, 8, 64, s - 1]];
   }},
  {...product2, name: 'matmul', file: 'matmul/matmul.wgsl', make: matmul,
   checks: [[1, 50, 100], [20, 30, 70], [250, 260, 40]],
   measured: (scale) => [[scale.side, scale.side, scale.side], [1, ...matrixOf(scale)]]},
  {...product2, name: 'matmul_int4', file: 'matmul/matmul_int4.wgsl', make: matmulInt4,
   checks: [[1, 40, 64, 32], [20, 17, 30, 5], [250, 260, 40, 32]],
   measured: (scale) => [[scale.side, scale.side, scale.side, 128], [1, ...matrixOf(scale), 128]]},
  ...linearKernels.map(([f32]) => f32), ...linearKernels.map(([, f16]) => f16),
  ...['simd_matvec', 'simd_matvec_shared'].map((name) => ({
    name, entry: 'main', file: `matmul/${name}.wgsl`, group: 'A matrix times a vector',
    needs: name === 'simd_matvec' ? 'subgroups' : undefined, make: matvec,
    checks: [[70, 500], [3, 129]], measured: (scale) => [matrixOf(scale)],
  })),
];
