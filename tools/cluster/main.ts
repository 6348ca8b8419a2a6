import { LOCAL_COMMANDS, runLocal } from './commands.ts';

const USAGE = `Usage: npm run COMMAND, or npm start and npm stop

  up      bring up a cluster with a GPU fleet, in the background
  start   the same and the server; stays in the foreground unless --detach
  status  say what runs
  stop    end it

docs/local-cluster.md has the options.
`;

const [name = '', ...args] = process.argv.slice(2);
const command = LOCAL_COMMANDS.find((known) => known === name);
if (command === undefined) process.stderr.write(USAGE);
// A command ends with its code, whatever handles are left.
process.exit(command === undefined ? 2 : await runLocal(command, args));
