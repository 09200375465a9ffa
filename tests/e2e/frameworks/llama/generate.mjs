// Generates tokens with llama.cpp on the GPU. The last line of its output is JSON: what llama.cpp says it holds.
//
// Usage: node generate.mjs MODEL COUNT
import { getLlama } from 'node-llama-cpp';

const [modelPath, count] = process.argv.slice(2);
const logged = [];
const llama = await getLlama({
  gpu: 'cuda', build: 'never', skipDownload: true, progressLogs: false, logLevel: 'debug', logger: (_, line) => logged.push(line),
});
const model = await llama.loadModel({ modelPath, gpuLayers: 'max' });
const context = await model.createContext({ contextSize: 512 });
const sequence = context.getSequence();
let generated = 0;
for await (const _ of sequence.evaluate(model.tokenize('hello'))) {
  if (++generated === Number(count)) break;
}
// Such as "load_tensors: CUDA0 model buffer size = 36.00 MiB".
const sizes = Object.fromEntries(logged.flatMap((line) => [...line.matchAll(/(CUDA\w*) +([\w ]+?) +size *= *([\d.]+) MiB/g)])
  .map(([, device, name, mib]) => [`${device} ${name}`, Number(mib)]));
await context.dispose();
await model.dispose();
await llama.dispose();
console.log(JSON.stringify({ generated, sizes }));
