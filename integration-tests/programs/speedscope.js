// Reads a profile by speedscope's own importer, without a browser, and prints what it has understood.
//
//     node speedscope.js <speedscope's bundle> <profile>
//
// The bundle is one script. It makes its modules known by Object.defineProperty, where the importer's functions have
// their full names; the rest of the script, which draws, fails without a page, and need not succeed.
"use strict";
const fs = require("fs");
const vm = require("vm");

const [bundle, profile] = process.argv.slice(2);

// Whatever is asked of a page.
const page = () =>
  new Proxy(function () {}, {
    get: (_, name) => (name === Symbol.toPrimitive ? () => "" : name === "then" ? undefined : page()),
    apply: page,
    construct: page,
    set: () => true,
  });

let importer = null;
const define = Object.defineProperty;
Object.defineProperty = (object, name, descriptor) => {
  if (name === "importProfilesFromArrayBuffer") importer = object;
  return define(object, name, descriptor);
};
for (const name of ["document", "location", "localStorage", "addEventListener", "matchMedia"])
  define(globalThis, name, { value: page(), configurable: true });
globalThis.window = globalThis;
// The standard output is for the result.
console.log = console.time = console.timeEnd = () => {};

try {
  vm.runInThisContext(fs.readFileSync(bundle, "utf8"), bundle);
} catch (error) {
  // There is no page to draw on.
}

async function main() {
  // The bundle makes its modules after it has run.
  await new Promise((done) => setTimeout(done, 0));
  if (!importer) throw new Error("the importer was not found in speedscope's bundle");
  const bytes = new Uint8Array(fs.readFileSync(profile));
  const group = await importer.importProfilesFromArrayBuffer(profile, bytes.buffer);
  if (!group) throw new Error("speedscope does not know the format");
  const profiles = [];
  for (const one of group.profiles) {
    await one.demangle();
    const samples = one.samples.map((leaf, at) => {
      const stack = [];
      for (let node = leaf; node && !node.isRoot(); node = node.parent) stack.push(node.frame.name);
      return { stack: stack.reverse(), weight: one.weights[at] };
    });
    profiles.push({ total: one.getTotalWeight(), samples });
  }
  process.stdout.write(JSON.stringify({ profiles }));
}

main().catch((error) => {
  process.stderr.write(`${String(error.stack).slice(0, 2000)}\n`);
  process.exit(1);
});
