// Runs kernels.js on this browser's device and tells a listener how far it is. The report is plain data:
//   {page, date, userAgent, adapter, features, limits, subgroupSizes, scale, probes, kernels, seconds}
// with, in `kernels`, {name, entry, file, group, status, error, bound, message, warnings, measured} and,
// in `measured`, {shape, ms, flops, bytes, gflops, gbytes, limit, share}. `status` is right, wrong,
// failed (it did not compile or run) or skipped (`message` says which feature is missing).

import {openGpu} from './gpu.js';
import {kernels} from './kernels.js';
import {check, copyRate, findScale, fmaRate, measure, share} from './measure.js';

// Options: `only`, names of kernels; `measured`, whether to measure; `f16AsF32`, whether files for f16
// are checked with f32 where the adapter has no f16. `listen(report, doing)` after every step.
export async function runKernels({only, measured = true, f16AsF32 = false, listen = () => {}} = {}) {
  const begin = performance.now();
  let gpu = await openGpu();
  const report = {
    date: new Date().toISOString(), userAgent: navigator.userAgent, adapter: gpu.name,
    features: gpu.features, limits: gpu.limits, subgroupSizes: gpu.subgroupSizes, probes: null,
    kernels: kernels.filter(({name}) => !only || only.includes(name)).map(
        ({name, entry, file, group}) => ({name, entry, file, group, status: 'waiting', measured: []})),
  };
  const seen = (doing) => {
    for (const {measured: problems} of report.kernels) {
      problems.forEach((problem) => Object.assign(problem, share(problem, report.probes)));
    }
    listen(report, doing);
    return new Promise((resolve) => setTimeout(resolve));  // lets the page draw
  };
  const probe = async (fma) => {
    const before = report.probes ?? {copy: 0, fma: 0};
    report.probes = {copy: Math.max(before.copy, await copyRate(gpu, report.scale.values)),
                     fma: Math.max(before.fma, fma ?? await fmaRate(gpu))};
  };

  if (measured) {
    await seen('measuring what this device can');
    const {values, side, fma} = await findScale(gpu);
    report.scale = {values, side};
    await probe(fma);
  }
  for (const [i, result] of report.kernels.entries()) {
    const kernel = kernels.find(({name, entry}) => name === result.name && entry === result.entry);
    await seen(`${kernel.name} ${kernel.entry}, ${i + 1} of ${report.kernels.length}`);
    const lacks = kernel.needs && !gpu.features.includes(kernel.needs);
    const f32Weights = lacks && f16AsF32 && kernel.needs === 'shader-f16';
    if (lacks && !f32Weights) {
      Object.assign(result, {status: 'skipped', message: `needs ${kernel.needs}, which this adapter lacks`});
      continue;
    }
    try {
      if (gpu.isLost) gpu = await openGpu();
      const {ok, error, bound, what, pipeline, messages} = await check(gpu, kernel, {f32Weights});
      Object.assign(result, {status: ok ? 'right' : 'wrong', error, bound, warnings: messages,
                             message: ok ? '' : what});
      if (!ok || !measured || f32Weights) continue;
      for (const size of kernel.measured(report.scale)) {
        result.measured.push(await measure(gpu, kernel, pipeline, size));
        await seen(`${kernel.name} ${kernel.entry}, ${i + 1} of ${report.kernels.length}`);
      }
    } catch (error) {
      Object.assign(result, {status: 'failed', message: error.message});
    }
  }
  if (measured && !gpu.isLost) {
    await seen('measuring the limits once more');
    await probe();  // a limit is the best that was seen: clocks may have risen
  }
  report.seconds = (performance.now() - begin) / 1000;
  await seen('');
  return report;
}
