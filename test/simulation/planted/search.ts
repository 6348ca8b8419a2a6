import { actsOf, runEpisode } from '../episode.ts';
import { USUAL } from '../run.ts';
import { say } from '../say.ts';
import { FOUND } from './run.ts';

// Tries so many seeds, and stops at the first that breaks something.
const most = Number(process.argv[2]);
for (let seed = 1; seed <= most && process.exitCode !== FOUND; seed += 1) {
  const { violations } = await runEpisode(seed, USUAL, actsOf(seed, USUAL));
  const [first] = violations;
  if (first === undefined) continue;
  say(`seed ${seed}: ${first.invariant}: ${first.what}`);
  process.exitCode = FOUND;
}
