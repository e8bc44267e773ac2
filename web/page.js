// Draws the report of run.js, while it grows and when it is done. Options of the address:
//   ?only=silu,add   these kernels
//   ?show=URL        a report that was saved, instead of a run
//   ?report=URL      where to POST the report; it is in window.tesseraReport as well

import {runKernels} from './run.js';

const options = new URLSearchParams(location.search);
const at = (id) => document.getElementById(id);

function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

// ---- figures for people

function digits(x) {
  if (x === 0) return '0';
  return x >= 99.5 ? Math.round(x).toLocaleString('en') : x.toPrecision(x >= 9.95 ? 3 : 2);
}

function scaled(x, unit) {
  if (x >= 1e12) return `${digits(x / 1e12)} T${unit}`;
  if (x >= 1e9) return `${digits(x / 1e9)} G${unit}`;
  return `${digits(x / 1e6)} M${unit}`;
}

const whole = (x) => x.toLocaleString('en', {maximumFractionDigits: 1});
const bytes = (x) => x >= 2 ** 30 ? `${whole(x / 2 ** 30)} GiB`
                     : x >= 2 ** 20 ? `${whole(x / 2 ** 20)} MiB` : `${whole(x / 2 ** 10)} KiB`;
const time = (ms) => ms < 1 ? `${digits(ms * 1000)} µs` : `${digits(ms)} ms`;
const percent = (share) => share < 0.0005 ? '< 0.1 %' : `${share < 0.0995 ? (100 * share).toFixed(1) : Math.round(100 * share)} %`;
const small = (x) => x === 0 ? '0' : x.toExponential(1).replace('e-', ' × 10⁻').replace(
    /⁻(\d+)$/, (_, n) => '⁻' + [...n].map((c) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[c]).join(''));

// ---- the head

function fact(name, value, note) {
  return make('div', '', make('dt', '', name), make('dd', '', value, ...(note ? [make('small', '', note)] : [])));
}

function drawHead({adapter, features, limits, subgroupSizes, probes, scale}) {
  const offered = (name) => features.includes(name) ? 'yes' : 'no';
  const sizes = subgroupSizes && (subgroupSizes[0] === subgroupSizes[1] ? `size ${subgroupSizes[0]}`
                                                                        : `sizes ${subgroupSizes.join(' to ')}`);
  at('adapter').textContent = adapter;
  at('facts').replaceChildren(
      fact('shader-f16', offered('shader-f16')),
      fact('subgroups', offered('subgroups'), sizes),
      fact('binding', bytes(limits.maxStorageBufferBindingSize)),
      fact('buffer', bytes(limits.maxBufferSize)),
      fact('workgroup memory', bytes(limits.maxComputeWorkgroupStorageSize)),
      fact('threads a group', whole(limits.maxComputeInvocationsPerWorkgroup)),
      fact('storage buffers', whole(limits.maxStorageBuffersPerShaderStage)));
  at('probes').replaceChildren(...(probes ? [
    probe('memory', scaled(probes.copy, 'B/s'), `copying ${bytes(4 * scale.values)}, reads and writes`),
    probe('compute', scaled(probes.fma, 'FLOP/s'), 'f32 multiply-add in registers'),
  ] : []));
}

function probe(limit, figure, what) {
  return make('div', `probe ${limit}`, make('b', '', figure), make('span', '', what));
}

// ---- the table

const MARKS = {right: '✓', wrong: '✗', failed: '✗', skipped: '–', waiting: '·'};

function correctness({status, error, bound}) {
  const mark = make('span', `mark ${status}`, MARKS[status]);
  mark.title = status;
  const figure = make('span', 'figure');
  if (error !== undefined) {
    figure.textContent = small(error);
    figure.title = `the worst error, relative to the norm; ${small(bound)} is allowed there`;
  }
  return make('td', 'error', mark, figure);
}

