import { LOCAL_COMMANDS, runLocal } from './commands.ts';

const USAGE = `Usage: npm run COMMAND, or npm start and npm stop

  up      starts a cluster with a GPU fleet, in the background
  start   starts the cluster and the server, in the foreground unless --detach is given
  status  says what runs
  stop    ends it

The options are in docs/local-cluster.md.
`;

const [name = '', ...args] = process.argv.slice(2);
const command = LOCAL_COMMANDS.find((known) => known === name);
if (command === undefined) process.stderr.write(USAGE);
// A command ends here, also when handles are left open.
process.exit(command === undefined ? 2 : await runLocal(command, args));
