import { systemCode } from '../lib/failure.ts';
import { LOCAL_COMMANDS, runLocal } from './commands.ts';

const USAGE = `Usage: npm run COMMAND, or npm start and npm stop

  up      starts a cluster with a GPU fleet, in the background
  start   starts cluster and server, in the foreground unless --detach is given
  status  says what runs
  sign-in prints a link that signs in to the dashboard once, within a minute
  stop    ends it

Options of up and start, after --, for example npm start -- --detach:

  --detach           start: leaves the cluster running in the background
  --port N           start: port of the HTTP interface
  --ssh-port N       start: port of the SSH gateway
  --kubeconfig FILE  uses the cluster of this file and starts none
  --context NAME     context of that file
  --built            builds or downloads Kubernetes also where kind is there
  --dra              gives the GPUs of the real node by a DRA driver
  --yes              installs missing packages without a question

docs/build/local-cluster.md says more.
`;

const [name = '', ...args] = process.argv.slice(2);
const command = LOCAL_COMMANDS.find((known) => known === name);
const help = args.includes('--help') || name === '--help';
// A reader that has left, such as `head -1`, must not end a cluster that starts.
for (const stream of [process.stdout, process.stderr]) stream.on('error', ignoreClosedPipe);
if (help) process.stdout.write(USAGE);
else if (command === undefined) process.stderr.write(USAGE);
// A command ends here, also when handles are left open.
process.exit(help ? 0 : command === undefined ? 2 : await runLocal(command, args));

function ignoreClosedPipe(error: Error): void {
  if (systemCode(error) !== 'EPIPE') throw error;
}
