import { registerHooks } from 'node:module';
import { PLANTED } from './faults.ts';

// Loaded before everything else, with the name of a fault in the environment.
const fault = PLANTED.find(({ name }) => name === process.env['BERTH_PLANTED_FAULT']);
if (fault === undefined) throw new Error(`There is no planted fault named ${process.env['BERTH_PLANTED_FAULT']}.`);
const ending = `/src/${fault.file}`;
const { from, to } = fault;

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.endsWith(ending)) return loaded;
    const source = Buffer.from(loaded.source as Uint8Array).toString();
    if (source.split(from).length !== 2) throw new Error(`${fault.file} does not have this text once: ${from}`);
    return { ...loaded, source: source.replace(from, () => to) };
  },
});