function bar({limit, share}) {
  const fill = make('i', limit);
  fill.style.width = `${Math.min(100, 100 * share)}%`;
  const cell = make('td', 'bar', make('span', 'track', fill), make('span', 'percent', percent(share)));
  cell.title = `${percent(share)} of the ${limit === 'memory' ? 'copy' : 'multiply-add'} probe`;
  return cell;
}

function kernelRows(kernel) {
  const {name, entry, file, status, message, measured} = kernel;
  const link = make('a', '', name);
  link.href = new URL(`../src/ops/${file}`, import.meta.url);
  // Where the file's name does not say what the entry does, the entry's does.
  const title = make('th', 'name', link, ...(entry === 'main' ? [] : [make('span', 'entry', entry)]));
  title.scope = 'row';
  const problems = measured.length > 0 ? measured : [null];
  const rows = problems.map((problem, i) => {
    const first = i === 0 ? [title, correctness(kernel)] : [make('td', 'name again'), make('td', 'error again')];
    const row = make('tr', i === 0 ? status : `${status} more`, ...first);
    if (problem) {
      row.append(make('td', 'shape', problem.shape), make('td', 'number', time(problem.ms)),
                 make('td', 'number flops', problem.flops ? digits(problem.gflops) : '–'),
                 make('td', 'number bytes', digits(problem.gbytes)), bar(problem));
    } else {
      const cell = make('td', 'message', message ?? '');
      cell.colSpan = 5;
      row.append(cell);
    }
    return row;
  });
  if (message && measured.length > 0) {
    const cell = make('td', 'message', message);
    cell.colSpan = 7;
    rows.push(make('tr', status, cell));
  }
  return rows;
}

const COLUMNS = [['kernel', 'name'], ['worst error', 'error'], ['measured on', 'shape'], ['time', 'number'],
                 ['GFLOP/s', 'number'], ['GB/s', 'number'], ['share of the limit', 'bar']];

function drawTable(kernels) {
  const head = make('thead', '', make('tr', '', ...COLUMNS.map(([title, name]) => make('th', name, title))));
  const bodies = new Map();
  for (const kernel of kernels) {
    if (!bodies.has(kernel.group)) {
      const title = make('th', 'group', kernel.group);
      title.colSpan = COLUMNS.length;
      bodies.set(kernel.group, make('tbody', '', make('tr', '', title)));
    }
    bodies.get(kernel.group).append(...kernelRows(kernel));
  }
  at('kernels').replaceChildren(head, ...bodies.values());
}

function summary({kernels, seconds}) {
  const count = (...wanted) => kernels.filter(({status}) => wanted.includes(status)).length;
  const parts = [`${count('right')} right`];
  if (count('wrong', 'failed')) parts.push(`${count('wrong', 'failed')} not`);
  if (count('skipped')) parts.push(`${count('skipped')} skipped`);
  return `${kernels.length} entries: ${parts.join(', ')} · ${digits(seconds)} s`;
}

function draw(report, doing) {
  drawHead(report);
  drawTable(report.kernels);
  at('progress').textContent = doing || summary(report);
  at('progress').classList.toggle('running', Boolean(doing));
}

// ---- running

async function run() {
  at('again').disabled = true;
  at('trouble').hidden = true;
  let report;
  try {
    if (options.has('show')) {
      report = await (await fetch(options.get('show'))).json();
      draw(report, '');
    } else {
      report = await runKernels({only: options.get('only')?.split(','), listen: draw});
    }
  } catch (error) {
    report = {error: error.message, kernels: []};
    at('trouble').textContent = error.message;
    at('trouble').hidden = false;
    at('progress').textContent = '';
    at('progress').classList.remove('running');
  }
  window.tesseraReport = report;
  at('again').disabled = false;
  if (options.has('report')) {
    await fetch(options.get('report'), {method: 'POST', body: JSON.stringify(report)});
  }
}

at('again').addEventListener('click', run);
run();
